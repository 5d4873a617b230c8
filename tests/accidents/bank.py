"""Accidents that happen to notebooks between the student's editor and the grader, one function each.

Every function damages a perfect submission. `Files` are the files that are handed in, by relative path; `Target`
names the cells that the damage is done to, so that the same accident can happen in any assignment. What
must come of it is said beside each: the status, what the student is told, and whether anything may be lost.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder import classroom


@dataclass(frozen=True)
class Link:
    """A symbolic link among the files that are handed in."""

    target: str


@dataclass(frozen=True)
class Pipe:
    """A named pipe among them."""


Files = dict[str, bytes | Link | Pipe]


@dataclass(frozen=True)
class Target:
    """Where the damage is done.

    Args:
        notebook: the notebook's stem; `others` are the assignment's other ones.
        answer: id of a code cell that the student changed; `second` is another one.
        check: id of the checkpoint that follows `answer`; `before` is a locked cell before it.
        text: id of a text cell of the lesson between them or before.
        solved: the perfect notebooks; `released` the untouched ones.
    """

    notebook: str
    others: tuple[str, ...]
    answer: str
    second: str
    check: str
    before: str
    text: str
    solved: dict[str, nbformat.NotebookNode]
    released: dict[str, nbformat.NotebookNode]


@dataclass(frozen=True)
class Accident:
    """One kind of damage and what must come of it.

    Args:
        damage: makes the files from the perfect ones.
        told: pattern that a repair, a note or the reason has to match; "" if nothing need be said.
        status: `graded`, `repaired` or `ungradable`; two with `|` between where both will do.
        whole: no point may be lost (False only where the right answers themselves are gone).
    """

    name: str
    damage: Callable[[Target], Files]
    told: str
    status: str
    whole: bool = True
    doc: str = ""


ACCIDENTS: list[Accident] = []


def accident(told: str = "", status: str = "repaired", whole: bool = True):
    """Enters a function into the bank under its own name."""

    def enter(function):
        doc = (function.__doc__ or "").strip()
        ACCIDENTS.append(Accident(function.__name__, function, told, status, whole, doc))
        return function

    return enter


# --- ways of saying it ---------------------------------------------------------------------------


def files_of(notebooks) -> Files:
    return {f"{name}.ipynb": json.dumps(nb, indent=1).encode() for name, nb in notebooks.items()}


def edited(t: Target, change: Callable[[nbformat.NotebookNode], object]) -> Files:
    """The perfect files with `change` done to the target notebook."""
    notebooks = copy.deepcopy(t.solved)
    result = change(notebooks[t.notebook])
    if isinstance(result, dict):
        notebooks[t.notebook] = result
    return files_of(notebooks)


def raw(t: Target, change: Callable[[bytes], bytes], **dump) -> Files:
    """The perfect files with the target's bytes changed."""
    files = files_of(t.solved)
    data = json.dumps(t.solved[t.notebook], **dump).encode() if dump else files[own(t)]
    files[own(t)] = change(data)
    return files


def own(t: Target) -> str:
    return f"{t.notebook}.ipynb"


def renamed(t: Target, name: str) -> Files:
    files = files_of(t.solved)
    files[name] = files.pop(own(t))
    return files


def cell(nb, cell_id):
    return next(c for c in nb["cells"] if c.get("id") == cell_id)


def place(nb, cell_id) -> int:
    return nb.cells.index(cell(nb, cell_id))


def code(source: str, cell_id="mine-1"):
    return nbformat.v4.new_code_cell(source, id=cell_id)


def plain(nb) -> dict:
    return json.loads(json.dumps(nb))


def each(change):
    """A change of every cell of a notebook, as plain JSON."""

    def of_notebook(nb):
        data = plain(nb)
        for number, one in enumerate(data["cells"]):
            change(one, number)
        return data

    return of_notebook


def retype(nb, cell_id: str, kind: str) -> None:
    one = cell(nb, cell_id)
    one.cell_type = kind
    one.pop("outputs", None)
    one.pop("execution_count", None)


# --- the file's bytes ----------------------------------------------------------------------------


@accident("byte-order mark")
def byte_order_mark(t):
    """Saved by an editor of Windows."""
    return raw(t, lambda data: b"\xef\xbb\xbf" + data)


