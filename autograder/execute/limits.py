"""What one notebook may use."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from autograder.course import CourseError

MB = 2**20


@dataclass(frozen=True)
class Limits:
    """Limits of one notebook's process.

    Args:
        cell: seconds of wall time for one cell; then it is interrupted, then killed.
        call: seconds of wall time for one call of a student's function.
        cpu: CPU seconds for the whole notebook.
        memory: bytes that a process may take on top of what the warm process has.
        total_memory: bytes that all processes of a notebook may hold together (looked at once a second).
        processes: processes and threads together.
        files: bytes of the private working folder (and of one file).
        open_files: open file descriptors.
        output: bytes of printed text kept per cell; the rest is dropped, and that is said.
        total_output: bytes of all outputs of a notebook; more ends it.
        grace: seconds between an interrupt and the kill.
    """

    cell: float = 60.0
    call: float = 10.0
    cpu: int = 600
    memory: int = 2048 * MB
    total_memory: int = 3072 * MB
    processes: int = 64
    files: int = 64 * MB
    open_files: int = 256
    output: int = 1 * MB
    total_output: int = 48 * MB
    grace: float = 2.0

    @classmethod
    def configured(cls) -> Limits:
        """The defaults, with the seconds for a cell taken from COURSE_CELL_SECONDS where that is set."""
        text = os.environ.get("COURSE_CELL_SECONDS", "")
        try:
            return cls(cell=float(text)) if text else cls()
        except ValueError:
            raise CourseError(
                f"COURSE_CELL_SECONDS is {text!r}: a number of seconds is needed"
            ) from None

    def as_dict(self) -> dict:
        """Plain data, for the warm process."""
        return asdict(self)


def apply_rlimits(limits: dict) -> None:
    """Set the resource limits of the calling process (POSIX)."""
    try:
        import resource
    except ImportError:  # Windows has no such limits; it has no sandbox either
        return
    used = _address_space()
    wanted = {
        "RLIMIT_AS": used + limits["memory"],
        "RLIMIT_CPU": limits["cpu"],
        "RLIMIT_FSIZE": limits["files"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
    for name, value in wanted.items():
        _lower(resource, name, int(value))


def limit_processes(limits: dict) -> None:
    """Bound processes and threads; counted per user id, so only where each notebook has its own."""
    import resource

    _lower(resource, "RLIMIT_NPROC", int(limits["processes"]))


def _lower(resource, name: str, value: int) -> None:
    number = getattr(resource, name, None)
    if number is None:
        return
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(number, (value, value))
    except (ValueError, OSError):  # macOS refuses some of them
        return


def _address_space() -> int:
    try:
        with open("/proc/self/statm") as handle:
            return int(handle.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 4096 * MB
