"""Are the gradebook's rows those that nbgrader's own classes write? The same scores go through both.

Rows of two databases are compared under the names of what they stand for, since each database draws ids of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades
from sqlalchemy import MetaData, Table, UniqueConstraint, create_engine, select
from traitlets.config import Config

Row = tuple[tuple[str, object], ...]


def nbgrader_writes(
    url: str,
    assignment: str,
    student: str,
    notebooks: Mapping[str, object],
    timestamp: str | None = None,
    config: Config | None = None,
) -> None:
    """Record one student as `nbgrader autograde` does: its API, then its preprocessors for each notebook.

    Args:
        notebooks: the executed notebooks by name, scores in the outputs of their grade cells.
        timestamp: when it was handed in, as text.
        config: of the course, for the late policy.
    """
    when = {} if timestamp is None else {"timestamp": timestamp}
    with Gradebook(url, "attention") as book:
        book.update_or_create_student(student)
        book.update_or_create_submission(assignment, student, **when)
        for released in book.find_assignment(assignment).notebooks:
            if released.name in notebooks:
                continue
            for grade in book.find_submission_notebook(released.name, assignment, student).grades:
                grade.auto_score = 0
                grade.needs_manual_grade = False
            book.db.commit()
    for name, notebook in notebooks.items():
        about = {"notebook": name, "assignment": assignment, "student": student, "db_url": url}
        for step in (SaveAutoGrades, AssignLatePenalties):
            step(config=config).preprocess(notebook, {"nbgrader": about})


def rows(url: str) -> dict[str, list[Row]]:
    """Every table's rows, sorted, with names in place of drawn ids."""
    engine = create_engine(url)
    found = MetaData()
    try:
        found.reflect(engine)
        with engine.connect() as connection:
            content = {
                table.name: [dict(row._mapping) for row in connection.execute(select(table))]
                for table in found.sorted_tables
            }
    finally:
        engine.dispose()
    names = _Names(found.tables, content)
    return {
        name: sorted((names.of_row(found.tables[name], row) for row in content[name]), key=repr)
        for name in content
    }


class _Names:
    """What stands for a row in place of its id: the columns that make it unique, ids in them named too."""

    def __init__(self, tables: Mapping[str, Table], content: Mapping[str, list[dict]]) -> None:
        self._tables = tables
        self._rows = {
            name: {row["id"]: row for row in content[name]}
            for name, table in tables.items()
            if "id" in table.c
        }
        self._name = cache(self._name_of)

    def of_row(self, table: Table, row: Mapping) -> Row:
        named = {column.name: self._value(column, row[column.name]) for column in table.c}
        if "id" in named:
            named["id"] = self._name(table.name, row["id"])
        return tuple(named.items())

    def _value(self, column, value):
        if value is None or not column.foreign_keys:
            return value
        (other,) = column.foreign_keys
        return self._name(other.column.table.name, value)

    def _name_of(self, table: str, key: str):
        if key not in self._rows[table]:
            return f"no row of {table}"
        row, columns = self._rows[table][key], self._tables[table].c
        if columns["id"].foreign_keys:
            return self._value(columns["id"], key)
        unique = [
            sorted(column.name for column in rule.columns)
            for rule in self._tables[table].constraints
            if isinstance(rule, UniqueConstraint)
        ]
        if not unique or unique == [["id"]]:
            return key
        return tuple(self._value(columns[name], row[name]) for name in unique[0])


def differences(one: Mapping[str, list[Row]], other: Mapping[str, list[Row]]) -> list[str]:
    """Rows that only one of two databases has, as text."""
    found = []
    for table in sorted(one.keys() | other.keys()):
        left, right = Counter(one.get(table, [])), Counter(other.get(table, []))
        for where, alone in (("first", left - right), ("second", right - left)):
            found += [f"{table}: only in the {where}: {dict(row)}" for row in alone.elements()]
    return found
