import shutil

import pytest

from autograder.course import Course
from autograder.grade import gradebook

from .downloads import course_folders


@pytest.fixture(scope="session")
def empty_gradebook(tmp_path_factory):
    """An empty gradebook, made once: nbgrader starts a program to make one."""
    folder = tmp_path_factory.mktemp("gradebook")
    with gradebook.opened(Course(folder)):
        pass
    return folder / "gradebook.db"


@pytest.fixture
def make_course(empty_gradebook):
    def make(root):
        course_folders(root)
        shutil.copy(empty_gradebook, root / "gradebook.db")
        return Course(root)

    return make


@pytest.fixture
def course(make_course, tmp_path):
    return make_course(tmp_path / "course")
