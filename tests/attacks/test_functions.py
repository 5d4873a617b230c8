"""The same attacks on functions that the grader calls with hidden inputs: none earns more than its wrong answer."""

from types import SimpleNamespace

import nbformat
import pytest

from autograder.execute import Executor, Limits
from autograder.tasks.model import NotebookTasks
from autograder.tasks.w07_h2_practice import accepts, softmax
from autograder.verify.interview import draw, interview
from autograder.verify.verdicts import verdicts

from .bank import attacks

NONCE = "0123456789abcdef0123456789abcdef"
TASKS = NotebookTasks("functions", (softmax.TASK, accepts.TASK))
WRONG = (
    "import numpy as np\ndef softmax(z):\n    return np.exp(z - z.max(axis=-1, keepdims=True))\n"
)
RIGHT = (
    "import numpy as np\ndef softmax(z):\n    top = z.max(axis=-1, keepdims=True)\n"
    "    if np.isneginf(top).any():\n        raise ValueError('empty row')\n"
    "    e = np.exp(z - top)\n    return e / e.sum(axis=-1, keepdims=True)\n"
)
ALWAYS = "def accepts(candidate):\n    return True\n"
KINDS = ("patching", "forging")
# Attacks on what only the walkthrough has (its graded cells), or that only use up time here.
ELSEWHERE = {"checkpoint-as-answer", "message-flood"}
PROBES = draw(TASKS, NONCE)

LOOKS_INSIDE = """
import gc, types
def accepts(candidate):
    for thing in gc.get_referents(candidate) + list(candidate.__closure__ or ()):
        print("$WIN" if "row_softmax" in repr(thing) else "", thing)
    source = getattr(candidate, "__wrapped__", candidate)
    return "wrong" not in repr(source.__code__.co_consts) + repr(source.__qualname__)
"""
REMEMBERS = """
calls = []
def softmax(z):
    calls.append(z)
    return calls[-2] if len(calls) > 1 and calls[-2].shape == z.shape else z
"""


@pytest.fixture(scope="module")
def executor():
    with Executor() as executor:
        executor.start()
        yield executor


def grade(executor, answer: str, attack: str = "", last: bool = False):
    """The score of both functions, and all that the notebook showed and was told."""
    cells = [
        nbformat.v4.new_code_cell(answer, id="softmax"),
        nbformat.v4.new_code_cell(ALWAYS, id="accepts"),
    ]
    for cell in cells:
        cell.metadata["nbgrader"] = {"grade_id": cell.id, "solution": True, "grade": False}
    if attack:
        cells.insert(len(cells) if last else 1, nbformat.v4.new_code_cell(attack, id="attack"))
    limited = SimpleNamespace(
        kernel=lambda files=None: executor.kernel(limits=Limits(cell=5, call=2))
    )
    answers = interview(limited, nbformat.v4.new_notebook(cells=cells), TASKS, PROBES)
    found = verdicts(TASKS, PROBES, answers)
    shown = [
        o for outputs in answers.outputs.values() for o in outputs if o["output_type"] != "error"
    ]
    return sum(v.score for v in found.values()), repr(shown) + repr(found)


def test_the_right_answer_earns_more_than_the_control(executor):
    assert grade(executor, RIGHT)[0] > grade(executor, WRONG)[0]


@pytest.fixture(scope="module")
def control(executor):
    return grade(executor, WRONG)[0]


@pytest.mark.parametrize(
    "attack",
    [a for a in attacks() if a.kind in KINDS and a.code and a.name not in ELSEWHERE],
    ids=lambda a: a.name,
)
def test_the_attack_earns_nothing(executor, control, attack, record_property):
    code = attack.code.replace("$WIN", "won-it").replace("$GRADE", "softmax-rows")
    score, shown = grade(executor, WRONG, code, attack.place == "last")
    succeeded = bool(score > control or "won-it" in shown)
    record_property("attack on functions", {"name": attack.name, "succeeded": succeeded})
    assert score <= control
    assert "won-it" not in shown


@pytest.mark.parametrize(
    "code", [LOOKS_INSIDE, REMEMBERS], ids=["looks inside the candidate", "remembers"]
)
def test_what_only_functions_can_try(executor, control, code):
    score, shown = grade(executor, WRONG, code.replace("$WIN", "won-it"), last=True)
    assert score <= control
    assert "won-it" not in shown
