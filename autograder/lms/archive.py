"""The files of a download, from a zip or an unpacked folder, with everything dangerous refused.

Names and sizes in a zip are claims of whoever made it: they are checked before anything is read,
and reading stops at the limit whatever was claimed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from autograder.course import CourseError

CHUNK = 64 * 1024
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst", ".jar")
_HIDDEN = {"__macosx", ".ds_store", "thumbs.db", "desktop.ini", ".ipynb_checkpoints", "__pycache__"}


@dataclass(frozen=True)
class Limits:
    """What a download may hold. A class of 1,000 with 50 MB each is far beyond what is usual."""

    entries: int = 50_000
    file_bytes: int = 50 * 2**20
    total_bytes: int = 8 * 2**30
    depth: int = 10
    name: int = 400
    ratio: int = 300
    """A member that unpacks to more than this many times its size, and over 1 MB, is a zip bomb."""


@dataclass(frozen=True)
class Entry:
    """One file: its cleaned path, when it was changed (seconds, local time), and how to read it."""

    parts: tuple[str, ...]
    modified: float | None
    open: Callable[[], BinaryIO]

    @property
    def name(self) -> str:
        return "/".join(self.parts)


@dataclass(frozen=True)
class Refused:
    """A file that is not taken, and why."""

    name: str
    reason: str


class TooLarge(Exception):
    """Reading went beyond the limit."""


@contextlib.contextmanager
def opened(path: Path, limits: Limits) -> Iterator[tuple[list[Entry], list[Refused]]]:
    """The entries of a zip or a folder, and what was refused.

    Raises:
        CourseError: if `path` is neither, or exceeds a limit as a whole.
    """
    if path.is_dir():
        yield _of_folder(path, limits)
        return
    if not path.exists():
        raise CourseError(f"{path} does not exist.")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise CourseError(f"{path} is no zip file and no folder; download it again.") from None
    with archive:
        yield _of_zip(archive, path, limits)


def _of_zip(
    archive: zipfile.ZipFile, path: Path, limits: Limits
) -> tuple[list[Entry], list[Refused]]:
    infos = archive.infolist()
    if len(infos) > limits.entries:
        raise CourseError(f"{path} has {len(infos)} members; the limit is {limits.entries}.")
    claimed = sum(info.file_size for info in infos)
    if claimed > limits.total_bytes:
        size = limits.total_bytes // 2**20
        raise CourseError(f"{path} would unpack to {claimed // 2**20} MB; the limit is {size} MB.")
    entries: list[Entry] = []
    refused: list[Refused] = []
    for info in infos:
        name = _name(info)
        if info.is_dir() or _hidden(name):
            continue
        reason = _why_not(info, limits) or _bad_name(name, limits)
        if reason:
            refused.append(Refused(shown(name), reason))
            continue
        entries.append(Entry(_parts(name), _time(info), _opener(archive, info)))
    return entries, refused


def _name(info: zipfile.ZipInfo) -> str:
    name = info.filename
    if not info.flag_bits & 0x800:
        # Without the flag Python reads the name as cp437; nearly all programs now write UTF-8.
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def _opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], BinaryIO]:
    return lambda: archive.open(info)


def _why_not(info: zipfile.ZipInfo, limits: Limits) -> str:
    mode = info.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a special file"
        return f"it is {kind}"
    if info.flag_bits & 1:
        return "it is encrypted"
    if info.file_size > limits.file_bytes:
        return f"it would have {info.file_size // 2**20} MB; {limits.file_bytes // 2**20} MB is the limit"
    if info.file_size > max(2**20, limits.ratio * max(info.compress_size, 1)):
        return "it unpacks to far more than its size (a zip bomb)"
    return ""


def _bad_name(name: str, limits: Limits) -> str:
    if len(name) > limits.name:
        return "its name is too long"
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        return "its name has characters that no name has"
    if "\\" in name or name.startswith("/") or (len(name) > 1 and name[1] == ":"):
        return "its name leads out of the folder"
    parts = name.split("/")
    if ".." in parts:
        return "its name leads out of the folder"
    if len(parts) > limits.depth:
        return f"it lies more than {limits.depth} folders deep"
    if name.lower().endswith(ARCHIVES):
        return "it is an archive inside the archive; the notebook itself is needed"
    return ""


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part for part in name.split("/") if part not in ("", "."))


def _hidden(name: str) -> bool:
    parts = name.lower().split("/")
    return any(part in _HIDDEN or part.startswith("._") for part in parts)


def _time(info: zipfile.ZipInfo) -> float | None:
    try:
        return time.mktime((*info.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return None


def _of_folder(top: Path, limits: Limits) -> tuple[list[Entry], list[Refused]]:
    entries: list[Entry] = []
    refused: list[Refused] = []
    total = 0
    for folder, folders, files in os.walk(top, followlinks=False):
        here = Path(folder)
        for name in sorted(folders):
            if (here / name).is_symlink():
                refused.append(Refused(shown(here / name, top), "it is a symbolic link"))
        folders[:] = sorted(f for f in folders if not (here / f).is_symlink())
        for file in sorted(files):
            path = here / file
            name = unicodedata.normalize("NFC", path.relative_to(top).as_posix())
            if _hidden(name):
                continue
            status = path.lstat()
            reason = _bad_name(name, limits)
            if stat.S_ISLNK(status.st_mode):
                reason = "it is a symbolic link"
            elif not stat.S_ISREG(status.st_mode):
                reason = "it is a special file"
            elif status.st_size > limits.file_bytes:
                reason = f"it has {status.st_size // 2**20} MB; {limits.file_bytes // 2**20} MB is the limit"
            if reason:
                refused.append(Refused(shown(name), reason))
                continue
            total += status.st_size
            if len(entries) >= limits.entries or total > limits.total_bytes:
                raise CourseError(f"{top} holds more files than one class can have handed in.")
            entries.append(Entry(_parts(name), status.st_mtime, _file_opener(path)))
    return entries, refused


def _file_opener(path: Path) -> Callable[[], BinaryIO]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return lambda: os.fdopen(os.open(path, flags), "rb")


def copy(entry: Entry, target: Path, limit: int) -> int:
    """Copies an entry to a new file and returns its size.

    Raises:
        TooLarge: if it has more bytes than `limit`, whatever the archive claimed.
        OSError, zipfile.BadZipFile, zlib.error, ...: if it is damaged.
    """
    size = 0
    with entry.open() as source, target.open("xb") as stream:
        while chunk := source.read(CHUNK):
            size += len(chunk)
            if size > limit:
                raise TooLarge
            stream.write(chunk)
    if entry.modified is not None:
        os.utime(target, (entry.modified, entry.modified))
    return size


DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
"""What reading a damaged or encrypted member raises (NotImplementedError is a RuntimeError)."""


def shown(name: str | Path, top: Path | None = None) -> str:
    """A name from a download, fit to be printed."""
    text = str(Path(name).relative_to(top)) if top is not None else str(name)
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 150 else f"{text[:70]}...{text[-70:]}"
