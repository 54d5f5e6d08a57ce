"""Does each law do what theory says? What is drawn, and what media do on the clock, beside closed forms and samples.

    python scenarios/validate_laws.py [--quick]

Losses are those of 3GPP TR 38.901 worked out once more by hand; fading, capacities, queues and stragglers have closed
forms; comings and goings are compared with what is published of a sample. The last column is the difference in standard
errors, 0 where nothing is drawn; the status is 1 if any exceeds 4.5. A Kolmogorov-Smirnov test has its p-value as a
standard normal number. It takes 20 s; ``--quick`` takes a tenth of the samples.
"""

import sys
from collections.abc import Callable, Iterator

from study_scripts import command
from validation import Row, crowds, fading, places, queues, transfers

LIMIT = 4.5  # standard errors: one table of 160 drawn rows in 1,000 goes beyond by chance
GROUPS: list[Callable[[float], Iterator[Row]]] = [
    *(places.path_loss, places.links, places.correlation, fading.fading, transfers.alone),
    *(queues.queues, transfers.shares, crowds.stragglers, crowds.online, crowds.flash),
]


def main(quick: bool = False) -> None:
    worst, beyond = 0.0, 0
    line = "{:<70}{:>12}{:>12}{:>13}".format
    print(line("law", "simulated", "theory", "std. errors"))
    for group in GROUPS:
        print(f"\n{(group.__doc__ or '').partition(': ')[0]}")
        for row in group(0.1 if quick else 1.0):
            worst = max(worst, abs(row.errors))
            beyond += not abs(row.errors) <= LIMIT
            errors = f"{row.errors:+.2f}" if row.error else f"{row.errors:.0f}"
            print(line(f"  {row.law}", f"{row.simulated:.6g}", f"{row.theory:.6g}", errors))
    print(f"\n{beyond} rows beyond {LIMIT} standard errors, the largest at {worst:.2f}")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    command(main, __doc__)
