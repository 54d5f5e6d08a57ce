"""Clients of the benchmarks of large crowds: their availability and their work, of which times alone count."""

AVAILABILITY = {
    "always": "always",
    "bernoulli": {"kind": "bernoulli", "probability": 0.5},
    "markov": {"kind": "markov", "mean_on_s": 600.0, "mean_off_s": 1800.0},
    "diurnal": "diurnal",
    "flash": "flash",
}

TIMING_ONLY = {"kind": "none", "model_bits": 1e6, "samples_per_client": 100}
