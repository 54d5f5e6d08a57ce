"""What benchmarks share: clients of which times alone count, and a clock of the processor."""

import time

AVAILABILITY = {
    "always": "always",
    "bernoulli": {"kind": "bernoulli", "probability": 0.5},
    "markov": {"kind": "markov", "mean_on_s": 600.0, "mean_off_s": 1800.0},
    "diurnal": "diurnal",
    "flash": "flash",
}

TIMING_ONLY = {"kind": "none", "model_bits": 1e6, "samples_per_client": 100}


def seconds(work, *arguments) -> float:
    """Return how much processor time a call takes."""
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began
