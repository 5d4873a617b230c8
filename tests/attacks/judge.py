"""A class of attackers, graded by the real command, and what is looked at afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import numpy

from autograder import classroom
from autograder.configuration import open_course
from autograder.execute.sandbox import FIRST_UID, UIDS
from tests.conftest import ROOT, Scratch

from .bank import Attack, attacks

ASSIGNMENT = "w07-h2-attention"
NOTEBOOK = "1-scores-and-context"
GRADE = "weights-sum-to-one"
ANSWER = "softmax"
WRONG = "def softmax(z):\n    return np.exp(z - z.max(axis=-1, keepdims=True))  # not divided by the sum\n"
CELL_SECONDS = "5"
OTHERS = ("peer", "zz-right", "zz-wrong")
STOPPED = {"DeadKernel", "KeyboardInterrupt", "MemoryError"}


@dataclass
class Verdicts:
    """What the judge found: `found[attack]` are the ways in which it succeeded; `general` concerns all.

    `became[attack]` says what happened to it, and `honest[student]` whether one of the others kept the points.
    """

    scores: dict[str, float | None] = field(default_factory=dict)
    control: float = 0.0
    found: dict[str, list[str]] = field(default_factory=dict)
    became: dict[str, str] = field(default_factory=dict)
    honest: dict[str, bool] = field(default_factory=dict)
    general: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Listener:
    """Hears whoever reaches this machine by TCP, UDP or an abstract socket, and keeps what it said."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(f"\0judge-{self.port}")
        self.unix.listen()
        for line in (self.tcp, self.unix):
            threading.Thread(target=self._accept, args=(line,), daemon=True).start()
        threading.Thread(target=self._datagrams, daemon=True).start()

    def _accept(self, line) -> None:
        while True:
            try:
                connection, _ = line.accept()
                connection.settimeout(2)
                self.heard.append(connection.recv(1000).decode("utf-8", "replace"))
                connection.close()
            except TimeoutError:
                self.heard.append("a silent connection")
            except OSError:
                return

    def _datagrams(self) -> None:
        while True:
            try:
                self.heard.append(self.udp.recv(1000).decode("utf-8", "replace"))
            except OSError:
                return

    def close(self) -> None:
        for line in (self.tcp, self.udp, self.unix):
            line.close()


