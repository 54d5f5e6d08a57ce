"""Values that clients may have each: one number for all, a list, a law, or a column of a table of clients.

Examples
--------
>>> CLIENT_LAWS.make({"kind": "uniform", "least": 50.0, "greatest": 150.0}).limits()
Limits(least=50.0, greatest=150.0)
"""

from fedsim.per_client.field import ClientValues, PerClient, Values, at, by_value, is_one, of_one, one_number, values_of
from fedsim.per_client.laws import CLIENT_LAWS

__all__ = [
    "CLIENT_LAWS",
    "ClientValues",
    "PerClient",
    "Values",
    "at",
    "by_value",
    "is_one",
    "of_one",
    "one_number",
    "values_of",
]
