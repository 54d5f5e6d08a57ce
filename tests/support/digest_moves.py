"""Which digests must move with each field of a scenario, and why.

Digests come one after the other: the first model, a training that starts from it, what is sent of it, the next model of
a server, the cloud's model above several servers, and the evaluation of a model. What moves one moves all that follow
from it. The digest of the scenario itself moves with every field.
"""

from typing import Final, NamedTuple

from fedsim.learning import TASKS
from tests.support.field_values import NOT_INSTALLED


class Moves(NamedTuple):
    """Digests that move together, and the reason."""

    digests: frozenset[str]
    reason: str


def _moves(digests: str, reason: str) -> Moves:
    return Moves(frozenset(digests.split()), reason)


DIGESTS: Final = frozenset({"start", "training", "sent", "model", "cloud", "evaluation"})
"""Of the first model, trainings, what is sent, the next model of a server, the cloud's model, and the evaluation."""

START: Final = _moves(
    "start training sent model cloud evaluation", "the model, the data that it is for, or the draw of its first weights"
)
TRAIN: Final = _moves("training sent model cloud evaluation", "the samples of a client, or what is done with them")
SEND: Final = _moves("sent model cloud evaluation", "the training is the same, what leaves the client differs")
STEP: Final = _moves("model cloud evaluation", "updates are the same, their weights or the step differ")
JUDGE: Final = _moves("evaluation", "models are the same, what is said of them differs")
MERGE: Final = _moves("cloud", "models of edge servers are the same, their shares, members or the cloud's step differ")
TIMES: Final = _moves("", "times alone: they decide which trainings are needed, not what comes of one")
WHO: Final = _moves("", "who takes part, and when a round is over: which trainings are needed, not what comes of one")
ANSWERS: Final = _moves(
    "sent model cloud evaluation",
    "what clients answer about their sizes, and what that leaves of the budget",
)
DRAWS: Final = _moves("", "who takes part, and which samples its clients draw in a round: nothing of a whole training")
SHOWN: Final = _moves("", "names, measures and figures")
STANDS_FOR: Final = _moves("", "stands for a bigger model in the times of transfers and work")
ENOUGH: Final = _moves("", "counts by the samples that it gives to clients, and here all have enough")

NO_EFFECT: Final = _moves("", "adds the same number to the score of every class, so that no label depends on it")
UNUSED: Final = _moves("", "counts for a law that is not the one of the scenario")
UNASKED: Final = _moves("", "numbers beside updates, or shares of labels, for which the selector does not ask")

SPENDS: Final = _moves(
    "sent model cloud evaluation", "who takes part; and numbers beside updates take a share of the budget of privacy"
)

COMPOSED: Final = _moves("sent model cloud evaluation", "goes with the mechanism 'gaussian', which is another one here")

CHECKED: Final = _moves("", "says what the content must be, and nothing else is accepted")

Row = tuple[str, Moves, str]

