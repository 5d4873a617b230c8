"""Text that somebody else wrote, made fit to be shown: no escape codes, no control characters."""

from __future__ import annotations

import re
import unicodedata

# CSI (colours, cursor moves), OSC (titles, links) and the two-character escapes, in that order.
_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|\x9b[0-?]*[@-~]"
)
_RUBBED_OUT = re.compile(r"[^\n\x08]\x08")
# These reorder or hide what follows them, so a line could read as another one.
_INVISIBLE = re.compile(
    r"[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def plain(text: object) -> str:
    """`text` as a terminal would end up showing it, without colours and control characters.

    Direction marks and other invisible characters are named (`<U+202E>`) instead of obeyed, and lone
    surrogates, which no file can hold, become question marks.
    """
    shown = str(text).encode("utf-8", "replace").decode("utf-8")
    shown = _ANSI.sub("", shown).replace("\r\n", "\n")
    if "\r" in shown:
        # A progress bar writes over its line: what stands at the end is what a reader saw.
        shown = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in shown.split("\n"))
    if "\b" in shown:
        shown = _RUBBED_OUT.sub("", shown)
    shown = _INVISIBLE.sub(lambda found: f"<U+{ord(found.group()):04X}>", shown)
    return "".join(c for c in shown if c in "\n\t" or unicodedata.category(c) != "Cc")


def shortened(text: str, limit: int) -> tuple[str, int]:
    """A text made plain; of a long one the first part and the end, and how many characters were left out.

    The middle of a huge text is dropped before it is cleaned, so a 20 MB print costs no more than a page.
    """
    room = 4 * limit
    if len(text) <= room:
        text = plain(text)
        if len(text) <= limit:
            return text, 0
        first, end = text, text
    else:
        first, end = plain(text[: room // 2]), plain(text[-(room // 2) :])
    tail = limit // 5
    left_out = len(text) - limit
    note = f"\n[... {left_out:,} characters left out ...]\n"
    return first[: limit - tail] + note + end[len(end) - min(tail, len(end)) :], left_out


def number(value: float | None) -> str:
    """Marks as a person writes them: `3`, `2.5`, a dash for none."""
    if value is None:
        return "–"
    return f"{value:.2f}".rstrip("0").rstrip(".")


def percent(share: float | None) -> str:
    """A share of 1 in per cent, a dash for none; never broken before its sign."""
    return "–" if share is None else f"{100 * share:.0f}\u00a0%"


def sentence(text: str) -> str:
    """A property as a title: a capital first letter (not that of code), no full stop."""
    text = text.strip().rstrip(".")
    first = text.split(" ", 1)[0].rstrip(",;:")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def joined(items: object, last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = [str(item) for item in items]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
