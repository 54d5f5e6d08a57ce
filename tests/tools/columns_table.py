"""Prints the tables of all columns for fedsim/results/README.md; ``--write`` puts them there.

python tests/tools/columns_table.py --write
"""

import sys
from pathlib import Path

from fedsim.history.schema import TABLES

PAGE = Path(__file__).parents[2] / "fedsim" / "results" / "README.md"
BEGIN, END = "<!-- columns: written by tests/tools/columns_table.py -->\n", "<!-- end of columns -->\n"


def columns() -> str:
    """Return all columns as one table in Markdown; a column that an earlier table has as well is named only."""
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


def with_columns(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + columns() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(with_columns(PAGE.read_text()))
    else:
        sys.stdout.write(columns())