_LEARNING: Final[list[Row]] = [
    ("", SHOWN, "name"),
    ("", START, "seed learning"),
    ("", SEND, "privacy"),
    ("", TIMES, "network"),
    ("", SPENDS, "selector"),
    ("crowd", TRAIN, "clients"),
    ("crowd", TIMES, "placement"),
    ("learning supervised", START, "data model"),
    ("learning supervised", TRAIN, "split task"),
    ("learning.task classification", TRAIN, "flip shift"),
    ("learning.task regression", TRAIN, "loss padding"),
    ("learning.task multi-label", TRAIN, "padding"),
    ("learning.task next-token", TRAIN, "padding"),
    *((f"learning.task {kind}", JUDGE, "metrics") for kind in TASKS.builtin),
    ("learning.task.metrics top-k", JUDGE, "k"),
    ("learning supervised", TRAIN, "algorithm compression"),
    ("learning.algorithm fedprox", TRAIN, "mu"),
    ("learning.algorithm heterofl", TRAIN, "widths client_widths"),
    ("learning.algorithm fedrolex", TRAIN, "widths client_widths"),
    ("learning.algorithm feddyn", TRAIN, "alpha"),
    ("learning.algorithm fedper", TRAIN, "layers"),
    ("learning.algorithm moon", TRAIN, "mu temperature"),
    ("learning supervised", STEP, "server aggregation"),
    ("learning supervised", ENOUGH, "allow_empty"),
    ("learning supervised", STANDS_FOR, "model_bits flops_per_sample"),
    ("learning none", STANDS_FOR, "model_bits downlink_bits uplink_bits samples_per_client flops_per_sample"),
    ("learning.data digits", START, "train_limit"),
    ("learning.data diabetes", START, "train_limit"),
    ("learning.data mnist", START, "train_limit"),
    ("learning.data fashion-mnist", START, "train_limit"),
    ("learning.data cifar-10", START, "train_limit"),
    ("learning.data cifar-100", START, "train_limit"),
    ("learning.data emnist", START, "train_limit division"),
    ("learning.data femnist", START, "train_limit users"),
    ("learning.data omniglot", START, "train_limit part side"),
    ("learning.data spoken-digits", START, "train_limit"),
    ("learning.data speech-commands", START, "train_limit"),
    ("learning.data mind", START, "train_limit length vocabulary glove folder samples"),
    ("learning.data amazon-reviews", START, "train_limit length vocabulary glove name"),
    ("learning.data tiny-shakespeare", START, "train_limit length stride train_share targets"),
    ("learning.data synthetic", START, "train_limit b users features classes seed"),
    ("learning.data synthetic", NO_EFFECT, "a"),
    ("learning.data idx-files", START, "train_limit name classes users"),
    ("learning.data idx-files", CHECKED, "digest"),
    ("learning.split dirichlet", TRAIN, "alpha per rounding"),
    ("learning.split dirichlet", ENOUGH, "min_samples"),
    ("learning.split sizes", TRAIN, "samples"),
    ("learning.split quantity-skew", TRAIN, "concentration dominant_share min_fraction"),
    ("learning.split natural", TRAIN, "choose"),
    ("learning.split natural", ENOUGH, "min_samples"),
    ("learning.split shards", TRAIN, "shards"),
    ("learning.split log-normal", TRAIN, "sigma mean_samples"),
    ("learning.split log-normal", ENOUGH, "min_samples"),
    ("learning.split zipf", TRAIN, "exponent"),
    ("learning.split zipf", ENOUGH, "min_samples"),
    ("learning.split label-limited", TRAIN, "share law"),
    ("learning.split label-limited", UNUSED, "exponent"),
    ("learning.split file", TRAIN, "path"),
    ("learning.model mlp", START, "hidden"),
    ("learning.model cnn5", START, "dropout"),
    ("learning.model fedsampling-cnn", START, "dropout"),
    ("learning.model text-cnn", START, "embedding hidden pooling dropout filters window"),
    ("learning.model text-attention", START, "embedding hidden pooling dropout heads head_width"),
    ("learning.model char-lstm", START, "embedding hidden layers places"),
    ("learning.local", TRAIN, "optimizer learning_rate momentum proximal epochs batch_size max_batches short_batch"),
    ("learning.local", TRAIN, "keep_optimizer_state schedule weight_decay clip_norm steps"),
    ("learning.local.schedule decay", TRAIN, "factor every by"),
    ("learning.local.schedule cosine", TRAIN, "over least by"),
    ("learning.server fedavgm", STEP, "momentum learning_rate"),
    ("learning.server fedadagrad", STEP, "learning_rate beta_1 tau initial bias_correction"),
    ("learning.server fedadam", STEP, "learning_rate beta_1 beta_2 tau initial bias_correction"),
    ("learning.server fedyogi", STEP, "learning_rate beta_1 beta_2 tau initial bias_correction"),
    ("learning.aggregation trimmed-mean", STEP, "share"),
    ("learning.aggregation krum", STEP, "byzantine"),
    ("learning.aggregation multi-krum", STEP, "byzantine averaged"),
    ("rounds.weights given", STEP, "weight"),
    ("rounds.weights sum", STEP, "scale"),
    ("learning.compression qsgd", TRAIN, "levels bucket norm"),
    ("learning.compression top-k", TRAIN, "share error_feedback"),
    ("learning.compression random-k", TRAIN, "share error_feedback shared_seed"),
    ("privacy", SEND, "budget mechanism where"),
    ("privacy", COMPOSED, "composition amplification"),
    ("privacy.composition rdp", WHO, "delta most_epsilon"),
    ("privacy.composition pld", WHO, "delta most_epsilon"),
    ("privacy", WHO, "side_information label_histograms least_epsilon"),
    ("privacy.side_information laplace", UNASKED, "share clip"),
    ("privacy.label_histograms laplace", UNASKED, "epsilon"),
    ("privacy.label_histograms laplace-counts", UNASKED, "epsilon"),
    ("privacy.budget geometric", SEND, "epsilon eta"),
    ("privacy.budget zeta", SEND, "epsilon power"),
    ("privacy.budget uniform", SEND, "epsilon releases"),
    ("privacy.budget unlimited", SEND, "epsilon"),
    ("privacy.mechanism gaussian", SEND, "clip delta exempt_buffers"),
    ("privacy.mechanism laplace-l1", SEND, "clip exempt_buffers"),
    ("privacy.mechanism laplace-coordinate", SEND, "delta_f exempt_buffers"),
]

