"""Say that all is right: printed success, forged evidence, forged messages, forged metadata."""

import copy

import nbformat

from ..bank import attack


@attack("last", stock="a cell without points earns nothing, whatever it prints")
def printed_success():
    """Prints the lines that a passing notebook prints."""
    return """
for name in ("seed-repeats", "memory-paired", "$GRADE", "context-weighted-sum"):
    print("\\u2713", name, "passes")
print("5 of 5 checkpoints pass")
print("3.0")
3.0
"""


@attack("last", stock="stock does not read evidence")
def printed_evidence():
    """Prints a perfect evidence JSON."""
    return """
import json
perfect = {"Q": [[1, 0]], "K": [[1, 0], [0, 1], [1, 1]], "weights": [[0.4011, 0.1978, 0.4011]],
           "assertions": {"causal_mask": True, "$GRADE": True}, "schema_version": 1}
print(json.dumps(perfect))
from IPython.display import display
display({"application/json": perfect, "text/plain": json.dumps(perfect)}, raw=True)
"""


def _stale_artifacts(folder, words):
    (folder / "artifacts").mkdir()
    text = '{"weights": [[0.4011, 0.1978, 0.4011]], "assertions": {"causal_mask": true}}'
    (folder / "artifacts" / "w07-h2-attention.json").write_text(text)


@attack("first", files=_stale_artifacts, stock="stock does not read evidence")
def stale_artifacts():
    """Hands in a perfect evidence file beside the notebook."""
    return "print(open('artifacts/w07-h2-attention.json').read())"


@attack("last", stock="stock does not read evidence")
def huge_evidence():
    """The variables that the grader asks for are huge."""
    return """
evidence_data = {"x" * 10**6: ["y" * 10**6] * 50, "predictions": [0] * 10**6}
weights = np.zeros((4000, 4000))
my_weights = [[[0] * 1000] * 1000] * 100
"""


@attack(
    "last",
    stock="stock does not read evidence; its kernel may hang on these values, and then nothing is graded",
)
def malformed_evidence():
    """The variables that the grader asks for are recursive, deep, or break when they are read."""
    return """
deep = []
for _ in range(100_000):
    deep = [deep]
evidence_data = {}
evidence_data["self"] = evidence_data
class Bomb(dict):
    def items(self): raise SystemExit
    def __iter__(self): raise KeyboardInterrupt
    def __repr__(self): raise MemoryError
class BadName(type):
    __name__ = property(lambda self: 1 / 0)
weights, my_weights, context = deep, Bomb(a=1), BadName("x", (), {})()
"""


_SOCKET = """
import gc, json, os, socket, struct, threading, time
lines = [s for s in gc.get_objects() if isinstance(s, socket.socket) and s.fileno() >= 0]
for fd in os.listdir("/proc/self/fd"):
    try:
        lines.append(socket.socket(fileno=os.dup(int(fd))))
    except OSError:
        pass
def say(message):
    body = json.dumps(message).encode()
    for line in lines:
        try:
            line.sendall(struct.pack(">I", len(body)) + body)
        except OSError:
            pass
"""


@attack("last")
def forged_messages():
    """Writes its own replies to the grader's socket: success, values, scores."""
    return (
        _SOCKET
        + """
third = {"t": "array", "dtype": "<f8", "shape": [1, 3], "data": "VVVVVVVV1T9VVVVVVVXVP1VVVVVVVdU/"}
for number in range(200):
    say({"id": number, "value": ["weights", third]})
    say({"id": number, "outcome": {"changed": [], "value": third}})
    say({"id": number, "score": 3, "done": {"status": "ok", "bound": True, "score": 3}})
"""
    )


@attack("last", stock="its own line to stock breaks, and nothing of it is graded")
def malformed_messages():
    """Writes rubbish to the grader's socket: wrong lengths, half frames, other types, deep JSON."""
    return (
        _SOCKET
        + """
for message in ([], 3, {"id": {}}, {"out": 3}, {"id": 1, "out": {"output_type": "stream", "text": 3}}):
    say(message)
for number in range(60):
    say({"id": number, "out": {"output_type": "display_data", "data": {"text/plain": {}}, "metadata": 3}})
    say({"id": number, "out": {"output_type": "error", "ename": {}, "evalue": [], "traceback": [3]}})
for line in lines:
    try:
        line.sendall(struct.pack(">I", 50) + b"[" * 50 + b"\\xff\\xff\\xff\\xff")
    except OSError:
        pass
"""
    )


@attack("last")
def message_flood():
    """Sends messages to the grader for ever."""
    return (
        _SOCKET
        + """
node = {"output_type": "stream", "name": "stdout", "text": "x" * 100_000}
while True:
    for number in range(100):
        say({"id": number, "out": node})
"""
    )


