"""From measured participations to a scenario: laws of latency, compute and availability, and how well they agree."""

from fedsim.calibration.agreement import Agreement
from fedsim.calibration.calibrate import Calibration, calibrate
from fedsim.calibration.log import Log, read_log

__all__ = ["Agreement", "Calibration", "Log", "calibrate", "read_log"]