_ROUNDS: Final[list[Row]] = [
    ("rounds", WHO, "count minimum_updates faults until_s target_accuracy target"),
    ("rounds.target", WHO, "metric at_least at_most"),
    ("rounds", STEP, "policy late weights"),
    ("rounds", MERGE, "edges"),
    ("rounds", TIMES, "secure_aggregation"),
    ("rounds.secure_aggregation bonawitz", TIMES, "value_bits key_bits share_bits threshold"),
    ("rounds.secure_aggregation bonawitz", TIMES, "wait_s mask_s server_mask_s"),
    ("rounds.policy adaptive-deadline", WHO, "quantile margin window initial_s growth shortest_s longest_s"),
    ("rounds.policy deadline", WHO, "deadline_s"),
    ("rounds.policy fedasync", WHO, "concurrency give_up_s"),
    ("rounds.policy fedasync", STEP, "staleness max_staleness mixing"),
    ("rounds.policy fedbuff", WHO, "concurrency give_up_s"),
    ("rounds.policy fedbuff", STEP, "staleness max_staleness buffer server_rate"),
    ("rounds.policy k-fastest", WHO, "k over_selection max_wait_s"),
    ("rounds.policy moving-average", WHO, "initial_s alpha target_share growth"),
    ("rounds.policy pisces", WHO, "concurrency give_up_s bound"),
    ("rounds.policy pisces", STEP, "staleness max_staleness"),
    ("rounds.policy quorum", WHO, "share min_wait_s max_wait_s"),
    ("rounds.policy safa", WHO, "max_wait_s"),
    ("rounds.policy safa", STEP, "share lag"),
    ("rounds.policy.staleness polynomial", STEP, "a"),
    ("rounds.policy.staleness hinge", STEP, "a b"),
    ("rounds.policy.staleness exponential", STEP, "a"),
    ("rounds.policy.staleness deviation", STEP, "beta scale"),
    ("rounds.late partial", WHO, "least_work"),
    ("rounds.late stale", STEP, "weight max_staleness"),
    ("rounds.late.weight polynomial", STEP, "a"),
    ("rounds.late.weight hinge", STEP, "a b"),
    ("rounds.late.weight exponential", STEP, "a"),
    ("rounds.late.weight deviation", STEP, "beta scale"),
    ("rounds.edges", MERGE, "grouping merging server"),
    ("rounds.edges", WHO, "rounds"),
    ("rounds.edges", TIMES, "backhaul"),
    ("rounds.edges.grouping given", MERGE, "edge"),
    ("rounds.edges.grouping latency", MERGE, "count"),
    ("rounds.edges.grouping order", MERGE, "count"),
    ("rounds.edges.merging asynchronous", MERGE, "mixing staleness"),
    ("rounds.edges.merging.staleness polynomial", MERGE, "a"),
    ("rounds.edges.merging.staleness hinge", MERGE, "a b"),
    ("rounds.edges.merging.staleness exponential", MERGE, "a"),
    ("rounds.edges.merging synchronous", WHO, "absent"),
    ("rounds.edges.server fedavgm", MERGE, "momentum learning_rate"),
    ("rounds.edges.server fedadagrad", MERGE, "learning_rate beta_1 tau initial bias_correction"),
    ("rounds.edges.server fedadam", MERGE, "learning_rate beta_1 beta_2 tau initial bias_correction"),
    ("rounds.edges.server fedyogi", MERGE, "learning_rate beta_1 beta_2 tau initial bias_correction"),
    ("rounds.edges.backhaul link", TIMES, "rate_bps delay_s"),
    ("rounds.faults", WHO, "client_crash link_outage server_restart"),
    ("rounds.faults.client_crash", WHO, "mean_up_s mean_down_s"),
    ("rounds.faults.link_outage", WHO, "mean_up_s mean_down_s"),
    ("rounds.faults.server_restart", WHO, "at_s mean_up_s down_s"),
    (
        "results",
        SHOWN,
        "evaluate_every evaluate_start evaluate_clients smoothing target_accuracy audit noise_to_signal",
    ),
]

