"""Cells: whatever happened to them, the student's answers run and the release's cells are back."""

from copy import deepcopy

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.ingest import repair

from .samples import SOLUTIONS, cell, released, run, solved


def fixed(notebook):
    """The repaired notebook after the checks that hold for every repair."""
    before = deepcopy(notebook)
    result, says = repair(notebook, released())
    assert notebook == before, "the submitted notebook was changed"
    nbformat.validate(result)
    release = released()
    assert [c.id for c in result.cells if c.id in {r.id for r in release.cells}] == [
        c.id for c in release.cells
    ]
    for right in release.cells:
        now = cell(result, right.id)
        assert now.metadata == right.metadata
        assert now.cell_type == right.cell_type
        if right.metadata.get("nbgrader", {}).get("locked"):
            assert now.source == right.source
    for sentence in says:
        assert sentence.endswith(".")
        assert "\n" not in sentence
    return result, says


def full_marks(notebook):
    names = run(notebook)
    assert names["double"](5) == 10
    assert names["square"](5) == 25
    assert "errors" not in names, names["errors"]
    assert SOLUTIONS["words"] in cell(notebook, "words").source


def test_a_perfect_submission_needs_no_repair():
    result, says = fixed(solved())
    assert says == []
    full_marks(result)


def test_an_untouched_release_earns_no_repair_and_no_marks():
    result, says = fixed(released())
    assert says == []
    assert run(result)["errors"]


def test_the_sentences_name_the_cell():
    nb = solved()
    nb.cells.remove(cell(nb, "square-value"))
    _, says = fixed(nb)
    assert says == ["The locked cell `square-value` had been deleted; it was put back."]


@pytest.mark.parametrize("cell_id", [c.id for c in released().cells])
def test_any_released_cell_may_be_deleted(cell_id):
    nb = solved()
    nb.cells.remove(cell(nb, cell_id))
    result, says = fixed(nb)
    assert len(says) == 1
    if cell_id not in SOLUTIONS:
        full_marks(result)


@pytest.mark.parametrize("cell_id", ["setup", "core", "double-value", "double-text"])
def test_any_released_cell_may_be_emptied(cell_id):
    nb = solved()
    cell(nb, cell_id).source = " \n"
    result, says = fixed(nb)
    full_marks(result)
    assert cell(result, cell_id).source == cell(released(), cell_id).source
    assert len(says) == 1


def test_all_metadata_and_ids_lost():
    nb = solved()
    for number, one in enumerate(nb.cells):
        one.metadata = {}
        one.id = f"x{number}"
    result, says = fixed(nb)
    full_marks(result)
    assert "All cells had lost their nbgrader metadata" in says[0]


def test_the_last_changed_copy_is_the_answer_and_untouched_copies_do_not_undo_it():
    nb = solved()
    place = nb.cells.index(cell(nb, "double"))
    early = deepcopy(nb.cells[place])
    early.source = "def double(x):\n    return 3 * x"
    stub = deepcopy(cell(released(), "double"))
    nb.cells.insert(place, early)
    nb.cells.insert(place + 2, stub)
    result, says = fixed(nb)
    full_marks(result)
    assert cell(result, "double").source == SOLUTIONS["double"]
    assert any("3 times" in s for s in says)
    assert any("return 3 * x" in c.source for c in result.cells)
    assert sum("NotImplementedError" in c.source for c in result.cells) == 0


def test_a_copy_used_as_scratch_is_not_taken_for_the_answer():
    nb = solved()
    scratch = deepcopy(cell(nb, "double"))
    scratch.source = "print(double(4))"
    nb.cells.append(scratch)
    result, _ = fixed(nb)
    assert cell(result, "double").source == SOLUTIONS["double"]
    assert result.cells[-1].source == "print(double(4))"
    full_marks(result)


def test_of_equal_copies_the_first_one_is_in_its_place():
    nb = solved()
    nb.cells += deepcopy(nb.cells)
    result, says = fixed(nb)
    full_marks(result)
    assert not any("moved" in s for s in says)


def test_an_answer_without_a_name_merged_into_the_text_above_it():
    release = released()
    cell(release, "double").source = "raise NotImplementedError  # make some numbers"
    nb = deepcopy(release)
    nb.cells.remove(cell(nb, "double"))
    cell(nb, "double-text").source += "\n\nmine = [n * n for n in range(3)]"
    result, _ = repair(nb, release)
    assert run(result)["mine"] == [0, 1, 4]
    assert cell(result, "double").source == "mine = [n * n for n in range(3)]"
    assert cell(result, "double-text").source == cell(release, "double-text").source


