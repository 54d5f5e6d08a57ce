"""Runs the tests of given mutants, for `mutants.py`: collects all tests once, then tests each mutant in a fork.

    python tests/tools/mutant_loop.py mutants/todo.json 60

The file names the mutants, each with the digest of its function; the number is the most seconds that the tests of one
take without a mutant, those that stand near the code and the quick ones first. The results go to `results.json` beside
it, one by one.
"""

import contextlib
import gc
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

LEAST_S, TIMES = 20.0, 10.0
WALL_S = 900.0
MEMORY_BYTES = 8 * 2**30
PASSED, FAILED = 0, 1


def main() -> None:
    todo = json.loads(Path(sys.argv[1]).read_text())
    settings = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    os.chdir("mutants")
    here = str(Path.cwd())
    os.environ["PYTHONPATH"] = here
    sys.path.insert(0, here)
    words = [*settings["pytest_add_cli_args"], *settings["pytest_add_cli_args_test_selection"]]
    pytest.main(["-q", "-s", "--rootdir=.", "--no-header", *words], plugins=[Loop(todo, float(sys.argv[2]))])


class Loop:
    def __init__(self, todo: dict[str, str], most_s: float) -> None:
        stats = json.loads(Path("mutmut-stats.json").read_text())
        self.todo, self.most_s = todo, most_s
        self.callers: dict[str, list[str]] = stats["tests_by_mangled_function_name"]
        self.took_s: dict[str, float] = stats["duration_by_test"]
        self.results = Path("results.json")
        self.known: dict[str, Any] = json.loads(self.results.read_text()) if self.results.exists() else {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Test each mutant, in place of the loop over the tests."""
        items = {item.nodeid: item for item in session.items}
        every = sorted({name for names in self.callers.values() for name in names} & items.keys())
        gc.collect()
        gc.freeze()  # forks do not copy what they only look through
        if (one := self.forked(session, "", [items[name] for name in every[::100]]))["status"] != "survived":
            raise SystemExit(f"a test fails without any mutant: {one}")
        for number, (mutant, digest) in enumerate(self.todo.items(), 1):
            function = mutant.rpartition("__mutmut_")[0]
            names = sorted(
                set(self.callers.get(function, [])) & items.keys(), key=lambda name: self.order(name, mutant)
            )
            until_s = itertools.accumulate(self.took_s.get(name, 0.0) for name in names)
            chosen = [items[name] for name, end_s in zip(names, until_s, strict=True) if end_s <= self.most_s]
            result = self.forked(session, mutant, chosen)
            self.known[mutant] = {"digest": digest, **result}
            self.results.write_text(json.dumps(self.known, indent=1))
            print(f"{number} of {len(self.todo)}: {mutant}: {result}", flush=True)
        return True

    def order(self, test: str, mutant: str) -> tuple[float, str]:
        """Return the place of a test: its time, longer the farther it stands from the code."""
        folders, home = test.split("::", maxsplit=1)[0].split("/")[1:-1], mutant.split(".")[1:-2]
        near = sum(1 for a, b in zip(folders, home, strict=False) if a == b)
        return (self.took_s.get(test, 0.0) + 0.02) * 4.0 ** (len(home) - near), test

    def forked(self, session: pytest.Session, mutant: str, items: list[pytest.Item]) -> dict[str, Any]:
        shutil.rmtree(".hypothesis", ignore_errors=True)  # no mutant is killed by an example that another one left
        last = Path("last.txt")
        last.write_text("")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not (child := os.fork()):
            code = FAILED
            with contextlib.suppress(BaseException):
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                code = self.run(session, mutant, items, last)
            os._exit(code)
        until_s = time.monotonic() + WALL_S
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until_s:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.01)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        code = os.waitstatus_to_exitcode(ended[1])
        status = {PASSED: "survived", FAILED: "killed", -signal.SIGPROF: "timeout", -signal.SIGKILL: "timeout"}
        spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "status": status.get(code, "killed"),
            "tests": len(items),
            "last": last.read_text() if code else "",
            "cpu_s": round(spent_s, 2),
        }

    def run(self, session: pytest.Session, mutant: str, items: list[pytest.Item], last: Path) -> int:
        os.environ["MUTANT_UNDER_TEST"] = mutant
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        for item, following in zip(items, [*items[1:], None], strict=True):
            last.write_text(item.nodeid)
            signal.setitimer(signal.ITIMER_PROF, LEAST_S + TIMES * self.took_s.get(item.nodeid, 0.0))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return FAILED
        return PASSED


if __name__ == "__main__":
    main()
