"""The frame that feedback, report and site pages share: one style, a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder.feedback.text import joined, number, percent, plain

TEMPLATES = Path(__file__).parent / "templates"
_CODE = re.compile(r"`([^`\n]+)`")
# The parts of a diagnosis, as the grader writes them; each gets a line of its own.
_LABEL = re.compile(
    r"(?:^|(?<=[.\n]))\s*(Core cell|Your change|Seen|Likely cause|Try(?: next)?):\s"
)


@lru_cache(maxsize=1)
def style() -> str:
    """The style sheet, as it stands in the page."""
    return (TEMPLATES / "style.css").read_text(encoding="utf-8").strip()


@lru_cache(maxsize=1)
def policy() -> str:
    """The Content-Security-Policy: this style, pictures inside the page, and nothing from anywhere else."""
    digest = base64.b64encode(hashlib.sha256(style().encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=4096)
def python(source: str, highlighted: bool = True) -> Markup:
    """Python code as HTML: coloured by classes, or only escaped."""
    if not highlighted:
        return escape(source)
    return Markup(
        highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).rstrip()
    )


def prose(text: object) -> Markup:
    """Our own sentences, which may quote a student: escaped, with `code` in backticks and paragraphs."""
    paragraphs = [p.strip() for p in re.split(r"\n\s*\n", plain(text)) if p.strip()]
    html = [
        "<p>" + _CODE.sub(r"<code>\1</code>", str(escape(p))).replace("\n", "<br>") + "</p>"
        for p in paragraphs
    ]
    return Markup("".join(html))


def diagnosis(text: object) -> Markup:
    """A checkpoint's message, its parts (what was seen, likely cause, what to try) on lines of their own."""
    lines = _LABEL.sub(lambda found: f"\n\n{found.group(1)}: ", plain(text))
    html = str(prose(lines))
    return Markup(
        re.sub(r"<p>(Core cell|Your change|Seen|Likely cause|Try(?: next)?):", _strong, html)
    )


def _strong(found: re.Match) -> str:
    return f"<p><strong>{found.group(1)}:</strong>"


def inline(text: object) -> Markup:
    """One line of our own, with `code` in backticks."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(plain(text)))))


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates with everything escaped unless it was made safe above."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    env.filters.update(
        prose=prose,
        diagnosis=diagnosis,
        inline=inline,
        number=number,
        percent=percent,
        joined=joined,
    )
    env.globals.update(style=lambda: Markup(style()), policy=policy)
    return env