def test_a_copied_checkpoint_is_there_once():
    nb = solved()
    nb.cells.insert(7, deepcopy(cell(nb, "double-value")))
    result, says = fixed(nb)
    assert len(result.cells) == len(nb.cells) - 1
    assert "was there twice" in says[0]


@pytest.mark.parametrize("line", [1, 2, 3])
@pytest.mark.parametrize("keep", [True, False])
def test_a_split_answer_is_joined(line, keep):
    nb = solved()
    one = cell(nb, "double")
    place = nb.cells.index(one)
    lines = one.source.split("\n")
    rest = new_code_cell("\n".join(lines[line:]), id="rest")
    if keep:
        rest.metadata = deepcopy(one.metadata)
    one.source = "\n".join(lines[:line])
    nb.cells.insert(place + 1, rest)
    result, says = fixed(nb)
    full_marks(result)
    assert any("split" in s for s in says)
    assert len(result.cells) == len(released().cells)


def test_own_cells_that_work_are_not_swallowed_by_broken_ones_around_them():
    nb = solved()
    sources = ["'''", "mine = 3", "'''"]
    nb.cells += [new_code_cell(text, id=f"own-{n}") for n, text in enumerate(sources)]
    result, says = fixed(nb)
    assert run(result)["mine"] == 3
    assert says == []


def test_a_split_checkpoint_leaves_nothing_behind():
    nb = solved()
    one = cell(nb, "double-value")
    place = nb.cells.index(one)
    first, second = one.source.split("\n")
    one.source = first
    nb.cells.insert(place + 1, new_code_cell(second, id="rest"))
    result, says = fixed(nb)
    full_marks(result)
    assert len(result.cells) == len(released().cells)
    assert any("split" in s for s in says)


@pytest.mark.parametrize("first", ["double", "double-value", "square-text", "core", "setup"])
def test_merged_neighbours_are_cut_apart(first):
    nb = solved()
    place = nb.cells.index(cell(nb, first))
    second = nb.cells.pop(place + 1)
    nb.cells[place].source += "\n\n" + second.source
    result, says = fixed(nb)
    full_marks(result)
    assert says


def test_an_answer_merged_into_the_checkpoint_before_it_is_not_lost():
    nb = solved()
    cell(nb, "double-value").source += "\n" + SOLUTIONS["square"]
    nb.cells.remove(cell(nb, "square"))
    result, says = fixed(nb)
    full_marks(result)
    assert says


def test_two_answers_merged_into_one():
    nb = solved()
    cell(nb, "double").source += "\n\n" + SOLUTIONS["square"]
    nb.cells.remove(cell(nb, "square"))
    result, says = fixed(nb)
    full_marks(result)
    assert cell(result, "square").source.startswith("#")
    assert any("definition of `square` in another" in s for s in says)


def test_an_answer_written_into_the_setup_cell_stays():
    nb = solved()
    cell(nb, "setup").source += "\n\n" + SOLUTIONS["double"] + "\nVERSION = 2"
    nb.cells.remove(cell(nb, "double"))
    result, says = fixed(nb)
    full_marks(result)
    assert "VERSION = 2" not in cell(result, "setup").source
    assert says


def test_an_edited_checkpoint_keeps_only_new_names_of_the_student():
    nb = solved()
    cell(nb, "double-value").source = "helper = 7\nassert True"
    result, says = fixed(nb)
    full_marks(result)
    assert run(result)["helper"] == 7
    assert "edited" in says[0]


@pytest.mark.parametrize("target", [0, 2, -1])
@pytest.mark.parametrize("cell_id", ["double", "double-value", "setup", "core", "words"])
def test_moved_cells_go_back(cell_id, target):
    nb = solved()
    one = cell(nb, cell_id)
    nb.cells.remove(one)
    nb.cells.insert(target if target >= 0 else len(nb.cells), one)
    result, says = fixed(nb)
    full_marks(result)
    assert nb.cells == solved().cells or any("moved" in s for s in says)


