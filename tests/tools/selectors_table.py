"""Prints the table of all built-in selectors for fedsim/selectors/README.md; ``--write`` puts it there.

python tests/tools/selectors_table.py --write
"""

import sys
from pathlib import Path

from fedsim.selectors import SELECTORS, SelectorInfo

PAGE = Path(__file__).parents[2] / "fedsim" / "selectors" / "README.md"
BEGIN, END = "<!-- selectors: written by tests/tools/selectors_table.py -->\n", "<!-- end of selectors -->\n"
HEADER = ("kind", "what it selects", "knowledge besides the view", "communication besides models and updates", "paper")


def table() -> str:
    rows = [HEADER, ("---",) * len(HEADER)]
    for kind in sorted(SELECTORS.builtin):
        found = SELECTORS.load(kind)
        info = SelectorInfo.of(found)
        what = found.__doc__.strip().partition("\n")[0].replace("``", "`").rstrip(".")
        rows.append((f"`{kind}`", what, info.knowledge or "-", info.communication, info.paper))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(with_table(PAGE.read_text()))
    else:
        sys.stdout.write(table())
