"""Grades one submission: ingest, run and ask, judge, and put the verdicts into the notebooks.

Nothing here touches the gradebook or another student's files.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder import definitions
from autograder.course import Course, CourseError
from autograder.grade.gradebook import NotebookScores
from autograder.grade.results import missing_entry, unfinished, write_json
from autograder.ingest import open_submission
from autograder.lms import late
from autograder.tasks.model import AssignmentTasks, ManualTask, NotebookTasks, Verdict
from autograder.tasks.registry import assignment as tasks_of
from autograder.verify.interview import Answers, Probes, draw, interview
from autograder.verify.verdicts import verdicts

MAX_OUTPUT = 100_000
EVIDENCE_DIFFERS = (
    "The evidence saved in the notebook differs from what the notebook gives when it is run again "
    "({keys}). The new run counts."
)
PROVISIONAL = "Provisional: a question in words waits for a person."
UNTOUCHED = "Graded: the notebooks are as they were released. Were these the right files?"
SEND = (
    "The .ipynb files are needed, not packed (in Colab: File > Download > Download .ipynb; in "
    "JupyterLab: File > Download)."
)

# CPython 3.11's ast.parse is not safe in several threads at once ("recursion depth mismatch").
_PARSING = threading.Lock()


@dataclass(frozen=True)
class Plan:
    """What is the same for every student of one run of an assignment.

    Args:
        digest: of the release, the nonce and the code that judges.
        policy: what being late costs.
    """

    course: Course
    tasks: AssignmentTasks
    released: Mapping[str, nbformat.NotebookNode]
    nonce: str
    probes: Mapping[str, Probes]
    digest: str
    policy: late.Policy = field(default_factory=late.Policy)

    @property
    def name(self) -> str:
        return self.tasks.name

    @property
    def max_score(self) -> float:
        return sum(c.points for n in self.tasks.notebooks for c in n.checkpoints())

    @property
    def release(self) -> Path:
        return self.course.release / self.name


@dataclass
class Graded:
    """One student's outcome: the entry of results.json, and what to write for nbgrader."""

    student: str
    entry: dict
    notebooks: dict[str, nbformat.NotebookNode] = field(default_factory=dict)
    ingested: dict[str, nbformat.NotebookNode] = field(default_factory=dict)
    scores: dict[str, NotebookScores | None] = field(default_factory=dict)
    evidence: dict = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)

    @property
    def gradable(self) -> bool:
        return self.entry["status"] not in ("ungradable", "missing")


def plan(course: Course, name: str, nonce: str) -> Plan:
    """Read the release and draw the probes.

    Raises:
        CourseError: if the assignment is unknown or has not been released.
    """
    tasks = tasks_of(name)
    released = {}
    for notebook in tasks.notebooks:
        path = course.release / name / f"{notebook.name}.ipynb"
        if not path.exists():
            raise CourseError(
                f"release/{name}/{notebook.name}.ipynb is not there: run `make release` first."
            )
        released[notebook.name] = nbformat.read(path, as_version=4)
    probes = {notebook.name: draw(notebook, nonce) for notebook in tasks.notebooks}
    files = [*definitions.judging_files(name), *(course.release / name).glob("*.ipynb")]
    return Plan(course, tasks, released, nonce, probes, definitions.digest(files, nonce))


def submission_digest(plan: Plan, folder: Path) -> str:
    """Decides whether a finished entry is still that of this submission."""
    sums = hashlib.sha256(plan.digest.encode())
    for path in sorted(folder.rglob("*")):
        sums.update(str(path.relative_to(folder)).encode(errors="surrogateescape"))
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                sums.update(file.read(64_000_000))
    return sums.hexdigest()


def ungradable(plan: Plan, student: str, reason: str) -> Graded:
    """The outcome of a submission about which nothing can be said."""
    return Graded(
        student, {**missing_entry(plan.max_score), "status": "ungradable", "reason": reason}
    )


def grade_guarded(plan: Plan, student: str, executor, folder: Path | None = None) -> Graded:
    """Like `grade_submission`; a fault of ours with it is that student's `ungradable`, not the class's end."""
    try:
        return grade_submission(plan, student, executor, folder)
    except CourseError:
        raise
    except Exception as error:
        reason = (
            f"The grader failed on this submission ({type(error).__name__}: {error}). "
            f"Report it to the course's maintainers; it is not the student's fault."
        )
        return ungradable(plan, student, reason)


