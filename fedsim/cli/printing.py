"""Tables on the terminal."""

from collections.abc import Iterable


def print_table(
    title: str, lines: Iterable[tuple[str, ...]], header: tuple[str, ...] = (), *, markup: bool = False
) -> None:
    """Print a table; a narrow terminal wraps all columns but the first."""
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Few lines, so that a report of sentences and tables is seen at once.
    table = Table(
        *header, show_header=bool(header), show_lines=markup, box=None if header and not markup else HEAVY_HEAD
    )
    for column in table.columns:
        column.overflow = "fold"
    if table.columns:
        table.columns[0].no_wrap = True
    for line in lines:
        table.add_row(*(cell if markup else Text(cell) for cell in line))
    # The title of a narrow table would be wrapped to its width.
    console = Console()
    console.print(Text(title, style="table.title"))
    console.print(table)


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences, each on lines of its own; a narrow terminal wraps them between words."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in lines:
        console.print(Text(line))
