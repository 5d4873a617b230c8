"""A student's folder to the notebooks that the assignment expects, matched by what is inside."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import nbformat
from dateutil import parser as dates
from nbformat import NotebookNode

from autograder.course import CourseError
from autograder.ingest.decode import SIZE_LIMIT, Unreadable, decode
from autograder.ingest.model import Ingested, Submission
from autograder.ingest.repair import repair
from autograder.ingest.text import bound, normal

FILE_LIMIT = 200
DEPTH_LIMIT = 8
PASSED_ON_LIMIT = 10 * 1024 * 1024
SKIPPED_FOLDERS = {"__MACOSX", "__pycache__", ".git", ".vscode", ".idea", ".venv", "venv"}
CHECKPOINTS = ".ipynb_checkpoints"
REFUSED = "refused-when-collected.txt"
"""Where `collect` says what it did not take from a student: a file a line, a tab, the reason."""
_COPY = re.compile(
    r"^(?:copy of |kopie von |copie de |copia de )+|(?: ?\(\d+\)| - copy| copy(?: \d+)?|_copy\d*|-copy\d*"
    r"|-checkpoint| - kopie)+$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\((\d+)\)\s*$")
_GRADE_ID = re.compile(r"grade_id\\?\"\s*:\s*\\?\"([^\"\\]{1,80})")
_SHADOWING = sys.stdlib_module_names | {
    "attention_lab",
    "autograder",
    "ipykernel",
    "ipykernel_launcher",
    "IPython",
    "jupyter_client",
    "jupyter_core",
    "matplotlib",
    "matplotlib_inline",
    "nbclient",
    "nbformat",
    "nbgrader",
    "numpy",
    "PIL",
    "sitecustomize",
    "tornado",
    "torch",
    "traitlets",
    "usercustomize",
    "zmq",
}


@dataclass(eq=False)
class _File:
    path: Path
    shown: str
    modified: int
    data: bytes
    checkpoint: bool
    notebook: NotebookNode | None = None
    repairs: list[str] = field(default_factory=list)
    problem: str | None = None
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class _Release:
    """One released notebook, and what a copy of it is recognised by."""

    name: str
    notebook: NotebookNode
    ids: frozenset[str]
    texts: frozenset[str]
    code: dict[str, str]
    functions: frozenset[str]


def open_submission(folder: Path, release: Path, names: Sequence[str]) -> Submission:
    """Reads and repairs what one student handed in for one assignment.

    Args:
        folder: `submitted/<student>/<assignment>`; need not exist.
        release: `release/<assignment>`, with one notebook for each name.
        names: stems of the expected notebooks.

    Raises:
        CourseError: if the release lacks a notebook. What a student sends never raises.
    """
    folder = Path(folder)
    submission = Submission(student=folder.parent.name, assignment=folder.name)
    expected = [_released(Path(release), name) for name in names]
    shared = _shared_ids(expected)
    files, others = _read_folder(folder, submission)
    for file in files:
        _decode(file)
    claimed: dict[str, list[_File]] = {name: [] for name in names}
    strangers = [f for f in files if not _assign(f, expected, shared, claimed)]
    _assign_leftovers(strangers, claimed, submission.notes)
    for one in expected:
        submission.notebooks[one.name] = _ingest(one, claimed[one.name], submission.notes)
    _explain_missing(submission, strangers)
    _tell_refused(folder / REFUSED, submission)
    others = [path for path in others if path.name not in (REFUSED, "timestamp.txt")]
    visible = [path.relative_to(folder) for path in others if not path.name.startswith(".")]
    submission.others += map(_show, visible)
    submission.files = _passed_on(others, submission.notes)
    _check_time(folder / "timestamp.txt", submission.notes)
    return submission


# --- the release ---------------------------------------------------------------------------------


def _released(release: Path, name: str) -> _Release:
    path = release / f"{name}.ipynb"
    try:
        return _cached_release(path, path.stat().st_mtime_ns)
    except OSError:
        raise CourseError(
            f"The release has no notebook {name!r} ({path}); run the release step."
        ) from None
    except nbformat.reader.NotJSONError:
        raise CourseError(f"The released notebook {path} is damaged; make it again.") from None


@lru_cache(maxsize=64)
def _cached_release(path: Path, _modified: int) -> _Release:
    notebook = nbformat.read(path, as_version=4)
    ids, functions, code = set(), set(), {}
    for cell in notebook.cells:
        settings = cell.metadata.get("nbgrader") or {}
        if "grade_id" in settings:
            ids.add(settings["grade_id"])
        if cell.cell_type == "code" and not settings.get("locked"):
            code[cell.id] = normal(cell.source)
            if settings.get("solution"):
                functions |= bound(cell.source)
    texts = frozenset(t for c in notebook.cells if len(t := normal(c.source)) >= 20)
    return _Release(path.stem, notebook, frozenset(ids), texts, code, frozenset(functions))


def _shared_ids(expected: list[_Release]) -> frozenset[str]:
    """Grade ids that say nothing of which notebook it is (`setup`, `recap`)."""
    if len(expected) < 2:
        return frozenset()
    every = [i for one in expected for i in one.ids]
    return frozenset(i for i in every if every.count(i) > 1)


# --- the folder ----------------------------------------------------------------------------------


def _read_folder(folder: Path, submission: Submission) -> tuple[list[_File], list[Path]]:
    notes = submission.notes
    notebooks: list[_File] = []
    others: list[Path] = []
    if folder.is_symlink():
        notes.append("The submitted folder is a symbolic link; it was not followed.")
        return [], []
    count = 0
    for path in _walk(folder, folder, 0, submission):
        count += 1
        if count > FILE_LIMIT:
            notes.append(f"More than {FILE_LIMIT} files were handed in; the rest was not read.")
            break
        shown = _show(path.relative_to(folder))
        name = path.name.lower()
        looks = name.endswith((".ipynb", ".ipynb.txt", ".ipynb.json", ".ipynb.html", ".json"))
        if not looks and path.suffix.lower() not in ("", ".txt"):
            others.append(path)
            continue
        try:
            data, modified = _read(path)
        except _Refused as refused:
            notes.append(f"`{shown}` {refused}")
            if name.endswith(".ipynb"):
                hidden = CHECKPOINTS in path.parts
                file = _File(path, shown, 0, b"", hidden)
                file.problem = f"`{shown}` {refused}"
                notebooks.append(file)
            continue
        unsure = not looks or name.endswith(".json")
        if unsure and b'"cells"' not in data and b'"worksheets"' not in data:
            others.append(path)
            continue
        notebooks.append(_File(path, shown, modified, data, CHECKPOINTS in path.parts))
    return notebooks, others


def _walk(folder: Path, top: Path, depth: int, submission: Submission) -> Iterator[Path]:
    def refuse(shown: str, reason: str) -> None:
        submission.others.append(shown)
        submission.notes.append(f"`{shown}` {reason}")

    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        if depth:
            refuse(_show(folder.relative_to(top)), "is a folder that could not be read.")
        return
    folders = []
    for entry in entries:
        path = Path(entry.path)
        shown = _show(path.relative_to(top))
        if entry.name.startswith("._") or entry.name in (".DS_Store", "Thumbs.db", "desktop.ini"):
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            refuse(shown, "is a symbolic link; it was not followed.")
        elif stat.S_ISDIR(mode):
            if entry.name in SKIPPED_FOLDERS:
                continue
            if depth + 1 > DEPTH_LIMIT:
                refuse(shown, "is a folder that lies too deep; it was not read.")
            else:
                folders.append(path)
        elif stat.S_ISREG(mode):
            yield path
        else:
            refuse(shown, "is no ordinary file; it was not read.")
    for path in folders:
        yield from _walk(path, top, depth + 1, submission)


class _Refused(Exception):
    pass


def _read(path: Path) -> tuple[bytes, int]:
    """The bytes, without following a link that was put there since the folder was listed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise _Refused(f"could not be read ({error.strerror}).") from None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _Refused("is no ordinary file; it was not read.")
        if status.st_size > SIZE_LIMIT:
            raise _Refused(
                f"has {status.st_size // 2**20} MB; the limit is {SIZE_LIMIT // 2**20} MB. Clear all "
                "outputs, save, and hand it in again."
            )
        return stream.read(SIZE_LIMIT + 1), int(status.st_mtime)


