"""The networks of a wireless cell: settings that compose the physics of radio with a shared medium."""
