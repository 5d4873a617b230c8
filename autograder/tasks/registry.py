"""Finds an assignment's task definition by the name of its folder under `source/`."""

from __future__ import annotations

import importlib

from autograder.course import CourseError
from autograder.tasks.model import AssignmentTasks

MODULES = {
    "w07-h2-attention": "autograder.tasks.w07_h2_attention",
    "w07-h2-practice": "autograder.tasks.w07_h2_practice",
    "attention-mechanism": "autograder.tasks.attention_mechanism",
}


def assignment(name: str) -> AssignmentTasks:
    """The task definition of `name`; its module has a module-level `ASSIGNMENT`.

    Raises:
        CourseError: if no assignment has that name.
    """
    if name not in MODULES:
        known = ", ".join(MODULES)
        raise CourseError(f"There is no assignment {name!r}; this course has: {known}.")
    return importlib.import_module(MODULES[name]).ASSIGNMENT
