"""A recording copies arguments in and results out; on a GPU it gives the bits of the calls that it stands for."""

import pytest
import torch

from fedsim.learning.executors.stacked.replay import Replay, recorded

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def products(weight, first, second):
    return [torch.bmm(first, weight), first * second]


def test_arguments_are_copied_before_the_start_and_results_after_it():
    # The start stands for a CUDA graph: it knows fixed arrays only.
    lasting, place, left = torch.tensor([2.0, 3.0]), torch.zeros(2), torch.zeros(2)
    replay = Replay(lambda: torch.mul(lasting, place, out=left), 1, [place], [left])
    first = replay(lasting, torch.tensor([5.0, 7.0]))
    lasting += 1.0
    second = replay(lasting, torch.tensor([1.0, 1.0]))
    assert first[0].tolist() == [10.0, 21.0]
    assert second[0].tolist() == [3.0, 4.0]


@cuda
def test_a_recording_gives_the_bits_of_the_calls_and_keeps_earlier_results():
    generator = torch.Generator("cuda").manual_seed(0)
    weight, *batches = (torch.randn(4, 8, 8, device="cuda", generator=generator) for _ in range(7))
    run = recorded(products, [weight], batches[:2])
    assert isinstance(run, Replay)
    pairs = [batches[:2], batches[2:4], batches[4:]]
    found = [run(weight, *pair) for pair in pairs]
    for one, pair in zip(found, pairs, strict=True):
        assert all(torch.equal(*both) for both in zip(one, products(weight, *pair), strict=True))
    weight.mul_(2.0)
    assert torch.equal(run(weight, *pairs[0])[0], products(weight, *pairs[0])[0])


@cuda
def test_what_cuda_refuses_to_record_is_called():
    def waits(weight, values):
        return [weight * values.sum().item()]

    weight, values = torch.ones(3, device="cuda"), torch.ones(4, device="cuda")
    run = recorded(waits, [weight], [values])
    assert run is waits
    assert run(weight, values)[0].tolist() == [4.0, 4.0, 4.0]
