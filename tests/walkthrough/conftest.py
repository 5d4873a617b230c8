"""Keeps the walkthrough's runs in this process apart from other tests, and quick."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def pictures_are_drawn_but_not_rendered(monkeypatch):
    """Rendering is most of a run's time; test_release_form renders every picture in a real kernel."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda *args, **kwargs: None)


@pytest.fixture(autouse=True)
def torch_as_it_was():
    """The walkthrough sets PyTorch's global switches; other tests must not feel it."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].use_deterministic_algorithms(False)