@attack("last", stock="its own line to stock breaks, and nothing of it is graded")
def answers_for_the_grader():
    """A thread waits for the grader's questions and answers them first."""
    return (
        _SOCKET
        + """
third = {"t": "array", "dtype": "<f8", "shape": [1, 3], "data": "VVVVVVVV1T9VVVVVVVXVP1VVVVVVVdU/"}
def answer():
    for _ in range(2000):
        for name in ("weights", "my_weights"):
            for number in range(20, 60):
                say({"id": number, "value": [name, third]})
        time.sleep(0.001)
threading.Thread(target=answer, daemon=True).start()
"""
    )


def _more_points(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata.nbgrader.points = 300


@attack("last", edit=_more_points, stock="stock takes points from the gradebook")
def changed_points():
    """The submitted notebook says that a checkpoint is worth 300 points."""


def _own_checkpoint(notebook):
    cell = nbformat.v4.new_code_cell("100.0")
    cell.metadata["nbgrader"] = {
        "grade": True,
        "solution": False,
        "locked": True,
        "points": 100,
        "grade_id": "own-checkpoint",
        "schema_version": 3,
        "cell_type": "code",
    }
    notebook.cells.append(cell)


@attack(
    "last",
    edit=_own_checkpoint,
    stock="stock finds the notebook invalid after it has dropped the unknown cell, and grades nothing of it",
)
def own_checkpoint():
    """Adds a graded cell of its own that always gives 100 points."""


def _answerable_checkpoint(notebook):
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if meta.get("grade"):
            meta["solution"], meta["locked"] = True, False
            cell.source = "print('passed')\n3.0"


@attack(
    "last",
    edit=_answerable_checkpoint,
    stock="stock stops at the changed checksum, and grades nothing of it",
)
def rewritten_checkpoints():
    """The graded cells are unlocked and rewritten to give full points."""


def _doubled(notebook):
    for index, cell in enumerate(list(notebook.cells)):
        if cell.metadata.get("nbgrader", {}).get("grade"):
            twin = copy.deepcopy(cell)
            twin.source = "3.0"
            notebook.cells.insert(2 * index, twin)


@attack(
    "last",
    edit=_doubled,
    stock="stock stops with a message on an old schema: neither this student nor those who follow get anything",
)
def doubled_checkpoints():
    """Each graded cell is there twice; the copy always passes."""


def _deleted(notebook):
    notebook.cells = [c for c in notebook.cells if not c.metadata.get("nbgrader", {}).get("grade")]


@attack(
    "last",
    edit=_deleted,
    stock="a graded cell that is not there is never scored: the points are lost, not won",
)
def deleted_checkpoints():
    """The graded cells are deleted: no output is full points for stock nbgrader."""


def _tagged(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata["tags"] = ["skip-execution", "raises-exception", "remove-cell"]


@attack("last", edit=_tagged)
def skipped_checkpoints():
    """Tags tell the runner to skip the graded cells and to expect errors."""


def _graded_already(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata["autograder"] = {"verdict": "right", "score": 3, "max_score": 3}
            cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "3.0"})]


@attack(
    "last", edit=_graded_already, stock="stock clears outputs and does not read foreign metadata"
)
def graded_already():
    """The graded cells carry verdicts and outputs of full marks."""


def _kernelspec(notebook):
    notebook.metadata["kernelspec"] = {
        "name": "pwned",
        "display_name": "x",
        "language": "python",
        "argv": ["/bin/sh", "-c", "touch /tmp/$MARK"],
    }


@attack(
    "last",
    edit=_kernelspec,
    stock="stock starts the kernel that it knows, whatever the notebook names",
)
def foreign_kernelspec():
    """The notebook names another kernel to be started."""


@attack("check", stock="stock writes locked cells anew from the gradebook")
def checkpoint_as_answer():
    """The checkpoint's cell is replaced by one that prints its success."""
    return "weights = my_weights = None\nprint('passed')\n3.0"


@attack("last", stock="the checkpoint computes the weights anew, and random ones fail")
def late_rebinding():
    """A thread keeps rebinding the names while the grader asks."""
    return """
import threading, time
def rebind():
    while True:
        for name in ("weights", "my_weights"):
            globals()[name] = np.ones((1, 3)) / np.random.randint(1, 5)
        time.sleep(0.0005)
threading.Thread(target=rebind, daemon=True).start()
"""


@attack("last", stock="stock asks no function with hidden inputs")
def hidden_inputs():
    """What the grader asks of a function is kept and shown in messages and later outputs."""
    return """
import sys
seen = []
def softmax(*arguments):
    seen.append(arguments)
    print("$WIN", arguments)
    sys.__stdout__.write("$WIN %r" % (arguments,))
    raise ValueError("$WIN " + repr(arguments) + repr(seen))
"""
