"""How figures look, and how they are written to files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fedsim.errors import RunError
from fedsim.inputs.files import check_path
from fedsim.whole_files import replace_file

DOTS_PER_INCH: Final = 150
# Okabe and Ito's palette: colour-blind readers can tell the curves apart, also in grey.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES: Final = ("-", "--", "-.", ":")


if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text


def new_figure(width: float = 6.4, height: float = 4.0) -> "Figure":
    """Return an empty figure of a size in inches, which can be drawn without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def look_of(number: int) -> dict[str, Any]:
    """Return colour and line style of a curve: of as many as there are colours times styles no two look alike."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number // len(COLOURS) % len(STYLES)]}


def as_it_is(text: "Text", name: str) -> None:
    """Show a name as text: a dollar sign begins no formula."""
    text.set_parse_math(False)
    text.set_text(name)


def add_legend(axes: "Axes", drawn: "Sequence[Artist]", names: Sequence[str], **look: Any) -> None:
    """Add a legend with an entry for each artist, also where a name begins with an underscore."""
    legend = axes.legend(drawn, [str(i) for i in range(len(names))], frameon=False, **look)
    for text, name in zip(legend.get_texts(), names, strict=True):
        as_it_is(text, name)


def figure_file(out: str | Path) -> Path:
    """Return the path of a figure's file; one whose ending is no format of figures is refused."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    path, formats = check_path(out, RunError), FigureCanvasAgg.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise RunError(
            f"{str(out)!r} is not allowed; a figure needs a name that ends in .{', .'.join(sorted(formats))}"
        )
    return path


def save(figure: "Figure", out: str | Path | None) -> None:
    """Write a figure to a file, if one is named, making its folder; an existing one is replaced by a complete one."""
    if out is None:
        return
    path = figure_file(out)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, lambda part: figure.savefig(part, format=path.suffix[1:].lower()))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: the figure cannot be written: {error}") from None