class Class:
    """The scratch course with its attackers, its secrets and its listener."""

    def __init__(self, folder: Path, chosen: list[Attack] | None = None) -> None:
        self.scratch = Scratch(folder)
        self.attacks = attacks() if chosen is None else chosen
        self.listener = Listener()
        self.secrets = {
            name: f"SECRET-{name}-{secrets.token_hex(8)}"
            for name in ("ROOT", "SOURCE", "PEER", "BOOK", "ENV")
        }
        self.environment = os.environ | {
            "COURSE_SECRET": self.secrets["ENV"],
            "COURSE_CELL_SECONDS": CELL_SECONDS,
        }
        self._plant()
        self._hand_in()

    def mark(self, attack: Attack) -> str:
        """The word by which an attack's traces are recognised."""
        return f"pwned-{attack.name}"

    def boast(self, attack: Attack) -> str:
        """The word that an attack prints when it got what it must not get."""
        return f"won-{attack.name}"

    # ------------------------------------------------------------------------ building the class

    def _plant(self) -> None:
        root = self.scratch.root
        (root / "secret.txt").write_text(self.secrets["ROOT"])
        path = root / "source" / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        notebook.metadata["secret"] = self.secrets["SOURCE"]
        nbformat.write(notebook, path)

    def right(self) -> nbformat.NotebookNode:
        """A diligent student's notebook."""
        course = open_course(self.scratch.root, None)
        notebook = classroom.diligent(course, ASSIGNMENT)[NOTEBOOK]
        # What is drawn does not matter here, and takes most of the time.
        for cell in notebook.cells:
            if cell.cell_type == "code" and not cell.metadata.get("nbgrader", {}).get("locked"):
                lines = cell.source.splitlines()
                cell.source = "\n".join(
                    x for x in lines if not x.startswith(("lab.bars", "lab.arrows"))
                )
        return notebook

    def wrong(self) -> nbformat.NotebookNode:
        """The control: the same with a wrong softmax."""
        notebook = self.right()
        self.answer(notebook).source = WRONG
        return notebook

    def answer(self, notebook):
        """The cell with the answer."""
        return next(c for c in notebook.cells if c.id == ANSWER)

    def attacked(self, attack: Attack) -> nbformat.NotebookNode:
        """The control with the attack's cell in it."""
        notebook = self.wrong()
        code = self.words(attack.code, attack)
        if code:
            cell = nbformat.v4.new_code_cell(code, id=f"attack-{attack.name}"[:60])
            ids = [c.id for c in notebook.cells]
            if attack.place == "check":
                notebook.cells[ids.index(GRADE)].source = code
            else:
                positions = {"first": 0, "after": ids.index(ANSWER) + 1, "last": len(ids)}
                notebook.cells.insert(positions[attack.place], cell)
        if attack.edit:
            attack.edit(notebook)
        return notebook

    def replacements(self, attack: Attack) -> dict[str, str]:
        return {
            "ROOT": str(self.scratch.root),
            "PEER": str(self.scratch.root / "submitted" / "peer" / ASSIGNMENT),
            "MARK": self.mark(attack),
            "WIN": self.boast(attack),
            "PORT": str(self.listener.port),
            "PID": str(os.getpid()),
            "GRADE": GRADE,
        }

    def words(self, text: str, attack: Attack) -> str:
        for name, value in self.replacements(attack).items():
            text = text.replace(f"${name}", value)
        return text

    def _hand_in(self) -> None:
        peer = self.right()
        peer.cells.append(nbformat.v4.new_markdown_cell(self.secrets["PEER"], id="note"))
        for student, notebook in zip(OTHERS, (peer, self.right(), self.wrong()), strict=True):
            self.scratch.hand_in(student, ASSIGNMENT, {NOTEBOOK: notebook})

    def let_the_attackers_in(self) -> None:
        for attack in self.attacks:
            folder = self.scratch.hand_in(
                attack.name, ASSIGNMENT, {NOTEBOOK: self.attacked(attack)}
            )
            if attack.files:
                attack.files(folder, self.replacements(attack))

    # ------------------------------------------------------------------------------- grading it

    def grade(self, *words: str) -> subprocess.CompletedProcess:
        """The real command, as an instructor runs it."""
        command = [sys.executable, "-m", "autograder", "--root", str(self.scratch.root)]
        return subprocess.run(
            [*command, "grade", ASSIGNMENT, "--quiet", *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self) -> Verdicts:
        """Grade peer and controls alone, then everybody, and judge."""
        verdicts = Verdicts()
        first = self.grade()
        if first.returncode != 0:
            raise AssertionError(first.stderr)
        before = {name: self.entry(name)["score"] for name in OTHERS}
        verdicts.control = before["zz-wrong"]
        with sqlite3.connect(self.scratch.root / "gradebook.db") as book:
            book.execute(
                "update student set first_name = ? where id = 'peer'", [self.secrets["BOOK"]]
            )
        for name in OTHERS[1:]:  # these are graded once more, among the attackers
            (self.scratch.root / "submitted" / name / ASSIGNMENT / "again.txt").write_text("x")
        self.let_the_attackers_in()
        files = self.fingerprint()
        started = time.monotonic()
        done = self.grade()
        verdicts.seconds = time.monotonic() - started
        time.sleep(1.5)  # whatever survived gets the time to show itself
        if done.returncode not in (0, 1):
            verdicts.general.append(f"grading ended with {done.returncode}: {done.stderr[-2000:]}")
            return verdicts
        for attack in self.attacks:
            verdicts.scores[attack.name] = self.entry(attack.name).get("score")
            verdicts.found[attack.name] = self.judge(attack, verdicts.control)
            verdicts.became[attack.name] = self.became(attack, verdicts.control)
        verdicts.honest = {name: self.entry(name).get("score") == before[name] for name in OTHERS}
        verdicts.general += self.judge_all(before, files)
        return verdicts

    def entry(self, student: str) -> dict:
        return self.scratch.results(ASSIGNMENT)["students"].get(student, {})

    # -------------------------------------------------------------------------------- judging it

    def judge(self, attack: Attack, control: float) -> list[str]:
        """How one attack succeeded; an empty list if it did not."""
        entry, mark, found = self.entry(attack.name), self.mark(attack), []
        score = entry.get("score")
        if not entry:
            found.append("it is not in the results")
        if score is not None and score > control:
            found.append(f"it earned {score:g}, its control {control:g}")
        shown = self.shown(attack.name)
        found += [
            f"it read the secret {name}" for name, text in self.secrets.items() if text in shown
        ]
        if self.boast(attack) in shown:
            found.append("its output says that it reached what it must not")
        if self.boast(attack) in json.dumps(entry):
            found.append("its text is in the results")
        if any(mark in text for text in self.listener.heard):
            found.append("it was heard on the network")
        found += [f"it wrote {path}" for path in self.traces(mark)]
        found += [f"its process {pid} survives" for pid in processes(mark)]
        return found

    def became(self, attack: Attack, control: float) -> str:
        """What happened to an attack, in words that are the same in every run."""
        entry = self.entry(attack.name)
        if entry.get("score") is None:
            reason = entry.get("reason", "not in the results").removeprefix(f"{NOTEBOOK}: ")
            return f"refused: {self.plain(reason, attack)}"
        told = [text.removeprefix(f"{NOTEBOOK}: ") for text in entry["repairs"]]
        if told:
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            return f"repaired: {self.plain(told[0], attack)}{more}; {self.points(entry, control)}"
        errors = self.errors(attack)
        if STOPPED & set(errors) or any("stopped Python" in text for text in entry["notes"]):
            # Which limit it met first, and what was run by then, is a matter of chance.
            return "contained: its cell was stopped; no more points than its control"
        notes = [self.plain(text, attack) for text in entry["notes"] if attack.files]
        if notes and not errors:
            more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
            return f"left out: {notes[0]}{more}; {self.points(entry, control)}"
        how = f"its cell ended with {errors[0]}" if errors else "it ran, to no effect"
        return f"contained: {how}; {self.points(entry, control)}"

    def points(self, entry: dict, control: float) -> str:
        score = entry["score"]
        same = "as" if score == control else "less than" if score < control else "MORE than"
        return f"{score:g} points, {same} its control"

    def plain(self, text: str, attack: Attack) -> str:
        """A sentence of the results without what differs from run to run."""
        for word in (str(self.scratch.root), str(self.listener.port)):
            text = text.replace(word, "...")
        return text.rstrip(".")

    def errors(self, attack: Attack) -> list[str]:
        """Names of the errors in which the attack's cell ended, or any cell if it has none of its own."""
        path = self.scratch.root / "autograded" / attack.name / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
        cells = nbformat.read(path, as_version=4).cells if path.exists() else []
        own = [c for c in cells if c.id == f"attack-{attack.name}"[:60]]
        dead = [c for c in cells if not c.metadata.get("nbgrader", {}).get("grade")]
        names = [
            output.ename
            for cell in own or dead
            for output in cell.get("outputs", [])
            if output.output_type == "error"
        ]
        return [name for name in names if own or name in STOPPED]

    def shown(self, student: str) -> str:
        """All that the cells printed and showed (not tracebacks, which quote the attack's own lines)."""
        texts = []
        for path in (self.scratch.root / "autograded" / student).rglob("*.ipynb"):
            for cell in nbformat.read(path, as_version=4).cells:
                for output in cell.get("outputs", []):
                    texts.append(output.get("text", ""))
                    texts.append(json.dumps(output.get("data", "")))
        for path in (self.scratch.root / "feedback" / student).rglob("*.html"):
            texts.append(path.read_text(encoding="utf-8"))
        return "\n".join(texts)

    def traces(self, mark: str) -> list[str]:
        """Files named after the attack where it must not write."""
        site = Path(numpy.__file__).parents[1]
        places = {
            self.scratch.root: 6,
            ROOT / "autograder": 2,
            site: 1,
            Path(os.__file__).parent: 1,
            Path.home(): 4,
            Path("/tmp"): 1,
            Path("/dev/shm"): 1,
            Path("/var/tmp"): 1,
            Path("/run"): 1,
            Path("/"): 1,
        }
        own = self.scratch.root / "submitted" / mark.removeprefix("pwned-")
        return [
            str(path)
            for place, depth in places.items()
            for path in walk(place, depth)
            if mark in path.name and own not in path.parents
        ]

    def fingerprint(self) -> dict[str, str]:
        """Digests of what grading must leave alone."""
        root = self.scratch.root
        paths = [root / "nbgrader_config.py", root / "attention_lab.py", root / "secret.txt"]
        for folder in ("source", "release", "submitted"):
            paths += sorted((root / folder).rglob("*"))
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in paths
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**30
        }

    def judge_all(self, before: dict[str, float], files: dict[str, str]) -> list[str]:
        """What concerns the class as a whole."""
        found = []
        after = {name: self.entry(name).get("score") for name in before}
        if after != before:
            found.append(f"the others' scores were {before} and are {after}")
        now = self.fingerprint()
        changed = [p for p in files.keys() | now.keys() if files.get(p) != now.get(p)]
        found += [f"{path} was changed" for path in changed]
        with sqlite3.connect(self.scratch.root / "gradebook.db") as book:
            students = {row[0] for row in book.execute("select id from student")}
            extra = book.execute("select count(*) from grade where extra_credit > 0").fetchone()[0]
        strangers = students - {attack.name for attack in self.attacks} - set(OTHERS)
        if strangers or extra:
            found.append(f"the gradebook has {sorted(strangers)} and {extra} extra credits")
        if self.listener.heard:
            found.append(f"heard on the network: {self.listener.heard}")
        found += [f"the process {pid} of a sandbox survives" for pid in processes(None)]
        return found

    def close(self) -> None:
        """Remove what was made."""
        self.listener.close()
        shutil.rmtree(self.scratch.root, ignore_errors=True)


def walk(place: Path, depth: int) -> list[Path]:
    """Paths below a folder, down to a depth; links are not followed."""
    try:
        entries = list(os.scandir(place))
    except OSError:
        return []
    paths = [Path(entry.path) for entry in entries]
    if depth > 1:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                paths += walk(Path(entry.path), depth - 1)
    return paths


def processes(mark: str | None) -> list[str]:
    """Processes with a mark in their command line; None: those with a sandbox's user id."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark is None:
                owner = os.stat(f"/proc/{pid}").st_uid
                if FIRST_UID <= owner < FIRST_UID + UIDS and _parentless(pid):
                    found.append(pid)
            elif mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def _parentless(pid: str) -> bool:
    """Whether a sandbox's process has lost the warm process that it belongs to."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    parent = fields[1]
    if parent in ("0", "1"):
        return True
    command = Path(f"/proc/{parent}/cmdline").read_bytes()
    owner = os.stat(f"/proc/{parent}").st_uid
    return b"autograder.execute" not in command and not FIRST_UID <= owner < FIRST_UID + UIDS
