"""`python -m autograder publish DIR`: the repository for students. It holds release/, their page and the site alone.

What is written is searched for answers first; if one is found, nothing is written.
"""

from __future__ import annotations

import argparse
import inspect
import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from autograder.configuration import load_config
from autograder.course import Course, CourseError
from autograder.feedback.gather import cell_source, read_notebook
from autograder.site import Lesson, lessons, write_site
from autograder.tasks.model import FunctionTask
from autograder.tasks.registry import MODULES
from autograder.tasks.registry import assignment as find_tasks

OURS = ("release", "site", "README.md", "students.md", "LICENSE", ".gitignore")
EXAMPLE = "example-university/"
SHORTEST = 40
"""Characters without spaces below which a line of code is too common to be called an answer."""
_SOLUTION = re.compile(r"### BEGIN SOLUTION(.*?)### END SOLUTION", re.DOTALL)
_GITIGNORE = ".ipynb_checkpoints/\nartifacts/\n"
README = """\
# Attention: notebooks to work on

Each notebook is one file that runs in Colab, JupyterLab or VS Code. [How to open, work, check and hand in](students.md)
is one page. The same lessons for reading are in `site/`: open `site/index.html` in a browser.

{tables}"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="the students' repository (made if needed)")
    parser.add_argument(
        "--no-run", action="store_true", help="do not run the notebooks: a site without pictures"
    )


def repository(course: Course) -> str:
    """owner/name of the students' repository, as nbgrader_config.py says it (the one place)."""
    return str(load_config(course).EmbedHelper.colab_repository or "")


def readme(found: list[Lesson]) -> str:
    """The first page of the students' repository, with a link to each notebook."""
    tables = []
    for name in dict.fromkeys(lesson.assignment for lesson in found):
        rows = [
            f"| [{lesson.title}](release/{name}/{lesson.name}.ipynb) | "
            + (f"[Open in Colab]({lesson.colab}) |" if lesson.colab else "– |")
            for lesson in found
            if lesson.assignment == name
        ]
        head = f"## {find_tasks(name).title}\n\n| notebook | Colab |\n|---|---|\n"
        tables.append(head + "\n".join(rows) + "\n")
    return README.format(tables="\n".join(tables))


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _notebook_texts(folder: Path) -> Iterator[str]:
    """The cells of all notebooks of a folder."""
    for path in sorted(folder.glob("*.ipynb")):
        for cell in (read_notebook(path) or {}).get("cells", []):
            yield cell_source(cell)


def answers(course: Course) -> dict[str, str]:
    """Answers by where they stand: solutions in source/ and references of the tasks, without spaces.

    What a lesson itself prints outside its solutions is no secret and is left out.
    """
    found: dict[str, str] = {}
    named = [name for name in MODULES if list((course.source / name).glob("*.ipynb"))]
    printed = _squeezed(
        "\n".join(
            _SOLUTION.sub("", text)
            for name in named
            for text in _notebook_texts(course.source / name)
        )
    )
    for name in named:
        candidates: list[tuple[str, str]] = []
        for text in _notebook_texts(course.source / name):
            for solution in _SOLUTION.findall(text):
                candidates.append((f"a solution in source/{name}", solution))
        for notebook in find_tasks(name).notebooks:
            for part in notebook.parts:
                if isinstance(part, FunctionTask):
                    candidates.append((f"the reference of {part.name}", _body(part.reference)))
        for where, code in candidates:
            for line in _telling_lines(code):
                if line not in printed:
                    found.setdefault(line, where)
    return found


def _body(function: object) -> str:
    """The source of a reference without its signature and docstring."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""
    source = re.sub(r'("""|\'\'\').*?\1', "", source, flags=re.DOTALL)
    return source.split("\n", 1)[-1]


