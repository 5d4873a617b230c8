"""The course's own lessons as pages: each link leads somewhere, each formula is laid out, each heading in order."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from autograder.course import Course
from autograder.feedback.gather import cell_source
from autograder.feedback.markdown import to_html
from autograder.site import lessons, linker, write_site

ROOT = Path(__file__).resolve().parents[2]
LESSONS = {f"{one.assignment}/{one.name}": one for one in lessons(Course(ROOT))}
# Formulas as Markdown writes them; what stands in code is none.
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+?\$", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write_site(Course(ROOT), folder, run=False)
    return folder


def page_of(site: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((site / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def dead_links(page: BeautifulSoup, place: Path) -> Iterator[str]:
    """Targets that are no file of the site, no place on the page and no web address; links shown as text."""
    yield from (span.get_text() for span in page.select(".target"))
    for link in page.find_all("a"):
        target, _, anchor = link["href"].partition("#")
        if target.startswith("https://"):
            continue
        if (target and not (place.parent / target).is_file()) or (
            not target and not page.find(id=anchor)
        ):
            yield link["href"]


def bad_formulas(html: str, source: str) -> list[str]:
    """Formulas that the converter could not read, and a line if their number is not the notebook's."""
    page = BeautifulSoup(html, "html.parser")
    found = [code.get_text() for code in page.select("code.formula")]
    counted, written = len(page.find_all("math")), len(FORMULA.findall(CODE.sub("", source)))
    return found + ([f"{counted} formulas, {written} in the source"] if counted != written else [])


def prose(name: str) -> str:
    cells = LESSONS[name].notebook.cells
    return "\n\n".join(cell_source(cell) for cell in cells if cell.cell_type == "markdown")


def test_there_are_the_lessons_of_all_three_assignments():
    counts = {}
    for one in LESSONS.values():
        counts[one.assignment] = counts.get(one.assignment, 0) + 1
    assert counts == {"w07-h2-attention": 3, "w07-h2-practice": 3, "attention-mechanism": 4}


@pytest.mark.parametrize("name", LESSONS)
def test_each_link_leads_somewhere(site, name):
    assert list(dead_links(page_of(site, name), site / f"{name}.html")) == []


def test_the_index_leads_to_every_lesson_and_its_notebook(site):
    index = page_of(site, "index")
    assert list(dead_links(index, site / "index.html")) == []
    targets = [link["href"] for link in index.select("main a")]
    assert [t.removesuffix(".html") for t in targets if not t.startswith("https:")] == list(LESSONS)
    assert sum(t.startswith("https://colab.research.google.com/") for t in targets) == len(LESSONS)


@pytest.mark.parametrize("name", LESSONS)
def test_each_formula_is_laid_out(site, name):
    html = (site / f"{name}.html").read_text(encoding="utf-8")
    assert bad_formulas(html, prose(name)) == []


@pytest.mark.parametrize("name", LESSONS)
def test_headings_are_in_order_and_no_picture_of_the_text_is_lost(site, name):
    page = page_of(site, name)
    levels = [int(h.name[1]) for h in page.find_all(re.compile("^h[1-6]$"))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert page.select(".picture") == []
    assert "`" not in "".join(s.get_text() for s in page.find_all("summary"))


def test_what_an_open_prediction_prints_is_left_out():
    from autograder.site import _PREDICTION

    assert _PREDICTION.fullmatch('evidence.predict("length 15", None)  # e.g. "0.5"')
    assert not _PREDICTION.fullmatch('evidence.predict("a", None)\nprint(1)')


def test_a_dead_link_and_a_broken_formula_are_noticed(tmp_path):
    known = {(one.assignment, one.name) for one in LESSONS.values()}
    link_to = linker(next(iter(LESSONS.values())), known)
    source = "See [this](9-absent.ipynb), [that](#nowhere) and $\\frac{1}{$, $x$, $y$ and `$z$`."
    html, _ = to_html(source, link_to)
    page = BeautifulSoup(html, "html.parser")
    assert len(list(dead_links(page, tmp_path / "page.html"))) == 2
    assert bad_formulas(html, source)
    assert bad_formulas("<math></math>", "$x$") == []
    assert bad_formulas("", "$x$") == ["0 formulas, 1 in the source"]
