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
        if one.refused:
            return (self.metric, self.variant, str(one.pairs), "-", "-", "refused", "-", "-", counts)
        shown = [f"{_number(number)} {unit}".strip() for number in (*one.means, one.difference)]
        shown[2] += f" +- {one.interval.half:.2g}"
        return (self.metric, self.variant, str(one.pairs), *shown, _number(one.ratio), _number(self.holm), counts)

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


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"
