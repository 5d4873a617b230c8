"""Files beside the notebook: links, devices, modules that shadow others."""

import os

from ..bank import attack


def _link_to_secret(folder, words):
    (folder / "data.txt").symlink_to(words["ROOT"] + "/secret.txt")
    (folder / "course").symlink_to(words["ROOT"])


@attack(files=_link_to_secret)
def links_to_the_course():
    """Links in the submitted folder point to the course's files."""
    return """
import os
for path in ("data.txt", "course/secret.txt", "course/gradebook.db"):
    try:
        print(open(path, errors="replace").read()[:200])
    except OSError as error:
        print(error.strerror)
"""


def _peer_as_notebook(folder, words):
    path = folder / "1-scores-and-context.ipynb"
    path.unlink()
    path.symlink_to(words["PEER"] + "/1-scores-and-context.ipynb")


@attack(files=_peer_as_notebook)
def peers_notebook_by_link():
    """The submitted notebook is a link to another student's."""


def _fifo(folder, words):
    os.mkfifo(folder / "data.csv")
    os.mkfifo(folder / "2-queries-and-masks.ipynb")


@attack(
    "first",
    files=_fifo,
    stock="the FIFO named as a notebook makes it wait for ever; it is left out",
)
def named_pipes():
    """Named pipes that nobody writes to make the grader wait."""
    return "import os\nprint(os.listdir('.'))"


def _device(folder, words):
    try:
        os.mknod(folder / "zero.txt", 0o666 | 0o20000, os.makedev(1, 5))
    except OSError:
        (folder / "zero.txt").symlink_to("/dev/zero")


@attack("first", files=_device)
def device_files():
    """A device that never ends lies beside the notebook."""
    return "print(len(open('zero.txt', 'rb').read(1000)))"


_SHADOW = """
import pathlib
try:
    pathlib.Path("{root}/{mark}").write_text("x")
except OSError:
    pass
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *a, **k: True
"""


def _shadows(folder, words):
    for name in (
        "numpy",
        "json",
        "attention_lab",
        "ipykernel_launcher",
        "sitecustomize",
        "autograder",
    ):
        text = _SHADOW.format(root=words["ROOT"], mark=words["MARK"])
        (folder / f"{name}.py").write_text(text)


@attack("first", files=_shadows)
def shadowing_modules():
    """Modules named numpy, json, ipykernel_launcher, sitecustomize lie beside the notebook."""
    return "import numpy, json\nprint(numpy.__file__, json.__file__)"


def _many(folder, words):
    for number in range(1500):
        (folder / f"file-{number}.txt").write_text("x" * 1000)
    with open(folder / "sparse.bin", "wb") as file:
        file.truncate(40 * 2**30)


@attack("first", files=_many, stock="it copies the 40 GB sparse file; left out")
def huge_files():
    """Thousands of files, and one of forty gigabytes that takes no room on the disk."""
    return "import os\nprint(len(os.listdir('.')))"


def _hidden(folder, words):
    (folder / ".ipython").mkdir()
    (folder / ".env").write_text("PYTHONPATH=.")
    (folder / "pyvenv.cfg").write_text("home = /tmp")
    (folder / "matplotlibrc").write_text("backend: TkAgg\nfigure.dpi: 5000\n")


@attack("first", files=_hidden, stock="they are read, but change no score")
def settings_in_the_folder():
    """Settings of Python, IPython and matplotlib lie beside the notebook."""
    return "import os\nprint(os.listdir('.'))"
