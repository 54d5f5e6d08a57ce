"""Tables on the terminal."""

from collections.abc import Iterable

import typer


def print_table(
    title: str, lines: Iterable[tuple[str, ...]], header: tuple[str, ...] = (), *, markup: bool = False
) -> None:
    """Print a table; columns for which a terminal is too narrow follow below, beside the first one again."""
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [[Text.from_markup(cell) if markup else Text(cell) for cell in line] for line in lines]
    console = Console()
    # Headers and long cells are wrapped between words; only words of half a line are parted.
    words = [[_unbroken(cell.plain, console.width // 3) for cell in row] for row in rows]
    words += [[_unbroken(name, 0) for name in header]] if header else []
    least = [
        min(max(len(word) for cell in column for word in cell), console.width // 2 - 4)
        for column in zip(*words, strict=True)
    ]
    parts = [[0]] if least else []
    for i in range(1, len(least)):
        # Edges take three characters a column.
        if len(parts[-1]) > 1 and sum(least[k] + 3 for k in (*parts[-1], i)) > console.width:
            parts.append([0])
        parts[-1].append(i)
    # The title of a narrow table would be wrapped to its width.
    console.print(Text(title, style="table.title"))
    for part in parts:
        # Few lines, so that a report of sentences and tables is seen at once.
        box = None if header and not markup else HEAVY_HEAD
        table = Table(show_header=bool(header), show_lines=markup, box=box)
        for i in part:
            table.add_column(Text(header[i]) if header else "", min_width=least[i], overflow="fold")
        for row in rows:
            table.add_row(*(row[i] for i in part))
        console.print(table)


def _unbroken(cell: str, most: int) -> list[str]:
    """Return what of a cell stays on one line: a short line, or the words of a longer one."""
    return ["", *(word for line in cell.splitlines() for word in ([line] if len(line) <= most else line.split()))]


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences, each on lines of its own; a narrow terminal wraps them between words."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in lines:
        console.print(Text(line))


def print_notes(*notes: str) -> None:
    for note in notes:
        typer.echo(f"fedsim: {note}", err=True)
