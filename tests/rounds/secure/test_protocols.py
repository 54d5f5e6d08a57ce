"""The bits of secure aggregation, against the totals and the expansions that its paper states."""

import pytest
from hypothesis import example, given, strategies as st
from pydantic import ValidationError

from fedsim.rounds.secure.protocols import Bonawitz
from fedsim.units import BITS_PER_FLOAT32


def total_bits(protocol, clients, numbers):
    """Return the bits that a client sends and receives in all steps, for an update of some numbers."""
    return (
        protocol.keys_up_bits()
        + protocol.keys_down_bits(clients)
        + protocol.shares_up_bits(clients)
        + protocol.shares_down_bits(clients)
        + protocol.masked_bits(BITS_PER_FLOAT32 * numbers, clients)
        + protocol.reveal_bits(clients)
    )


@pytest.mark.parametrize(("clients", "numbers", "expansion"), [(2**10, 2**20, 1.73), (2**14, 2**24, 1.98)])
def test_the_expansion_is_that_of_the_abstract(clients, numbers, expansion):
    """Bonawitz et al., CCS 2017, abstract: values of 16 bits; keys and shares of 256 bits (section 7.1)."""
    found = total_bits(Bonawitz(), clients, numbers) / (16 * numbers)
    assert round(found, 2) == expansion


@given(
    clients=st.integers(1, 10**6), numbers=st.integers(1, 10**6), key=st.integers(1, 10**4), share=st.integers(1, 10**4)
)
def test_keys_and_shares_add_up_to_the_sum_of_section_7(clients, numbers, key, share):
    """Section 7.1: 2 n keys, 5 n - 4 shares and the masked vector."""
    protocol = Bonawitz(key_bits=float(key), share_bits=float(share))
    masked = protocol.masked_bits(BITS_PER_FLOAT32 * numbers, clients)
    assert total_bits(protocol, clients, numbers) == 2 * clients * key + (5 * clients - 4) * share + masked


@given(clients=st.integers(1, 10**6), bits=st.integers(1, 64))
@example(clients=2**63, bits=1)  # a logarithm of floats gives 63 bits
def test_a_masked_number_has_the_fewest_bits_that_hold_every_sum(clients, bits):
    """``R = n (R_U - 1) + 1`` values: 2^b of them fit into b bits, and not into b - 1."""
    found = Bonawitz(value_bits=bits).masked_bits(BITS_PER_FLOAT32, clients)
    values = clients * (2**bits - 1) + 1
    assert 2**found >= values > 2 ** (found - 1)


@given(clients=st.integers(1, 10**6), threshold=st.floats(1e-6, 1.0))
def test_the_threshold_is_the_share_rounded_up(clients, threshold):
    least = Bonawitz(threshold=threshold).least_clients(clients)
    assert 1 <= least <= clients
    assert least >= threshold * clients - 1e-6
    assert least - 1 < threshold * clients


def test_masks_by_hand():
    """Of 5 clients with shares 3 deliver: 3 own masks, and one of each of the 3 with each of the 2 that are lost."""
    assert Bonawitz().masks(5) == 5
    assert Bonawitz().server_masks(3, 2) == 3 + 6
    assert Bonawitz().server_masks(5, 0) == 5


@pytest.mark.parametrize(
    "options", [{"value_bits": 0}, {"key_bits": 0.0}, {"threshold": 0.0}, {"threshold": 1.1}, {"server_mask_s": -1.0}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValidationError, match=next(iter(options))):
        Bonawitz(**options)
