"""`collect`: reads what the LMS lets an instructor download into submitted/<student>/<assignment>/.

Whose file it is comes from what the LMS wrote (the outermost folder, or the beginning of the file's name)
and never from what a student could choose. docs/collect.md has the naming rules.
"""

from __future__ import annotations

import argparse
import filecmp
import io
import re
import shutil
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil import parser as dates

from autograder.course import Course, CourseError
from autograder.ingest import REFUSED, open_submission
from autograder.lms import archive, people, record
from autograder.lms.archive import Entry, Limits, Refused, shown
from autograder.lms.people import ClassList, Person

MOODLE = re.compile(r"_(\d+)_assignsubmission_([a-z]+)(?:_|$)")
CANVAS = re.compile(
    r"^(?P<name>[^/]*?)_(?P<late>LATE_)?(?P<user>\d+)_(?P<attempt>\d+)_(?P<file>.+)$"
)
STUDENT_FILES = 200
STUDENT_BYTES = 200 * 2**20
KINDS = ("auto", "moodle", "canvas", "folder")


@dataclass
class Sorted:
    """A download, sorted by whom the LMS says each file is from.

    Args:
        kind: `moodle`, `canvas` or `folder`.
        files: key (LMS number or folder name) -> (path inside, entry).
        refused: key -> what was refused of theirs, under the names that they gave.
        places: key -> names in the download.
        late: keys of those whom Canvas marked.
        strangers: files of nobody who is known, with the reason.
        notes: what was decided and may be of interest.
    """

    kind: str
    files: dict[str, list[tuple[tuple[str, ...], Entry]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    refused: dict[str, list[Refused]] = field(default_factory=lambda: defaultdict(list))
    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    late: set[str] = field(default_factory=set)
    strangers: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("assignment", help="the assignment that was handed in")
    parser.add_argument("download", type=Path, help="the zip from the LMS, or a folder")
    parser.add_argument(
        "--lms", choices=KINDS, default="auto", help="where it is from (default: seen)"
    )
    parser.add_argument(
        "--list",
        type=Path,
        metavar="CSV",
        help="Moodle's grading worksheet, Canvas's gradebook export, or a roster",
    )
    parser.add_argument(
        "--timezone", default="UTC", help="time zone of Moodle's dates, e.g. Europe/Berlin"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, write nothing"
    )
    parser.add_argument(
        "--new",
        action="store_true",
        help="plain folder: accept names that no roster and no gradebook has",
    )


def run(args: argparse.Namespace, course: Course) -> int:
    summary = collect(
        course,
        args.assignment,
        args.download,
        kind=args.lms,
        listed=args.list,
        zone=args.timezone,
        dry=args.dry_run,
        accept_new=args.new,
    )
    print("\n".join(summary.lines()))
    return 1 if summary.attention else 0


@dataclass
class Summary:
    """What `collect` did, for people and for tests."""

    assignment: str
    kind: str
    written: dict[str, str] = field(default_factory=dict)
    """student -> `new`, `changed` or `same`"""
    incomplete: dict[str, str] = field(default_factory=dict)
    no_notebook: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    strangers: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dry: bool = False

    @property
    def attention(self) -> bool:
        return bool(self.refused or self.strangers or self.no_notebook)

    def lines(self) -> list[str]:
        counts = {how: list(self.written.values()).count(how) for how in ("new", "changed", "same")}
        said = ", ".join(f"{n} {how}" for how, n in counts.items() if n) or "none"
        verb = "would be collected" if self.dry else "collected"
        lines = [f"{self.assignment}: {len(self.written)} submissions {verb} ({said})."]
        for title, names in (
            ("Handed in nothing", [(name, "") for name in self.missing]),
            ("Sent something that is no notebook", self.no_notebook.items()),
            ("Not all notebooks", self.incomplete.items()),
            ("Late, as the LMS says", [(name, "") for name in self.late]),
            ("Refused files", [(r.name, r.reason) for r in self.refused]),
            ("Files of nobody on the list", [(r.name, r.reason) for r in self.strangers]),
            ("Notes", [(note, "") for note in self.notes]),
        ):
            names = list(names)
            if names:
                lines.append(f"{title} ({len(names)}):")
                lines += [f"  {name}{': ' + text if text else ''}" for name, text in names]
        return lines


def collect(
    course: Course,
    assignment: str,
    download: Path,
    *,
    kind: str = "auto",
    listed: Path | None = None,
    zone: str = "UTC",
    dry: bool = False,
    accept_new: bool = False,
    limits: Limits | None = None,
) -> Summary:
    """Reads a download and writes each student's folder.

    Raises:
        CourseError: if the download or the list can't be read, or it can't be told who is who.
    """
    timezone_ = _zone(zone)
    if not any((folder / assignment).is_dir() for folder in (course.release, course.source)):
        raise CourseError(f"There is no assignment {assignment!r} in release/ or source/.")
    limits = limits or Limits()
    found = people.read_list(listed) if listed else None
    known = people.known_students(course)
    if found is not None:
        found = people.with_students(found, known)
    with archive.opened(download, limits) as (entries, refused):
        entries, refused = _unwrap(entries, refused)
        if kind == "auto":
            kind = _seen_kind(entries or [*map(_as_entry, refused)])
        sorted_ = _sort(entries, kind, found, known, accept_new)
        _sort_refused(sorted_, refused, found, known, accept_new)
        students = _students(sorted_, found, known, download)
        summary = Summary(assignment, sorted_.kind, dry=dry, refused=refused)
        summary.strangers, summary.notes = sorted_.strangers, sorted_.notes
        times = _times(found, timezone_, summary) if sorted_.kind == "moodle" else {}
        _recover(course, assignment)
        for key, files in sorted(sorted_.files.items()):
            student = students[key]
            summary.written[student] = _write(
                course,
                assignment,
                student,
                files,
                sorted_.refused[key],
                times.get(key),
                limits,
                summary,
            )
    _look_inside(course, summary)
    summary.late = sorted(students[key] for key in sorted_.late)
    summary.missing = _missing(found, known, set(summary.written))
    if not dry:
        if found is not None:
            people.enrol(course, found.people, found.kind)
        places = {students[key]: names for key, names in sorted_.places.items()}
        record.save(course, record.Record(assignment, found, places, summary.late))
    return summary


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CourseError(f"There is no time zone {name!r}; an example is Europe/Berlin.") from None


# --- whose file is it ----------------------------------------------------------------------------


def _unwrap(entries: list[Entry], refused: list[Refused]) -> tuple[list[Entry], list[Refused]]:
    """Without the one folder around everything that some programs add."""
    tops = {entry.parts[0] for entry in entries}
    if len(tops) != 1 or any(len(entry.parts) < 3 for entry in entries):
        return entries, refused
    top = next(iter(tops))
    if MOODLE.search(top) or CANVAS.match(top):
        return entries, refused
    inside = [Refused(r.name.removeprefix(f"{top}/"), r.reason) for r in refused]
    return [Entry(e.parts[1:], e.modified, e.open) for e in entries], inside


def _sort(
    entries: list[Entry],
    kind: str,
    found: ClassList | None,
    known: list[Person],
    accept_new: bool,
) -> Sorted:
    if kind == "moodle":
        return _sort_moodle(entries, found)
    if kind == "canvas":
        return _sort_canvas(entries, found)
    return _sort_folder(entries, found, known, accept_new)


def _seen_kind(entries: list[Entry]) -> str:
    tops = [entry.parts[0] for entry in entries]
    if tops and sum(bool(MOODLE.search(top)) for top in tops) * 2 > len(tops):
        return "moodle"
    flat = [entry.parts[0] for entry in entries if len(entry.parts) == 1]
    if flat and sum(bool(CANVAS.match(name)) for name in flat) * 2 > len(tops):
        return "canvas"
    return "folder"


def _as_entry(one: Refused) -> Entry:
    return Entry(tuple(one.name.split("/")), None, io.BytesIO)


def _sort_refused(
    sorted_: Sorted,
    refused: list[Refused],
    found: ClassList | None,
    known: list[Person],
    accept_new: bool,
) -> None:
    """Gives what was refused to whom it is from: who sent only that did hand something in."""
    entries = list(map(_as_entry, refused))
    reasons = {id(entry): one.reason for entry, one in zip(entries, refused, strict=True)}
    theirs = _sort(entries, sorted_.kind, found, known, accept_new)
    for key, files in theirs.files.items():
        sorted_.files.setdefault(key, [])
        sorted_.refused[key] = [
            Refused("/".join(inside), reasons[id(entry)]) for inside, entry in files
        ]
        sorted_.places[key] += [p for p in theirs.places[key] if p not in sorted_.places[key]]


def _plain_name(text: str) -> str:
    text = unicodedata.normalize("NFKD", text)
    return "".join(c for c in text.casefold() if c.isalnum())


def _sort_moodle(entries: list[Entry], found: ClassList | None) -> Sorted:
    result = Sorted("moodle")
    listed = {p.key: p for p in found.people} if found else {}
    for entry in entries:
        top = entry.parts[0]
        number, rest = _moodle_number(top, listed)
        if number is None:
            result.strangers.append(Refused(shown(entry.name), rest))
            continue
        inside = (rest, *entry.parts[1:]) if rest else entry.parts[1:]
        if not inside:
            result.strangers.append(Refused(shown(entry.name), "it has no name of its own"))
            continue
        result.files[number].append((inside, entry))
        if top not in result.places[number]:
            result.places[number].append(top)
    return result


def _moodle_number(top: str, listed: Mapping[str, Person]) -> tuple[str | None, str]:
    """The participant number in a name of Moodle's, and the file's own name after it; or why not.

    A student who can choose a profile name or a file name could put a second number there, so with more
    than one the full name before it has to be that of the list.
    """
    matches = list(MOODLE.finditer(top))
    if not matches:
        return None, "its name is not one that Moodle gives"
    if len(matches) > 1:
        matches = [
            m
            for m in matches
            if m[1] in listed and _plain_name(listed[m[1]].full) == _plain_name(top[: m.start()])
        ]
        if len(matches) != 1:
            return (
                None,
                "its name holds several participant numbers, and it can't be told whose it is",
            )
    match = matches[0]
    if listed and match[1] not in listed:
        return None, f"participant {match[1]} is not on the list"
    return match[1], top[match.end() :]


def _sort_canvas(entries: list[Entry], found: ClassList | None) -> Sorted:
    result = Sorted("canvas")
    listed = {p.key for p in found.people} if found else set()
    for entry in entries:
        match = CANVAS.match(entry.parts[0])
        if not match:
            result.strangers.append(
                Refused(shown(entry.name), "its name is not one that Canvas gives")
            )
            continue
        user = match["user"]
        if listed and user not in listed:
            result.strangers.append(Refused(shown(entry.name), f"user {user} is not on the list"))
            continue
        result.files[user].append(((match["file"], *entry.parts[1:]), entry))
        result.places[user].append(entry.parts[0])
        if match["late"]:
            result.late.add(user)
    return result


def _sort_folder(
    entries: list[Entry], found: ClassList | None, known: list[Person], accept_new: bool
) -> Sorted:
    """`<student>/...` or `<student>_<anything>.ipynb` (also `<student>.ipynb`), by exact id."""
    result = Sorted("folder")
    ids = {p.student for p in known} | ({p.student for p in found.people} if found else set())
    for entry in entries:
        top = entry.parts[0]
        if len(entry.parts) > 1:
            student, inside = top, entry.parts[1:]
        else:
            student, inside = _prefix(top, ids, accept_new), (top,)
        if not people.SAFE_ID.match(student) or (student not in ids and not accept_new):
            reason = "no student has that id"
            if len(entry.parts) == 1:
                reason = "its name does not begin with a student's id and an underscore"
            elif not people.SAFE_ID.match(student):
                reason = "its folder's name can't be a student's id"
            result.strangers.append(Refused(shown(entry.name), reason))
            continue
        result.files[student].append((inside, entry))
        if top not in result.places[student]:
            result.places[student].append(top)
    return result


def _prefix(name: str, ids: set[str], accept_new: bool) -> str:
    """The longest id with which the name begins; ids may have underscores themselves."""
    stem = re.sub(r"\.ipynb$", "", name, flags=re.IGNORECASE)
    fitting = [i for i in ids if stem == i or stem.startswith(f"{i}_")]
    if fitting:
        return max(fitting, key=len)
    return stem.partition("_")[0] if accept_new else ""


def _students(
    sorted_: Sorted, found: ClassList | None, known: list[Person], download: Path
) -> dict[str, str]:
    if sorted_.kind == "folder":
        return {key: key for key in sorted_.files}
    if found is not None:
        if found.kind != sorted_.kind:
            raise CourseError(
                f"{download} is a download of {sorted_.kind.title()}, but the list is from "
                f"{found.kind.title()}."
            )
        return {p.key: p.student for p in found.people}
    if sorted_.kind == "moodle":
        raise CourseError(
            "Names in Moodle are not unique: give the grading worksheet with --list (in Moodle: Submissions, "
            "Grading action, Download grading worksheet)."
        )
    numbers = {p.key: p.student for p in known if p.key}
    return {key: numbers.get(key, f"canvas-{key}") for key in sorted_.files}


def _missing(found: ClassList | None, known: Iterable[Person], here: set[str]) -> list[str]:
    everybody = found.people if found is not None else known
    return sorted(
        f"{p.student} ({p.full})" if p.full else p.student
        for p in everybody
        if p.student not in here
    )


def _times(found: ClassList, zone: ZoneInfo, summary: Summary) -> dict[str, datetime]:
    times: dict[str, datetime] = {}
    unread = 0
    for person in found.people if found else ():
        text = person.submitted.strip()
        if text in ("", "-"):
            continue
        try:
            time = dates.parse(text)
        except (ValueError, OverflowError):
            unread += 1
            continue
        if time.tzinfo is None:
            time = time.replace(tzinfo=zone)
        times[person.key] = time.astimezone(timezone.utc)
    if unread:
        summary.notes.append(
            f"{unread} times of submission could not be read; nobody of these is counted as late."
        )
    return times


# --- writing -------------------------------------------------------------------------------------


def _target(course: Course, assignment: str, student: str) -> Path:
    if not people.SAFE_ID.match(student) or not people.SAFE_ID.match(assignment):
        raise CourseError(f"{student!r} or {assignment!r} can't be the name of a folder.")
    return course.submitted / student / assignment


def _write(
    course: Course,
    assignment: str,
    student: str,
    files: list[tuple[tuple[str, ...], Entry]],
    refused: list[Refused],
    time: datetime | None,
    limits: Limits,
    summary: Summary,
) -> str:
    """Writes one student's files in one move; tells whether they are new, changed or the same."""
    target = _target(course, assignment, student)
    staging = course.submitted / ".lms" / "incoming" / student
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        _fill(staging, student, files, refused, limits, summary)
        if time is not None:
            text = time.strftime("%Y-%m-%d %H:%M:%S UTC")
            (staging / "timestamp.txt").write_text(f"{text}\n", encoding="utf-8")
        if target.is_symlink():
            raise CourseError(f"{target} is a symbolic link; remove it, then collect again.")
        how = "same" if target.is_dir() and _equal(staging, target) else "changed"
        if not target.exists():
            how = "new"
        if how != "same" and not summary.dry:
            _swap(course, assignment, student, staging, target)
        return how
    except OSError as error:
        raise CourseError(f"{target} can't be written ({error.strerror}).") from None
    finally:
        shutil.rmtree(staging.parent, ignore_errors=True)


def _fill(
    staging: Path,
    student: str,
    files: list[tuple[tuple[str, ...], Entry]],
    refused: list[Refused],
    limits: Limits,
    summary: Summary,
) -> None:
    refused = list(refused)

    def turn_down(name: str, inside: tuple[str, ...], reason: str) -> None:
        summary.refused.append(Refused(name, reason))
        refused.append(Refused("/".join(inside), reason))

    total = 0
    taken: set[str] = set()
    notebooks = 0
    for number, (inside, entry) in enumerate(files):
        if number >= STUDENT_FILES:
            turn_down(student, inside, f"more than {STUDENT_FILES} files; the rest was left out")
            break
        path = _free(staging, inside, taken)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            total += archive.copy(entry, path, min(limits.file_bytes, STUDENT_BYTES - total))
        except archive.TooLarge:
            path.unlink(missing_ok=True)
            reason = "it unpacks to more than it says, or all files together are over 200 MB"
            turn_down(shown(entry.name), inside, reason)
        except archive.DAMAGED as error:
            path.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno == 28:
                raise
            turn_down(shown(entry.name), inside, "it is damaged in the download")
        else:
            notebooks += ".ipynb" in path.name.lower()
    if refused:
        lines = (f"{shown(one.name)}\t{one.reason}\n" for one in refused)
        (staging / REFUSED).write_text("".join(lines), encoding="utf-8")
    if not notebooks:
        names = [*("/".join(inside) for inside, _ in files), *(one.name for one in refused)]
        summary.no_notebook[student] = ", ".join(map(shown, dict.fromkeys(names[:3])))


def _free(staging: Path, inside: tuple[str, ...], taken: set[str]) -> Path:
    """A path below `staging` that no other file has; equal names get a number, as browsers do it."""
    parts = [_component(part) for part in inside]
    stem, dot, ending = parts[-1].rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (parts[-1], "")
    number = 1
    path = "/".join(parts)
    while path.casefold() in taken or path.casefold() in ("timestamp.txt", REFUSED):
        number += 1
        path = "/".join([*parts[:-1], f"{stem} ({number}){ending}"])
    taken.add(path.casefold())
    return staging / path


def _component(part: str) -> str:
    """A name that every file system takes, at most 120 characters of it."""
    text = re.sub(r'[<>:"|?*\x00-\x1f\x7f]', "_", part).strip().rstrip(".") or "_"
    if len(text.encode()) > 200:
        stem, dot, ending = text.rpartition(".")
        text = f"{stem.encode()[:150].decode(errors='ignore')}{dot}{ending[:20]}"
    return text


def _equal(one: Path, other: Path) -> bool:
    here = {p.relative_to(one) for p in one.rglob("*") if p.is_file()}
    there = {p.relative_to(other) for p in other.rglob("*") if p.is_file()}
    if here != there:
        return False
    return all(filecmp.cmp(one / p, other / p, shallow=False) for p in here)


def _swap(course: Course, assignment: str, student: str, staging: Path, target: Path) -> None:
    """Puts the new folder in the old one's place; after a crash `_recover` finds the old one."""
    old = course.submitted / ".lms" / "replaced" / student / assignment
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        old.parent.mkdir(parents=True, exist_ok=True)
        target.replace(old)
    try:
        staging.replace(target)
    except OSError:
        if old.exists():
            old.replace(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _recover(course: Course, assignment: str) -> None:
    """Puts back what a run that was stopped in the middle of a move had set aside."""
    aside = course.submitted / ".lms" / "replaced"
    for old in aside.glob(f"*/{assignment}"):
        target = course.submitted / old.parent.name / assignment
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            old.replace(target)
    shutil.rmtree(aside, ignore_errors=True)


def _look_inside(course: Course, summary: Summary) -> None:
    """Tells who has not all notebooks, and which copy counts, if the release is there to compare with."""
    release = course.release / summary.assignment
    names = sorted(path.stem for path in release.glob("*.ipynb"))
    if not names or summary.dry:
        return
    for student in summary.written:
        found = open_submission(course.submitted / student / summary.assignment, release, names)
        items = found.notebooks.values()
        wrong = [f"{item.name}: {item.problem}" for item in items if item.problem]
        if len(wrong) == len(names) and student not in summary.no_notebook:
            summary.no_notebook[student] = wrong[0]
        elif wrong and student not in summary.no_notebook:
            summary.incomplete[student] = " ".join(wrong)
        # What was refused is listed already.
        told = [note for note in found.notes if "was refused when it was collected" not in note]
        summary.notes += [f"{student}: {note}" for note in told]
