"""Tables on the terminal."""

from collections.abc import Iterable


def print_table(
    title: str, lines: Iterable[tuple[str, ...]], header: tuple[str, ...] = (), *, markup: bool = False
) -> None:
    """Print a table; a narrow terminal wraps all columns but the first."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        *header,
        title=Text(title, style="table.title"),
        show_header=bool(header),
        title_justify="left",
        show_lines=markup,
    )
    if table.columns:
        table.columns[0].no_wrap = True
    for line in lines:
        table.add_row(*(cell if markup else Text(cell) for cell in line))
    Console().print(table)
