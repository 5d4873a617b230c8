"""Markdown to HTML that is safe to show, whoever wrote it.

Two layers, either of which would do: the renderer escapes raw HTML (but for a few tags without attributes) and
lets only http(s) links through, and bleach then keeps a short list of elements, which also closes what was left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape

import bleach
import mistune
from mistune.plugins.math import math
from mistune.plugins.table import table

from autograder.feedback.mathml import mathml
from autograder.feedback.text import plain, shortened

TAGS = frozenset([
    "p", "br", "hr", "strong", "em", "b", "i", "sub", "sup", "kbd", "code", "pre",
    "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "h1", "h2",
    "h3", "h4", "h5", "h6", "a", "span", "div", "details", "summary",
])  # fmt: skip
CLASSES = {"span": {"picture", "target"}, "div": {"wide"}}
_BARE_TAG = re.compile(
    r"</?(?:br|sub|sup|kbd|b|i|em|code|strong|details|summary)\s*/?>", re.IGNORECASE
)
_WEB = re.compile(r"https?://[^\s\"'<>\\]+", re.IGNORECASE)
_FORMULA = re.compile("\ue000(\\d+)\ue001")
_HEADING = re.compile(r"<(/?)h([1-6])>")

Linker = Callable[[str], "str | None"]


def web_only(url: str) -> str | None:
    """The address when it is plain http(s), else None: the link is then shown as text."""
    return url if _WEB.fullmatch(url) else None


class _Renderer(mistune.HTMLRenderer):
    def __init__(self, link_to: Linker) -> None:
        super().__init__(escape=True)
        self.link_to = link_to
        self.formulas: list[str] = []

    def _keep(self, formula: str) -> str:
        self.formulas.append(formula)
        return f"\ue000{len(self.formulas) - 1}\ue001"

    def inline_math(self, text: str) -> str:
        return self._keep(mathml(text))

    def block_math(self, text: str) -> str:
        return f'<div class="wide">{self._keep(mathml(text, block=True))}</div>\n'

    def inline_html(self, html: str) -> str:
        return html if _BARE_TAG.fullmatch(html) else escape(html)

    def block_html(self, html: str) -> str:
        parts = re.split(r"(<[^<>]*>)", html)
        return "".join(p if _BARE_TAG.fullmatch(p) else escape(p) for p in parts) + "\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        target = self.link_to(url)
        if target is None:
            return f'{text} <span class="target">({escape(plain(url)[:200])})</span>'
        return f'<a href="{escape(target, quote=True)}">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # Nothing is loaded from elsewhere, and a notebook's own pictures are outputs.
        return f'<span class="picture">[picture: {text or "no description"}]</span>'


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "a":
        return name == "href"
    return name == "class" and value in CLASSES.get(tag, ())


def to_html(source: str, link_to: Linker = web_only, limit: int = 20_000) -> tuple[str, int]:
    """HTML of a Markdown cell, and how many characters were left out of a very long one.

    Args:
        source: the cell's text.
        link_to: what a link's address becomes; None makes it plain text with the address behind it.
        limit: characters that are shown.
    """
    text, left_out = shortened(source, limit)
    return _html(text.replace("\ue000", "").replace("\ue001", ""), link_to), left_out


@lru_cache(maxsize=2048)  # a class shares nearly all of its text
def _html(source: str, link_to: Linker) -> str:
    renderer = _Renderer(link_to)
    convert = mistune.create_markdown(renderer=renderer, escape=True, plugins=[table, math])
    try:
        dirty = convert(source)
    except RecursionError:
        return f"<pre>{escape(source)}</pre>"
    clean = bleach.clean(
        dirty, tags=TAGS, attributes=_allowed, protocols={"http", "https"}, strip=True
    )
    clean = re.sub(
        r'<a href="(https?:[^"]*)">',
        r'<a href="\1" rel="noopener noreferrer nofollow">',
        clean,
        flags=re.IGNORECASE,
    )
    # What may be wider than a phone scrolls by itself, also with the keyboard alone.
    clean = clean.replace('<div class="wide">', '<div class="wide" tabindex="0">')
    clean = clean.replace("<table>", '<div class="wide" tabindex="0"><table>')
    clean = clean.replace("</table>", "</table></div>")
    clean = clean.replace("<pre>", '<pre tabindex="0">')
    return _FORMULA.sub(lambda found: _formula(renderer.formulas, int(found.group(1))), clean)


def _formula(formulas: list[str], index: int) -> str:
    return formulas[index] if index < len(formulas) else ""


def headings_in_order(html: str, below: int, previous: int) -> tuple[str, int]:
    """Move a cell's headings below level `below` and close gaps, so that no level is skipped.

    Returns:
        the HTML and the level of its last heading (`previous` when it has none).
    """
    level = previous

    def moved(found: re.Match) -> str:
        nonlocal level
        if not found.group(1):
            wanted = min(int(found.group(2)) + below, 6)
            level = max(min(wanted, level + 1), below + 1)
        return f"<{found.group(1)}h{level}>"

    return _HEADING.sub(moved, html), level
