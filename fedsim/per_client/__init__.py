"""Values that clients may have each: one number for all, a list, a law, or a column of a table of clients.

Examples
--------
>>> CLIENT_LAWS.make({"kind": "uniform", "least": 50.0, "greatest": 150.0}).limits()
Limits(least=50.0, greatest=150.0)
"""

from fedsim.per_client.field import (
    ClientValues as ClientValues,
    PerClient as PerClient,
    Values as Values,
    at as at,
    by_value as by_value,
    is_one as is_one,
    of_one as of_one,
    one_number as one_number,
    values_of as values_of,
)
from fedsim.per_client.laws import CLIENT_LAWS as CLIENT_LAWS
