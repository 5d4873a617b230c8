"""A notebook's cells run as in Jupyter, and nothing that they do makes the grader raise."""

import base64
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import numpy as np
import pytest

from autograder.execute import Executor, Foreign, Limits, Opaque, Outcome
from autograder.tasks.play import play

from .conftest import error_of, text_of


def test_outputs_are_those_of_a_notebook(kernel):
    done = kernel.execute("import warnings\nprint('hello')\nwarnings.warn('careful')\n40 + 2")
    assert done.status == "ok"
    assert [o["output_type"] for o in done.outputs] == ["stream", "stream", "execute_result"]
    assert done.outputs[0] == {"output_type": "stream", "name": "stdout", "text": "hello\n"}
    assert "careful" in done.outputs[1]["text"]
    assert done.outputs[2]["data"] == {"text/plain": "42"}
    cell = nbformat.v4.new_code_cell("1", outputs=[nbformat.from_dict(o) for o in done.outputs])
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))


def test_an_error_is_an_output_and_later_cells_still_run(kernel):
    done = kernel.execute("1 / 0")
    assert (done.status, error_of(done)) == ("error", "ZeroDivisionError: division by zero")
    assert kernel.execute("def f(:").status == "error"
    assert kernel.execute("print(1)").status == "ok"


@pytest.mark.parametrize(
    "line", ["", "%matplotlib inline", "%matplotlib tk", "plt.switch_backend('TkAgg')"]
)
def test_pictures_are_inline_png(kernel, line):
    done = kernel.execute(f"import matplotlib.pyplot as plt\n{line}\nplt.plot([1, 2])\nplt.show()")
    (picture,) = [o for o in done.outputs if o["output_type"] == "display_data"]
    assert base64.b64decode(picture["data"]["image/png"]).startswith(b"\x89PNG")
    assert picture["data"]["text/plain"].startswith("<Figure")


@pytest.mark.parametrize(
    "source",
    [
        "%pip install nothing-of-this-name",
        "!pip install nothing-of-this-name",
        "from google.colab import drive, files\ndrive.mount('/content/drive')\nfiles.upload()",
        "import asyncio\nawait asyncio.sleep(0)",
        "%time x = 1",
        "%%capture\nprint(1)",
        "exit()",
        "from IPython.display import clear_output, HTML\ndisplay(HTML('<b>x</b>'))\nclear_output()",
        "import os\nif os.fork() == 0:\n    pass\nelse:\n    os.wait()",
    ],
)
def test_usual_lines_do_not_cost_the_cell(kernel, source):
    assert kernel.execute(source).status == "ok", source
    assert kernel.execute("1").status == "ok"


def test_text_below_python_and_of_subprocesses_is_kept(kernel):
    done = kernel.execute("import os\nos.write(1, b'low\\n')\nos.system('echo shell')\n!echo bang")
    assert {"low", "shell", "bang"} <= set(text_of(done).split())


def test_input_says_what_to_do(kernel):
    done = kernel.execute("name = input('name? ')")
    assert done.status == "error"
    assert "assign the value" in error_of(done)


def test_a_display_can_be_updated_and_cleared(kernel):
    done = kernel.execute("h = display('a', display_id=True)\nh.update('b')")
    assert [o["data"]["text/plain"] for o in done.outputs] == ["'b'"]
    source = "from IPython.display import clear_output\nprint(1)\nclear_output(wait=True)\nprint(2)"
    assert text_of(kernel.execute(source)) == "2\n"


def test_long_output_is_cut_and_that_is_said(executor):
    with executor.kernel(limits=Limits(output=1000)) as kernel:
        done = kernel.execute("print('x' * 10**7)")
        assert done.status == "ok"
        assert len(text_of(done)) < 1200
        assert "cut" in text_of(done)


def test_bind_values_call(kernel):
    kernel.execute(
        "import numpy as np, torch\nQ = np.eye(2)\nT = torch.ones(1)\n"
        "def f(x, y):\n    x[0] = 9\n    return x.sum() + y\ng = f\nf = None"
    )
    assert kernel.bind("f@own", "g")
    assert not kernel.bind("h@own", "h")
    values = kernel.values(["Q", "T", "g", "absent"])
    assert set(values) == {"Q", "T", "g"}
    assert isinstance(values["T"], Foreign)
    assert isinstance(values["g"], Opaque)
    x = np.array([1.0, 2.0])
    first, second, third = kernel.call("f@own", [(x, 1), (x.astype(int), 1), (x, "no")])
    assert first == Outcome(value=np.float64(12.0), changed=(0,))
    assert second.value == 12
    assert x.tolist() == [1.0, 2.0]
    assert "UFuncTypeError" in third.raised.bases or "TypeError" in third.raised.bases
    (nothing,) = kernel.call("absent@own", [(1,)])
    assert nothing.raised.type == "TypeError"


