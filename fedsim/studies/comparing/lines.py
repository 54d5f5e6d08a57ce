"""A line of a comparison: one variant against the baseline in one metric."""

import math
from dataclasses import dataclass
from typing import Any, Final

from fedsim.studies.comparing.pairs import Paired
from fedsim.studies.metrics import metric

COLUMNS: Final = ("metric", "variant", "pairs", "baseline", "mean", "difference", "times", "p (Holm)", "unreached")


@dataclass(frozen=True)
class Line:
    """One variant against the baseline in one metric; ``holm`` is the probability corrected for the whole family."""

    metric: str
    variant: str
    baseline: str
    paired: Paired
    holm: float = math.nan

    def cells(self) -> tuple[str, ...]:
        """Return the line as text, in the order of `COLUMNS`."""
        one, unit = self.paired, metric(self.metric).unit
        counts = f"{one.unreached[1]} / {one.unreached[0]}" if any(one.unreached) else "-"
        head = (f"{self.metric} ({unit})" if unit else self.metric, self.variant, str(one.pairs))
        if one.refused:
            return (*head, "-", "-", "refused", "-", "-", counts)
        half = one.interval.half
        # Two digits of the half width, and as many places of the difference.
        places = 1 - math.floor(math.log10(half)) if half > 0 else -1
        difference = f"{one.difference:.{places}f}" if places >= 0 else _number(one.difference)
        numbers = (*map(_number, one.means), f"{difference} +- {half:.2g}", _number(one.ratio))
        return (*head, *numbers, _number(self.holm, 2), counts)

    def row(self) -> dict[str, Any]:
        """Return the line as a row of a table."""
        one = self.paired
        return {
            "metric": self.metric,
            "unit": metric(self.metric).unit,
            "variant": self.variant,
            "baseline": self.baseline,
            "pairs": one.pairs,
            "baseline_mean": one.means[0],
            "variant_mean": one.means[1],
            "difference": one.difference,
            "low": one.interval.low,
            "high": one.interval.high,
            "ratio": one.ratio,
            "ratio_low": one.ratio_interval.low,
            "ratio_high": one.ratio_interval.high,
            "p": one.p,
            "p_holm": self.holm,
            "horizon": one.horizon if math.isfinite(one.horizon) else math.nan,
            "baseline_unreached": one.unreached[0],
            "variant_unreached": one.unreached[1],
            "p_shares": one.p_shares,
            "variance_ratio": one.variance_ratio,
            "refused": one.refused,
        }


def _number(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"
