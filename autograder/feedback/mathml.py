"""LaTeX to MathML when the page is built, so that a page needs no script and no network for its formulas.

The converter passes some of its input through as markup (`\\text{<b>}`, `\\href`, `\\style`), so its result is
parsed and rebuilt from a list of known elements and attributes. What does not parse is shown as its source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from xml.etree import ElementTree

from defusedxml.ElementTree import fromstring
from latex2mathml.converter import convert

MATHML = "http://www.w3.org/1998/Math/MathML"
LONGEST = 2_000
ELEMENTS = frozenset([
    "math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "msub", "msup", "msubsup",
    "munder", "mover", "munderover", "mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd",
    "mstyle", "mpadded", "mphantom", "menclose", "mmultiscripts", "mprescripts", "none",
])  # fmt: skip
ATTRIBUTES = frozenset([
    "display", "mathvariant", "stretchy", "fence", "separator", "accent", "accentunder",
    "movablelimits", "lspace", "rspace", "width", "height", "depth", "linethickness",
    "columnalign", "rowspacing", "columnspacing", "minsize", "maxsize", "form", "largeop",
    "symmetric", "displaystyle", "scriptlevel", "linebreak", "notation",
])  # fmt: skip
_VALUE = re.compile(r"[\w .%+-]*")
# The converter knows the starred environments, not the inner ones that notebooks use.
_INNER = re.compile(r"\\(begin|end)\{(?:aligned|align|split|gathered)\}")


@lru_cache(maxsize=4096)
def mathml(latex: str, block: bool = False) -> str:
    """MathML for one formula, or its source as code when it cannot be read.

    Args:
        latex: the text between the dollar signs.
        block: a displayed formula on a line of its own.
    """
    source = latex.strip()
    try:
        if len(source) > LONGEST:
            raise ValueError("too long")
        text = convert(_INNER.sub(r"\\\1{align*}", source), display="block" if block else "inline")
        tree = _rebuilt(fromstring(text), source)
    except (
        Exception
    ):  # the converter raises many kinds for a formula that a student left half-written
        return f'<code class="formula">{escape(source[:LONGEST])}</code>'
    return ElementTree.tostring(tree, encoding="unicode", short_empty_elements=False)


def _rebuilt(node: ElementTree.Element, source: str) -> ElementTree.Element:
    """The same formula, from known elements and attributes alone."""
    root = _copied(node)
    if root.tag != "math":
        raise ValueError("no formula")
    root.set("alttext", source)
    return root


def _copied(node: ElementTree.Element) -> ElementTree.Element:
    tag = node.tag.removeprefix(f"{{{MATHML}}}")
    if tag not in ELEMENTS:
        raise ValueError(f"element {tag!r} in a formula")
    copy = ElementTree.Element(tag)
    for name, value in node.attrib.items():
        if name in ATTRIBUTES and _VALUE.fullmatch(value):
            copy.set(name, value)
    copy.text = node.text
    copy.tail = node.tail
    copy.extend(_copied(child) for child in node)
    return copy
