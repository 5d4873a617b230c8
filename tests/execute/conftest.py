"""Executors that the tests share: starting one takes seconds."""

import pytest

from autograder.course import CourseError
from autograder.execute import Executor


@pytest.fixture(scope="session")
def confined():
    """An executor with isolation; the tests fail where the machine cannot isolate."""
    with Executor() as executor:
        executor.start()
        yield executor


@pytest.fixture(scope="session")
def unconfined():
    """An executor without isolation."""
    with Executor(sandbox=False) as executor:
        executor.start()
        yield executor


@pytest.fixture(params=["sandbox", "no sandbox"])
def executor(request):
    """Both kinds: what a notebook sees must not depend on it."""
    if request.param == "no sandbox":
        return request.getfixturevalue("unconfined")
    try:
        return request.getfixturevalue("confined")
    except CourseError as error:
        pytest.fail(str(error))


@pytest.fixture
def kernel(executor):
    with executor.kernel() as kernel:
        yield kernel


def text_of(executed) -> str:
    """All printed text of a cell."""
    return "".join(o["text"] for o in executed.outputs if o["output_type"] == "stream")


def error_of(executed) -> str:
    """`Name: message` of the cell's error, or ""."""
    errors = [o for o in executed.outputs if o["output_type"] == "error"]
    return f"{errors[-1]['ename']}: {errors[-1]['evalue']}" if errors else ""