def _show(path: Path | str) -> str:
    """A name from a student, fit to stand in a sentence."""
    text = "".join(c if c.isprintable() and c not in "`<>" else "?" for c in str(path))
    return text if len(text) <= 120 else f"...{text[-117:]}"


def _tell_refused(path: Path, submission: Submission) -> None:
    """What `collect` did not take, one file a line, counts as handed in; it is told."""
    try:
        data, _ = _read(path)
    except _Refused:
        return
    for line in data.decode("utf-8", "replace").splitlines()[:20]:
        name, _, reason = line.partition("\t")
        submission.others.append(_show(name))
        submission.notes.append(
            f"`{_show(name)}` was refused when it was collected: {_show(reason)}."
        )


def _check_time(path: Path, notes: list[str]) -> None:
    """The time of handing in, which nbgrader's exchange and `collect` write."""
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
        dates.parse(text.rpartition(" ")[0] if text.count(" ") > 1 else text)
    except FileNotFoundError:
        return
    except (OSError, ValueError, OverflowError):
        notes.append("The time in timestamp.txt can't be read, so nothing counts as late.")


def _passed_on(others: list[Path], notes: list[str]) -> list[Path]:
    passed: list[Path] = []
    for path in others:
        stem = path.name.split(".")[0]
        shown = _show(path.name)
        around = {part.split(".")[0] for part in path.parts[-3:-1]} & _SHADOWING
        if path.suffix.lower() in (".py", ".pyc", ".so", ".pyd", ".pth") and (
            stem in _SHADOWING or around or path.suffix.lower() != ".py"
        ):
            notes.append(f"`{shown}` would hide a module of that name; it was not passed on.")
        elif path.suffix.lower() in (".zip", ".tar", ".gz", ".7z", ".rar", ".tgz", ".bz2", ".xz"):
            notes.append(f"`{shown}` is an archive; it was not opened.")
        elif path.stat().st_size > PASSED_ON_LIMIT:
            notes.append(f"`{shown}` is larger than 10 MB; it was not passed on.")
        elif not path.name.startswith("."):
            passed.append(path)
    return passed


