"""Changes small pieces of the code and counts the changes that the tests notice.

    pip install -e '.[mutation]'
    python tests/tools/mutants.py --sample 100 --seed 1                # 100 mutants of each of the five rooms
    python tests/tools/mutants.py --sample 50 --seed 2 --room privacy
    python tests/tools/mutants.py --sample 50 --seed 2 --again         # the survivors once more, after new tests
    python tests/tools/mutants.py --sample 50 --seed 2 --show          # run nothing
    python tests/tools/mutants.py --like ../before/mutants           # the sample of another checkout

mutmut makes the mutants (one change each: another operator, number, argument or string) and finds the tests that call
each function; `[tool.mutmut]` in `pyproject.toml` names the code and the tests. All mutants of the rooms would take
a day. A random sample of each room gives the share that is killed with its 95 % interval; the sample is the same for
the same seed and the same code. The share of all rooms together weighs each by its mutants.

The tests of a mutant run in a process of its own, those of the same room and the quick ones first, up to the first that
fails. The limit of a test is processor time, twenty seconds and ten times what it takes without a mutant: other work on
the machine makes no mutant "killed". `--most-s` leaves out the tests that stand far away where there are many: a mutant
that only they would kill then counts as a survivor.
Mutants that no test can kill by the rules of `mutant_rules.py`, or for a reason that `same_results.csv` gives, are
tested like all others. The shares are printed with them and without.
Everything is written below `mutants/` and kept there: a second call runs only what is new.
"""

import argparse
import ast
import csv
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from mutant_rules import Lines, changed_function, changed_lines, equivalent
from scipy.stats import binomtest

