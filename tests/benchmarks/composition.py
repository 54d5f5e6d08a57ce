"""Prints what composition costs, and what releases leak together, for fedsim/privacy/README.md.

python tests/benchmarks/composition.py
"""

import sys
import time

from fedsim.privacy import PrivacyLoss, Renyi

RELEASES, EPSILON, DELTA = 8, 2.0, 1e-4
RATE = 0.2


def main() -> None:
    for kind, composition in (("rdp", Renyi(delta=DELTA)), ("pld", PrivacyLoss(delta=DELTA))):
        for rate in (None, RATE):
            composition.ledger(1e-5, rate).add(EPSILON)  # what is loaded once
            ledger, began_s = composition.ledger(1e-5, rate), time.process_time()
            told = [ledger.add(EPSILON) for _ in range(RELEASES)]
            lasted_s = (time.process_time() - began_s) / RELEASES
            sampled = "" if rate is None else f", each client drawn at {rate}"
            sys.stdout.write(
                f"{kind}{sampled}: {RELEASES} releases of {EPSILON:g} leak {told[-1]:.3f} at delta {DELTA:g}; "
                f"{1e3 * lasted_s:.2f} ms a release\n"
            )


if __name__ == "__main__":
    main()
