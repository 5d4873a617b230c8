"""One submission's folder as data, so that it can be graded on a machine that does not share our disk.

What is unpacked reads as the folder did: names, contents, times, and what is no ordinary file.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from autograder.ingest.decode import SIZE_LIMIT

MAX_BYTES = 128 * 2**20
MAX_ENTRIES = 2000


class Unsendable(Exception):
    """The folder is too large or can't be read; the text is a clause for people."""


@dataclass(frozen=True)
class Entry:
    """One path of a submission.

    Args:
        name: relative to the submission's folder.
        kind: `folder`, `file`, `large` (a file that nobody reads, only its size counts), `link`, or `other`.
        data: the content of a `file`.
        size: of a `large` file.
        modified: nanoseconds; among copies of a notebook the newest counts.
    """

    name: str
    kind: str
    data: bytes = b""
    size: int = 0
    modified: int = 0


Parcel = tuple[Entry, ...]


def pack(folder: Path) -> Parcel:
    """Read a submission's folder, following no link.

    Raises:
        Unsendable: if it holds more than the bounds, or something can't be read.
    """
    if folder.is_symlink():
        return (Entry(".", "link"),)
    packed: list[Entry] = []
    room = MAX_BYTES
    pending = [folder]
    try:
        while pending:
            for path in sorted(pending.pop().iterdir()):
                entry = _entry(path, str(path.relative_to(folder)), room)
                room -= len(entry.data)
                packed.append(entry)
                if len(packed) > MAX_ENTRIES:
                    raise Unsendable(f"it holds more than {MAX_ENTRIES} files")
                if entry.kind == "folder":
                    pending.append(path)
    except OSError as error:
        raise Unsendable(f"{error.filename} can't be read ({error.strerror})") from None
    return tuple(packed)


def _entry(path: Path, name: str, room: int) -> Entry:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Entry(name, "link")
    if stat.S_ISDIR(status.st_mode):
        return Entry(name, "folder")
    if not stat.S_ISREG(status.st_mode):
        return Entry(name, "other")
    if status.st_size > SIZE_LIMIT:
        return Entry(name, "large", size=status.st_size, modified=status.st_mtime_ns)
    if status.st_size > room:
        raise Unsendable(f"it holds more than {MAX_BYTES >> 20} MB")
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        data = file.read(SIZE_LIMIT)
    return Entry(name, "file", data, modified=status.st_mtime_ns)


def unpack(parcel: Parcel, folder: Path) -> None:
    """Make the folder again; `folder` must not exist."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if any(entry.name == "." for entry in parcel):
        folder.symlink_to("nowhere")
        return
    folder.mkdir()
    for entry in parcel:
        _make(entry, folder / entry.name)


def _make(entry: Entry, path: Path) -> None:
    if entry.kind == "folder":
        path.mkdir()
    elif entry.kind == "link":
        path.symlink_to("nowhere")  # it is never followed, so where it leads does not matter
    elif entry.kind == "other":
        os.mkfifo(path)
    else:
        path.write_bytes(entry.data)
        if entry.kind == "large":
            os.truncate(path, entry.size)  # sparse: takes no space
        os.utime(path, ns=(entry.modified, entry.modified))