ROOMS = {
    "rounds": "fedsim.rounds.",
    "network/medium": "fedsim.network.medium.",
    "devices": "fedsim.devices.",
    "privacy": "fedsim.privacy.",
    "selectors": "fedsim.selectors.",
}
MUTANTS = Path("mutants")
RESULTS = MUTANTS / "results.json"
BEGUN = MUTANTS / "begun.txt"
QUICK = "fedsim.privacy.budget.xǁGeometricBudgetǁterm__mutmut_1"
"""A mutant with few tests: mutmut always runs one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=100, help="mutants that are drawn in each room (100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1)")
    parser.add_argument("--room", choices=[*ROOMS, "all"], default="all", help="a single room (all)")
    parser.add_argument("--file", default="", help="only mutants whose module has this text in its name")
    parser.add_argument("--most-s", type=float, default=100.0, help="of the tests of a mutant without it (100)")
    parser.add_argument(
        "--like", type=Path, help="mutants/ of another checkout: what it has tested, of functions that are the same"
    )
    parser.add_argument("--again", action="store_true", help="test the survivors once more")
    parser.add_argument("--show", action="store_true", help="run nothing")
    options = parser.parse_args()
    if not options.show:
        make()
    mutants = catalogue()
    drawn = draw(mutants, options) if options.like is None else same(mutants, options.like)
    if not options.show:
        known = results(mutants)
        todo = [name for name in drawn if name not in known or (options.again and known[name]["status"] == "survived")]
        print(f"{len(mutants)} mutants, {len(drawn)} drawn, {len(todo)} to test", flush=True)
        random.Random(options.seed).shuffle(todo)  # noqa: S311 - a run that is cut short has some of each room
        if todo:
            work = MUTANTS / "todo.json"
            work.write_text(json.dumps({name: mutants[name] for name in todo}))
            loop = Path(__file__).with_name("mutant_loop.py")
            subprocess.run([sys.executable, str(loop), str(work), str(options.most_s)], check=True)  # noqa: S603 - own script
    report(mutants, drawn, results(mutants))


def make() -> None:
    """Make the mutants, and find the tests that call each function; what is known and has not changed is kept."""
    if BEGUN.exists():  # mutmut was stopped while it wrote a file, and would take it for whole
        shutil.rmtree(MUTANTS / "fedsim", ignore_errors=True)
    MUTANTS.mkdir(exist_ok=True)
    BEGUN.touch()
    words = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", QUICK]
    made = subprocess.run(words, check=False, capture_output=True, text=True)  # noqa: S603
    if made.returncode:
        sys.exit(f"mutmut ends with {made.returncode}:\n{made.stdout[-4000:]}\n{made.stderr[-4000:]}")
    BEGUN.unlink()


def catalogue() -> dict[str, str]:
    """Return a digest of the changed function for the name of each mutant."""
    found = {}
    for path in sorted((MUTANTS / "fedsim").rglob("*.meta")):
        meta = json.loads(path.read_text())
        for name in meta["exit_code_by_key"]:
            if room(name) is not None:
                function = name.rpartition(".")[2].rpartition("__mutmut_")[0]
                found[name] = meta["hash_by_function_name"].get(function, "")
    return found


def draw(mutants: dict[str, str], options: argparse.Namespace) -> list[str]:
    drawn: list[str] = []
    for title in ROOMS if options.room == "all" else [options.room]:
        names = sorted(name for name in mutants if room(name) == title and options.file in name.rpartition(".")[0])
        drawn += random.Random(options.seed).sample(names, min(options.sample, len(names)))  # noqa: S311
    return drawn


def same(mutants: dict[str, str], other: Path) -> list[str]:
    tested = json.loads((other / RESULTS.name).read_text())
    return sorted(name for name in tested if name in mutants and _code(other, name) == _code(MUTANTS, name))


def _code(folder: Path, mutant: str) -> list[str]:
    """Return the code of a function before and after the change of a mutant, without docstrings."""
    found = []
    for tree in changed_function(folder, mutant):
        body = tree.body[ast.get_docstring(tree) is not None :]
        found.append(ast.dump(ast.Module(body, [])))
    return found


def results(mutants: dict[str, str]) -> dict[str, dict[str, Any]]:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return {name: entry for name, entry in known.items() if mutants.get(name) == entry["digest"]}


def report(mutants: dict[str, str], drawn: Sequence[str], known: dict[str, dict[str, Any]]) -> None:
    """Print the share of each room, then every mutant of the sample that no test kills."""
    tested = [name for name in drawn if name in known]
    alive = {name for name in tested if known[name]["status"] == "survived"}
    reasons = [(entry["function"], entry["was"], entry["is"], entry["why"]) for entry in judged()]
    changes, rule = {}, {}
    for name in tested:
        changes[name] = changed_lines(MUTANTS, name)
        rule[name] = equivalent(*changes[name]) or explained(name, changes[name], reasons)
    sizes = Counter(room(name) for name in mutants)
    for title, some in (("", tested), (" that can differ", [name for name in tested if rule[name] is None])):
        weighed = total = 0.0
        for place in ROOMS:
            if names := [name for name in some if room(name) == place]:
                killed = line(f"{place}, of {sizes[place]}{title}", names, alive)
                weighed, total = weighed + sizes[place] * killed, total + sizes[place]
        if some:
            line(f"all{title}", some, alive)
            print(f"{'each room by its mutants':48s} {weighed / total:6.1%}\n")
    print("by time:", sum(known[name]["status"] == "timeout" for name in tested))
    for name in sorted(alive):
        was, is_ = (" / ".join(lines) for lines in changes[name])
        print(f"\n{name}: {rule[name] or 'NOT EXPLAINED'}, {known[name]['tests']} tests\n-{was}\n+{is_}")


def judged() -> list[dict[str, str]]:
    """Return the mutants that give the same results, looked at one by one; `was` and `is` are parts of the change."""
    with Path(__file__).with_name("same_results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def explained(name: str, lines: Lines, reasons: Sequence[tuple[str, ...]]) -> str | None:
    """Return why a mutant gives the same results: function and lines are those of an entry; None without one."""
    function = ".".join(part.replace("ǁ", ".").removeprefix("x_").removeprefix("x.") for part in name.split("."))
    function = function.rpartition("__mutmut_")[0]
    was, is_ = (" ".join(part) for part in lines)
    return next((why for of, old, new, why in reasons if function.endswith(of) and old in was and new in is_), None)


def line(title: str, names: Sequence[str], alive: Set[str]) -> float:
    """Print how many mutants are killed with the 95 % interval of the share (Wilson), and return the share."""
    of, killed = len(names), sum(name not in alive for name in names)
    interval = binomtest(killed, of).proportion_ci(method="wilson")
    print(f"{title:48s} {killed:5d} of {of:5d} killed: {killed / of:6.1%} ({interval.low:.1%} to {interval.high:.1%})")
    return killed / of


def room(name: str) -> str | None:
    return next((title for title, prefix in ROOMS.items() if name.startswith(prefix)), None)


if __name__ == "__main__":
    main()
