"""``python -m fedsim``: the command line."""

from fedsim.cli import main

main()
