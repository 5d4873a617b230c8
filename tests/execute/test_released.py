"""Cells that are as released run once for all; nobody can tell, and no student's code runs there."""

import numpy as np
import pytest

from autograder.execute import Executor

from .conftest import text_of

RELEASED = [
    "import os, random, numpy as np, torch\nprint('begin', os.getcwd())",
    "np.random.seed(3)\nrng = np.random.default_rng(3)\nx = rng.random(2)\nos.makedirs('artifacts')\n"
    "_ = open('artifacts/e.json', 'w').write('{}')\nx",
    "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    "def double(z):\n    return 2 * z",
    "y = double(x)\nprint(rng.random(), np.random.rand())",
    "1 / 0",
    "print(os.listdir('artifacts'), y)",
]


@pytest.fixture(scope="module")
def sharing():
    with Executor(released=[RELEASED]) as executor:
        executor.start()
        yield executor


def run(executor, sources):
    """Outputs and answers of one notebook, asked as a grader asks."""
    found = []
    with executor.kernel() as kernel:
        for number, source in enumerate(sources):
            done = kernel.execute(source)
            found.append((done.status, done.outputs))
            if number == 3:
                assert kernel.bind("double@own", "double")
            if number == 4:
                found.append(
                    {k: np.asarray(v).tolist() for k, v in kernel.values(["x", "y", "no"]).items()}
                )
        found.append([o.value for o in kernel.call("double@own", [(2,), (3.5,)])])
        found.append(kernel.execute("print(len(In))").outputs)
        assert kernel.alive
    return found


@pytest.mark.parametrize("changed", [None, 0, 1, 3, 4, 6])
def test_a_shared_run_equals_one_alone(sharing, confined, changed):
    sources = list(RELEASED)
    if changed is not None:
        sources[changed] += "\nprint('mine', np.random.rand() < 2)"
    alone = run(confined, sources)
    for _ in range(2):
        assert run(sharing, sources) == alone


def test_a_changed_cell_runs_in_a_process_of_its_own(sharing):
    kinds = set()
    for source in ("who = os.getuid(), os.getpid()", "who = os.getuid(), os.getpid() "):
        with sharing.kernel() as kernel:
            kernel.execute(RELEASED[0])
            assert kernel._sock is None  # still the state that all share
            kernel.execute(source)
            assert kernel._sock is not None
            uid, pid = kernel.values(["who"])["who"]
            assert (uid > 0, pid) == (True, 1)
            kinds.add(uid)
    assert len(kinds) == 2 or 1000 in kinds


def test_only_the_released_order_is_shared(sharing):
    with sharing.kernel() as kernel:
        kernel.execute(RELEASED[3])
        assert kernel._sock is not None
    with sharing.kernel() as kernel:
        kernel.execute(RELEASED[0] + " ")
        assert kernel._sock is not None


def test_what_one_student_does_is_not_seen_by_another(sharing):
    with sharing.kernel() as first, sharing.kernel() as second:
        for kernel in (first, second):
            kernel.execute(RELEASED[0])
            kernel.execute(RELEASED[1])
        first.execute("x[:] = 99\nopen('artifacts/mine', 'w').write('x')\nnp.ones = None")
        done = second.execute("print(x.max() < 99, os.listdir('artifacts'), np.ones(1))")
        assert text_of(done) == "True ['e.json'] [1.]\n"


def test_unseeded_generators_differ_and_seeded_ones_do_not(sharing):
    seen = []
    for _ in range(2):
        with sharing.kernel() as kernel:
            kernel.execute(RELEASED[0])
            kernel.execute(RELEASED[1])
            kernel.execute("r = [random.random(), torch.rand(1).item(), np.random.rand()]")
            seen.append(kernel.values(["r"])["r"])
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]
    assert seen[0][2] == seen[1][2]


@pytest.mark.parametrize(
    "cell",
    [
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "import os\nos._exit(1)",
        # Where the environment lies below /tmp, the folder for temporary files is another one.
        "import tempfile\nopen(tempfile.gettempdir() + '/x', 'w').write('x')",
    ],
)
def test_a_cell_whose_state_cannot_be_forked_runs_for_each(cell):
    sources = ["a = 1", cell, "b = 2"]
    with Executor(released=[sources]) as executor, executor.kernel() as kernel:
        kernel.execute("a = 1")
        assert kernel._sock is None
        kernel.execute(cell)
        assert kernel._sock is not None
        assert kernel.execute("b = a").status in ("ok", "dead")


def test_submitted_files_are_not_shared(sharing, tmp_path):
    (tmp_path / "data.txt").write_text("7")
    with sharing.kernel(files=tmp_path) as kernel:
        kernel.execute(RELEASED[0])
        assert text_of(kernel.execute("print(os.listdir('.'))")) == "['data.txt']\n"


@pytest.mark.parametrize(
    ("sources", "ready"), [(["import numpy"], False), (["import numpy", "import torch"], True)]
)
def test_what_torch_imports_late_is_ready_for_lessons_that_use_it_and_for_no_others(sources, ready):
    with Executor(released=[sources]) as executor, executor.kernel() as kernel:
        told = kernel.execute("import sys\nprint('torch._dynamo' in sys.modules)").outputs
    assert told[0]["text"] == f"{ready}\n"
