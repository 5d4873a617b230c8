"""The course's commands: `python -m autograder COMMAND ...` (see `--help`)."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from autograder import fast_start  # noqa: F401  before all that reads notebooks
from autograder.configuration import open_course
from autograder.course import CourseError

COMMANDS = {
    "release": ("autograder.release", "build release/ from source/ with nbgrader"),
    "sync": ("autograder.sync", "write points, docstrings and titles from the task definitions"),
    "check-notebooks": ("autograder.notebook_check", "check the notebooks in source/ and release/"),
    "collect": ("autograder.lms.collect", "read an LMS download into submitted/"),
    "roster": ("autograder.lms.roster", "put a list of students into the gradebook"),
    "grade": ("autograder.grade.command", "grade all that is under submitted/"),
    "explain": ("autograder.grade.explain", "replay one verdict, for an appeal"),
    "feedback": ("autograder.feedback.command", "write the feedback pages"),
    "report": ("autograder.report.command", "write the report on the class"),
    "lms-export": ("autograder.lms.command", "write grade files and feedback zips for the LMS"),
    "check-grader": ("autograder.check_grader", "grade the grader"),
    "publish": ("autograder.publish", "write the repository that students get"),
    "site": ("autograder.site", "write the static site of the lessons"),
    "demo": ("autograder.demo", "an invented class, from release to report"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; a foreseeable mistake prints one line and returns 2."""
    argv = sys.argv[1:] if argv is None else argv
    # nbgrader starts `alembic` through PATH, also where this environment was not activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    parser = argparse.ArgumentParser(prog="python -m autograder", description=__doc__)
    parser.add_argument(
        "--root", type=Path, default=Path.cwd(), help="the course folder (default: this one)"
    )
    parser.add_argument(
        "--db", default=os.environ.get("COURSE_DB_URL"), help="gradebook URL (default: SQLite)"
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    values = {i + 1 for i, word in enumerate(argv) if word in ("--root", "--db")}
    wanted = next((w for i, w in enumerate(argv) if w in COMMANDS and i not in values), None)
    for name, (module, summary) in COMMANDS.items():
        sub = subparsers.add_parser(name, help=summary, description=summary)
        if name == wanted:
            importlib.import_module(module).configure(sub)
    args = parser.parse_args(argv)
    try:
        course = open_course(args.root, args.db)
        return importlib.import_module(COMMANDS[args.command][0]).run(args, course)
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped: what was finished is kept; run the same command to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
