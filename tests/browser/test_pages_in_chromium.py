"""In a real browser: does nothing of a student's run, can everybody read the pages, do they fit the screen?"""

import os
from itertools import pairwise
from pathlib import Path

import graded
import pytest
from conftest import LESSONS
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from PIL import Image

from autograder.feedback.gather import Marks, standing
from autograder.feedback.outputs import NO_DESCRIPTION
from autograder.feedback.page import policy, style
from autograder.feedback.render import feedback_page

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "feedback",
    "feedback-repaired",
    "feedback-ungradable",
    "feedback-missing",
    "feedback-practice",
    "feedback-untouched",
    "feedback-mechanism",
    "feedback-copy-task",
    "feedback-cut-off",
    "report",
    "report-practice",
    "report-mechanism",
    "site-index",
    *(f"site/{name}" for name in LESSONS),
)
# Each sets window.pwned, opens a dialog, or asks for something over the network.
PAYLOADS = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<svg onload='window.pwned = 1'><circle r=9 /></svg>",
    "<svg><script>window.pwned = 1</script></svg>",
    "<details open ontoggle='window.pwned = 1'><summary>s</summary>t</details>",
    "<iframe srcdoc='<script>parent.pwned = 1; alert(1)</script>'></iframe>",
    "<iframe src='javascript:parent.pwned = 1'></iframe>",
    "<object data='data:text/html,<script>alert(1)</script>'></object>",
    "<body onload='window.pwned = 1'>",
    "<input autofocus onfocus='window.pwned = 1'>",
    "<video><source onerror='window.pwned = 1'></video>",
    "<img src='http://127.0.0.1:9/pixel.png'>",
    "<link rel=stylesheet href='http://127.0.0.1:9/x.css'>",
    "<style>body { background: url(http://127.0.0.1:9/x) }</style>",
    "<div style='background: url(http://127.0.0.1:9/y)'>x</div>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<base href='http://127.0.0.1:9/'>",
    "<audio src='http://127.0.0.1:9/a' autoplay></audio>",
    "<math><mtext><script>window.pwned = 1</script></mtext></math>",
    "</code></pre></div></section><script>window.pwned = 1</script>",
    "<!--><script>window.pwned = 1</script>",
    "![p](http://127.0.0.1:9/p.png)",
    "$\\text{<script>window.pwned = 1</script>}$",
    "$\\text{<img src=x onerror='window.pwned = 1'>}$",
]
LINKS = [
    "[a](javascript:window.pwned=1)",
    "[b](JAVASCRIPT:window.pwned=1)",
    "[c](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[d](vbscript:x)",
    "[e](  javascript:window.pwned=1)",
    "<javascript:window.pwned=1>",
]


def hostile_page() -> str:
    """A feedback page in which everything that a student can write carries every payload."""
    cells = [new_markdown_cell("\n\n".join([*PAYLOADS, *LINKS]))]
    for payload in PAYLOADS:
        data = dict.fromkeys(("text/html", "image/svg+xml", "text/markdown"), payload)
        data |= {"application/javascript": "window.pwned = 1", "text/plain": payload}
        outputs = [
            new_output("display_data", data=data),
            new_output("display_data", data={"image/png": payload, "text/html": payload}),
            new_output("stream", text=f"\x1b]8;;javascript:alert(1)\x07{payload}\x1b[31m"),
            new_output("error", ename=payload, evalue=payload, traceback=[payload]),
            graded.plot(alt=f'"><{payload}'),
        ]
        cells += [new_markdown_cell(payload), new_code_cell(payload, outputs=outputs)]
    everything = "\n".join(PAYLOADS)
    cells.append(graded.answer("mine", everything))
    cells.append(graded.in_words("words", everything))
    notebook = graded.lesson(*cells)
    for cell in notebook.cells:
        if "autograder" in cell.metadata:
            cell.metadata.autograder["message"] = everything
            cell.metadata.autograder["notes"] = PAYLOADS
    entry = graded.entry("repaired", notebook, repairs=PAYLOADS, notes=PAYLOADS)
    entry["reason"] = everything
    marks = {graded.NOTEBOOK: Marks(comments={"mine": everything, "words": everything})}
    summary = standing(graded.ASSIGNMENT, everything, graded.NOTEBOOK, entry, notebook, marks)
    return feedback_page(summary, notebook)


def touch_everything(page) -> None:
    """What a curious reader does: unfold, hover, and click every link that is no web address."""
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    for link in page.locator("a[href]").all()[:60]:
        href = link.get_attribute("href")
        if not href.startswith(("http:", "https:", "#")) and not href.endswith(".html"):
            link.click()
    page.mouse.move(400, 300)
    page.wait_for_timeout(200)


def test_nothing_of_a_student_runs_or_is_fetched(watched, tmp_path):
    path = tmp_path / "hostile.html"
    path.write_text(hostile_page(), encoding="utf-8")
    watched.open(path)
    touch_everything(watched.page)
    assert not watched.ran
    assert watched.elsewhere == []
    assert watched.page.url == path.as_uri()
    assert watched.page.locator("iframe, object, embed, script, input").count() == 0
    for href in watched.page.eval_on_selector_all("a", "links => links.map(a => a.protocol)"):
        assert href in ("http:", "https:", "file:")


def raw(policy_text: str | None) -> str:
    """The payloads as they are, in a page with or without our policy: no sanitiser at work."""
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy_text}">'
        if policy_text
        else ""
    )
    kept = [p for p in PAYLOADS if "refresh" not in p]
    return f"<!DOCTYPE html><html><head>{head}<style>{style()}</style></head><body>{''.join(kept)}"