@accident("UTF-16")
def utf_16_little_endian(t):
    return raw(t, lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le"))


@accident("UTF-16")
def utf_16_big_endian(t):
    return raw(t, lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"))


@accident("UTF-16")
def utf_16_without_a_mark(t):
    return raw(t, lambda data: data.decode().encode("utf-16-le"))


@accident("Windows-1252")
def windows_1252(t):
    def change(data: bytes) -> bytes:
        nb = json.loads(data)
        nb["cells"].append(plain(nbformat.v4.new_markdown_cell("Größe", id="umlaut")))
        return json.dumps(nb, ensure_ascii=False).encode("cp1252", errors="replace")

    return raw(t, change)


@accident("", status="graded")
def windows_line_ends_in_the_file(t):
    return raw(t, lambda data: data.replace(b"\n", b"\r\n"))


@accident("line ends of Windows")
def windows_line_ends_in_the_cells(t):
    def change(one, number):
        one["source"] = one["source"].replace("\n", "\r\n")

    return edited(t, each(change))


@accident("after the notebook's end")
def text_after_the_end(t):
    return raw(t, lambda data: data + b"\n-- \nsent from my phone\n")


@accident("", status="graded")
def zeros_after_the_end(t):
    """As a file system leaves them after a crash."""
    return raw(t, lambda data: data + b"\x00" * 512)


@accident("unpacked")
def saved_as_one_quoted_text(t):
    return raw(t, lambda data: json.dumps(data.decode()).encode())


# --- formats and metadata ------------------------------------------------------------------------


@accident("format 3")
def format_3(t):
    def change(nb):
        cells = []
        for one in plain(nb)["cells"]:
            old = {"cell_type": one["cell_type"], "metadata": one["metadata"]}
            if one["cell_type"] == "code":
                old |= {"input": one["source"].splitlines(keepends=True), "language": "python"}
                old |= {"collapsed": False, "outputs": [], "prompt_number": 1}
            else:
                old["source"] = one["source"].splitlines(keepends=True)
            cells.append(old)
        return {
            "nbformat": 3,
            "nbformat_minor": 0,
            "metadata": {"name": ""},
            "worksheets": [{"cells": cells, "metadata": {}}],
        }

    return edited(t, change)


@accident("format 4.0")
def format_4_0_without_ids(t):
    """As Colab saves what it opened as 4.1 to 4.4."""

    def change(nb):
        data = each(lambda one, n: one.pop("id"))(nb)
        return data | {"nbformat_minor": 0}

    return edited(t, change)


@accident("format 4.4")
def format_4_4_with_ids(t):
    return edited(t, lambda nb: plain(nb) | {"nbformat_minor": 4})


@accident("format")
def format_unknown(t):
    return edited(t, lambda nb: plain(nb) | {"nbformat": None, "nbformat_minor": "x"})


@accident("without an id")
def ids_missing(t):
    return edited(t, each(lambda one, n: one.pop("id")))


@accident("without an id")
def ids_null(t):
    return edited(t, each(lambda one, n: one.update(id=None)))


@accident("used twice")
def ids_doubled(t):
    return edited(t, each(lambda one, n: one.update(id="same") if n % 3 == 1 else None))


@accident("not allowed")
def ids_not_allowed(t):
    return edited(t, each(lambda one, n: one.update(id="a/b c" * 30)))


@accident("another cell id")
def ids_all_new(t):
    return edited(t, each(lambda one, n: one.update(id=f"{n:08x}")))


@accident("", status="graded")
def sources_as_lists_of_lines(t):
    return edited(t, each(lambda o, n: o.update(source=o["source"].splitlines(keepends=True))))


@accident("damaged")
def source_of_a_text_cell_null(t):
    def change(nb):
        data = plain(nb)
        cell(data, t.text)["source"] = None
        return data

    return edited(t, change)


@accident("characters")
def characters_that_cannot_be_stored(t):
    def change(nb):
        data = plain(nb)
        cell(data, t.answer)["source"] += "\n# \ud83d and \x00"
        return data

    return edited(t, change)


@accident("damaged metadata")
def cell_metadata_of_a_wrong_type(t):
    return edited(t, each(lambda one, n: one.update(metadata=None) if n % 2 else None))


@accident("damaged metadata")
def nbgrader_metadata_of_a_wrong_type(t):
    def change(one, number):
        if "nbgrader" in one["metadata"]:
            one["metadata"]["nbgrader"] = "yes"

    return edited(t, each(change))


@accident("metadata was damaged")
def notebook_metadata_of_a_wrong_type(t):
    return edited(t, lambda nb: plain(nb) | {"metadata": []})


@accident("", status="graded")
def kernelspec_missing(t):
    return edited(t, lambda nb: nb.metadata.pop("kernelspec") and None)


@accident("conda-env-ml-py")
def kernelspec_of_another_machine(t):
    def change(nb):
        nb.metadata["kernelspec"] = {"name": "conda-env-ml-py", "display_name": "ml"}

    return edited(t, change)


@accident("kernel")
def kernelspec_of_another_language(t):
    def change(nb):
        nb.metadata["kernelspec"] = {"name": "julia-1.11", "display_name": "J", "language": "julia"}

    return edited(t, change)


@accident("kernel entry")
def kernelspec_of_a_wrong_type(t):
    return edited(t, lambda nb: nb.metadata.update(kernelspec="python3"))


@accident("Widget data")
def widgets_without_state(t):
    state = {"application/vnd.jupyter.widget-state+json": {"abc": {"model_name": "x"}}}
    return edited(t, lambda nb: nb.metadata.update(widgets=state))


@accident("Widget data")
def saved_by_colab(t):
    return edited(t, classroom.saved_by_colab)


@accident("large or damaged outputs")
def huge_outputs(t):
    def change(nb):
        data = plain(nb)
        text = {"output_type": "stream", "name": "stdout", "text": "x" * 5_000_000}
        cell(data, t.answer)["outputs"] = [text]
        return data

    return edited(t, change)


@accident("large or damaged outputs")
def outputs_of_a_wrong_type(t):
    def change(nb):
        data = plain(nb)
        cell(data, t.answer)["outputs"] = {"text": 3}
        cell(data, t.second)["outputs"] = [None, {"output_type": "display_data", "data": "x"}]
        return data

    return edited(t, change)


@accident("could not be read")
def cells_that_are_none(t):
    return edited(t, lambda nb: plain(nb) | {"cells": [None, 7, *plain(nb)["cells"], "end"]})


@accident("unknown type")
def cells_of_an_unknown_type(t):
    def change(nb):
        data = plain(nb)
        cell(data, t.answer)["cell_type"] = "python"
        return data

    return edited(t, change)


# --- files ---------------------------------------------------------------------------------------


@accident("Copy of")
def file_named_copy_of(t):
    return renamed(t, f"Copy of {own(t)}")


@accident(r"\(1\)")
def file_numbered_by_the_browser(t):
    return renamed(t, f"{t.notebook} (1).ipynb")


@accident("handed in as")
def file_named_by_the_student(t):
    return renamed(t, "Hausübung 7 – final (neu).ipynb")


@accident("handed in as")
def file_in_a_nested_folder(t):
    return renamed(t, f"Week 7/work/{own(t)}")


@accident("handed in as")
def file_with_txt_behind(t):
    """As Safari saves a download."""
    return renamed(t, f"{own(t)}.txt")


@accident("handed in as")
def file_without_an_ending(t):
    return renamed(t, t.notebook)


@accident("handed in as")
def file_of_unsaved_checkpoints_alone(t):
    return renamed(t, f".ipynb_checkpoints/{t.notebook}-checkpoint.ipynb")


@accident("more of it has been worked on")
def copy_that_is_untouched_beside(t):
    files = files_of(t.solved)
    files[f"{t.notebook} (1).ipynb"] = files_of(t.released)[own(t)]
    return files


@accident("can't be read")
def copy_that_is_cut_off_beside(t):
    files = files_of(t.solved)
    files[f"{t.notebook} (1).ipynb"] = files[own(t)]
    files[own(t)] = files[own(t)][:3000]
    return files


@accident("are the same")
def copy_that_is_the_same_beside(t):
    files = files_of(t.solved)
    files[f"old/{own(t)}"] = files[own(t)]
    return files


@accident("", status="graded")
def files_of_macos_beside(t):
    files = files_of(t.solved)
    files[f"__MACOSX/._{own(t)}"] = b"\x00\x05\x16\x07"
    files[f"._{own(t)}"] = b"\x00\x05\x16\x07"
    files[".DS_Store"] = b"\x00\x00\x00\x01Bud1"
    return files


@accident("would hide a module", status="graded")
def modules_that_shadow_beside(t):
    files = files_of(t.solved)
    for name in ("numpy.py", "random.py", "torch.py", "attention_lab.py", "ipykernel_launcher.py"):
        files[name] = b"raise SystemExit('shadowed')\n"
    return files


@accident("archive", status="graded")
def archive_beside(t):
    return files_of(t.solved) | {"everything.zip": b"PK\x03\x04"}


@accident("symbolic link", status="graded")
def link_beside(t):
    return files_of(t.solved) | {"data.csv": Link("/etc/hostname"), "more": Link("/")}


@accident("no ordinary file", status="graded")
def pipe_beside(t):
    return files_of(t.solved) | {"pipe": Pipe()}


@accident("timestamp", status="graded")
def timestamp_that_is_none(t):
    return files_of(t.solved) | {"timestamp.txt": b"yesterday evening"}


@accident("timestamp", status="graded")
def timestamp_of_bytes(t):
    return files_of(t.solved) | {"timestamp.txt": b"\xff\xfe\x00"}


# --- cells ---------------------------------------------------------------------------------------


@accident("there twice|an id used twice")
def answer_copied_and_pasted(t):
    """JupyterLab's copy and paste keeps the grade id."""

    def change(nb):
        nb.cells.insert(place(nb, t.answer), copy.deepcopy(cell(nb, t.answer)))

    return edited(t, change)


@accident("there twice|an id used twice")
def answer_pasted_far_below(t):
    return edited(t, lambda nb: nb.cells.append(copy.deepcopy(cell(nb, t.answer))))


@accident("there twice|an id used twice")
def answer_with_an_earlier_wrong_try(t):
    def change(nb):
        wrong = copy.deepcopy(cell(nb, t.answer))
        wrong.source = wrong.source.replace("return ", "return -1000 * ").replace("my_", "my_old_")
        nb.cells.insert(place(nb, t.answer), wrong)

    return edited(t, change)


@accident("there twice|an id used twice")
def answer_with_a_copy_for_trying_things(t):
    def change(nb):
        scratch = copy.deepcopy(cell(nb, t.answer))
        scratch.source = "print('just trying')"
        nb.cells.insert(place(nb, t.answer) + 1, scratch)

    return edited(t, change)


@accident("there 3 times")
def checkpoint_copied_twice(t):
    def change(nb):
        for at in (0, len(nb.cells)):
            nb.cells.insert(at, copy.deepcopy(cell(nb, t.check)))

    return edited(t, change)


@accident("there twice")
def setup_copied_to_the_end(t):
    return edited(t, lambda nb: nb.cells.append(copy.deepcopy(cell(nb, "setup"))))


@accident("there twice")
def whole_notebook_pasted_into_itself(t):
    return edited(t, lambda nb: nb.cells.extend(copy.deepcopy(nb.cells)))


def split(nb, cell_id: str, keep: bool) -> None:
    one = cell(nb, cell_id)
    lines = one.source.split("\n")
    # In the middle of a definition or a statement, where that can be.
    half = next((n for n in range(1, len(lines)) if lines[n].startswith(" ")), len(lines) // 2)
    rest = code("\n".join(lines[half:]))
    if keep:
        rest.metadata = copy.deepcopy(one.metadata)
    one.source = "\n".join(lines[:half])
    nb.cells.insert(place(nb, cell_id) + 1, rest)


@accident("split in 2")
def checkpoint_split(t):
    return edited(t, lambda nb: split(nb, t.check, keep=False))


@accident("split in 2")
def checkpoint_split_with_its_metadata(t):
    return edited(t, lambda nb: split(nb, t.check, keep=True))


@accident("split in 2")
def setup_split(t):
    return edited(t, lambda nb: split(nb, "setup", keep=False))


@accident("", status="graded|repaired")
def answer_split(t):
    """Told where the parts can't stand alone; else the second one is an ordinary cell."""
    return edited(t, lambda nb: split(nb, t.answer, keep=False))


def merge(nb, first: str, second: str) -> None:
    cell(nb, first).source += "\n\n" + cell(nb, second).source
    nb.cells.remove(cell(nb, second))


@accident("merged")
def checkpoint_merged_into_the_answer(t):
    return edited(t, lambda nb: merge(nb, t.answer, t.check))


@accident("merged|other text in it|edited")
def answer_merged_into_the_cell_before(t):
    return edited(t, lambda nb: merge(nb, t.before, t.answer))


@accident("merged|other text in it")
def answer_merged_into_the_text_above(t):
    def change(nb):
        merge(nb, nb.cells[place(nb, t.answer) - 1].id, t.answer)

    return edited(t, change)


@accident("merged|other text in it")
def text_merged_into_the_setup(t):
    return edited(t, lambda nb: merge(nb, "setup", t.text))


@accident("had been deleted; it was put back")
def checkpoint_deleted(t):
    return edited(t, lambda nb: nb.cells.remove(cell(nb, t.check)))


@accident("`setup` had been deleted")
def setup_deleted(t):
    return edited(t, lambda nb: nb.cells.remove(cell(nb, "setup")))


@accident("lesson had been deleted")
def all_text_of_the_lesson_deleted(t):
    def change(nb):
        nb.cells = [
            c for c in nb.cells if c.cell_type == "code" or c.metadata.get("nbgrader") is not None
        ]

    return edited(t, change)


@accident("had been deleted; it was put back")
def all_locked_cells_deleted(t):
    def change(nb):
        nb.cells = [c for c in nb.cells if not c.metadata.get("nbgrader", {}).get("locked")]

    return edited(t, change)


@accident("moved")
def answer_moved_to_the_top(t):
    return edited(t, lambda nb: nb.cells.insert(0, nb.cells.pop(place(nb, t.answer))))


@accident("moved")
def answer_moved_to_the_end(t):
    return edited(t, lambda nb: nb.cells.append(nb.cells.pop(place(nb, t.answer))))


@accident("moved")
def checkpoint_moved_to_the_top(t):
    return edited(t, lambda nb: nb.cells.insert(0, nb.cells.pop(place(nb, t.check))))


@accident("moved")
def setup_moved_to_the_end(t):
    return edited(t, lambda nb: nb.cells.append(nb.cells.pop(place(nb, "setup"))))


@accident("moved")
def all_cells_in_reverse_order(t):
    return edited(t, lambda nb: nb.cells.reverse())


@accident(r"changed to text \(Markdown\)")
def answer_made_markdown(t):
    return edited(t, lambda nb: retype(nb, t.answer, "markdown"))


@accident("changed to raw text")
def answer_made_raw(t):
    return edited(t, lambda nb: retype(nb, t.answer, "raw"))


@accident(r"changed to text \(Markdown\)")
def answer_made_markdown_in_a_fence(t):
    def change(nb):
        one = cell(nb, t.answer)
        one.source = f"```python\n{one.source}\n```"
        retype(nb, t.answer, "markdown")

    return edited(t, change)


@accident("changed to")
def checkpoint_made_markdown(t):
    return edited(t, lambda nb: retype(nb, t.check, "markdown"))


@accident("changed to")
def setup_made_raw(t):
    return edited(t, lambda nb: retype(nb, "setup", "raw"))


@accident("All cells had lost their nbgrader metadata")
def metadata_of_all_cells_lost(t):
    return edited(t, each(lambda one, n: one.update(metadata={})))


@accident("All cells had lost their nbgrader metadata")
def metadata_and_ids_of_all_cells_lost(t):
    return edited(t, each(lambda one, n: one.update(metadata={}, id=f"n{n}")))


@accident("All cells had lost their nbgrader metadata")
def converted_to_a_script_and_back(t):
    """Ids, metadata, outputs and the ends of lines are gone; all text cells are comments' text."""

    def change(nb):
        data = plain(nb)
        for number, one in enumerate(data["cells"]):
            one["source"] = "\n".join(line.rstrip() for line in one["source"].split("\n")) + "\n"
            one["metadata"], one["id"] = {}, f"c{number}"
        return data

    return edited(t, change)


@accident("lost its nbgrader metadata")
def metadata_of_a_checkpoint_lost(t):
    return edited(t, lambda nb: cell(nb, t.check).update(metadata={}))


@accident("nbgrader metadata")
def metadata_of_the_setup_lost(t):
    return edited(t, lambda nb: cell(nb, "setup").update(metadata={}, id="other"))


@accident("lost (its|their) nbgrader metadata")
def metadata_empty_as_nbgrader_leaves_it(t):
    """nbgrader's DeduplicateIds leaves an empty part, which then stops the whole class."""
    return edited(t, lambda nb: cell(nb, t.check).metadata.update(nbgrader={}))


@accident("`points`")
def points_changed(t):
    return edited(t, lambda nb: cell(nb, t.check).metadata["nbgrader"].update(points=1000))


@accident("ignored")
def grade_ids_changed(t):
    def change(one, number):
        part = one["metadata"].get("nbgrader")
        if part:
            part["grade_id"] = f"cell-{number}"

    return edited(t, each(change))


@accident("ignored")
def grade_id_with_a_path(t):
    path = "../../../etc/passwd"
    return edited(t, lambda nb: cell(nb, t.check).metadata["nbgrader"].update(grade_id=path))


@accident("`schema_version`")
def schema_changed(t):
    return edited(t, lambda nb: cell(nb, t.check).metadata["nbgrader"].update(schema_version=1))


@accident("`grade`|`locked`|`solution`")
def checkpoint_unlocked(t):
    flags = {"grade": False, "locked": False, "solution": True}
    return edited(t, lambda nb: cell(nb, t.check).metadata["nbgrader"].update(flags))


@accident("edited")
def checkpoint_edited(t):
    return edited(t, lambda nb: cell(nb, t.check).update(source="assert True  # passes now"))


@accident("edited|other text in it")
def note_written_into_a_checkpoint(t):
    def change(nb):
        cell(nb, t.check).source += "\nprint('I think this is right')"

    return edited(t, change)


@accident("emptied")
def setup_emptied(t):
    return edited(t, lambda nb: cell(nb, "setup").update(source=""))


@accident("another version")
def made_from_an_older_release(t):
    def change(nb):
        nb.metadata["attention_course"] = {"release": "0123456789ab"}
        cell(nb, "setup").source = cell(nb, "setup").source.replace("# ", "#  ")

    return edited(t, change)


@accident("skip-execution")
def cells_tagged_to_be_skipped(t):
    def change(one, number):
        one["metadata"]["tags"] = ["skip-execution"]

    return edited(t, each(change))


@accident("", status="graded")
def own_cells_everywhere(t):
    def change(nb):
        cells = []
        for number, one in enumerate(nb.cells):
            cells += [one, code(f"mine_{number} = {number}\nmine_{number}", f"mine-{number}")]
        nb.cells = cells

    return edited(t, change)


# --- what cells do -------------------------------------------------------------------------------


def with_cell(t, source: str, at: int | None = 2) -> Files:
    def change(nb):
        nb.cells.insert(len(nb.cells) if at is None else at, code(source))

    return edited(t, change)


@accident("Colab's own module")
def google_drive_mounted(t):
    return with_cell(
        t,
        "from google.colab import drive\ndrive.mount('/content/drive')\n"
        "import os\nos.chdir('/content/drive/MyDrive/course')\n%cd /content/drive/MyDrive",
    )


@accident("installing packages")
def packages_installed(t):
    return with_cell(
        t, "%pip install -q einops\n!pip install numpy==1.0 \\\n   torch\n!apt-get update"
    )


@accident("installing packages")
def packages_installed_in_the_answer_cell(t):
    def change(nb):
        one = cell(nb, t.answer)
        one.source = "%pip install einops\nfrom google.colab import files\n" + one.source

    return edited(t, change)


@accident("plot windows")
def plot_windows(t):
    return with_cell(
        t,
        "%matplotlib qt\nimport matplotlib\nmatplotlib.use('TkAgg')\n"
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    )


@accident("", status="graded")
def input_asked_for(t):
    return with_cell(t, "name = input('Your name? ')\nprint('Hello', name)")


@accident("", status="graded")
def endless_loop_in_an_own_cell(t):
    return with_cell(t, "while True:\n    pass", at=None)


@accident("", status="graded")
def exit_called(t):
    return with_cell(t, "import sys\nsys.exit(0)")


@accident("", status="graded")
def quit_called(t):
    return with_cell(t, "quit()")


@accident("", status="graded")
def kernel_dead_at_the_end(t):
    """What had passed stays passed."""
    return with_cell(t, "import os\nos._exit(3)", at=None)


@accident("", status="graded")
def kernel_crashed_at_the_end(t):
    return with_cell(t, "import ctypes\nctypes.string_at(0)", at=None)


@accident("", status="graded")
def warnings_on_stderr(t):
    return with_cell(
        t,
        "import sys, warnings\nwarnings.simplefilter('always')\nwarnings.warn('careful')\n"
        "print('to stderr', file=sys.stderr)",
    )


@accident("", status="graded")
def a_flood_of_output(t):
    return with_cell(t, "for _ in range(20):\n    print('x' * 1_000_000)")


@accident("", status="graded")
def a_cell_that_fails(t):
    return with_cell(t, "1 / 0")


@accident("", status="graded")
def a_cell_that_is_no_python(t):
    return with_cell(t, "this is a note, not code\n  if (")


@accident("", status="graded")
def a_cell_for_the_shell(t):
    return with_cell(t, "%%bash\necho hello\nexit 3")


@accident("deleting all variables")
def variables_deleted_at_the_end(t):
    return with_cell(t, "%reset -f", at=None)


@accident("", status="graded")
def names_used_for_something_else_at_the_end(t):
    """All names but those that the student's other functions call: those they have broken themselves."""
    sources = [one.source for one in t.solved[t.notebook].cells if one.cell_type == "code"]
    names = {
        name
        for source in sources
        for name in re.findall(r"^(?:def )?(\w+)(?: =|\()", source, re.MULTILINE)
    }
    called = {
        name
        for name in names
        for source in sources
        if "def " in source and f"def {name}(" not in source and re.search(rf"\b{name}\b", source)
    }
    free = sorted(names - called - {"print", "evidence", "display"})
    return with_cell(t, "\n".join(f"{name} = 'something else'" for name in free), at=None)


@accident("", status="graded")
def many_figures(t):
    return with_cell(
        t,
        "import matplotlib.pyplot as plt\nfor n in range(25):\n    plt.figure()\n    plt.plot([n])",
    )


# --- nothing can be done -------------------------------------------------------------------------


def instead(t, data: bytes) -> Files:
    return files_of(t.solved) | {own(t): data}


@accident("cut off", status="ungradable", whole=False)
def cut_off(t):
    return raw(t, lambda data: data[: len(data) * 2 // 3])


@accident("cut off", status="ungradable", whole=False)
def last_byte_lost(t):
    return raw(t, lambda data: data[:-1])


@accident("empty", status="ungradable", whole=False)
def empty_file(t):
    return instead(t, b"")


@accident("empty", status="ungradable", whole=False)
def file_of_zeros(t):
    return instead(t, b"\x00" * 4096)


@accident("Git merge", status="ungradable", whole=False)
def unfinished_merge(t):
    def change(data):
        lines = data.split(b"\n")
        half = len(lines) // 2
        mine = [b"<<<<<<< HEAD", lines[half], b"=======", lines[half], b">>>>>>> theirs"]
        return b"\n".join(lines[:half] + mine + lines[half + 1 :])

    return raw(t, change)


@accident("web page", status="ungradable", whole=False)
def page_that_shows_the_notebook(t):
    return instead(t, b"<!DOCTYPE html>\n<html><body>notebook</body></html>")


@accident("zip archive", status="ungradable", whole=False)
def archive_with_the_ending_ipynb(t):
    return instead(t, b"PK\x03\x04" + b"\x00" * 100)


@accident("PDF", status="ungradable", whole=False)
def pdf_with_the_ending_ipynb(t):
    return instead(t, b"%PDF-1.7\n%\xe2\xe3")


@accident("plain text", status="ungradable", whole=False)
def script_with_the_ending_ipynb(t):
    return instead(t, b"def softmax(x):\n    return x\n")


@accident("Google Drive", status="ungradable", whole=False)
def link_to_google_drive(t):
    return instead(t, b'{"url": "https://drive.example/x", "doc_id": "1", "email": "a@b"}')


@accident("no notebook", status="ungradable", whole=False)
def other_json(t):
    return instead(t, b"[1, 2, 3]")


@accident("two notebooks", status="ungradable", whole=False)
def two_notebooks_in_one_file(t):
    return raw(t, lambda data: data + data)


@accident("deeply", status="ungradable", whole=False)
def json_nested_without_end(t):
    return instead(t, b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}")


@accident("not those of this notebook", status="ungradable", whole=False)
def notebook_of_another_course(t):
    nb = nbformat.v4.new_notebook(cells=[code("print('French, week 3')")])
    return instead(t, json.dumps(nb).encode())


@accident("50 MB", status="ungradable", whole=False)
def file_of_60_megabytes(t):
    return instead(t, b"{" + b" " * 60 * 2**20 + b"}")


def write(folder: Path, files: Files) -> None:
    """Puts files, links and pipes into a student's folder."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content.target)
        elif isinstance(content, Pipe):
            os.mkfifo(path)
        else:
            path.write_bytes(content)
