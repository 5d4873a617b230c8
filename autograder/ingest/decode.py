"""Bytes of a file to a notebook in nbformat 4.5, or the sentence that says why not.

Written by hand rather than with nbformat's reader, since that one refuses or crashes on much that
can be understood (missing ids, widgets without state, a null source), and validates what is dropped anyway.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from nbformat import NotebookNode, from_dict

SIZE_LIMIT = 50 * 1024 * 1024
OUTPUT_LIMIT = 1024 * 1024
"""Outputs of one cell that are longer than this are left out of what is kept."""
CELL_LIMIT = 5000
SOURCE_LIMIT = 1_000_000
ID = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")
_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig", "a byte-order mark"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_AGAIN = "Download the notebook as .ipynb and hand it in again."


class Unreadable(Exception):
    """The file can't be read as a notebook; the text says why, and what to do."""


def decode(data: bytes) -> tuple[NotebookNode, list[str]]:
    """The notebook in these bytes, and a sentence for each thing that was put right.

    Raises:
        Unreadable: with one line for the student.
    """
    repairs: list[str] = []
    if len(data) > SIZE_LIMIT:
        size = len(data) // (1024 * 1024)
        raise Unreadable(
            f"The file has {size} MB; the limit is {SIZE_LIMIT // (1024 * 1024)} MB. "
            "Clear all outputs, save, and hand it in again."
        )
    text = _text(data, repairs)
    try:
        return _notebook(_json(text, repairs), repairs), repairs
    except RecursionError:
        raise Unreadable(f"The file is nested too deeply to be a notebook. {_AGAIN}") from None


