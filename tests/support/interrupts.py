"""Processes that tests interrupt."""

import signal


def heard() -> None:
    """Let a process that starts hear SIGINT, given as ``preexec_fn``.

    Jobs in the background of a script ignore the signal, and so would what they start.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
