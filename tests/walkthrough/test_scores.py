"""What the walkthrough's checkpoints give: untouched, changed, changed in place, and wrong.

In every case the helper's own line in the notebook and the grader's verdict must agree.
"""

from __future__ import annotations

import pytest

from autograder.tasks.w07_h2_attention import ASSIGNMENT
from tests.walkthrough.play import CHANGES, NOTEBOOKS, Played, play, predictions

ONE, TWO, THREE = NOTEBOOKS


def assert_agrees(played: Played) -> None:
    """✓ where the grader gives all marks, ○ where it says what is to do, ✗ where it finds a fault."""
    wrong = played.wrong()
    for grade_id, sign in played.signs.items():
        verdict = played.verdicts[grade_id]
        expected = "✗" if grade_id in wrong else "✓" if verdict.score == verdict.max_score else "○"
        seen = "✗" if sign == "·" else sign
        assert seen == expected, (grade_id, sign, verdict, played.errors)


def test_untouched_earns_at_most_a_third(tmp_path):
    total = sum(play(name, [], tmp_path).score for name in NOTEBOOKS)
    most = sum(c.points for n in ASSIGNMENT.notebooks for c in n.checkpoints())
    assert total == 14
    assert total <= most / 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_untouched_runs_through_and_says_what_is_left(name, tmp_path):
    played = play(name, [], tmp_path)
    assert not played.errors
    assert set(played.signs.values()) == {"○"}
    assert_agrees(played)
    assert f"0 of {len(played.signs)} checkpoints pass." in played.printed["summary"]
    assert played.printed["summary"].count("still to do") == len(played.signs)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_changes_and_predictions_earn_everything(name, tmp_path):
    played = play(name, predictions(name) + CHANGES[name], tmp_path)
    assert not played.errors
    assert set(played.signs.values()) == {"✓"}
    assert_agrees(played)
    automatic = [v for v in played.verdicts.values() if v.verdict != "manual"]
    assert all(v.score == v.max_score for v in automatic), played.verdicts
    assert (
        f"{len(played.signs)} of {len(played.signs)} checkpoints pass." in played.printed["summary"]
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_change_without_a_prediction_or_the_reverse_is_not_enough(name, tmp_path):
    for edits in (CHANGES[name], predictions(name)):
        played = play(name, edits, tmp_path)
        assert {v.score for v in played.verdicts.values() if v.verdict != "manual"} == {1.0}
        assert_agrees(played)


EQUAL_KEYS = "[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]"
IN_PLACE = {
    "temperature 0.5": (TWO, [("run-6", "temperature = 1.0", "temperature = 0.5")]),
    "temperature 2.0": (TWO, [("run-6", "temperature = 1.0", "temperature = 2.0")]),
    "temperature 0.001": (TWO, [("run-6", "temperature = 1.0", "temperature = 0.001")]),
    "equal keys 1": (ONE, [("run-2", EQUAL_KEYS, "[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]")]),
    "equal keys 2": (
        TWO,
        [("run-6", "temperature = 1.0", "temperature = 1.0\nK = np.ones((3, 2))")],
    ),
    "equal keys 3": (THREE, [("numpy-9", EQUAL_KEYS, "np.full((3, 2), 2.5)")]),
    "equal tokens": (TWO, [("run-7", EQUAL_KEYS, "np.ones((3, 2))")]),
    "other tokens": (TWO, [("run-7", EQUAL_KEYS, "[[3.0, 1.0], [-1.0, 0.5], [2.0, 2.0]]")]),
    "large value 1": (ONE, [("run-2", "[0.0, 10.0]", "[0.0, 1e6]")]),
    "huge value 1": (ONE, [("run-2", "[0.0, 10.0]", "[-1e12, 1e12]")]),
    "large value 3": (THREE, [("numpy-9", "[0.0, 10.0]", "[0.0, 1e6]")]),
    "huge value 3": (THREE, [("numpy-9", "[0.0, 10.0]", "[-1e12, 1e12]")]),
    "opposite huge values": (
        THREE,
        [
            (
                "numpy-9",
                "[10.0, 0.0], [0.0, 10.0], [10.0, 10.0]",
                "[1e8, 0.0], [0.0, 1.0], [-1e8, 1.0]",
            )
        ],
    ),
    "changed value": (THREE, [("run-10", "[100.0, 100.0]", "[1e9, -1e9]")]),
    "another item changed": (THREE, [("run-10", "V_changed[1]", "V_changed[0]")]),
    "query 1": (ONE, [("run-2", "[[1.0, 0.0]]", "[[0.0, 1.0]]")]),
    "query 3": (THREE, [("numpy-9", "[[1.0, 0.0]]", "[[-1.0, 0.0]]")]),
    "two queries": (ONE, [("run-2", "[[1.0, 0.0]]", "[[0.0, 1.0], [2.0, 2.0]]")]),
    "queries": (TWO, [("run-6", "[-1.0, 0.0]]", "[5.0, -5.0], [0.1, 0.1]]")]),
    "seed": (ONE, [("run-1", "SEED = 2026", "SEED = 7")]),
    "padding elsewhere": (TWO, [("run-8", "[True, True, False]", "[True, False, True]")]),
    "remove A": (THREE, [("run-10b", "[[True, False, True]]", "[[False, True, True]]")]),
    "integer arrays": (ONE, [("run-2", "Q = np.array([[1.0, 0.0]])", "Q = np.array([[1, 0]])")]),
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_a_practice_item_done_in_place_loses_nothing(case, tmp_path):
    name, edits = IN_PLACE[case]
    untouched = play(name, [], tmp_path)
    played = play(name, edits, tmp_path)
    assert not played.errors
    assert not played.wrong()
    assert played.score >= untouched.score
    assert_agrees(played)


@pytest.mark.parametrize("case", IN_PLACE)
def test_it_loses_nothing_beside_the_changes_either(case, tmp_path):
    name, edits = IN_PLACE[case]
    played = play(name, edits + predictions(name) + CHANGES[name], tmp_path)
    assert not played.errors
    assert all(v.score == v.max_score for v in played.verdicts.values() if v.verdict != "manual")
    assert_agrees(played)


def test_a_change_in_place_counts_as_a_change(tmp_path):
    name, edits = IN_PLACE["temperature 0.5"]
    played = play(name, edits + predictions(name), tmp_path)
    assert played.verdicts["temperature-positive"].score == 3


WRONG = {
    "not scaled": (
        *(ONE, "run-3", "scores = Q @ K.T / np.sqrt(K.shape[-1])", "scores = Q @ K.T"),
        *("scores-scaled", "raw dot products"),
    ),
    "own scores not scaled": (
        *(ONE, "your-change-3", "my_Q @ K.T / np.sqrt(K.shape[-1])", "my_Q @ K.T"),
        *("scores-scaled", "raw dot products"),
    ),
    "scaled by the number of keys": (
        *(ONE, "run-3", "np.sqrt(K.shape[-1])", "np.sqrt(len(K))"),
        *("scores-scaled", "the property gives"),
    ),
    "softmax over the queries": (
        *(TWO, "run-6", "W = softmax(queries @ K.T / np.sqrt(K.shape[-1]) / temperature)"),
        "W = softmax((queries @ K.T / np.sqrt(2)).T).T",
        *("temperature-positive", "axis"),
    ),
    "no division by the sum": (
        *(ONE, "softmax", "return powers / powers.sum(axis=-1, keepdims=True)", "return powers"),
        *("weights-sum-to-one", "row"),
    ),
    "nan in the weights": (
        *(ONE, "run-4", "weights = softmax(scores)", "weights = softmax(scores) * np.nan"),
        *("weights-sum-to-one", "NaN"),
    ),
    "a list": (
        *(
            ONE,
            "your-change-4",
            "softmax(my_row + my_shift)",
            "softmax(my_row + my_shift).tolist()",
        ),
        *("weights-sum-to-one", "list"),
    ),
    "context from the mean": (
        *(ONE, "run-5", "context = weights @ V", "context = V.mean(axis=0, keepdims=True)"),
        *("context-weighted-sum", "the property gives"),
    ),
    "context without its axis": (
        *(ONE, "run-5", "context = weights @ V", "context = (weights @ V)[0]"),
        *("context-weighted-sum", "not (any, any)"),
    ),
    "a value too few": (
        *(ONE, "your-change-2", "[0.0, 10.0], [10.0, 10.0]])", "[10.0, 10.0]])"),
        *("memory-paired", "as many rows"),
    ),
    "negative temperature": (
        *(TWO, "your-change-6", "my_temperature = 1.0", "my_temperature = -1.0"),
        *("temperature-positive", "0.5 is sharper"),
    ),
    "mask after the softmax": (
        *(TWO, "run-7", "causal_weights = softmax(masked_scores)"),
        "causal_weights = softmax(self_scores) * allowed",
        *("causal-future-zero", "after the softmax"),
    ),
    "no mask": (
        *(TWO, "run-7", "causal_weights = softmax(masked_scores)"),
        "causal_weights = softmax(self_scores)",
        *("causal-future-zero", "mask"),
    ),
    "mask transposed": (
        *(TWO, "run-7", "allowed = np.tril(", "allowed = np.triu("),
        *("causal-future-zero", ""),
    ),
    "a finite number for -inf": (
        *(TWO, "your-change-7", "my_scores, -np.inf", "my_scores, -5.0"),
        *("causal-future-zero", "masked"),
    ),
    "padding over the query rows": (
        *(
            TWO,
            "your-change-8",
            "my_is_real_key[None, :]",
            "my_is_real_key[:, None] | np.eye(3, dtype=bool)",
        ),
        *("padding-key-zero", "mask"),
    ),
    "an empty row": (
        *(TWO, "your-change-8b", "[1, 0, 0]", "[0, 0, 0]"),
        *("rows-keep-a-key", "keeps a key"),
    ),
    "context unscaled in the comparison": (
        *(THREE, "numpy-9", "scores = Q @ K.T / np.sqrt(K.shape[-1])", "scores = Q @ K.T"),
        *("sdpa-parity", ""),
    ),
    "a mask that PyTorch did not get": (
        *(THREE, "your-change-9", "np.array([[True, True, True]])"),
        "np.array([[True, False, True]])\nmy_mask_for_torch = np.array([[True, True, True]])",
        *("sdpa-parity", None),
    ),
    "unchanged values": (
        *(THREE, "your-change-10", "[100.0, 100.0]", "V[1]"),
        *("values-leave-weights", "differ"),
    ),
    "removed, not renormalised": (
        *(
            THREE,
            "your-change-10b",
            "softmax(np.where(my_keep, scores, -np.inf))",
            "weights * my_keep",
        ),
        *("removal-renormalises", "after the softmax"),
    ),
    "nothing removed": (
        *(THREE, "your-change-10b", "[[True, False, True]]", "[[True, True, True]]"),
        *("removal-renormalises", "removed"),
    ),
    "keys that differ": (
        *(THREE, "your-change-11", "np.tile(my_shared_key, (3, 1))", "np.eye(3)[:, :2]"),
        *("same-keys-share", ""),
    ),
    "a false claim": (
        *(
            THREE,
            "your-change-11b",
            "np.allclose(causal_weights.sum(axis=-1), 1)",
            "weights[0, 0] > 2",
        ),
        *("evidence-complete", "claim"),
    ),
}


@pytest.mark.parametrize("case", [case for case in WRONG if WRONG[case][5] is not None])
def test_a_wrong_value_loses_its_marks_and_is_told_why(case, tmp_path):
    name, cell, old, new, grade_id, words = WRONG[case]
    edits = [e for e in CHANGES[name] if e[0] != cell] + predictions(name) + [(cell, old, new)]
    played = play(name, edits, tmp_path)
    verdict = played.verdicts[grade_id]
    assert verdict.score < verdict.max_score
    assert words in verdict.message
    assert_agrees(played)


def test_a_mask_that_pytorch_did_not_get_is_found(tmp_path):
    edits = [
        ("your-change-9", "[[True, True, True]]", "[[True, False, True]]"),
        ("your-change-9", "torch.tensor(my_mask)", "torch.tensor(~my_mask)"),
    ]
    played = play(THREE, edits + predictions(THREE), tmp_path)
    assert played.verdicts["sdpa-parity"].score == 1
    assert_agrees(played)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_left_out_give_a_clear_verdict(name, tmp_path):
    """Each code cell in turn is not run: no exception, and nobody gains by it."""
    from tests.walkthrough.play import source

    untouched = play(name, [], tmp_path).score
    for cell in source(name).cells:
        if cell.cell_type == "code":
            played = play(name, [], tmp_path, skip=(cell.id,))
            assert played.score <= untouched
            assert all(verdict.message for verdict in played.verdicts.values())


def test_a_name_bound_again_later_costs_nothing(tmp_path):
    edits = predictions(ONE) + CHANGES[ONE] + [("summary", "", "scores = weights = None")]
    played = play(ONE, edits, tmp_path)
    assert all(verdict.score == 3 for verdict in played.verdicts.values())
    assert any("bound again" in note for v in played.verdicts.values() for note in v.notes)
