"""Prints tables of pages that the code knows; ``--write`` puts them there.

python tests/tools/tables.py --write
"""

import sys
from collections.abc import Callable
from pathlib import Path

from fedsim.history.schema import TABLES
from fedsim.selectors import SELECTORS, SelectorInfo

ROOM = Path(__file__).parents[2] / "fedsim"
HEADER = ("kind", "what it selects", "knowledge besides the view", "communication besides models and updates", "paper")


def selectors() -> str:
    rows = [HEADER, ("---",) * len(HEADER)]
    for kind in sorted(SELECTORS.builtin):
        found = SELECTORS.load(kind)
        info = SelectorInfo.of(found)
        what = found.__doc__.strip().partition("\n")[0].replace("``", "`").rstrip(".")
        rows.append((f"`{kind}`", what, info.knowledge or "-", info.communication, info.paper))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def columns() -> str:
    """Return all columns as one table; a column that an earlier table has as well is named only."""
    lines, shown = ["| column | type | unit | meaning | null |", "|---|---|---|---|---|"], {}
    for table in TABLES.values():
        before: dict[str, list[str]] = {}
        for column in table.columns:
            if column in shown:
                before.setdefault(shown[column], []).append(f"`{column.name}`")
        also = "".join(f"; {', '.join(names)} as in `{other}`" for other, names in before.items())
        lines.append(f"| **`{table.name}`** | table | | {table.row}{also} | {'a run may have none' * table.optional} |")
        for column in table.columns:
            if column in shown:
                continue
            shown[column] = table.name
            kind, meaning = str(column.type), column.doc
            if column.labels is not None:
                kind, meaning = "label", meaning + ": " + ", ".join(f"`{label}`" for label in column.labels.labels())
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {meaning} | {column.null} |")
    return "\n".join(lines) + "\n"


PAGES: dict[Path, Callable[[], str]] = {
    ROOM / "results" / "README.md": columns,
    ROOM / "selectors" / "README.md": selectors,
}


def with_table(page: Path) -> str:
    table = PAGES[page]
    begin, end = f"<!-- {table.__name__}: written by tests/tools/tables.py -->\n", f"<!-- end of {table.__name__} -->\n"
    before, _, rest = page.read_text().partition(begin)
    return f"{before}{begin}\n{table()}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    for page, table in PAGES.items():
        if "--write" in sys.argv:
            page.write_text(with_table(page))
        else:
            sys.stdout.write(table())
