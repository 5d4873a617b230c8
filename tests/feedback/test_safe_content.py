"""Does anything that a student wrote reach the page as more than text and pictures?"""

import re

import graded
import pytest
from nbformat.v4 import new_output

from autograder.feedback.markdown import headings_in_order, to_html
from autograder.feedback.mathml import mathml
from autograder.feedback.outputs import NO_DESCRIPTION, Limits, Room, blocks, fit
from autograder.feedback.render import LADDER
from autograder.feedback.text import plain, sentence, shortened

HOSTILE_MARKDOWN = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "<svg onload=alert(1)></svg>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&#58;alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](//evil.example/x)",
    "![p](https://evil.example/pixel.png)",
    '<https://evil.example/" onclick=alert(1)>',
    "[a](https://evil.example/'onmouseover=alert(1))",
    "$\\text{<script>alert(1)</script>}$",
    "$\\href{javascript:alert(1)}{x}$",
    "$\\style{background:url(https://evil.example)}{x}$",
    "</div></section></main><style>body{display:none}</style>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<form action=https://evil.example><input></form>",
    "[x]: javascript:alert(1)\n\n[x]",
    "```html\n<script>alert(1)</script>\n```",
    '<a href="https://evil.example" style="position:fixed">x</a>',
]
ALLOWED = {
    "a": {"href", "rel"},
    "div": {"class", "tabindex"},
    "span": {"class"},
    "code": {"class"},
    "pre": {"tabindex"},
    "math": {"display", "alttext"},
}


@pytest.mark.parametrize("source", HOSTILE_MARKDOWN)
def test_hostile_markdown_keeps_only_known_elements_and_web_links(source):
    from bs4 import BeautifulSoup

    html, _ = to_html(source)
    for element in BeautifulSoup(html, "html.parser").find_all(True):
        assert element.name not in {
            "script", "img", "svg", "iframe", "style", "base", "meta", "form", "input", "object",
        }  # fmt: skip
        known = ALLOWED.get(element.name, set())
        if element.find_parent("math") is None:
            assert set(element.attrs) <= known, element
        assert not any(name.startswith("on") or name == "style" for name in element.attrs)
        if element.name == "a":
            assert element["href"].startswith("https://")
            assert element["rel"] == ["noopener", "noreferrer", "nofollow"]


def test_markdown_that_is_harmless_keeps_its_form():
    html, left_out = to_html(
        "**bold** `x < 1` [paper](https://example.org/a?b=1&c=2)\n\n| a | b |\n|---|---|\n| 1 | $x^2$ |"
    )
    assert left_out == 0
    assert "<strong>bold</strong>" in html
    assert "<code>x &lt; 1</code>" in html
    assert 'href="https://example.org/a?b=1&amp;c=2" rel="noopener noreferrer nofollow"' in html
    assert "<table>" in html
    assert "<msup>" in html


def test_unclosed_elements_are_closed_within_their_cell():
    html, _ = to_html("<details><summary>Hint\n\nnever closed")
    assert html.count("<details>") == html.count("</details>") == 1


def test_a_long_text_is_cut_and_counted():
    html, left_out = to_html("a" * 500, limit=100)
    assert left_out == 400
    assert "400 characters left out" in html


@pytest.mark.parametrize("bomb", ["> " * 3000 + "x", "- " * 3000, "[" * 5000, "$" * 4999])
def test_nesting_does_not_break_the_page(bomb):
    html, _ = to_html(bomb)
    assert isinstance(html, str)


def test_headings_go_below_the_pages_own_and_skip_no_level():
    html, level = headings_in_order("<h1>a</h1><h4>b</h4><h2>c</h2>", below=2, previous=2)
    assert re.findall(r"<h(\d)>", html) == ["3", "4", "4"]
    assert level == 4
    html, level = headings_in_order("<p>none</p>", below=2, previous=4)
    assert (html, level) == ("<p>none</p>", 4)


def test_formulas_become_mathml_with_their_source_as_alternative():
    html = mathml(r"S=QK^\top/\sqrt{d_k}", block=True)
    assert html.startswith("<math")
    assert 'display="block"' in html
    assert "msqrt" in html
    assert r'alttext="S=QK^\top/\sqrt{d_k}"' in html


@pytest.mark.parametrize(
    "latex", [r"\frac{", "x" * 3000, r"\text{<b>x</b>}", r"\text{<script>1</script>}", "{" * 900]
)
def test_what_is_no_formula_is_shown_as_its_source(latex):
    html = mathml(latex)
    assert html.startswith('<code class="formula">')
    assert "<script" not in html


def test_formula_attributes_that_could_load_or_run_are_dropped():
    html = mathml(r"\href{javascript:alert(1)}{x}")
    assert "href=" not in html
    assert "style=" not in mathml(r"\style{background:url(x)}{y}")


def test_plain_takes_away_colours_overwritten_lines_and_control_characters():
    assert plain("\x1b[31mred\x1b[0m \x1b]8;;https://e.example\x07link\x1b]8;;\x07") == "red link"
    assert plain("10%\r100%\n") == "100%\n"
    assert plain("a\r\nb") == "a\nb"
    assert plain("ab\b\x00c\x07") == "ac"
    assert plain("\ud800").isascii()


