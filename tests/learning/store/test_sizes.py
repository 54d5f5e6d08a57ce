"""Sizes as people write them."""

import pytest

from fedsim.errors import FedsimError
from fedsim.learning.store.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5 GiB", 5 * 1024**3), ("500 MB", 500_000_000), ("500MB", 500_000_000), (" 0 B ", 0), ("1.5 kib", 1536)],
)
def test_sizes(text, expected):
    assert parse_size(text, "--to") == expected


@pytest.mark.parametrize("text", ["", "5", "GiB", "-1 GB", "1e9 B", "5 GigaB", "5 GB more", "nan GB"])
def test_what_is_no_size(text):
    with pytest.raises(FedsimError, match=r"--to: .* is not allowed; it must be a number and a unit"):
        parse_size(text, "--to")


@pytest.mark.parametrize("text", ["0 B", "1023 B", "1.0 KiB", "2.5 MiB", "5.0 GiB", "3.0 TiB"])
def test_shown_sizes_are_sizes(text):
    assert show_size(parse_size(text, "size")) == text