def test_untouched_arguments_are_not_called_changed(kernel):
    kernel.execute("def f(x, y):\n    return [x, y]")
    kernel.bind("f", "f")
    (outcome,) = kernel.call("f", [(np.array([np.nan]), [np.zeros(2)])])
    assert outcome.changed == ()


def test_helpers_survive_a_lesson_in_monkeypatching(kernel):
    kernel.execute(
        "import builtins, json, numpy as np, os, base64\n"
        "def f(x):\n    x += 1\n    return x\n"
        "for name in ('isinstance', 'type', 'len', 'all', 'str', 'repr', 'enumerate', 'dict', 'list'):\n"
        "    setattr(builtins, name, None)\n"
        "json.dumps = json.loads = np.array_equal = np.ascontiguousarray = os.getpid = None\n"
        "base64.b64encode = np.asarray = None"
    )
    assert kernel.bind("f", "f")
    (outcome,) = kernel.call("f", [(np.array([1.0]),)])
    assert outcome.value.tolist() == [2.0]
    assert outcome.changed == (0,)


def test_serve_shows_an_opaque_candidate(kernel):
    kernel.execute(
        "import numpy as np\n"
        "def accepts(candidate):\n"
        "    try:\n        candidate('text')\n        return False\n"
        "    except ValueError:\n        pass\n"
        "    return bool(candidate(np.ones(3)) == 3)\n"
        "def looks(candidate):\n    return [n for n in dir(candidate) if not n.startswith('__')]"
    )
    kernel.bind("accepts", "accepts")
    kernel.bind("looks", "looks")

    def right(arguments):
        if isinstance(arguments[0], str):
            raise ValueError("no text")
        return Outcome(value=arguments[0].sum())

    assert kernel.serve("accepts", right).value is True
    assert kernel.serve("accepts", lambda arguments: Outcome(value=0)).value is False
    assert kernel.serve("looks", right).value == []


def test_what_a_candidate_leaves_in_its_argument_reaches_the_caller(kernel):
    kernel.execute(
        "import numpy as np\n"
        "def keeps(candidate):\n"
        "    mine = np.arange(6.0).reshape(2, 3)\n"
        "    for given in (mine, mine[:, ::2]):\n"
        "        candidate(given)\n"
        "    return mine"
    )
    kernel.bind("keeps", "keeps")
    assert kernel.serve("keeps", lambda a: play(lambda x: x.fill(0), a)).value.sum() == 0
    assert kernel.serve("keeps", lambda a: play(lambda x: x.sum(), a)).value.sum() == 15


def test_serve_ends_when_the_candidate_is_asked_for_ever(executor):
    with executor.kernel(limits=Limits(call=1, grace=0.5)) as kernel:
        kernel.execute("def accepts(c):\n    while True:\n        c(1)")
        kernel.bind("accepts", "accepts")
        outcome = kernel.serve("accepts", lambda arguments: Outcome(value=1))
        assert outcome.raised.type in ("TimeoutError", "KernelDied")


def test_an_endless_cell_is_interrupted_and_the_kernel_lives(executor):
    with executor.kernel(limits=Limits(cell=0.5)) as kernel:
        done = kernel.execute("print('before')\nwhile True:\n    pass")
        assert done.status == "timeout"
        assert "before" in text_of(done)
        assert error_of(done).startswith("KeyboardInterrupt")
        assert kernel.alive
        assert kernel.execute("1").status == "ok"


def test_a_cell_that_refuses_the_interrupt_is_killed(executor):
    with executor.kernel(limits=Limits(cell=0.5, grace=0.5)) as kernel:
        source = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(1)\nwhile True:\n    pass"
        done = kernel.execute(source)
        assert done.status == "timeout"
        assert "1" in text_of(done)
        assert not kernel.alive


def test_an_endless_call_costs_that_call(executor):
    with executor.kernel(limits=Limits(call=0.5)) as kernel:
        kernel.execute("def f(x):\n    while x:\n        pass\n    return x")
        kernel.bind("f", "f")
        outcomes = kernel.call("f", [(0,), (1,), (0,)])
        assert [o.value for o in outcomes] == [0, None, 0]
        assert outcomes[1].raised.type == "TimeoutError"


