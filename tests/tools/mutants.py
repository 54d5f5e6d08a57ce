"""Changes small pieces of the code and counts the changes that the tests notice.

    pip install -e '.[mutation]'
    python tests/tools/mutants.py                        # hours: 400 mutants of all five rooms
    python tests/tools/mutants.py --sample 50 --room privacy
    python tests/tools/mutants.py --show                 # the results so far, each survivor with its change

mutmut makes the mutants (one change each: another operator, number, argument or string) and runs for each of them
the tests that call the changed function; `[tool.mutmut]` in `pyproject.toml` names the code and the tests. All mutants
of the rooms would take a day on two cores. A random sample gives the share that is killed with its 95 % interval; the
sample is the same for the same seed and the same code. Everything is written below `mutants/` and kept there: a second
call with a larger sample only runs what is new.
"""

import argparse
import random
import re
import subprocess
import sys
from collections.abc import Sequence

from scipy.stats import binomtest

ROOMS = {
    "rounds": "fedsim.rounds.",
    "network/medium": "fedsim.network.medium.",
    "devices": "fedsim.devices.",
    "privacy": "fedsim.privacy.",
    "selectors": "fedsim.selectors.",
}
KILLED = ("killed", "timeout", "segfault", "caught by type check")
LINE = re.compile(r"^\s+(?P<name>fedsim\.\S+): (?P<status>.+)$", re.MULTILINE)


def main() -> None:
    """Run a sample of the mutants, then print shares and survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=400, help="mutants that are drawn (400)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1)")
    parser.add_argument("--room", choices=[*ROOMS, "all"], default="all", help="a single room (all)")
    parser.add_argument("--workers", type=int, default=2, help="mutants tested at a time (2)")
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args()
    if not options.show:
        run(options)
    report(statuses())


def run(options: argparse.Namespace) -> None:
    """Make all mutants, draw the sample and test what has no result yet."""
    mutmut("run", "--max-children", str(options.workers), "fedsim.privacy.budget.*__mutmut_1")
    known = statuses()
    rooms = [options.room] if options.room != "all" else list(ROOMS)
    names = sorted(name for name in known if room(name) in rooms)
    drawn = random.Random(options.seed).sample(names, min(options.sample, len(names)))  # noqa: S311
    fresh = [name for name in drawn if known[name] == "not checked"]
    print(f"{len(names)} mutants, {len(drawn)} drawn, {len(fresh)} to test", flush=True)
    if fresh:
        mutmut("run", "--max-children", str(options.workers), *fresh)


def report(found: dict[str, str]) -> None:
    """Print the share of each room, then every mutant that no test kills."""
    tested = {name: status for name, status in found.items() if status != "not checked"}
    for title, prefix in [*ROOMS.items(), ("all", "fedsim.")]:
        line(title, [status for name, status in tested.items() if name.startswith(prefix)])
    for name in sorted(name for name, status in tested.items() if status not in KILLED):
        changes = [text for text in mutmut("show", name).splitlines() if re.match(r"[-+](?![-+])", text)]
        print(f"\n{name}: {tested[name]}", *changes, sep="\n")


def line(title: str, results: Sequence[str]) -> None:
    """Print how many mutants were killed, with the 95 % interval of the share (Wilson)."""
    if not results:
        return
    killed = sum(status in KILLED for status in results)
    interval = binomtest(killed, len(results)).proportion_ci(method="wilson")
    share = killed / len(results)
    print(
        f"{title:16s} {killed:5d} of {len(results):5d} killed: {share:6.1%} ({interval.low:.1%} to {interval.high:.1%})"
    )


def statuses() -> dict[str, str]:
    """Return the status of every mutant."""
    return {found["name"]: found["status"].strip() for found in LINE.finditer(mutmut("results", "--all", "true"))}


def room(name: str) -> str:
    """Return the room of a mutant."""
    return next(title for title, prefix in ROOMS.items() if name.startswith(prefix))


def mutmut(*words: str) -> str:
    """Call mutmut and return what it prints."""
    return subprocess.run([sys.executable, "-m", "mutmut", *words], check=True, capture_output=True, text=True).stdout  # noqa: S603


if __name__ == "__main__":
    main()
