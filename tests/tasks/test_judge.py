"""Does the judge give points for what is right, names for what is known, and neither by guessing?"""

import itertools
import threading

import numpy as np
import pytest

from autograder.execute.wire import Outcome, Raised
from autograder.tasks import judge
from autograder.tasks.authoring import Book, answer_source
from autograder.tasks.model import Candidate, CandidateTask, Case, Checkpoint, FunctionTask
from autograder.tasks.play import play

book = Book("double")


def double(x):
    if (x < 0).any():
        raise ValueError("negative")
    return 2.0 * x


@book.wrong("tripled", fails="values", message="Three times. Divide by 1.5.")
def triple(x):
    if (x < 0).any():
        raise ValueError("negative")
    return 3.0 * x


@book.wrong("unchecked", fails="errors", message="No check. Add one.")
def unchecked(x):
    return 2.0 * x


@book.wrong("changed-argument", fails="values", message="In place. Copy.")
def in_place(x):
    if (x < 0).any():
        raise ValueError("negative")
    x *= 2
    return x.copy()


@book.right("sum")
def summed(x):
    if min(x) < 0:
        raise ValueError("negative")
    return x + x


def cases(rng):
    a, b = rng.normal(size=3) ** 2 + 0.1, rng.normal(size=5) ** 2 + 0.1
    return [
        Case((a,), "double-values", "three numbers"),
        Case((b,), "double-values", "five numbers"),
        Case((7 * b,), "double-values", "large numbers"),
        Case((-a,), "double-errors", "negative numbers", neighbour=(a,)),
    ]


DOUBLE = FunctionTask(
    name="double",
    signature="double(x)",
    docstring="Twice x.",
    checkpoints=(
        Checkpoint("double-values", "twice the argument", 2),
        Checkpoint("double-errors", "negative raises", 1),
    ),
    reference=double,
    public=lambda: cases(np.random.default_rng(0))[:1],
    probes=cases,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    mutation="double-values",
    axes=(("place",),),
)


def quadruple(x):
    return double(double(x))


QUADRUPLE = FunctionTask(
    name="quadruple",
    signature="quadruple(x)",
    docstring="Four times x.",
    checkpoints=(Checkpoint("quadruple-values", "four times", 1),),
    reference=quadruple,
    public=lambda: [],
    probes=lambda rng: [Case((rng.normal(size=4) ** 2,), "quadruple-values")],
    calls=("double",),
    callees=(DOUBLE,),
)


def verdicts(function, task=DOUBLE, last=None, earlier=None, seed=1):
    asked = judge.questions(task, np.random.default_rng(seed))
    own = None if function is None else judge.outcomes(task, function, asked)
    then = None if last is None else judge.outcomes(task, last, asked)
    return judge.judge(task, asked, own, then, earlier)


def score(found):
    return {grade_id: v.score for grade_id, v in found.items()}


@pytest.mark.parametrize("function", [double, summed])
def test_right_work_gets_everything(function):
    found = verdicts(function)
    assert score(found) == {"double-values": 2, "double-errors": 1}
    assert {v.verdict for v in found.values()} == {"right"}


@pytest.mark.parametrize("wrong", book.misconceptions, ids=lambda m: m.name)
def test_each_misconception_loses_its_own_under_its_own_name(wrong):
    found = verdicts(wrong.implementation)
    assert {g for g, v in found.items() if v.score == 0} == set(wrong.fails)
    for grade_id in wrong.fails:
        assert found[grade_id].misconceptions == (wrong.name,)
        assert wrong.message in found[grade_id].message


def test_an_unknown_mistake_gets_a_place_and_no_name():
    def strange(x):
        if (x < 0).any():
            raise ValueError
        return 2.0 * x + np.arange(len(x))

    found = verdicts(strange)["double-values"]
    assert (found.score, found.misconceptions) == (0, ())
    assert "place 1" in found.message


def test_two_mistakes_in_two_checkpoints_are_both_named():
    found = verdicts(lambda x: 3.0 * x)
    assert found["double-values"].misconceptions == ("tripled",)
    assert found["double-errors"].verdict == "wrong"


def test_an_error_for_all_input_is_no_check():
    def grumpy(x):
        raise ValueError("no")

    found = verdicts(grumpy)["double-errors"]
    assert found.score == 0
    assert "not-a-check" in found.misconceptions


