"""What a student sees under IPython: no frames of the helper, JSON and pictures as outputs, in words too."""

from __future__ import annotations

import base64
import json
import subprocess
import sys

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import attention_lab as lab


@pytest.fixture
def shell():
    shell = InteractiveShell.instance()
    shell.run_cell("import numpy as np, attention_lab as lab\nlab.begin(['scores-scaled'])")
    yield shell
    InteractiveShell.clear_instance()


def run(shell, source):
    with capture_output() as seen:
        shell.run_cell(source)
    return seen


def test_a_failed_check_shows_its_message_without_frames(shell):
    seen = run(
        shell,
        "with lab.checkpoint('scores-scaled'):\n"
        "    lab.check_close('scores', np.ones(2), np.zeros(2), unscaled=np.ones(2))",
    )
    shown = [line for line in (seen.stdout + seen.stderr).splitlines() if line.strip()]
    assert shown == [
        "✗ scores-scaled",
        "  Seen: `scores`[0] is 1, the property gives 0.",
        "  Likely cause: these are raw dot products, not scaled.",
        "  Try: divide by np.sqrt(K.shape[-1]).",
    ]


def test_an_undefined_name_shows_no_frames_either(shell):
    seen = run(shell, "with lab.checkpoint('scores-scaled'):\n    lab.check_array('x', nothing)")
    text = seen.stdout + seen.stderr
    assert "Traceback" not in text
    assert "attention_lab.py" not in text
    assert "nothing" in text


def test_other_errors_keep_their_traceback(shell):
    assert "ZeroDivisionError" in run(shell, "1 / 0").stdout


def test_the_evidence_is_an_output_of_its_cell(shell, tmp_path):
    seen = run(
        shell,
        f"e = lab.Evidence({str(tmp_path / 'e.json')!r}, {{'Q': 'section 2'}})\n"
        "e.record(Q=np.eye(2))\ne.save()",
    )
    (output,) = seen.outputs
    shown = output.data["application/json"]
    assert shown["Q"] == [[1.0, 0.0], [0.0, 1.0]]
    assert json.loads(output.data["text/plain"]) == shown
    assert shown == json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))


PICTURES = {
    "lab.heatmap(np.array([[0.25, 0.75], [1.0, 0.0]]), ['first', 'second'], ['A', 'B'], title='T')": [
        "T: first to A 0.25, B 0.75; second to A 1.00, B 0.00",
    ],
    "lab.heatmap(np.eye(20))": ["q0 to k0 1.00", "q11 to k11 1.00"],
    "lab.arrows([[1, 0], [0, 1]], [[-1, 0.5]], ['A', 'B'], ['query'])": [
        "A at (1, 0)",
        "query at (-1, 0.5)",
    ],
    "lab.bars(np.array([[0.4011, 0.5989]]), ['A', 'B'])": ["A 0.4011; B 0.5989"],
    "lab.bars([0.1, 0.2, 0.7], ['too', 'few'])": ["k0 0.1000; k1 0.2000; k2 0.7000"],
}


@pytest.mark.parametrize("source", PICTURES)
def test_every_picture_has_words_made_from_its_data(shell, source):
    seen = run(shell, source)
    (output,) = seen.outputs
    assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")
    words = output.metadata["image/png"]["alt"]
    assert words == output.data["text/plain"]
    assert f"In words: {words}" in seen.stdout
    for part in PICTURES[source]:
        assert part in words


def test_neighbouring_bars_differ_in_lightness():
    """Bars can be told apart without colour: by lightness, and by hatches."""

    def lightness(colour):
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    tones = [lightness(colour) for colour in lab.COLOURS[:3]]
    assert min(np.abs(np.diff(tones))) > 30
    assert len(set(lab.HATCHES)) == len(lab.HATCHES) == len(lab.COLOURS)


def test_importing_the_helper_needs_numpy_and_the_standard_library_alone():
    code = (
        "import sys; before = set(sys.modules); import attention_lab; "
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout.replace("'", '"'))) <= {"numpy", "attention_lab"}
