"""nbgrader's `export` with our exporter: grades.csv that tells missing work from zero."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy
from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin

from autograder.course import Course, CourseError
from autograder.lms.marks import Mark, read_marks
from autograder.lms.tables import number, write_table

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "status",
    "provisional",
    "reason",
)


class CourseExport(ExportPlugin):
    """Writes the columns of nbgrader's own exporter, then status, provisional and reason.

    Missing and ungradable work has an empty score (the stock exporter writes 0.0). A score is provisional
    while a question in words waits for a person.
    """

    def export(self, gradebook: Gradebook) -> None:
        course = self._course(gradebook)
        target = self.to or "grades.csv"
        self.log.info("Exporting grades to %s", target)
        names = [a.name for a in gradebook.assignments]
        unknown = set(map(str, self.assignment)) - set(names)
        if unknown:
            raise CourseError(f"The gradebook has no assignment {sorted(unknown)[0]!r}.")
        rows = []
        for name in names:
            if self.assignment and name not in map(str, self.assignment):
                continue
            for mark in read_marks(course, gradebook, name):
                if not self.student or mark.student in map(str, self.student):
                    rows.append(row(name, mark))
        path = Path(target)
        write_table(path, COLUMNS, rows)
        waiting = sum(r["provisional"] == "yes" for r in rows)
        if waiting:
            self.log.warning("%d scores are provisional: questions in words are open.", waiting)

    def _course(self, gradebook: Gradebook) -> Course:
        """The course that nbgrader runs for; its folder is nbgrader's, or the current one."""
        config = self.config.get("CourseDirectory", {})
        root = config.get("root")
        url = gradebook.db.get_bind().url
        text = url.render_as_string(hide_password=False) if isinstance(url, sqlalchemy.URL) else url
        return Course(Path(root) if isinstance(root, str) and root else Path.cwd(), str(text))


def row(assignment: str, mark: Mark) -> dict[str, object]:
    """One line of grades.csv."""
    return {
        "assignment": assignment,
        "duedate": mark.due,
        "timestamp": mark.timestamp,
        "student_id": mark.student,
        "last_name": mark.last,
        "first_name": mark.first,
        "email": mark.email,
        "raw_score": number(mark.raw),
        "late_submission_penalty": number(mark.penalty) if mark.score is not None else "",
        "score": number(mark.score),
        "max_score": number(mark.max_score),
        "status": mark.status,
        "provisional": "yes" if mark.provisional else "",
        "reason": mark.reason,
    }