def test_an_answer_moved_below_its_own_helper_stays_there():
    nb = solved()
    one = cell(nb, "double")
    nb.cells.remove(one)
    one.source = "def double(x, by=factor):\n    return by * x"
    nb.cells += [new_code_cell("factor = 2", id="mine"), one]
    result, says = repair(nb, released())
    assert run(result)["double"](4) == 8
    assert any("stays where you put it" in s for s in says)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize("fence", [False, True])
@pytest.mark.parametrize("lost", [False, True])
def test_a_retyped_answer_is_code_again(kind, fence, lost):
    nb = solved()
    one = cell(nb, "double")
    one.cell_type = kind
    del one["outputs"], one["execution_count"]
    if fence:
        one.source = f"```python\n{one.source}\n```"
    if lost:
        one.metadata, one.id = {}, "zz"
    result, says = fixed(nb)
    full_marks(result)
    assert any("had been changed to" in s for s in says)


def test_code_written_into_a_text_cell_of_the_lesson_stays_code():
    nb = solved()
    at = nb.cells.index(cell(nb, "double-text"))
    nb.cells[at] = new_code_cell("mine = 4", id="double-text")
    result, says = fixed(nb)
    full_marks(result)
    assert run(result)["mine"] == 4
    assert says == ["A text cell of the lesson had been deleted and was put back."]


def test_thousands_of_own_cells_are_no_trouble():
    nb = solved()
    nb.cells = [c for c in nb.cells if c.id in SOLUTIONS]
    nb.cells += [new_code_cell(f"own_{n} = {n}", id=f"own-{n}") for n in range(3000)]
    result, _ = fixed(nb)
    full_marks(result)
    assert run(result)["own_2999"] == 2999


def test_prose_turned_into_code_is_prose_again():
    nb = solved()
    one = cell(nb, "words")
    nb.cells[nb.cells.index(one)] = new_code_cell(one.source, id="words", metadata=one.metadata)
    result, says = fixed(nb)
    full_marks(result)
    assert says


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("points", 100),
        ("schema_version", 1),
        ("locked", False),
        ("grade", False),
        ("solution", True),
        ("cell_type", "markdown"),
    ],
)
def test_settings_come_from_the_release(key, value):
    nb = solved()
    cell(nb, "double-value").metadata["nbgrader"][key] = value
    result, says = fixed(nb)
    full_marks(result)
    assert f"`{key}`" in says[0]


def test_a_changed_grade_id_is_recognised_and_no_path_gets_through():
    nb = solved()
    cell(nb, "square").metadata["nbgrader"]["grade_id"] = "../../etc/passwd\x1b[2J"
    result, says = fixed(nb)
    full_marks(result)
    assert all("/" not in s and "\x1b" not in s for s in says)
    assert len(says) == 2


def test_own_cells_stay_in_place_and_run():
    nb = solved()
    nb.cells.insert(6, new_code_cell("mine = double(3)", id="setup"))
    nb.cells.insert(6, new_markdown_cell("A thought.", id="thought"))
    result, _ = fixed(nb)
    assert run(result)["mine"] == 6
    assert [c.source for c in result.cells[6:8]] == ["A thought.", "mine = double(3)"]


def test_skip_tags_and_foreign_metadata_are_dropped():
    nb = solved()
    cell(nb, "double").metadata["tags"] = ["skip-execution"]
    cell(nb, "core").metadata["executionInfo"] = {"user": {"displayName": "Ada"}}
    result, says = fixed(nb)
    assert "Ada" not in str(result)
    assert any("skip-execution" in s for s in says)


def test_an_answer_in_words_spread_over_copies_is_read_whole():
    nb = solved()
    extra = deepcopy(cell(nb, "words"))
    extra.source = "And halving undoes doubling."
    nb.cells.append(extra)
    result, _ = fixed(nb)
    full_marks(result)
    assert "halving" in cell(result, "words").source


def test_a_deleted_answer_with_no_other_definition_is_not_attempted():
    nb = solved()
    nb.cells.remove(cell(nb, "double"))
    result, _ = fixed(nb)
    assert "NotImplementedError" in cell(result, "double").source


def test_a_notebook_of_an_older_release_says_so_once():
    nb = solved()
    new = released()
    nb.metadata["attention_course"] = {"release": "old"}
    new.metadata["attention_course"] = {"release": "new"}
    for cell_id in ("setup", "double-value", "square-value"):
        cell(nb, cell_id).source += "\n# as it was"
    result, says = repair(nb, new)
    full_marks(result)
    assert result.metadata == new.metadata
    assert len(says) == 1
    assert "another version" in says[0]


