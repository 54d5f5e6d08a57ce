"""Tests that count what is computed leave verification out, other than its own."""

import pytest

from fedsim.learning.lineage.verification import Verification


@pytest.fixture(scope="module", autouse=True)
def _verifies(request):
    with pytest.MonkeyPatch.context() as patch:
        if not request.module.__name__.endswith("test_verification"):
            patch.setattr(Verification, "of_trainings", lambda *_: None)
            patch.setattr(Verification, "of_evaluation", lambda *_: None)
        yield