@pytest.mark.parametrize(
    "source",
    ["import os; os._exit(3)", "import ctypes; ctypes.string_at(0)", "import os; os.abort()"],
)
def test_a_dead_kernel_keeps_what_it_said_and_never_raises(kernel, source):
    kernel.execute("f = len")
    assert kernel.bind("f", "f")
    done = kernel.execute(f"print('last words')\n{source}")
    assert done.status == "dead"
    assert "last words" in text_of(done)
    assert error_of(done).startswith("DeadKernel")
    assert not kernel.alive
    assert kernel.execute("1").status == "dead"
    assert not kernel.bind("f", "f")
    assert kernel.values(["f"]) == {}
    assert [o.raised.type for o in kernel.call("f", [(1,), (2,)])] == ["KernelDied"] * 2
    assert kernel.serve("f", lambda a: Outcome()).raised.type == "KernelDied"


def test_generators_differ_between_notebooks_unless_seeded(executor):
    source = "import random, numpy as np, torch\nx = [random.random(), np.random.rand(), torch.rand(1).item()]"
    seen = []
    for seed in (
        "",
        "",
        "\nnp.random.seed(1)\ny = np.random.rand()",
        "\nnp.random.seed(1)\ny = np.random.rand()",
    ):
        with executor.kernel() as kernel:
            assert kernel.execute(source + seed).status == "ok"
            seen.append(kernel.values(["x", "y"]))
    for i in range(3):
        assert len({values["x"][i] for values in seen}) == 4
    assert seen[2]["y"] == seen[3]["y"]


def test_hashes_are_the_same_in_every_notebook(executor):
    seen = set()
    for _ in range(2):
        with executor.kernel() as kernel:
            kernel.execute("h = hash('attention')")
            seen.add(kernel.values(["h"])["h"])
    assert len(seen) == 1


def test_many_threads_may_open_kernels(executor):
    def one(number):
        with executor.kernel() as kernel:
            kernel.execute(
                f"import torch\nx = (torch.ones(200, 200) @ torch.ones(200, 200)).sum() + {number}"
            )
            return float(kernel.values(["x"])["x"].array)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(8))) == [8e6 + number for number in range(8)]


def test_submitted_files_are_there_but_no_notebook_and_nothing_odd(executor, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("7")
    (tmp_path / "helper.py").write_text("value = 3")
    (tmp_path / "numpy.py").write_text("raise SystemExit")
    (tmp_path / "nb.ipynb").write_text("{}")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with executor.kernel(files=tmp_path) as kernel:
        done = kernel.execute(
            "import os, numpy, helper\nprint(helper.value, open('data/x.txt').read(), numpy.ones(1))\n"
            "print(sorted(os.listdir('.')))"
        )
        assert done.status == "ok", done
        assert text_of(done).startswith("3 7 [1.]")
        assert "ipynb" not in text_of(done)
        assert "link" not in text_of(done)
        assert any("link" in note for note in kernel.notes)


def test_a_cold_run_gives_the_same(tmp_path):
    source = "import torch, numpy as np\ntorch.manual_seed(0)\nprint(torch.rand(3))\nnp.arange(3)"
    results = []
    for cold in (False, True):
        with Executor(cold=cold) as executor, executor.kernel() as kernel:
            results.append(kernel.execute(source).outputs)
    assert results[0] == results[1]


PROGRAM = """
import sys, time
from autograder.execute import Executor
executor = Executor(sandbox={sandbox})
kernel = executor.kernel()
kernel.execute("import os, subprocess")
print(executor._process()._process.pid, kernel._home, flush=True)
kernel.execute("while True: pass")
"""


def family(pid: str) -> list[str]:
    """A process and its descendants, by their ids on the host."""
    found = [pid]
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", other, "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[1] == pid:
            found += family(other)
    return found


@pytest.mark.parametrize("sandbox", [True, False])
def test_nothing_is_left_when_the_grader_is_killed(sandbox):
    grader = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(sandbox=sandbox)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    warm, home = grader.stdout.readline().split()
    for _ in range(100):
        pids = family(warm)
        if len(pids) > 1:
            break
        time.sleep(0.05)
    assert len(pids) > 1
    assert all(Path("/proc", pid).exists() for pid in pids)
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    for _ in range(1200):  # a busy machine may take its time to end them
        if not any(Path("/proc", pid).exists() for pid in pids):
            break
        time.sleep(0.05)
    assert not any(Path("/proc", pid).exists() for pid in pids)
    assert home == "None" or not Path(home).exists()


def test_a_kept_function_sees_the_names_that_it_was_kept_with(kernel):
    kernel.execute("def inner(x):\n    return x + 1\ndef outer(x):\n    return inner(x) * 2")
    kernel.bind("outer@own", "outer")
    kernel.execute("def inner(x):\n    return 0")
    kernel.bind("outer@last", "outer")
    assert kernel.call("outer@own", [(1,)])[0].value == 4
    assert kernel.call("outer@last", [(1,)])[0].value == 0
    assert kernel.execute("print(inner(5))").outputs[0]["text"] == "0\n"