# --- which file is which notebook ----------------------------------------------------------------


def _decode(file: _File) -> None:
    if file.problem is None:
        try:
            file.notebook, file.repairs = decode(file.data)
        except Unreadable as error:
            file.problem = str(error)
    if file.notebook is not None:
        found = (c.metadata.get("nbgrader", {}).get("grade_id") for c in file.notebook.cells)
        file.ids = frozenset(i for i in found if isinstance(i, str))
    else:
        text = file.data[: 4 * 2**20].decode("utf-8", errors="ignore")
        file.ids = frozenset(_GRADE_ID.findall(text))


def _plain(stem: str) -> str:
    """A file's stem without what copying adds: `Copy of x (1)` is `x`."""
    previous = None
    while previous != stem:
        previous, stem = stem, _COPY.sub("", stem.strip())
    return re.sub(r"[\s_.-]+", "-", stem).casefold()


def _stem(path: Path) -> str:
    name = re.sub(r"\.(?:txt|json|html)$", "", path.name, flags=re.IGNORECASE)
    return re.sub(r"\.ipynb$", "", name, flags=re.IGNORECASE)


def _same_name(file: _File, name: str) -> bool:
    stem, wanted = _plain(_stem(file.path)), _plain(name)
    return stem == wanted or stem.endswith(wanted)


def _likeness(file: _File, one: _Release) -> float:
    """Share of the release's cells that are in the file, functions that it defines counted in."""
    if file.notebook is None:
        return 0.0
    cells = file.notebook.cells
    texts = {normal(cell.source) for cell in cells}
    defined = frozenset().union(*(bound(c.source) for c in cells)) & one.functions
    total = len(one.texts) + len(one.functions)
    return (len(texts & one.texts) + len(defined)) / total if total else 0.0


def _assign(
    file: _File, expected: list[_Release], shared: frozenset[str], claimed: dict[str, list[_File]]
) -> bool:
    """Adds the file to the notebook that it is a copy of; False if it is of none."""
    counts = {one.name: len(file.ids & (one.ids - shared)) for one in expected}
    most = max(counts.values(), default=0)
    if most:
        best = [one for one in expected if counts[one.name] == most]
        if len(best) > 1:
            best = sorted(best, key=lambda one: (_same_name(file, one.name), _likeness(file, one)))
        claimed[best[-1].name].append(file)
        for one in expected:
            # Someone who put all notebooks into one file handed in each of them.
            if one is not best[-1] and 2 * counts[one.name] >= len(one.ids - shared) > 0:
                claimed[one.name].append(file)
        return True
    likeness = {one.name: _likeness(file, one) for one in expected}
    name = max(likeness, key=lambda n: (likeness[n], _same_name(file, n)), default=None)
    if name is not None and likeness[name] >= 0.1:
        claimed[name].append(file)
        return True
    if file.notebook is None or file.ids & shared:
        for one in expected:
            if _same_name(file, one.name):
                claimed[one.name].append(file)
                return True
    return False