def test_edited_cells_without_ids_find_the_ones_they_are_most_like():
    release = released()
    release.cells = [
        new_code_cell(f'predict("{word}", None)  # what about {word}?', id=word)
        for word in ("seed", "memory", "scores", "weights")
    ]
    nb = deepcopy(release)
    for number, one in enumerate(nb.cells):
        one.source = one.source.replace("None", '"my guess"')
        one.id = f"x{number}"
    result, _ = repair(nb, release)
    assert [c.id for c in result.cells] == ["seed", "memory", "scores", "weights"]
    assert all(c.id in c.source for c in result.cells)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["delete", "copy", "move", "strip", "edit", "retype"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=6,
)


def test_many_alike_are_told_in_one_sentence_that_names_each():
    release = released()
    for number in range(8):
        metadata = deepcopy(cell(release, "double-value").metadata)
        metadata["nbgrader"]["grade_id"] = f"more-{number}"
        release.cells.append(
            new_code_cell(f"# check {number}\nassert True", id=f"more-{number}", metadata=metadata)
        )
    _, says = repair(solved(), release)
    assert len(says) == 1
    assert all(f"`more-{number}`" in says[0] for number in range(8))


@settings(max_examples=150, deadline=None)
@given(ACTIONS)
def test_any_series_of_accidents_leaves_a_valid_notebook_with_all_released_cells(actions):
    nb = solved()
    for action, at, to in actions:
        if not nb.cells:
            break
        one = nb.cells[at % len(nb.cells)]
        if action == "delete":
            nb.cells.remove(one)
        elif action == "copy":
            nb.cells.insert(to % (len(nb.cells) + 1), deepcopy(one))
        elif action == "move":
            nb.cells.remove(one)
            nb.cells.insert(to % (len(nb.cells) + 1), one)
        elif action == "strip":
            one.metadata, one.id = {}, f"s{to}"
        elif action == "edit":
            one.source = one.source[: to * 3]
        elif action == "retype":
            one.cell_type = "raw"
    result, _ = repair(nb, released())
    nbformat.validate(result)
    ids = [c.id for c in result.cells]
    assert len(ids) == len(set(ids))
    assert {c.id for c in released().cells} <= set(ids)
    for right in released().cells:
        if right.metadata.get("nbgrader", {}).get("locked"):
            assert cell(result, right.id).source == right.source
    again, _ = repair(result, released())
    assert again == result


HARMLESS = st.lists(
    st.tuples(
        st.sampled_from(["copy", "move", "strip", "merge", "split", "retype", "own"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=2,
)


def suffer(nb, action, at, to):
    """One accident that takes nothing away."""
    one = nb.cells[at % len(nb.cells)]
    place = at % len(nb.cells)
    if action == "copy":
        nb.cells.insert(place + 1, deepcopy(one))
    elif action == "move":
        nb.cells.insert(to % len(nb.cells), nb.cells.pop(place))
    elif action == "strip":
        one.metadata, one.id = {}, f"s{at}-{to}"
    elif action == "merge" and place + 1 < len(nb.cells):
        one.source += "\n\n" + nb.cells.pop(place + 1).source
    elif action == "split" and "\n" in one.source:
        lines = one.source.split("\n")
        cut = 1 + to % (len(lines) - 1)
        rest = deepcopy(one)
        one.source, rest.source = "\n".join(lines[:cut]), "\n".join(lines[cut:])
        rest.id = f"r{at}-{to}"
        if to % 2:
            rest.metadata = {}
        nb.cells.insert(place + 1, rest)
    elif action == "retype" and one.cell_type == "code":
        one.cell_type = "raw"
    elif action == "own":
        nb.cells.insert(place, new_code_cell(f"own_{to} = 1", id=f"o{at}-{to}"))


@settings(max_examples=250, deadline=None)
@given(HARMLESS)
def test_any_two_accidents_that_take_nothing_away_cost_no_function(actions):
    nb = solved()
    # A split comes last: with another cell between its halves no editor could run it either.
    for action, at, to in sorted(actions, key=lambda a: a[0] == "split"):
        suffer(nb, action, at, to)
    result, says = repair(nb, released())
    names = run(result)
    assert names["double"](5) == 10, says
    assert names["square"](5) == 25, says