_NETWORK: Final[list[Row]] = [
    ("crowd.placement disc", TIMES, "radius_m min_distance_m"),
    ("crowd.placement annulus", TIMES, "inner_m outer_m"),
    ("crowd.placement hexagons", TIMES, "inter_site_distance_m rings"),
    ("crowd.placement file", TIMES, "path"),
    ("crowd.placement given", TIMES, "positions_m"),
    ("network.downlink", TIMES, "bandwidth_hz transmit_power_dbm noise_figure_db sharing fading_in_shares"),
    ("network.downlink", TIMES, "transmit_gain_dbi receive_gain_dbi"),
    ("network.uplink", TIMES, "transmit_gain_dbi receive_gain_dbi"),
    ("network.downlink.bandwidth_hz uniform", TIMES, "least greatest"),
    ("network.downlink.bandwidth_hz log-normal", TIMES, "median sigma least greatest"),
    ("network.downlink.bandwidth_hz normal", TIMES, "mean std least greatest"),
    ("network.downlink.bandwidth_hz choice", TIMES, "of weights"),
    ("network.downlink.bandwidth_hz column", TIMES, "column path"),
    ("network.downlink.sharing proportional-fair", TIMES, "window_s"),
    ("network.uplink", TIMES, "bandwidth_hz transmit_power_dbm noise_figure_db sharing fading_in_shares"),
    ("network.uplink", TIMES, "power_control"),
    ("network.uplink.power_control fractional", TIMES, "p0_dbm alpha"),
    ("network cell", TIMES, "path_loss shadowing_sigma_db shadowing fading delay_spread_s rate sites access transport"),
    ("network.transport tcp", TIMES, "rtt_s loss handshakes segment_bytes first_window per_ack window_bytes timeout_s"),
    ("network.transport tcp", TIMES, "overhead header_bytes"),
    ("network.transport.server", TIMES, "ingress_bps egress_bps background"),
    ("network.transport.server.background", TIMES, "least most interval_s"),
    ("network.access grant", TIMES, "downlink_s scheduling_request_s grant_s random_access_s inactivity_s backhaul_s"),
    ("network.path_loss free-space", TIMES, "carrier_hz"),
    ("network.path_loss log-distance", TIMES, "exponent reference_loss_db reference_distance_m"),
    ("network.path_loss uma", TIMES, "carrier_hz base_height_m client_height_m indoor_share high_loss_share"),
    ("network.path_loss uma", TIMES, "penetration indoor_height"),
    ("network.path_loss umi", TIMES, "carrier_hz base_height_m client_height_m indoor_share high_loss_share"),
    ("network.path_loss umi", TIMES, "penetration indoor_height"),
    ("network.path_loss rma", TIMES, "carrier_hz base_height_m client_height_m indoor_share high_loss_share"),
    ("network.path_loss rma", TIMES, "penetration building_height_m street_width_m"),
    ("network.path_loss inh", TIMES, "carrier_hz base_height_m client_height_m office"),
    ("network.path_loss inf", TIMES, "carrier_hz base_height_m client_height_m hall clutter_density"),
    ("network.path_loss inf", TIMES, "clutter_size_m clutter_height_m"),
    ("network.shadowing correlated", TIMES, "decorrelation_m indoor_decorrelation_m site_correlation method"),
    ("network.fading rayleigh", TIMES, "coherence_s speed_m_per_s carrier_hz"),
    ("network.fading rician", TIMES, "coherence_s speed_m_per_s carrier_hz k_db"),
    ("network.fading nakagami", TIMES, "coherence_s speed_m_per_s carrier_hz m"),
    ("network.rate shannon", TIMES, "snr_gap_db ceiling"),
    ("network.rate cqi", TIMES, "table schemes gap gap_db steepness_per_db attempts combining block_s backoff_s"),
    ("network.rate cqi", TIMES, "overhead"),
    ("network.fading sionna-tdl", TIMES, "coherence_s speed_m_per_s carrier_hz profile"),
    ("network.fading sionna-cdl", TIMES, "coherence_s speed_m_per_s carrier_hz profile"),
    ("network.rate sionna-phy", TIMES, "table channel target resource_elements overhead"),
    ("network.sites", TIMES, "inter_site_distance_m load uplink_backoff_db rings serving_rings"),
    ("network fedscale", TIMES, "median_kbps sigma lowest_kbps highest_kbps path mapping transport"),
    ("network rate-traces", TIMES, "sharing mapping offset delay_s"),
    ("network.downlink", TIMES, "path rate unit time time_unit step_s trace"),
    (
        "network lora",
        TIMES,
        "path_loss shadowing shadowing_sigma_db uplink_power_dbm downlink_power_dbm noise_figure_db",
    ),
    ("network lora", TIMES, "bandwidth_hz coding_rate preamble margin_db uplink_duty_cycle downlink_duty_cycle"),
    ("network lora", TIMES, "collisions channels capture_db"),
    ("network satellite", TIMES, "passes downlink_bps uplink_bps"),
    ("network.passes constellation", TIMES, "altitude_m satellites least_elevation_deg off_track"),
    ("network.passes file", TIMES, "path period_s delay_s"),
    ("network wifi-dcf", TIMES, "path_loss shadowing_sigma_db shadowing fading delay_spread_s rate sites"),
    ("network wifi-dcf", TIMES, "access transport"),
    ("network.downlink.sharing dcf", TIMES, "frame_s overhead_s idle_slot_s window doublings"),
    ("network graph", TIMES, "topology access server trouble mobility interruption_s transport"),
    ("network.topology file", TIMES, "path"),
    ("network.topology given", TIMES, "nodes edges directed"),
    ("network.topology mesh", TIMES, "range_m radio_bps"),
    ("network.topology.hop", TIMES, "capacity_bps delay_s wireless"),
    ("network.topology star", TIMES, "radio_bps"),
    ("network.topology two-tier", TIMES, "cells site_distance_m radio_bps"),
    ("network.access constant", TIMES, "downlink_bps uplink_bps delay_s exponent reach_m"),
    ("network.access radio", TIMES, "cell spectrum delay_s step_m least_snr_db"),
    ("network.access.cell urban-macro", TIMES, "path_loss shadowing_sigma_db shadowing fading rate sites access"),
    ("network.access.cell urban-macro", TIMES, "delay_spread_s transport"),
    ("network.access.cell indoor-office", TIMES, "path_loss shadowing_sigma_db shadowing fading rate sites access"),
    ("network.access.cell indoor-office", TIMES, "delay_spread_s transport"),
    ("network.access.cell wifi", TIMES, "path_loss shadowing_sigma_db shadowing fading rate sites access"),
    ("network.access.cell wifi", TIMES, "delay_spread_s transport"),
    ("network.access.cell nb-iot", TIMES, "path_loss shadowing_sigma_db shadowing fading rate sites access"),
    ("network.access.cell nb-iot", TIMES, "delay_spread_s transport"),
    ("network.access.cell 5g-midband", TIMES, "path_loss shadowing_sigma_db shadowing fading rate sites access"),
    ("network.access.cell 5g-midband", TIMES, "delay_spread_s transport"),
    ("network.trouble loss", TIMES, "node edge from_s duration_s"),
    ("network.trouble outage-bursts", TIMES, "mean_good_s mean_bad_s bad_factor edges"),
    ("network.mobility random-waypoint", TIMES, "radius_m slowest_m_per_s fastest_m_per_s pause_s"),
    ("network.mobility trace", TIMES, "points path"),
    ("network.handover", TIMES, "hysteresis_db time_to_trigger_s measured_every_s reselect_after_s"),
    ("network latency", TIMES, "downlink uplink spread_sigma downlink_factor uplink_factor transport"),
    ("network.downlink constant", TIMES, "value_s"),
    ("network.downlink normal", TIMES, "centre_s std_s floor_s"),
    ("network.downlink log-normal", TIMES, "median_s sigma"),
    ("network.downlink shifted-exponential", TIMES, "shift_s scale_s"),
    ("network.downlink empirical", TIMES, "values_s"),
    ("network pause-two-speed", TIMES, "fast_from_s fast_to_s slow_from_s slow_to_s std_s floor_s"),
]

