"""No test passes itself over: a component that is missing is a failure."""

from __future__ import annotations

import re

from tests.conftest import ROOT

SKIPS = re.compile(r"importorskip|pytest\.skip|mark\.skip|mark\.xfail|skipif|SkipTest|skipTest")


def skips(text: str) -> list[str]:
    return SKIPS.findall(text)


def test_no_test_skips_itself():
    own = ROOT / "tests" / "unit" / "test_no_skips.py"
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != own]
    assert [str(path.relative_to(ROOT)) for path in files if skips(path.read_text())] == []


def test_a_skip_is_found():
    assert skips('torch = pytest.importorskip("torch")')
    assert skips("@pytest.mark.skipif(True, reason='')")
    assert not skips("skipped_cells = {}")
