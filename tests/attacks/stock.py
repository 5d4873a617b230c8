"""`python -m tests.attacks.stock`: run the attacks against stock nbgrader, and write down what succeeds.

Run it on a machine that can be thrown away: what the attacks leave in home folders, in /etc and in
site-packages is not all removed.
Some attacks are meant to destroy, so that each runs in PID, mount, network and IPC namespaces of its own, as
root (`unshare`), one student at a time; those that would take down the machine all the same are not run. It takes
minutes, and is no part of the tests: the table that it writes is `docs/attacks-on-stock.md`. With `--notes` nothing is
run: the table's notes on the attacks that did not succeed are written anew from the bank.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from .bank import Attack, attacks
from .judge import ASSIGNMENT, GRADE, NOTEBOOK, ROOT, Class, processes

NOT_RUN = {
    "fork-bomb": "not run: it takes the machine",
    "memory-bomb": "not run: it takes the machine",
    "thread-bomb": "not run: it takes the machine",
    "disk-fill": "not run: it fills the disk",
    "kill-everything": "not run: it ends the test as well",
    "message-flood": "there is no such message line; ends at the time limit",
    "read-everything": "not run: it reads the whole disk",
    "huge-files": "not run: it copies forty gigabytes",
    "named-pipes": "not run: it waits for ever",
    "device-files": "not run: it copies an endless device",
}
LIMIT = 90  # seconds for one student


def prepare(folder: Path) -> Class:
    """A course whose source is our release, released by stock nbgrader; a copy of it stands beside it."""
    (folder / "course").mkdir()
    chosen = Class(folder / "course")
    root = chosen.scratch.root
    shutil.rmtree(root / "source")
    shutil.copytree(root / "release", root / "source")
    shutil.rmtree(root / "release")
    _plant(root, chosen)
    (root / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'x'\nc.ExecutePreprocessor.timeout = 15\n"
    )
    _nbgrader(root, chosen, "generate_assignment", ASSIGNMENT)
    with sqlite3.connect(root / "gradebook.db") as book:
        book.execute(
            "insert into student (id, first_name) values ('peer', ?)", [chosen.secrets["BOOK"]]
        )
    shutil.copytree(root, folder / "pristine", symlinks=True)
    return chosen


def grade(attack: Attack | None, chosen: Class) -> tuple[float | None, list[str]]:
    """Grade the control (None) or one attacker with stock nbgrader; the score and the signs of success."""
    root, student = chosen.scratch.root, "zz-wrong" if attack is None else attack.name
    shutil.rmtree(root)
    shutil.copytree(root.parent / "pristine", root, symlinks=True)
    chosen.listener.heard.clear()
    if attack is not None:
        folder = chosen.scratch.hand_in(
            attack.name, ASSIGNMENT, {NOTEBOOK: chosen.attacked(attack)}
        )
        if attack.files:
            attack.files(folder, chosen.replacements(attack))
    before = chosen.fingerprint()
    ended = _nbgrader(root, chosen, "autograde", ASSIGNMENT, "--student", student)
    if attack is None:
        return _score(root, student), []
    time.sleep(1)
    return _score(root, student), _signs(attack, chosen, before) + ([ended] if ended else [])


def _signs(attack: Attack, chosen: Class, before: dict[str, str]) -> list[str]:
    shown, found = chosen.shown(attack.name), []
    found += [f"read {name.lower()}" for name, text in chosen.secrets.items() if text in shown]
    if chosen.boast(attack) in shown:
        found.append("got what it went for")
    traces = chosen.traces(chosen.mark(attack))
    if traces:
        found.append("wrote outside its folder")
    for path in traces:
        if chosen.scratch.root not in Path(path).parents:
            Path(path).unlink(missing_ok=True)
    after = chosen.fingerprint()
    if any(before[path] != after.get(path) for path in before):
        found.append("changed the course")
    with sqlite3.connect(chosen.scratch.root / "gradebook.db") as book:
        if book.execute("select 1 from student where id like 'pwned%'").fetchone():
            found.append("changed the gradebook")
    if chosen.listener.heard:
        found.append("reached the network")
    survivors = processes(chosen.mark(attack))
    if survivors:
        found.append("outlived its notebook")
    return found


def _plant(root: Path, chosen: Class) -> None:
    path = root / "source" / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["secret"] = chosen.secrets["SOURCE"]
    nbformat.write(notebook, path)


def _nbgrader(root: Path, chosen: Class, *words: str) -> str:
    """Run nbgrader in namespaces that keep the damage in; the network stays, for the listener to hear."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--ipc", "--kill-child"]
    command += [str(Path(sys.executable).parent / "nbgrader"), *words]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = root / "home"
    home.mkdir(exist_ok=True)
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=chosen.environment | {"PATH": path, "HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "stopped the grading"
    return "" if done.returncode in (0, 1) else "ended the grading"


def _score(root: Path, student: str) -> float | None:
    query = """
        select sum(coalesce(grade.manual_score, grade.auto_score, 0)) from grade
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        where submitted_assignment.student_id = ?"""
    with sqlite3.connect(root / "gradebook.db") as book:
        return book.execute(query, [student]).fetchone()[0]


def recorded(page: str) -> dict[str, tuple[str, str]]:
    """`(succeeds, how or why not)` of each attack in the table that was written."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 5 and cells[3] in ("yes", "no"):
            found[cells[1]] = (cells[3], cells[4])
    return found


def why_not(attack: Attack) -> str:
    """Why it does not succeed against stock nbgrader, or was not run."""
    return NOT_RUN.get(attack.name) or attack.stock


def with_notes(page: str) -> str:
    """The page, with the bank's texts in the rows of attacks that did not succeed."""
    results = recorded(page)
    rows = []
    for attack in attacks():
        if attack.name in results:
            succeeds, said = results[attack.name]
            said = said if succeeds == "yes" else why_not(attack)
            rows.append(f"| {attack.kind} | {attack.name} | {attack.aim} | {succeeds} | {said} |")
    head = page[: page.index("|---|")].rstrip("\n")
    return "\n".join([head, "|---|---|---|---|---|", *rows, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.stock", description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks (default: all)")
    parser.add_argument("--notes", action="store_true", help="run nothing; renew the notes")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "attacks-on-stock.md")
    args = parser.parse_args()
    if args.notes:
        args.output.write_text(with_notes(args.output.read_text("utf-8")), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory(prefix="stock-") as folder:
        chosen = prepare(Path(folder))
        control, _ = grade(None, chosen)
        rows, succeeded = [], 0
        for attack in attacks():
            if args.names and attack.name not in args.names:
                continue
            if attack.name in NOT_RUN:
                score, found = None, []
                said = NOT_RUN[attack.name]
            else:
                score, found = grade(attack, chosen)
                if score is not None and control is not None and score > control:
                    found.insert(0, f"earned {score:g}")
                said = ", ".join(found) or attack.stock or "no success here"
            succeeded += bool(found)
            rows.append((attack.kind, attack.name, attack.aim, "yes" if found else "no", said))
            print(*rows[-1], sep=" | ", flush=True)
    run = sum(row[1] not in NOT_RUN for row in rows)
    lines = [
        "# The attacks against stock nbgrader",
        "",
        f"Made by `python -m tests.attacks.stock` with stock nbgrader (as root, no container): {succeeded} of the "
        f"{run} attacks that were run succeed. The control, an honest wrong answer, earns {control:g} there. "
        "Against this course's grader none succeeds (`make check-attacks`).",
        "",
        f"Success on `{GRADE}` means that the attack earned more than its control.",
        "",
        "| kind | attack | what it does | succeeds | how, or why not |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    args.output.write_text("\n".join(lines))
    chosen.listener.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
