"""A scenario as an environment of Gymnasium: a step is a round, and an action selects its clients."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fedsim.arrays import IntArray
from fedsim.bridges.gymnasium.actions import Actions, Choice
from fedsim.bridges.gymnasium.episode import Episode
from fedsim.bridges.gymnasium.observations import Column, Observation, Observations
from fedsim.bridges.gymnasium.rewards import Reward, Step, Weights
from fedsim.errors import ScenarioError
from fedsim.history import History
from fedsim.learning.store.choice import StoreChoice
from fedsim.rounds.policies.contracts import checked_policy
from fedsim.scenario import Scenario
from fedsim.selectors import SelectorPort
from fedsim.selectors.baselines import Uniform


class Shown(Uniform):
    """Lets a view have the training losses of last updates, and the seconds that clients declare once."""

    def __init__(self, cohort: int, losses: bool = False, features: bool = False) -> None:
        super().__init__(cohort)
        sent = ["a number up per update"] * losses + ["three numbers up per client once"] * features
        # Other selectors say it of their class.
        vars(self).update(needs=("loss",) * losses, uses_features=features, communication=", and ".join(sent))


SHOWN: tuple[Column, ...] = ("samples", "participations", "last_duration_s")
_SEEDS = 2**31


class SelectionEnv(gymnasium.Env[Observation, Any]):
    """Selecting clients, and dividing a band among them, as decisions of a policy that learns.

    A step is a round of the scenario: its network, devices, policy, faults, privacy and learner. An episode ends
    (``terminated``) with the scenario's target, or when no client will ever be a candidate again, and is cut
    (``truncated``) after ``rounds.count`` steps or at ``rounds.until_s``.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path | Mapping[str, Any],
        *,
        action: Choice = "scores",
        columns: Sequence[Column] = SHOWN,
        normalised: bool = True,
        reward: Reward | None = None,
        cohort: int | None = None,
        bandwidth_hz: float | None = None,
        data_dir: str | Path | None = None,
        store: StoreChoice = False,
        executor: str | None = None,
        device: str | None = None,
    ) -> None:
        given = Scenario.of(scenario)
        size = SelectorPort.of(given.selector.build()).cohort if cohort is None else cohort
        clients = given.crowd.clients
        if size is not None and not 1 <= size <= clients:
            raise ScenarioError(f"cohort: {size!r} is not allowed; it must be a whole number from 1 to {clients}")
        shown = {"losses": "last_loss" in columns, "features": "features" in columns}
        of = {"kind": f"{Shown.__module__}:{Shown.__name__}", "cohort": size or clients, **shown}
        self.scenario = given.replace({"selector": of})
        rounds = self.scenario.rounds
        self.observations = Observations(clients, columns, normalised, rounds.count, rounds.until_s)
        self.actions = Actions(clients, action, size or clients, bandwidth_hz)
        _check(self.scenario, self.actions)
        self.observation_space, self.action_space = self.observations.space(), self.actions.space()
        self._reward: Reward = Weights() if reward is None else reward
        self._computing = {"data_dir": data_dir, "store": store, "executor": executor, "device": device}
        self._episode: Episode | None = None
        self._steps = 0
        self.last: Step | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a run and return what is seen before its first round."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(_SEEDS)) if seed is None else seed
        changed = self._changed(options).replace({"seed": drawn})
        self.close()
        self._episode = episode = Episode(changed, self._computing)
        self._steps, self.last = 0, None
        if self.actions.bandwidth_hz is not None and episode.view is not None and not episode.view.allocates:
            raise ScenarioError(
                "bandwidth_hz: the network gives its clients no bands; allowed: a cell with dedicated uplinks"
            )
        return self._seen(episode), self._info(episode)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play a round with the clients that an action selects.

        An action without a candidate among its clients leaves the clock where it is, and counts as a step.
        """
        episode = self._episode
        if episode is None or episode.view is None:
            raise gymnasium.error.ResetNeeded("step: there is no round to play; allowed: a call of reset first")
        self._steps += 1
        cohort = self.actions.cohort_of(action, episode.view)
        self.last = step = episode.stand() if cohort is None else episode.play(cohort)
        over = episode.view is None
        truncated = self._steps >= episode.scenario.rounds.count or (over and self._stopped(episode))
        terminated = step.target_reached or (over and not truncated)
        truncated = truncated and not terminated
        return self._seen(episode), float(self._reward(step)), terminated, truncated, self._info(episode)

    def history(self) -> History:
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("history: there is no run yet; allowed: a call of reset first")
        return self._episode.history()

    def close(self) -> None:
        if self._episode is not None:
            self._episode.close()

    def _changed(self, options: Mapping[str, Any] | None) -> Scenario:
        known = {} if options is None else dict(options)
        changes = known.pop("scenario", {})
        if known:
            raise ScenarioError(f"options: {', '.join(map(repr, known))} is not allowed; it must be 'scenario'")
        changed = self.scenario.replace(changes) if changes else self.scenario
        if changed.crowd.clients != self.scenario.crowd.clients:
            raise ScenarioError(
                f"options: crowd.clients = {changed.crowd.clients} is not allowed; the spaces are of "
                f"{self.scenario.crowd.clients} clients"
            )
        _check(changed, self.actions)
        return changed

    def _stopped(self, episode: Episode) -> bool:
        """Return whether a run that is over has come to its last round or second."""
        rounds = episode.scenario.rounds
        return episode.number >= rounds.count or (rounds.until_s is not None and episode.now_s >= rounds.until_s)

    def _seen(self, episode: Episode) -> Observation:
        return self.observations.of(episode.view, episode.number, episode.now_s)

    def _info(self, episode: Episode) -> dict[str, Any]:
        """Return facts of plain types and fixed shapes, so that those of several environments fit together."""
        found: dict[str, Any] = {
            "action_mask": self._mask(None if episode.view is None else episode.view.client),
            "seed": episode.scenario.seed,
            "time_s": episode.now_s,
            "leakage": episode.leakage,
        }
        if not math.isnan(episode.accuracy):
            found["accuracy"] = episode.accuracy
        if self.last is not None:
            played = self.last.played
            found["seconds"] = self.last.seconds
            found["selected"] = self._mask(None if played is None else played.client)
            found["delivered"] = self._mask(None if played is None else played.client[played.delivered])
        return found

    def _mask(self, client: IntArray | None) -> NDArray[np.int8]:
        mask = np.zeros(self.scenario.crowd.clients, dtype=np.int8)
        if client is not None:
            mask[client] = 1
        return mask


def _check(scenario: Scenario, actions: Actions) -> None:
    """Refuse a scenario whose rounds have no cohort of their own, or ask for another kind of action."""
    traits = checked_policy(scenario.rounds.policy).traits
    if traits.concurrency is not None:
        raise ScenarioError(
            "rounds.policy: an asynchronous server sends clients one by one, and has no cohorts to select; allowed: a "
            "synchronous policy"
        )
    if scenario.rounds.edges is not None:
        raise ScenarioError("rounds.edges: edge servers select for themselves; allowed: a scenario without them")
    if actions.choice == "members" and traits.cohort_size is not None:
        raise ScenarioError(
            f"action: 'members' is not allowed, as rounds.policy asks for {traits.cohort_size} clients; "
            "allowed: 'scores'"
        )