def _text(data: bytes, repairs: list[str]) -> str:
    if not data.strip(b"\x00 \t\r\n"):
        raise Unreadable(f"The file is empty. {_AGAIN}")
    if data[:2] == b"PK":
        raise Unreadable("The file is a zip archive, not a notebook. Hand in the .ipynb itself.")
    if data[:4] in (b"%PDF", b"\x89PNG", b"\xff\xd8\xff\xe0"):
        raise Unreadable("The file is a PDF or a picture, not a notebook. Hand in the .ipynb.")
    for mark, encoding, what in _BOMS:
        if data.startswith(mark):
            repairs.append(f"The file was saved with {what}; it was read as plain UTF-8.")
            return data.decode(encoding, errors="replace").lstrip("\ufeff")
    head = data[:400]
    if head.count(b"\x00") > len(head) // 4:
        encoding = "utf-16-le" if head[1:2] == b"\x00" else "utf-16-be"
        repairs.append("The file was saved in UTF-16; it was read as plain UTF-8.")
        return data.decode(encoding, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        repairs.append("The file was not saved in UTF-8; it was read as Windows-1252.")
        return data.decode("cp1252", errors="replace")


def _json(text: str, repairs: list[str]) -> dict:
    body = text.strip().strip("\x00").strip()
    decoder = json.JSONDecoder(strict=False)
    try:
        raw, end = decoder.raw_decode(body)
    except ValueError as error:
        raise Unreadable(_why_no_json(body, error)) from None
    rest = body[end:].strip().strip("\x00").strip()
    if rest:
        if rest.startswith("{"):
            raise Unreadable(
                "The file holds two notebooks one after the other, and it can't be told which one "
                f"is meant. {_AGAIN}"
            )
        repairs.append("There was text after the notebook's end; it was left out.")
    if isinstance(raw, str):
        try:
            raw = json.loads(raw, strict=False)
        except ValueError:
            raise Unreadable(f"The file holds text, not a notebook. {_AGAIN}") from None
        repairs.append("The notebook was saved as one quoted text; it was unpacked.")
    if not isinstance(raw, dict):
        raise Unreadable(f"The file holds data, but no notebook. {_AGAIN}")
    if "cells" not in raw and "worksheets" not in raw:
        if "doc_id" in raw or "url" in raw:
            raise Unreadable(
                "The file is only a link to Google Drive. In Colab choose File, Download, "
                "Download .ipynb, and hand that file in."
            )
        raise Unreadable(f"The file holds no cells, so it is no notebook. {_AGAIN}")
    return raw


def _why_no_json(body: str, error: ValueError) -> str:
    if _CONFLICT.search(body):
        return (
            "The file holds the marks of an unfinished Git merge (<<<<<<<, >>>>>>>). Choose one "
            "version, check that the notebook opens, and hand it in again."
        )
    start = body[:200].lower()
    if start.startswith("<"):
        return (
            "The file is a web page, not a notebook. Download the notebook itself "
            "(.ipynb), not the page that shows it."
        )
    if not start.startswith(("{", "[", '"')):
        return f"The file is not a notebook (it holds plain text). {_AGAIN}"
    position = getattr(error, "pos", None)
    at_end = position is not None and position >= len(body) - 1
    # A string that never ends runs to the end of the file; its error points at its beginning.
    at_end = at_end or str(error).startswith("Unterminated string")
    if at_end or not body.endswith("}"):
        return (
            "The file is cut off in the middle, as by an interrupted download. Open your own copy, "
            "save it, and hand it in again."
        )
    line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
    return f"The file is damaged: it is not valid JSON{line}. {_AGAIN}"


def _clean(text: str) -> str:
    """Text that can be written again: no lone surrogates, no NUL, line ends as in Unix."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _joined(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    return None


def _notebook(raw: dict, repairs: list[str]) -> NotebookNode:
    version = raw.get("nbformat")
    cells = raw.get("cells")
    old = "worksheets" in raw and not isinstance(cells, list)
    if old:
        sheets = raw["worksheets"] if isinstance(raw["worksheets"], list) else []
        cells = [c for s in sheets if isinstance(s, dict) for c in s.get("cells") or []]
    if not isinstance(cells, list):
        raise Unreadable(f"The notebook's cells can't be read. {_AGAIN}")
    if len(cells) > CELL_LIMIT:
        raise Unreadable(
            f"The notebook has {len(cells)} cells; the limit is {CELL_LIMIT}. Delete what is not "
            "yours, save, and hand it in again."
        )
    minor = raw.get("nbformat_minor")
    if version != 4 or minor != 5:
        shown = f"{version}.{minor}" if isinstance(version, int) else "unknown"
        repairs.append(f"The notebook was saved in format {shown}; it was read as format 4.5.")
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": _notebook_metadata(raw, repairs),
        "cells": [],
    }
    found = _Found()
    for value in cells:
        cell = _cell(value, found)
        if cell is not None:
            notebook["cells"].append(cell)
    found.identify(notebook["cells"])
    repairs.extend(found.sentences())
    return from_dict(notebook)


def _notebook_metadata(raw: dict, repairs: list[str]) -> dict:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        repairs.append("The notebook's own metadata was damaged; the release's was used.")
        return {}
    kept: dict = {}
    stamp = metadata.get("attention_course")
    if isinstance(stamp, dict) and isinstance(stamp.get("release"), str):
        kept["attention_course"] = {"release": _clean(stamp["release"][:40])}
    widgets = metadata.get("widgets")
    if widgets is not None:
        parts = widgets.values() if isinstance(widgets, dict) else [None]
        if not all(isinstance(part, dict) and "state" in part for part in parts):
            repairs.append("Widget data without its state (as Colab saves it) was left out.")
    kernel = metadata.get("kernelspec")
    if kernel is not None and not isinstance(kernel, dict):
        repairs.append("The notebook's kernel entry was damaged; the release's was used.")
    elif kernel:
        name, language = kernel.get("name"), kernel.get("language", "python")
        if name != "python3" or language != "python":
            shown = str(name)[:40] if isinstance(name, str) else "without a name"
            repairs.append(f"The notebook was set to the kernel {shown!r}; it was run with Python.")
        kept["kernelspec"] = {"name": "python3", "display_name": "Python 3"} | {
            key: _clean(str(kernel[key])[:100])
            for key in ("name", "display_name", "language")
            if isinstance(kernel.get(key), str)
        }
    return kept


class _Found:
    """Counts of small damages, so that each kind is said once."""

    def __init__(self) -> None:
        self.dropped = self.types = self.sources = self.metadata = self.characters = 0
        self.missing_ids = self.doubled_ids = self.bad_ids = self.outputs = 0
        self.line_ends = self.long_texts = 0

    def identify(self, cells: list[dict]) -> None:
        """Gives every cell an id of its own; the first holder of an id keeps it."""
        taken = {cell["id"] for cell in cells if cell["id"]}
        seen: set[str] = set()
        for number, cell in enumerate(cells):
            given = cell["id"]
            if given and given not in seen:
                seen.add(given)
                continue
            if given:
                self.doubled_ids += 1
            new, attempt = f"cell-{number + 1}", 0
            while new in taken or new in seen:
                attempt += 1
                new = f"cell-{number + 1}-{attempt}"
            cell["id"] = new
            seen.add(new)

    def sentences(self) -> list[str]:
        texts = (
            (self.dropped, "{} that could not be read {} left out."),
            (self.types, "{} of an unknown type {} given a type."),
            (self.sources, "{} whose text was damaged {} read as far as possible."),
            (self.metadata, "{} with damaged metadata {} put right."),
            (self.characters, "{} with characters that can't be stored {} cleaned."),
            (self.missing_ids, "{} without an id {} given one."),
            (self.bad_ids, "{} with an id that is not allowed {} given a new one."),
            (self.doubled_ids, "{} with an id used twice {} given a new one."),
            (self.long_texts, "{} with very long text (pasted pictures) {} shortened."),
            (self.line_ends, "{} with line ends of Windows {} read as usual."),
            (self.outputs, "{} with very large or damaged outputs {} kept without them."),
        )
        return [
            text.format("One cell" if n == 1 else f"{n} cells", "was" if n == 1 else "were")
            for n, text in texts
            if n
        ]


def _cell(value: Any, found: _Found) -> dict | None:
    if not isinstance(value, dict):
        found.dropped += 1
        return None
    kind = value.get("cell_type")
    source = _joined(value.get("source", value.get("input")))
    if source is None:
        found.sources += 1
        given = value.get("source", value.get("input"))
        source = (
            "\n".join(part for part in given if isinstance(part, str))
            if isinstance(given, list)
            else ""
        )
    if len(source) > SOURCE_LIMIT:
        source = _shortened(source, kind, found)
    text = _clean(source)
    found.line_ends += "\r" in source
    if text != source.replace("\r\n", "\n").replace("\r", "\n"):
        found.characters += 1
    if kind == "heading":
        level = value.get("level") if isinstance(value.get("level"), int) else 1
        kind, text = "markdown", f"{'#' * max(1, min(level, 6))} {text}"
    elif kind == "html":
        kind = "markdown"
    elif kind not in ("code", "markdown", "raw"):
        found.types += 1
        kind = "code" if "outputs" in value or "execution_count" in value else "markdown"
    cell: dict = {
        "cell_type": kind,
        "id": _cell_id(value, found),
        "metadata": _cell_metadata(value, found),
        "source": text,
    }
    if kind == "code":
        cell["execution_count"] = _count(value)
        cell["outputs"] = _outputs(value.get("outputs"), found)
    return cell


def _shortened(source: str, kind: Any, found: _Found) -> str:
    """A text cell without the pictures pasted into it; code of that size is not looked at."""
    if kind == "code":
        raise Unreadable(
            f"A code cell has more than {SOURCE_LIMIT // 1_000_000} million characters. Take data out of "
            "the code, save, and hand it in again."
        )
    found.long_texts += 1
    return re.sub(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=\s]+", "", source)[:SOURCE_LIMIT]


def _cell_id(value: dict, found: _Found) -> str:
    given = value.get("id")
    if given is None:
        found.missing_ids += 1
        return ""
    if not isinstance(given, str) or not ID.match(given):
        found.bad_ids += 1
        return ""
    return given


def _cell_metadata(value: dict, found: _Found) -> dict:
    """Only what we read later: nbgrader's part, tags, and Colab's time of the last run."""
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        found.metadata += 1
        return {}
    kept: dict = {}
    part = metadata.get("nbgrader")
    if isinstance(part, dict):
        if part:
            kept["nbgrader"] = {
                str(key)[:40]: item if isinstance(item, bool | int | float) else str(item)[:200]
                for key, item in list(part.items())[:20]
            }
    elif part is not None:
        found.metadata += 1
    tags = metadata.get("tags")
    if isinstance(tags, list):
        kept["tags"] = [tag[:60] for tag in tags[:20] if isinstance(tag, str)]
    info = metadata.get("executionInfo")
    if isinstance(info, dict) and isinstance(info.get("timestamp"), int):
        kept["ran_at"] = info["timestamp"]
    return kept


def _count(value: dict) -> int | None:
    count = value.get("execution_count")
    return count if type(count) is int and count >= 0 else None


def _outputs(value: Any, found: _Found) -> list[dict]:
    """The outputs that are well formed and not huge; format 3 has others, which are left out."""
    if not isinstance(value, list):
        if value is not None:
            found.outputs += 1
        return []
    kept, size, whole = [], 0, True
    for output in value:
        clean = _output(output)
        if clean is None:
            old = isinstance(output, dict) and output.get("output_type") in ("pyout", "pyerr")
            whole = whole and old
            continue
        size += len(json.dumps(clean))
        if size > OUTPUT_LIMIT:
            whole = False
            break
        kept.append(clean)
    if not whole:
        found.outputs += 1
    return kept


def _output(output: Any) -> dict | None:
    if not isinstance(output, dict):
        return None
    kind = output.get("output_type")
    if kind == "stream":
        text = _joined(output.get("text"))
        name = output.get("name") if output.get("name") in ("stdout", "stderr") else "stdout"
        return None if text is None else {"output_type": kind, "name": name, "text": _clean(text)}
    if kind == "error":
        trace = output.get("traceback")
        lines = [_clean(t) for t in trace if isinstance(t, str)] if isinstance(trace, list) else []
        return {
            "output_type": kind,
            "ename": _clean(str(output.get("ename", ""))),
            "evalue": _clean(str(output.get("evalue", ""))),
            "traceback": lines,
        }
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = {}
        for mime, content in output["data"].items():
            text = _joined(content)
            if text is not None:
                data[mime] = _clean(text)
            elif str(mime).endswith("json"):
                data[mime] = content
        clean = {"output_type": kind, "data": data, "metadata": {}}
        if kind == "execute_result":
            clean["execution_count"] = _count(output)
        return clean
    return None