def test_the_policy_alone_stops_every_payload_too(watched, tmp_path):
    path = tmp_path / "raw.html"
    path.write_text(raw(policy()), encoding="utf-8")
    watched.open(path)
    touch_everything(watched.page)
    assert not watched.ran
    assert watched.stopped
    assert watched.sent == []


def test_without_sanitiser_and_policy_the_payloads_work(watched, tmp_path):
    """The two tests above would notice."""
    path = tmp_path / "open.html"
    path.write_text(raw(None), encoding="utf-8")
    watched.open(path)
    assert watched.ran
    assert any("127.0.0.1:9" in url for url in watched.sent)


def axe(page) -> list[str]:
    """Serious findings of axe-core, one line each."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{v['id']} ({v['impact']}): {v['nodes'][0]['html'][:160]}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible_fit_the_screen_and_load_nothing(sized, pages, name):
    sized.open(pages[name])
    assert sized.console == []
    assert sized.elsewhere == []
    sized.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert axe(sized.page) == []
    wide, shown = sized.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown


def test_axe_and_the_width_notice_a_bad_page(sized, tmp_path):
    path = tmp_path / "bad.html"
    text = "<p style='color: #bbb; width: 3000px'>faint</p><img src='data:,'>"
    path.write_text(f"<!DOCTYPE html><html><head><title>x</title></head><body>{text}")
    sized.open(path)
    assert {line.split()[0] for line in axe(sized.page)} >= {"color-contrast", "image-alt"}
    wide, shown = sized.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide > shown


@pytest.mark.parametrize("name", PAGES)
def test_headings_are_in_order_and_pictures_are_described(watched, pages, name):
    watched.open(pages[name])
    levels = watched.page.eval_on_selector_all(
        "h1, h2, h3, h4, h5, h6", "all => all.map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all(watched.page.eval_on_selector_all("img", "all => all.map(i => i.alt.length > 8)"))
    broken = watched.page.eval_on_selector_all(
        "img", "all => all.filter(i => !i.naturalWidth).length"
    )
    assert broken == 0


@pytest.mark.parametrize("name", [page for page in PAGES if page.startswith("site/")])
def test_formulas_and_pictures_of_a_lesson_are_there(watched, pages, name):
    watched.open(pages[name])
    heights = watched.page.eval_on_selector_all(
        "math", "all => all.map(m => m.getBoundingClientRect().height)"
    )
    assert all(height > 5 for height in heights)
    words = watched.page.eval_on_selector_all("img", "all => all.map(i => i.alt)")
    assert NO_DESCRIPTION not in words
    assert watched.page.get_by_text("is not shown here").count() == 0
    assert heights or words or "practice" in name


def test_the_lessons_have_formulas_and_drawn_pictures_at_all(watched, pages):
    """The test above would pass on lessons that had lost theirs."""
    found = {"math": 0, "img[src^='data:image/svg']": 0, "img[src^='data:image/png']": 0}
    for name in LESSONS:
        watched.open(pages[f"site/{name}"])
        for selector in found:
            found[selector] += watched.page.locator(selector).count()
    assert found["math"] > 60
    assert found["img[src^='data:image/svg']"] >= 1
    assert found["img[src^='data:image/png']"] >= 15


def test_math_that_lost_its_glyphs_is_noticed(watched, tmp_path):
    path = tmp_path / "flat.html"
    path.write_text("<!DOCTYPE html><math style='display: block; height: 1px'><mi>x</mi></math>")
    watched.open(path)
    assert (
        watched.page.evaluate("document.querySelector('math').getBoundingClientRect().height") < 5
    )


def test_the_style_is_applied_under_the_policy(watched, pages):
    watched.open(pages["feedback"])
    colour = watched.page.evaluate("getComputedStyle(document.querySelector('.badge.ok')).color")
    assert colour == "rgb(27, 97, 54)"


def test_every_verdict_says_itself_in_words(watched, pages):
    watched.open(pages["feedback"])
    for said in watched.page.locator(".badge").all_inner_texts():
        assert said.strip()


def test_a_printed_page_cuts_nothing_off(watched, pages):
    watched.open(pages["feedback"])
    watched.page.emulate_media(media="print")
    watched.page.set_viewport_size({"width": 700, "height": 900})
    hidden = watched.page.eval_on_selector_all(
        "pre", "all => all.filter(p => p.scrollWidth > p.clientWidth + 1).length"
    )
    assert hidden == 0


@pytest.mark.parametrize("name", ["feedback", "feedback-ungradable", "report", "site-lesson"])
def test_pictures_for_the_documentation(sized, size, pages, name, tmp_path):
    """Each page as people see it; `UPDATE_PICTURES=1` puts the pictures into docs/images."""
    sized.open(pages[name])
    if name == "site-lesson":
        sized.page.evaluate("document.querySelector('img').scrollIntoView({block: 'center'})")
    target = tmp_path / f"{name}-{size}.png"
    sized.page.screenshot(path=target)
    keep(target)


def keep(path: Path) -> None:
    """Check that a picture is small enough for the repository; put it into docs/images if asked to."""
    small = shrunk(path)
    assert small.stat().st_size < 150_000
    if os.environ.get("UPDATE_PICTURES"):
        folder = ROOT / "docs" / "images"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / small.name).write_bytes(small.read_bytes())


def shrunk(path: Path) -> Path:
    """The picture in few colours and at most 1000 pixels wide: small enough for a repository."""
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((1000, 1000), Image.Resampling.LANCZOS)
    few = picture.quantize(200, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return path