_DEVICES: Final[list[Row]] = [
    ("devices", TIMES, "compute availability dropout energy"),
    ("devices.compute rate", TIMES, "samples_per_s spread_sigma jitter_sigma"),
    ("devices.compute.samples_per_s uniform", TIMES, "least greatest"),
    ("devices.compute.samples_per_s log-normal", TIMES, "median sigma least greatest"),
    ("devices.compute.samples_per_s normal", TIMES, "mean std least greatest"),
    ("devices.compute.samples_per_s choice", TIMES, "of weights"),
    ("devices.compute.samples_per_s column", TIMES, "column path"),
    ("devices.compute flops", TIMES, "flops_per_s spread heterogeneity jitter load"),
    ("devices.compute.spread log-normal", TIMES, "sigma"),
    ("devices.compute.spread shifted-exponential", TIMES, "shift"),
    ("devices.compute.spread stragglers", TIMES, "share times_slower"),
    ("devices.compute.spread empirical", TIMES, "values"),
    ("devices.compute fedscale", TIMES, "batch_size steps law path mapping jitter load"),
    ("devices.availability bernoulli", TIMES, "probability retry_s"),
    ("devices.availability markov", TIMES, "mean_on_s mean_off_s"),
    ("devices.availability diurnal", TIMES, "share_by_hour mean_session_s start_hour zones_h"),
    ("devices.availability flash", TIMES, "never_share diurnal"),
    ("devices.availability traces", TIMES, "path mapping checked period_s"),
    ("devices.dropout hazard", TIMES, "rate_per_s"),
    ("devices.dropout phase-hazard", TIMES, "downlink_per_s compute_per_s uplink_per_s"),
    ("devices.energy battery", TIMES, "capacity_j initial_from initial_to receive_j_per_bit"),
    ("devices.energy battery", TIMES, "transmit_j_per_bit compute_j_per_flop compute_w idle_w charge_w"),
    ("devices.energy battery", TIMES, "least_charge receive_w transmit_w transmit_power_dbm"),
    ("devices.energy battery", TIMES, "amplifier_efficiency circuit_w"),
]