def test_plain_names_marks_that_reorder_text():
    assert plain("score \u202e01\u202c") == "score <U+202E>01<U+202C>"
    assert plain("中文 é\tok") == "中文 é\tok"


def test_a_long_text_keeps_both_ends_and_short_texts():
    text, left_out = shortened("a" * 90 + "the end", 50)
    assert left_out == 47
    assert text.endswith("the end")
    assert shortened("short", 50) == ("short", 0)
    text, left_out = shortened("a" * 900 + "the end", 50)
    assert left_out == 857
    assert text.endswith("the end")


def shown(*outputs, limits=None):
    limits = limits or Limits()
    return blocks(outputs, limits, Room(limits.pictures))


def test_html_svg_and_javascript_outputs_are_shown_as_their_text_form():
    found = shown(
        new_output(
            "display_data",
            data={
                "text/html": "<script>alert(1)</script>",
                "image/svg+xml": "<svg onload='alert(1)'/>",
                "application/javascript": "alert(1)",
                "text/plain": "a table",
            },
        )
    )
    assert [(b.kind, b.text) for b in found] == [("text", "a table")]


def test_html_without_a_text_form_is_named_and_not_shown():
    found = shown(new_output("display_data", data={"text/html": "<b>x</b>"}))
    assert [b.kind for b in found] == ["note"]
    assert "<b>" not in found[0].text


def test_a_picture_is_shown_with_its_description():
    (block,) = shown(graded.plot(alt="Row 2 attends mostly to key A."))
    assert block.kind == "picture"
    assert block.uri.startswith("data:image/png;base64,")
    assert (block.width, block.height) == (40, 24)
    assert block.text == "Row 2 attends mostly to key A."


def test_a_picture_without_a_description_says_so():
    (block,) = shown(graded.plot())
    assert block.text == NO_DESCRIPTION


@pytest.mark.parametrize(
    ("encoded", "kind"),
    [
        ("<svg onload=alert(1)>", "PNG"),
        ("AAAA", "PNG"),
        (graded.picture(kind="JPEG"), "PNG"),
        (graded.picture(kind="GIF"), "PNG"),
        (graded.picture()[:60], "PNG"),
    ],
)
def test_bytes_that_are_no_such_picture_are_refused(encoded, kind):
    assert fit(encoded, kind, 100_000) is None


def test_a_large_picture_is_made_smaller():
    encoded = graded.picture(900, 600, noise=True)
    uri, width, height = fit(encoded, "PNG", 60_000)
    assert len(uri) <= 60_000 < len(encoded)
    assert width < 900
    assert width / height == pytest.approx(1.5, abs=0.02)


def test_pictures_over_the_pages_allowance_are_dropped_and_their_description_stays():
    outputs = [graded.plot(alt=f"picture {i}") for i in range(3)]
    found = shown(*outputs, limits=Limits(pictures=300))
    assert [b.kind for b in found].count("note") >= 1
    assert found[-1].text.endswith("picture 2")


def test_an_error_is_shown_without_colours():
    (block,) = shown(
        new_output("error", ename="E", evalue="bad", traceback=["\x1b[0;31mE\x1b[0m: bad <b>"])
    )
    assert (block.kind, block.text) == ("error", "E: bad <b>")


def test_many_outputs_are_counted_not_shown():
    found = shown(*[new_output("stream", text=f"{i}\n") for i in range(50)])
    assert found[-1].text == "30 more outputs are not shown."


def test_broken_outputs_cost_nothing():
    assert shown("x", {"output_type": "display_data", "data": 3}, {"output_type": "stream"}) == []


DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 226" role="img" aria-label="Je &amp; ne">'
    "<script>alert(1)</script><circle r='9'/></svg>"
)


def test_svg_of_a_student_is_never_shown_and_of_ours_only_inside_a_picture():
    output = new_output(
        "display_data", data={"image/svg+xml": DRAWING, "text/plain": "<IPython.SVG>"}
    )
    (theirs,) = blocks([output], Limits(), Room(100_000))
    assert (theirs.kind, theirs.uri) == ("note", "")
    (ours,) = blocks([output], Limits(svg=True), Room(100_000))
    assert (ours.kind, ours.text, ours.width, ours.height) == ("picture", "Je & ne", 480, 226)
    assert ours.uri.startswith("data:image/svg+xml;base64,")
    (full,) = blocks([output], Limits(svg=True), Room(10))
    assert (full.kind, full.text) == ("note", "A picture is left out. Je & ne")


def test_every_size_of_a_feedback_page_leaves_svg_out():
    assert not any(limits.svg for limits in LADDER)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("logits, new state and weights follow", "Logits, new state and weights follow"),
        ("softmax_rows sum to one.", "softmax_rows sum to one"),
        ("-inf gives exactly 0", "-inf gives exactly 0"),
    ],
)
def test_a_property_becomes_a_title(given, shown):
    assert sentence(given) == shown
