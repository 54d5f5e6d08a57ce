"""From measured participations to a scenario: laws of latency, compute and availability, and how well they agree."""

from fedsim.calibration.agreement import Agreement as Agreement
from fedsim.calibration.calibrate import Calibration as Calibration, calibrate as calibrate
from fedsim.calibration.log import Log as Log, read_log as read_log