_SELECTORS: Final[list[Row]] = [
    ("selector all-compute", WHO, "cohort rule iterations up_bits wait_s"),
    ("selector fedzero", WHO, "cohort step_s longest_s reserve alpha"),
    ("selector poisson", WHO, "rate"),
    ("selector pisces", WHO, "cohort beta window exploration exploration_decay exploration_least samples_per_round"),
    ("selector aocs", WHO, "cohort iterations floor"),
    ("selector adapow-d", WHO, "cohort first until decay weights up_bits wait_s"),
    ("selector active", WHO, "cohort alpha1 alpha2 alpha3"),
    ("selector e3cs", WHO, "cohort quota quota_from eta draw"),
    ("selector eafl", WHO, "cohort utility_share alpha exploration exploration_decay exploration_least window"),
    ("selector eafl", WHO, "pacer_step_s"),
    ("selector ocean", WHO, "cohort budget_j v pattern rounds frame bandwidth_hz least_hz upload_s"),
    ("selector ocean", WHO, "transmit_power_dbm snr_gap_db state"),
    ("selector bn2-c", WHO, "cohort bandwidth_hz upload_s state"),
    ("selector bc-bn2", WHO, "cohort channels state"),
    ("selector bn2", WHO, "cohort"),
    ("selector age-based", WHO, "cohort alpha bandwidth_hz upload_s state"),
    ("selector proportional-fair", WHO, "cohort"),
    ("selector best-channel", WHO, "cohort state"),
    ("selector bsfl", WHO, "cohort tau_min_s alpha beta time_index confidence"),
    ("selector clustered-similarity", WHO, "cohort similarity matrix noise"),
    ("selector clustered-size", WHO, "cohort"),
    ("selector cpow-d", WHO, "cohort samples candidates weights up_bits wait_s"),
    ("selector cs-ucb", WHO, "cohort tau_max_s"),
    ("selector cs-ucb-q", WHO, "cohort tau_max_s weight promise rates"),
    ("selector divfl", WHO, "cohort start refresh_every subset weights noise"),
    ("selector fastest", WHO, "cohort"),
    ("selector fedcor", WHO, "cohort warmup interval beta gamma dimension history noise mean weights up_bits wait_s"),
    ("selector fedcs", WHO, "deadline_s share uploads overhead_s down_bits up_bits wait_s"),
    ("selector fedsampling", ANSWERS, "threshold alpha clip query anonymous"),
    ("selector fedsampling", UNUSED, "epsilon"),
    ("selector fedsampling", DRAWS, "samples"),
    ("selector fedsampling", WHO, "cohort up_bits down_bits wait_s"),
    ("selector fixed-ratio", DRAWS, "ratio"),
    ("selector fedsuv", WHO, "cohort rho elimination keep fill delta ridge scaling kernel length_scale"),
    ("selector fedsuv", WHO, "noise fit basis utility_scale undelivered batch negative_gain when_disjoint"),
    ("selector fedsuv", WHO, "samples_per_round"),
    ("selector joint-bandwidth", WHO, "cohort bandwidth_hz search snr_gap_db"),
    ("selector haccs", WHO, "cohort rho radius distance losses draw"),
    ("selector importance", WHO, "cohort draw weights floor noise"),
    ("selector loss-proportional", WHO, "cohort data_exponent"),
    ("selector md", WHO, "cohort"),
    ("selector oort", WHO, "cohort alpha exploration exploration_decay exploration_least window"),
    ("selector oort", WHO, "pacer_step_s clip cut_off blacklist_after blacklist_share by_speed pacer_asked"),
    ("selector oort", WHO, "silent samples_per_round preferred"),
    ("selector oort-fedscale", WHO, "cohort alpha exploration exploration_decay exploration_least threshold"),
    ("selector oort-fedscale", WHO, "pacer_step pacer_delta clip cut_off sample_window blacklist_after"),
    ("selector oort-fedscale", WHO, "blacklist_share silent samples_per_round"),
    ("selector pause", WHO, "cohort tau_min_s alpha beta gamma zeta time_index"),
    ("selector pause-enumeration", WHO, "cohort tau_min_s alpha beta gamma zeta time_index"),
    ("selector pause-genie", WHO, "cohort tau_min_s alpha beta gamma time_index expected_reward"),
    ("selector pause-vanilla-sa", WHO, "cohort tau_min_s alpha beta gamma zeta iterations kappa start"),
    ("selector pause-vanilla-sa", WHO, "time_index"),
    ("selector pow-d", WHO, "cohort candidates weights up_bits wait_s"),
    ("selector pyramidfl", WHO, "cohort beta most_more steps until alpha exploration exploration_decay"),
    ("selector pyramidfl", WHO, "exploration_least threshold pacer_step pacer_delta clip cut_off sample_window"),
    ("selector pyramidfl", WHO, "silent samples_per_round"),
    ("selector refl", WHO, "cohort hold_off adaptive_target least_share slot_s initial_s alpha periods_s"),
    ("selector refl", WHO, "harmonics ridge"),
    ("selector refl-oracle", WHO, "cohort accuracy rule hold_off adaptive_target least_share slot_s"),
    ("selector refl-oracle", WHO, "initial_s alpha"),
    ("selector round-robin", WHO, "cohort"),
    ("selector rpow-d", WHO, "cohort candidates weights"),
    ("selector sa-pause", WHO, "cohort tau_min_s alpha beta gamma zeta iterations kappa start time_index"),
    ("selector soonest", WHO, "cohort"),
    ("selector tifl", WHO, "cohort tiers policy probabilities interval credits profiling tries timeout_s"),
    ("selector tifl", WHO, "down_bits up_bits evaluation improvement"),
    ("selector uniform", WHO, "cohort"),
    ("selector weighted", WHO, "cohort weights"),
]

MOVES: Final[dict[tuple[str, str], Moves]] = {
    (part, name): moves
    for rows in (_LEARNING, _ROUNDS, _NETWORK, _DEVICES, _SELECTORS)
    for part, moves, names in rows
    for name in names.split()
    if part.partition(" ")[2] not in NOT_INSTALLED
}
"""What moves, by the place of a part and the name of its field; parts below `network` stand where they come first."""