def test_a_stub_is_not_attempted_and_an_unbound_name_is_missing():
    def stub(x):
        raise NotImplementedError

    assert {v.verdict for v in verdicts(stub).values()} == {"not-attempted"}
    assert {v.verdict for v in verdicts(None).values()} == {"missing"}
    assert sum(score(verdicts(stub)).values()) == 0


def test_the_better_moment_counts_and_says_so():
    found = verdicts(triple, last=double)
    assert sum(score(found).values()) == 3
    assert "bound again" in found["double-values"].notes[0]
    found = verdicts(double, last=triple)
    assert sum(score(found).values()) == 3
    assert verdicts(double, last=double)["double-values"].notes == ()


def test_one_answer_for_all_inputs_reads_a_global():
    fixed = np.ones(3)
    found = verdicts(lambda x: fixed)
    assert "reads-global" in found["double-values"].misconceptions


def test_a_dead_kernel_costs_what_was_not_answered():
    asked = judge.questions(DOUBLE, np.random.default_rng(1))
    got = judge.outcomes(DOUBLE, double, asked)[:2]
    found = judge.judge(DOUBLE, asked, got, None)
    assert sum(score(found).values()) == 0
    gone = [Outcome(raised=Raised("KernelDied"))] * len(asked)
    assert "stopped" in judge.judge(DOUBLE, asked, gone, None)["double-values"].message


def test_right_given_an_earlier_mistake_gets_the_points():
    def with_tripled(x):
        return triple(triple(x))

    earlier = {"double": ("tripled",)}
    carried = verdicts(with_tripled, QUADRUPLE, earlier=earlier)["quadruple-values"]
    assert (carried.score, carried.verdict) == (1, "carried")
    assert "`double`" in carried.message
    assert verdicts(with_tripled, QUADRUPLE)["quadruple-values"].score == 0
    other = verdicts(lambda x: 5 * x, QUADRUPLE, earlier=earlier)["quadruple-values"]
    assert other.score == 0


def test_a_mistake_is_carried_through_a_right_function():
    def octuple(x):
        return 2 * quadruple(x)

    task = FunctionTask(
        name="octuple",
        signature="octuple(x)",
        docstring="",
        checkpoints=(Checkpoint("octuple-values", "eight times", 1),),
        reference=octuple,
        public=lambda: [],
        probes=lambda rng: [Case((rng.normal(size=4) ** 2,), "octuple-values")],
        callees=(QUADRUPLE,),
    )
    found = verdicts(lambda x: 18 * x, task, earlier={"double": ("tripled",)})
    assert found["octuple-values"].verdict == "carried"
    assert verdicts(lambda x: 18 * x, task)["octuple-values"].score == 0


def test_neighbours_follow_their_error_cases():
    asked = judge.questions(DOUBLE, np.random.default_rng(1))
    for first, second in itertools.pairwise(asked):
        if first.neighbour is not None:
            assert second.returns_only
            assert second.args is first.neighbour


def test_a_tester_is_judged_by_its_answers():
    right = Candidate("right", double, True, "accepts-all")
    wrong = Candidate("wrong", triple, False, "accepts-all")

    def accepts(candidate):
        return bool(candidate(np.ones(2))[0] == 2.0)

    task = CandidateTask(
        name="accepts",
        signature="accepts(candidate)",
        docstring="",
        checkpoints=(Checkpoint("accepts-all", "both are told apart", 1),),
        reference=accepts,
        public=lambda: [],
        probes=lambda rng: [Case((c,), "accepts-all", c.name) for c in (right, wrong)],
    )
    assert verdicts(accepts, task)["accepts-all"].score == 1
    lost = verdicts(lambda candidate: True, task)["accepts-all"]
    assert lost.score == 0
    assert "wrong" in lost.message
    served = judge.answer(Case((wrong,), "accepts-all"))([np.ones(2)])
    assert served.value.tolist() == [3.0, 3.0]


def test_playing_changes_nothing_of_the_callers():
    x = np.arange(3.0)
    outcome = play(in_place, (x,))
    assert outcome.changed == (0,)
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert play(double, (x,)).changed == ()


def test_playing_in_threads_leaves_stdout_alone(capsys):
    threads = [threading.Thread(target=play, args=(double, (np.ones(3),))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("still here")
    assert "still here" in capsys.readouterr().out


def test_an_implementation_becomes_an_answer_cell():
    text = answer_source(triple, "double")
    assert text.startswith("def double(x):")
    assert "@book" not in text
    names = {"np": np}
    exec(text, names)
    assert names["double"](np.ones(1)) == 3.0
