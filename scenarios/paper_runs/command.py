"""Options that the commands of all papers share."""

import argparse
import os
from pathlib import Path

from fedsim.learning import EXECUTORS


def share(text: str) -> float:
    """Return a number above 0 and at most 1."""
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be above 0 and at most 1")
    return value


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be at least 1")
    return value


def options(about: str, out: str) -> argparse.ArgumentParser:
    """Return a parser with the common options; a study adds its own.

    Parameters
    ----------
    about : what the command does, in a sentence
    out : folder of its runs, tables and figures by default
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--scale", type=share, default=1.0, help="share of the rounds that are run, for a quick look")
    parser.add_argument("--seeds", type=count, default=1, help="how many seeds, from the paper's own on")
    parser.add_argument("--methods", nargs="+", default=None, metavar="NAME", help="only these methods")
    parser.add_argument("--workers", type=count, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--executor", choices=EXECUTORS.kinds(), default="auto", help="of each run")
    parser.add_argument("--data-dir", type=Path, default=None, help="of data sets; FEDSIM_DATA by default")
    parser.add_argument("--store", type=Path, default=None, help="of trainings; the user's cache by default")
    parser.add_argument("--out", type=Path, default=Path(out), help="folder of runs, tables and figures")
    return parser