def grade_submission(plan: Plan, student: str, executor, folder: Path | None = None) -> Graded:
    """Grade one submission. Never raises for what a student did.

    Args:
        executor: whatever has `kernel(files=...)` as `autograder.execute.Executor` has.
        folder: where it lies, `<student>/<assignment>`; None means below the course's `submitted/`.
    """
    folder = folder or plan.course.submitted / student / plan.name
    with _PARSING:
        submission = open_submission(folder, plan.release, [n.name for n in plan.tasks.notebooks])
    graded = Graded(student, {})
    found: dict[str, tuple[NotebookTasks, Verdict, str]] = {}
    repairs: list[str] = []
    notes = list(submission.notes)
    statuses: dict[str, dict] = {}
    for tasks in plan.tasks.notebooks:
        item = submission.notebooks[tasks.name]
        statuses[tasks.name] = _status(item)
        repairs += [f"{tasks.name}: {text}" for text in item.repairs]
        if item.notebook is None:
            graded.scores[tasks.name] = None
            for checkpoint in tasks.checkpoints():
                text = item.problem or f"The notebook {tasks.name} was not handed in."
                found[checkpoint.grade_id] = (
                    tasks,
                    Verdict(0.0, checkpoint.points, "missing", text),
                    tasks.name,
                )
            continue
        probes = plan.probes[tasks.name]
        answers = interview(executor, item.notebook, tasks, probes, files=submission.files)
        judged = verdicts(tasks, probes, answers)
        notes += [f"{tasks.name}: {text}" for text in answers.notes]
        notes += _evidence_notes(tasks.name, item.original, answers)
        if isinstance(answers.evidence, dict):
            _merge(graded.evidence, answers.evidence)
        graded.paths[tasks.name] = item.path
        graded.ingested[tasks.name] = item.notebook
        graded.notebooks[tasks.name] = _written(item.notebook, answers, judged, plan)
        graded.scores[tasks.name] = _scores(plan.released[tasks.name], item.notebook, judged, tasks)
        for grade_id, verdict in judged.items():
            found[grade_id] = (tasks, verdict, tasks.name)
    graded.entry = _entry(plan, statuses, found, repairs, notes, graded.scores, submission.others)
    return graded


def _status(item) -> dict:
    if item.missing:
        return {"status": "missing", "problem": None}
    if item.notebook is None:
        return {"status": "ungradable", "problem": item.problem}
    return {"status": "repaired" if item.repairs else "graded", "problem": None}


def _entry(plan, statuses, found, repairs, notes, scores, others) -> dict:
    kinds = {name: status["status"] for name, status in statuses.items()}
    checkpoints = {
        grade_id: {
            "notebook": name,
            "score": _awarded(kinds[name], scores.get(name), grade_id),
            "max_score": verdict.max_score,
            "verdict": verdict.verdict,
            "misconceptions": list(verdict.misconceptions),
            "message": verdict.message,
            "notes": list(verdict.notes),
        }
        for grade_id, (_, verdict, name) in found.items()
    }
    if all(kind == "missing" for kind in kinds.values()):
        status, reason = _without_notebooks(others)
    elif "ungradable" in kinds.values():
        status = "ungradable"
        reason = " ".join(
            f"{name}: {statuses[name]['problem']}" for name, kind in kinds.items() if kind == status
        )
    elif "missing" in kinds.values():
        status = "incomplete"
        absent = [name for name, kind in kinds.items() if kind == "missing"]
        marks = sum(c["max_score"] for c in checkpoints.values() if c["notebook"] in absent)
        reason = f"Not handed in: {', '.join(absent)}; its {marks:g} marks are not in the score."
    elif repairs:
        count = "1 repair, which is" if len(repairs) == 1 else f"{len(repairs)} repairs, which are"
        status, reason = "repaired", f"Graded after {count} listed."
    elif all(map(_blank, checkpoints.values())):
        status, reason = "graded", UNTOUCHED
    else:
        status, reason = "graded", "Graded."
    no_score = status in ("missing", "ungradable")
    for checkpoint in checkpoints.values():
        if no_score and kinds[checkpoint["notebook"]] == "missing":
            checkpoint["score"] = None  # nothing is known, which is no 0
    total = sum(c["score"] or 0.0 for c in checkpoints.values())
    if not no_score and any(c["score"] is None for c in checkpoints.values()):
        reason += f" {PROVISIONAL}"
    return {
        "status": status,
        "score": None if no_score else total,
        "max_score": plan.max_score,
        "reason": reason,
        "repairs": repairs,
        "notes": notes,
        "notebooks": statuses,
        "checkpoints": checkpoints,
    }


def _without_notebooks(others: Sequence[str]) -> tuple[str, str]:
    """Status and reason of a submission that holds none of the notebooks."""
    if not others:
        return "missing", "Nothing was handed in."
    names = ", ".join(f"`{name}`" for name in others[:5]) + (", ..." if len(others) > 5 else "")
    return "ungradable", f"No notebook of this assignment was handed in, only {names}. {SEND}"


def _blank(checkpoint: Mapping) -> bool:
    """Is the answer as released? (A question in words that has a mark of the grader's is.)"""
    manual = checkpoint["verdict"] == "manual" and checkpoint["score"] is not None
    return manual or checkpoint["verdict"] == "not-attempted"


def _awarded(kind: str, scores: NotebookScores | None, grade_id: str) -> float | None:
    """0 for a notebook that was not handed in, None where nothing can be said or a person decides."""
    if scores is None:
        return None if kind == "ungradable" else 0.0
    return scores.scores.get(grade_id)