def _assign_leftovers(
    strangers: list[_File], claimed: dict[str, list[_File]], notes: list[str]
) -> None:
    """One unreadable file and one notebook without a file belong together; others are told."""
    open_names = [name for name, files in claimed.items() if not files]
    unreadable = [f for f in strangers if f.notebook is None and f.path.suffix == ".ipynb"]
    if len(open_names) == len(unreadable) == 1:
        claimed[open_names[0]].append(unreadable[0])
        strangers.remove(unreadable[0])
    for file in strangers:
        if file.problem is None:
            notes.append(f"`{file.shown}` is a notebook, but none that this assignment has.")
        else:
            notes.append(f"`{file.shown}` can't be read: {file.problem}")


def _explain_missing(submission: Submission, strangers: list[_File]) -> None:
    """Something was handed in, though not this: ungradable rather than missing."""
    readable = [f for f in strangers if not f.checkpoint]
    for one in submission.notebooks.values():
        if not one.missing or not readable:
            continue
        file = next((f for f in readable if _same_name(f, one.name)), readable[0])
        reason = file.problem or "Its cells are not those of this notebook."
        one.missing = False
        one.path = file.path
        one.problem = f"`{one.name}.ipynb` could not be found in what was handed in (`{file.shown}`). {reason}"
        if file.problem is None:
            one.problem += " Hand in the notebook of this assignment."


# --- one notebook --------------------------------------------------------------------------------


def _work(file: _File, one: _Release) -> int:
    """How many of the release's open code cells were changed in this copy, at least 1 if any was."""
    if file.notebook is None:
        return -1
    texts = {normal(c.source) for c in file.notebook.cells if c.cell_type == "code"}
    changed = sum(text not in texts for text in one.code.values())
    return 0 if not texts - set(one.texts) - set(one.code.values()) else max(changed, 1)


def _ran_at(file: _File) -> int:
    """When Colab last ran a cell of this copy (seconds), which outlives downloading; else 0."""
    # Colab counts milliseconds.
    if file.notebook is None:
        return 0
    return max((c.metadata.get("ran_at", 0) for c in file.notebook.cells), default=0) // 1_000


def _rank(file: _File, one: _Release) -> tuple:
    match = _NUMBER.search(_stem(file.path))
    # Minutes, since unpacking an archive gives its files times that differ by fractions of a second.
    return (
        file.notebook is not None,
        not file.checkpoint,
        _work(file, one),
        _ran_at(file) // 60,
        file.modified // 60,
        int(match[1]) if match else 0,
        _stem(file.path) == one.name,
        file.shown,
    )


def _ingest(one: _Release, files: list[_File], notes: list[str]) -> Ingested:
    if not files:
        return Ingested(
            one.name,
            missing=True,
            problem=f"`{one.name}.ipynb` is missing. Hand it in to have it graded.",
        )
    ranked = sorted(files, key=lambda file: _rank(file, one), reverse=True)
    file = ranked[0]
    result = Ingested(one.name, path=file.path)
    if file.notebook is None:
        result.problem = file.problem
    else:
        result.notebook, sentences = repair(file.notebook, one.notebook)
        result.original = file.notebook
        result.repairs = [*_naming(one, file, ranked), *file.repairs, *sentences]
    _tell_copies(one, ranked, notes)
    return result


def _naming(one: _Release, file: _File, ranked: list[_File]) -> list[str]:
    says = []
    if file.shown != f"{one.name}.ipynb":
        says.append(f"The file was handed in as `{file.shown}`; it was taken for `{one.name}`.")
    visible = [f for f in ranked if not f.checkpoint]
    if len(visible) > 1:
        says.append(_copies(one, file, visible))
    return says


def _copies(one: _Release, file: _File, ranked: list[_File]) -> str:
    others = ", ".join(f"`{f.shown}`" for f in ranked if f is not file)
    why = "it is the newest"
    second = next(f for f in ranked if f is not file)
    if second.data == file.data:
        why = "all copies are the same"
    elif second.notebook is None:
        why = "the other one can't be read"
    elif _work(file, one) > _work(second, one):
        why = "more of it has been worked on"
    return (
        f"There are {len(ranked)} copies of `{one.name}`: `{file.shown}` counted, because {why}; "
        f"besides it there is {others}."
    )


def _tell_copies(one: _Release, ranked: list[_File], notes: list[str]) -> None:
    visible = [f for f in ranked if not f.checkpoint]
    if len(visible) > 1:
        notes.append(_copies(one, ranked[0], visible))
