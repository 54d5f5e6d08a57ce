"""fedsim.devices.availability."""
