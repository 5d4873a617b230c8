import pytest

from autograder.course import Course

from .downloads import course_folders


@pytest.fixture
def course(tmp_path):
    root = tmp_path / "course"
    course_folders(root)
    return Course(root)