def _telling_lines(code: str) -> Iterator[str]:
    """The lines of an answer that are long enough to be no coincidence, and short answers as a whole."""
    lines = [_squeezed(line) for line in code.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    yield from (line for line in lines if len(line) >= SHORTEST)
    whole = "".join(lines)
    if len(lines) > 1 and len(whole) >= SHORTEST:
        yield whole


def leaks(course: Course, folder: Path) -> list[str]:
    """What in `folder` must not be there: answers, solution marks, the grader's own modules."""
    secrets = answers(course)
    problems: list[str] = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts):
        where = path.relative_to(folder).as_posix()
        if path.suffix == ".ipynb":
            text = "\n".join(cell_source(c) for c in (read_notebook(path) or {}).get("cells", []))
        else:
            text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".html":
            text = _shown(text)
        for word in ("BEGIN SOLUTION", "autograder.tasks", "BEGIN HIDDEN", "BEGIN MARK SCHEME"):
            if word in text:
                problems.append(f"{where}: {word!r}")
        squeezed = _squeezed(text)
        problems += [f"{where}: {told}" for line, told in secrets.items() if line in squeezed]
    return problems


def _shown(html: str) -> str:
    """The text of a page, as a reader sees it."""
    from html import unescape

    return unescape(re.sub(r"<[^>]*>", "", html))


def check_folder(course: Course, folder: Path) -> None:
    """Refuse a folder in which publishing would overwrite or expose something.

    Raises:
        CourseError: if it is the course itself, inside it, around it, or somebody else's.
    """
    folder = folder.resolve()
    if folder == course.root or folder in course.root.parents or course.root in folder.parents:
        raise CourseError(
            f"{folder} is not outside this repository, which holds the answers: publish elsewhere."
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CourseError(f"{folder} is a file; name a folder.")
    strange = sorted(p.name for p in folder.iterdir() if p.name not in (*OURS, ".git"))
    if strange:
        raise CourseError(
            f"{folder} holds other things ({', '.join(strange[:5])}): publish into an empty folder, or "
            f"into one that was published before."
        )


def build(course: Course, folder: Path, run: bool = True) -> None:
    """Write the students' repository into an empty folder."""
    found = lessons(course)
    for name in dict.fromkeys(lesson.assignment for lesson in found):
        target = folder / "release" / name
        target.mkdir(parents=True)
        for path in sorted((course.release / name).glob("*.ipynb")):
            shutil.copyfile(path, target / path.name)
    (folder / "site").mkdir()
    write_site(course, folder / "site", run=run)
    (folder / "README.md").write_text(readme(found), encoding="utf-8")
    (folder / ".gitignore").write_text(_GITIGNORE, encoding="utf-8")
    for source, name in (("docs/students.md", "students.md"), ("LICENSE", "LICENSE")):
        if (course.root / source).exists():
            shutil.copyfile(course.root / source, folder / name)


def publish(course: Course, folder: Path, run: bool = True) -> None:
    """Build, search for answers, and only then replace what was published before.

    Raises:
        CourseError: if the folder is not fit for it, something is not built, or an answer was found.
    """
    check_folder(course, folder)
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch)
        build(course, built, run)
        problems = leaks(course, built)
        if problems:
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise CourseError(f"nothing is published: answers in {problems[0]}{more}.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in OURS:
                target = folder / name
                if target.is_dir():
                    shutil.rmtree(target)
                elif target.exists():
                    target.unlink()
                if (built / name).exists():
                    shutil.move(built / name, target)
        except OSError as error:
            raise CourseError(f"{folder} cannot be written ({error.strerror}).") from None


def run(args: argparse.Namespace, course: Course) -> int:
    publish(course, args.folder, run=not args.no_run)
    name = repository(course)
    print(f"published: {args.folder} (no answers found). Commit it and push it as {name or '?'}.")
    if not name or name.startswith(EXAMPLE):
        print(
            "The Colab links still name the example repository: set c.EmbedHelper.colab_repository in "
            "nbgrader_config.py, run `make release` and publish again."
        )
    return 0
