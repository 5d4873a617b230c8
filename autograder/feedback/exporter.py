"""The same pages through nbgrader's `generate_feedback` and formgrader's button."""

from __future__ import annotations

from pathlib import Path

from nbconvert.exporters import HTMLExporter

from autograder.course import Course, CourseError
from autograder.feedback.gather import read_marks, read_results, standing
from autograder.feedback.render import feedback_page


class FeedbackExporter(HTMLExporter):
    """Writes our page instead of nbconvert's; named in nbgrader_config.py.

    nbgrader's preprocessors put scores and comments into the cells; this reads them from the gradebook
    itself, as the `feedback` command does, so both write the same page.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._students: dict[str, dict] = {}  # one run, one reading of the results

    def from_notebook_node(self, nb, resources=None, **kwargs):
        """The page of one graded notebook.

        Args:
            nb: the graded notebook.
            resources: nbgrader's, with student, assignment, notebook and gradebook under "nbgrader".
        """
        names = (resources or {}).get("nbgrader")
        if not names:
            raise CourseError("FeedbackExporter works inside nbgrader generate_feedback only.")
        entry = self._entry(names)
        marks = read_marks(names["db_url"], names["assignment"], names["student"])
        summary = standing(
            names["assignment"],
            names["student"],
            names["notebook"],
            entry,
            nb,
            marks.get(names["student"], {}),
        )
        resources["output_extension"] = ".html"
        return feedback_page(summary, nb), resources

    def _entry(self, names) -> dict:
        """The student's entry in the results, {} where nbgrader graded without writing them."""
        coursedir = getattr(self.parent, "coursedir", None)
        course = Course(Path(coursedir.root if coursedir else "."))
        if names["assignment"] not in self._students:
            try:
                results = read_results(course, names["assignment"])
            except CourseError:
                results = {"students": {}}
            self._students[names["assignment"]] = results["students"]
        return self._students[names["assignment"]].get(names["student"], {})
