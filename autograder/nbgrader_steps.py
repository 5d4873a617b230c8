"""Our steps as nbgrader preprocessors and hooks, named in nbgrader_config.py.

They are thin: each calls the module that does the work, so that nbgrader's commands, formgrader's
buttons and `python -m autograder` run the same code.
"""

from __future__ import annotations

import sys
import traceback
import types
from pathlib import Path

import nbgrader.converters.base as nbgrader_base
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from autograder import release, stamp
from autograder.configuration import open_course
from autograder.course import Course, CourseError
from autograder.grade import session


def _one_line_for_people(limit=None, chain=True) -> str:
    """What nbgrader logs of an exception: one line where it is foreseeable, else the traceback."""
    if session.problem is not None:
        return f"can't be graded: {session.problem}"
    error = sys.exc_info()[1]
    return f"error: {error}" if isinstance(error, CourseError) else traceback.format_exc()


# nbgrader logs the traceback of whatever a preprocessor raises; a CourseError is meant for people.
nbgrader_base.traceback = types.SimpleNamespace(format_exc=_one_line_for_people)


class CourseStep(NbGraderPreprocessor):
    """A preprocessor that knows the course and what is being processed."""

    def course(self, resources) -> Course:
        # The exporter is our parent and the converter is its parent; it has changed to the root.
        return Course(Path.cwd(), resources["nbgrader"]["db_url"])


class RequireCheckedGrader(CourseStep):
    """Refuses a release whose task definitions have not passed `make check-grader`."""

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        if not stamp.valid(self.course(resources), names["assignment"]):
            raise CourseError(
                f"{names['assignment']} is not released: the grader has not been checked against its "
                f"present tasks. Run `make check-grader`, then generate again."
            )
        return nb, resources


class EmbedHelper(CourseStep):
    """Puts the helper, the public tables and the version stamp into the locked setup cell."""

    colab_repository = Unicode(
        "", help="owner/name of the students' repository, for the Open in Colab links"
    ).tag(config=True)

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        assignment, notebook = names["assignment"], names["notebook"]
        release.known_notebook(assignment, notebook)
        course = self.course(resources)
        link = release.colab_link(self.colab_repository, assignment, notebook)
        for cell in nb.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == "setup":
                cell.source = release.setup_source(course, assignment, nb, notebook)
                cell.metadata["cellView"] = "form"
                cell.metadata["jupyter"] = {"source_hidden": True}
                nb.metadata["attention_course"] = release.stamp_of(cell.source)
            elif "{{COLAB}}" in cell.source:
                cell.source = cell.source.replace("{{COLAB}}", link)
        if "attention_course" not in nb.metadata:
            raise CourseError(f"source/{assignment}/{notebook}.ipynb has no setup cell.")
        return nb, resources


class StableNotebook(NbGraderPreprocessor):
    """Keeps only metadata that is the same in every build, in one order."""

    KEPT = ("attention_course", "kernelspec", "language_info")

    def preprocess(self, nb, resources):
        nb.metadata = type(nb.metadata)(
            {key: nb.metadata[key] for key in self.KEPT if key in nb.metadata}
        )
        return nb, resources


def _course_of(notebooks) -> Course:
    """The course that submitted/<student>/<assignment>/<notebook>.ipynb lies in."""
    return open_course(Path(notebooks[0]).resolve().parents[3])


def before_autograde(assignment, student, notebooks) -> None:
    """Before nbgrader autogrades one student: grade by evidence, and name the files as released."""
    session.before_autograde(notebooks, _course_of(notebooks))


def after_autograde(assignment, student, notebooks) -> None:
    """After nbgrader saved one student's scores: write the results beside the graded notebooks."""
    session.after_autograde(notebooks, _course_of(notebooks))


class IngestSubmission(CourseStep):
    """Replaces the submitted notebook by its repaired form."""

    def preprocess(self, nb, resources):
        return session.ingested(self.course(resources), **_ids(resources)), resources


class GradeByEvidence(CourseStep):
    """Replaces the repaired notebook by the executed one, verdicts in its grade cells."""

    def preprocess(self, nb, resources):
        return session.graded(self.course(resources), **_ids(resources)), resources


def _ids(resources) -> dict[str, str]:
    names = resources["nbgrader"]
    return {key: names[key] for key in ("assignment", "student", "notebook")}