def _scores(released, nb, judged, tasks: NotebookTasks) -> NotebookScores:
    """Automatic scores; a question in words that is as released gets 0, an answered one waits."""
    stubs = {
        cell.metadata.nbgrader["grade_id"]: cell.source.strip()
        for cell in released.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    texts = {
        cell.metadata.nbgrader["grade_id"]: cell.source.strip()
        for cell in nb.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    unanswered = frozenset(name for name, text in stubs.items() if texts.get(name, text) == text)
    manual = {part.checkpoint.grade_id for part in tasks.parts if isinstance(part, ManualTask)}
    scores: dict[str, float | None] = {}
    for grade_id, verdict in judged.items():
        waits = grade_id in manual and grade_id not in unanswered
        scores[grade_id] = None if waits else float(verdict.score)
    return NotebookScores(scores, unanswered)


def _written(nb, answers: Answers, judged: Mapping[str, Verdict], plan: Plan):
    """The notebook with the new run's outputs, and each verdict in its grade cell."""
    graded = copy.deepcopy(nb)
    for index, cell in enumerate(graded.cells):
        if cell.cell_type != "code":
            continue
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        cell.execution_count = None
        if grade_id in judged and cell.metadata.nbgrader.get("grade"):
            cell.metadata["autograder"] = _verdict_data(judged[grade_id])
            cell.outputs = _verdict_outputs(judged[grade_id])
        else:
            cell.outputs = [nbformat.from_dict(_limited(o)) for o in answers.outputs.get(index, [])]
    return graded


def _verdict_data(verdict: Verdict) -> dict:
    return {
        "verdict": verdict.verdict,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "message": verdict.message,
        "misconceptions": list(verdict.misconceptions),
        "notes": list(verdict.notes),
    }


def _verdict_outputs(verdict: Verdict) -> list:
    """What nbgrader's SaveAutoGrades reads: a text for people, then the score as the cell's result."""
    text = " ".join([verdict.message, *verdict.notes])
    return [
        _output("display_data", {"text/plain": text, "text/markdown": text}),
        _output("execute_result", {"text/plain": repr(float(verdict.score))}, execution_count=None),
    ]


def _output(kind: str, data: dict, **more) -> nbformat.NotebookNode:
    # nbformat's own constructor validates against the schema, which takes longer than the judging.
    return nbformat.from_dict({"output_type": kind, "data": data, "metadata": {}, **more})


def _limited(output: dict) -> dict:
    """The output with over-long text cut, and the cut said."""
    output = copy.deepcopy(output)
    if output.get("output_type") == "stream" and len(output.get("text", "")) > MAX_OUTPUT:
        cut = len(output["text"]) - MAX_OUTPUT
        output["text"] = f"{output['text'][:MAX_OUTPUT]}\n[{cut} more characters were cut]\n"
    return output


def shown_evidence(original) -> dict | None:
    """The last evidence JSON that a saved notebook shows in its outputs, None if there is none."""
    found = None
    for cell in original.cells if original is not None else []:
        for output in cell.get("outputs", []):
            data = output.get("data", {}) if isinstance(output, dict) else {}
            shown = data.get("application/json") if isinstance(data, dict) else None
            if isinstance(shown, dict) and "schema_version" in shown:
                found = shown
    return found


def _evidence_notes(name: str, original, answers: Answers) -> list[str]:
    shown = shown_evidence(original)
    if shown is None or not isinstance(answers.evidence, dict):
        return []
    skipped = ("environment", "predictions", "notebook")
    keys = [
        key
        for key, value in shown.items()
        if key not in skipped and not _close(value, _plain(answers.evidence.get(key)))
    ]
    return [f"{name}: {EVIDENCE_DIFFERS.format(keys=', '.join(sorted(keys)))}"] if keys else []


def _plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def strict(value):
    """`value` as strict JSON: arrays become lists, numbers that are not finite become null."""
    value = _plain(value)
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def _close(one, other) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_close(one[k], other[k]) for k in one)
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return abs(one - other) <= 1e-6 + 1e-5 * abs(one)
    return one == other


def _merge(into: dict, part: Mapping) -> None:
    """Add one notebook's evidence to the assignment's; a later notebook's value replaces."""
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif value is not None:
            into[key] = value


def write_notebooks(plan: Plan, graded: Graded) -> None:
    """Write autograded/<student>/<assignment>/*.ipynb; a notebook that is there is replaced at once."""
    folder = plan.course.autograded / graded.student / plan.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.ipynb"):
            if old.stem not in graded.notebooks:
                old.unlink()
        for name, nb in graded.notebooks.items():
            temporary = unfinished(folder / f"{name}.ipynb")
            temporary.write_text(
                json.dumps(nb, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            temporary.replace(folder / f"{name}.ipynb")
        write_evidence(plan, graded)
    except OSError as error:
        raise CourseError(
            f"can't write {folder} ({error.strerror}): make it writable or free some space, then run "
            f"this again. What was finished is kept."
        ) from None


def write_evidence(plan: Plan, graded: Graded) -> None:
    """Write the evidence merged from the student's notebooks beside the graded ones."""
    if plan.tasks.evidence and graded.evidence:
        folder = plan.course.autograded / graded.student / plan.name
        write_json(folder / plan.tasks.evidence, strict(graded.evidence))
