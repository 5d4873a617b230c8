"""The walkthrough sets PyTorch's global switches; other tests must not feel it."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def torch_as_it_was():
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].use_deterministic_algorithms(False)
