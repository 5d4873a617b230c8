"""`accepts`: the student as tester of somebody else's attention function."""

from __future__ import annotations

import numpy as np

from autograder.tasks.authoring import Book
from autograder.tasks.model import CandidateTask, Checkpoint
from autograder.tasks.w07_h2_practice import attention as attention_module
from autograder.tasks.w07_h2_practice.attention import attention
from autograder.tasks.w07_h2_practice.candidates import CONTRACT, FORMULA, MASKS, local_cases, pool

NAME = "accepts"
DOCSTRING = """Test an attention function that you cannot look into.

Args:
    candidate: a function with the contract of `attention`. Call it by position:
        candidate(Q, K, V), candidate(Q, K, V, allowed) or candidate(Q, K, V, allowed, temperature).
        It may break any sentence of that contract, and it may crash. A right one may return float32,
        a list of two arrays, or have other argument names.

Returns:
    True if the candidate is right, False if it is not (a bool, never an error).
"""
book = Book(NAME)

Q = np.array([[1.0, 0.0]])
K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def accepts(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    loud = np.where(np.arange(5)[:, None] == 1, 3000.0 * np.sign(q[0]), k)
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask, 2.0), (200 * q, 200 * k, v)]
    good += [(q, k, v, mask[0]), (q, k, v, mask[:1]), (q, k, v, mask[:, :1] | True)]
    good += [(q, loud, v, np.arange(5) != 1)]
    bad = [(q, k, v, None, 0.0), (q, k, v, None, -1.0), (q, k, v, mask & (mask[:, :1]))]
    for args in good:
        kept = [np.array(a) for a in args]
        try:
            got = candidate(*args)
            same = all(
                a.shape == b.shape and np.allclose(a, b, atol=1e-5)
                for a, b in zip(got, attention(*args), strict=True)
            )
        except Exception:
            return False
        if not same or any((a != np.array(b)).any() for a, b in zip(kept, args, strict=True)):
            return False
    for args in bad:
        try:
            candidate(*args)
            return False
        except ValueError:
            continue
        except Exception:
            return False
    return True


@book.wrong(
    "always-true",
    fails="formula masks contract",
    message="Every candidate is accepted. A test must be able to fail: hand it a function that is "
    "certainly wrong, such as one that returns the mean of V.",
)
def yes(candidate):
    return True


@book.wrong(
    "always-false",
    fails="formula masks contract",
    message="Every candidate is refused, right ones too. Hand your own attention to it: accepts(attention) "
    "must be True.",
)
def no(candidate):
    return False


@book.wrong(
    "shapes-only",
    fails="formula masks contract",
    message="Only shapes are compared, and wrong numbers have right shapes. Compare the values of context "
    "and weights with your own attention (np.allclose).",
)
def compare_shapes(candidate):
    q, k, v = np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 5))
    try:
        context, weights = candidate(q, k, v)
    except Exception:
        return False
    return context.shape == (2, 5) and weights.shape == (2, 4)


@book.wrong(
    "row-sums-only",
    fails="formula masks contract",
    message="Rows that sum to 1 are asked for, and most wrong weights do that too. Compare the values "
    "with your own attention.",
)
def compare_sums(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    try:
        context, weights = candidate(q, k, v)
        return bool(np.allclose(weights.sum(axis=-1), 1) and context.shape == (3, 2))
    except Exception:
        return False


@book.wrong(
    "worked-example-only",
    fails="formula masks contract",
    message="The lesson's Q, K and V are the only input. There d_k, d_v and the number of axes are all 2, "
    "and there is no mask. Use random arrays in which no two sizes are equal.",
)
def lesson_numbers(candidate):
    try:
        got = candidate(Q, K, V)
        return all(np.allclose(a, b) for a, b in zip(got, attention(Q, K, V), strict=True))
    except Exception:
        return False


@book.wrong(
    "exact-equality",
    fails="formula masks contract",
    message="The numbers are compared with ==, so a right candidate that adds in another order, or "
    "returns float32, is refused. Compare with np.allclose.",
)
def compared_exactly(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask, 2.0), (q, k, v, mask[0])]
    good += [(200 * q, 200 * k, v)]
    for args in good:
        try:
            got = candidate(*args)
            if not all((a == b).all() for a, b in zip(got, attention(*args), strict=True)):
                return False
        except Exception:
            return False
    return True


@book.wrong(
    "masks-not-tested",
    fails="masks contract",
    message="Candidates that are wrong only with a mask get through. Ask with allowed of every shape in "
    "the contract: (N_q, N_k), (N_k,), (1, N_k) and (N_q, 1).",
)
def without_masks(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    for args in [(q, k, v), (q, k, v, None, 0.5), (200 * q, 200 * k, v)]:
        try:
            got = candidate(*args)
            if not all(np.allclose(a, b) for a, b in zip(got, attention(*args), strict=True)):
                return False
        except Exception:
            return False
    return True


@book.wrong(
    "errors-not-tested",
    fails="contract",
    message="Candidates that accept temperature 0, or a query with no allowed key, get through. Call with "
    "such input, and count only a ValueError as right.",
)
def without_errors(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    loud = np.where(np.arange(5)[:, None] == 1, 3000.0 * np.sign(q[0]), k)
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask, 2.0), (200 * q, 200 * k, v)]
    good += [(q, k, v, mask[0]), (q, k, v, mask[:1]), (q, loud, v, np.arange(5) != 1)]
    for args in good:
        try:
            got = candidate(*args)
            if not all(np.allclose(a, b) for a, b in zip(got, attention(*args), strict=True)):
                return False
        except Exception:
            return False
    return True


@book.wrong(
    "any-error-counts",
    fails="contract",
    message="A candidate that raises AssertionError passes: any exception counted. The contract says "
    "ValueError, so catch that one only: except ValueError.",
)
def every_error(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    loud = np.where(np.arange(5)[:, None] == 1, 3000.0 * np.sign(q[0]), k)
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask, 2.0), (200 * q, 200 * k, v)]
    good += [(q, k, v, mask[0]), (q, k, v, mask[:1]), (q, loud, v, np.arange(5) != 1)]
    bad = [(q, k, v, None, 0.0), (q, k, v, None, -1.0), (q, k, v, mask & (mask[:, :1]))]
    for args in good:
        try:
            got = candidate(*args)
            if not all(np.allclose(a, b) for a, b in zip(got, attention(*args), strict=True)):
                return False
        except Exception:
            return False
    for args in bad:
        try:
            candidate(*args)
        except Exception:
            continue
        return False
    return True


@book.wrong(
    "blind-to-nan",
    fails="contract",
    message="Candidates that give NaN get through: `difference > tolerance` is False for NaN, so nothing "
    "is noticed. Write the condition the other way (np.allclose), or ask np.isfinite first.",
)
def nan_passes(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    loud = np.where(np.arange(5)[:, None] == 1, 3000.0 * np.sign(q[0]), k)
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask, 2.0), (200 * q, 200 * k, v)]
    good += [(q, k, v, mask[0]), (q, k, v, mask[:1]), (q, loud, v, np.arange(5) != 1)]
    bad = [(q, k, v, None, 0.0), (q, k, v, None, -1.0), (q, k, v, mask & (mask[:, :1]))]
    for args in good:
        try:
            got = candidate(*args)
            for a, b in zip(got, attention(*args), strict=True):
                if (np.abs(a - b) > 1e-5).any():
                    return False
        except Exception:
            return False
    for args in bad:
        try:
            candidate(*args)
            return False
        except ValueError:
            continue
        except Exception:
            return False
    return True


@book.wrong(
    "weights-not-compared",
    fails="formula masks contract",
    message="Only the context is compared, in a single plain case. Wrong temperature, masks and errors do "
    "not show there. Ask for each sentence of the contract, one call each.",
)
def context_only(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    try:
        return bool(np.allclose(candidate(q, k, v)[0], attention(q, k, v)[0]))
    except Exception:
        return False


@book.wrong(
    "temperature-not-tested",
    fails="formula",
    message="Candidates that ignore or reverse the temperature get through: it is 1 in every call. Ask "
    "with 0.5 and 2 as well.",
)
def always_at_one(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    loud = np.where(np.arange(5)[:, None] == 1, 3000.0 * np.sign(q[0]), k)
    good = [(q, k, v), (q, k, v, mask), (200 * q, 200 * k, v)]
    good += [(q, k, v, mask[0]), (q, k, v, mask[:1]), (q, loud, v, np.arange(5) != 1)]
    bad = [(q, k, v, None, 0.0), (q, k, v, None, -1.0), (q, k, v, mask & (mask[:, :1]))]
    for args in good:
        kept = [np.array(a) for a in args]
        try:
            got = candidate(*args)
            if not all(np.allclose(a, b) for a, b in zip(got, attention(*args), strict=True)):
                return False
            if any((a != np.array(b)).any() for a, b in zip(kept, args, strict=True)):
                return False
        except Exception:
            return False
    for args in bad:
        try:
            candidate(*args)
            return False
        except ValueError:
            continue
        except Exception:
            return False
    return True


@book.wrong(
    "arguments-not-compared",
    fails="contract",
    message="A candidate that overwrites what it is given gets through: its numbers are right, and the "
    "caller's arrays are not what they were. Keep copies of Q, K and V, and compare after the call.",
)
def numbers_alone(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    loud = np.where(np.arange(5)[:, None] == 1, 3000.0 * np.sign(q[0]), k)
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask, 2.0), (200 * q, 200 * k, v)]
    good += [(q, k, v, mask[0]), (q, k, v, mask[:1]), (q, loud, v, np.arange(5) != 1)]
    bad = [(q, k, v, None, 0.0), (q, k, v, None, -1.0), (q, k, v, mask & (mask[:, :1]))]
    for args in good:
        want = attention(*args)
        try:
            got = candidate(*args)
            if not all(np.allclose(a, b, atol=1e-5) for a, b in zip(got, want, strict=True)):
                return False
        except Exception:
            return False
    for args in bad:
        try:
            candidate(*args)
            return False
        except ValueError:
            continue
        except Exception:
            return False
    return True


@book.wrong(
    "lets-crashes-through",
    fails="formula masks contract",
    message="accepts itself stops with an error when a candidate raises one. A candidate that crashes is "
    "not right: catch the exception and return False.",
)
def unguarded(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1]], dtype=bool)
    empty = mask & mask[:, :1]
    for args in [(q, k, v), (q, k, v, None, 0.5), (q, k, v, mask[0]), (q, k, v, empty)]:
        got = candidate(*args)
        if not all(np.allclose(a, b) for a, b in zip(got, attention(*args), strict=True)):
            return False
    return True


@book.wrong(
    "returns-nothing",
    fails="formula masks contract",
    message="The verdict is computed, and None comes back. End with `return`, and return the bool.",
)
def verdict_dropped(candidate):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    try:
        verdict = bool(np.allclose(candidate(q, k, v)[0], attention(q, k, v)[0]))
    except Exception:
        verdict = False
    bool(verdict)


@book.right("formula-written-out")
def own_formula(candidate):
    rng = np.random.default_rng(5)
    q, k, v = rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 6))
    kept = q.copy(), k.copy(), v.copy()
    masks = [None, rng.random((2, 4)) < 0.6, np.array([True, False, True, True])]
    masks[1][:, 0] = True
    masks += [masks[2][None], np.array([[True], [True]])]
    for scale in (1.0, 150.0):
        for mask in masks:
            for t in (0.5, 1.0, 2.0):
                s = scale * q @ (scale * k).T / np.sqrt(3) / t
                s = s if mask is None else np.where(mask, s, -np.inf)
                w = np.exp(s - s.max(-1, keepdims=True))
                w = w / w.sum(-1, keepdims=True)
                try:
                    c, got = candidate(scale * q, scale * k, v, mask, t)
                except Exception:
                    return False
                if c.shape != (2, 6) or got.shape != (2, 4):
                    return False
                if not (np.allclose(got, w, atol=1e-6) and np.allclose(c, w @ v, atol=1e-6)):
                    return False
    loud = k.copy()
    loud[2] = 4000 * np.sign(q[1])
    try:
        if not np.isfinite(candidate(q, loud, v, np.arange(4) != 2)[1]).all():
            return False
    except Exception:
        return False
    blocked = np.zeros((2, 4), bool)
    blocked[0] = True
    for mask, t in [(None, 0.0), (None, -2.0), (blocked, 1.0)]:
        try:
            candidate(q, k, v, mask, t)
        except ValueError:
            pass
        except Exception:
            return False
        else:
            return False
    try:
        candidate(q, k, v)
    except Exception:
        return False
    return all(np.array_equal(a, b) for a, b in zip(kept, (q, k, v), strict=True))


@book.right("nested-helper-and-try")
def helper_inside(candidate):
    rng = np.random.default_rng(11)
    q, k, v = rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 5))
    keep = np.array([True, True, False])

    def agrees(*args):
        before = [np.copy(item) for item in args]
        context, weights = candidate(*args)
        want_context, want_weights = attention(*before)
        return (
            all(np.array_equal(a, b) for a, b in zip(before, args, strict=True))
            and np.shape(context) == want_context.shape
            and np.shape(weights) == want_weights.shape
            and np.abs(context - want_context).max() < 1e-4
            and np.abs(weights - want_weights).max() < 1e-4
        )

    def refuses(*args):
        try:
            candidate(*args)
        except ValueError:
            return True
        return False

    loud = np.array([[1.0, 0.5], [0.2, -1.0], [0.0, 0.0]])
    loud[2] = 5000 * np.sign(q[0])
    full = rng.random((4, 3)) < 0.5
    full[:, 1] = True
    empty = full.copy()
    empty[2] = False
    try:
        return bool(
            agrees(q, k, v)
            and agrees(q, k, v, full)
            and agrees(q, k, v, keep, 0.25)
            and agrees(q, k, v, keep[None], 3.0)
            and agrees(q, k, v, np.ones((4, 1), bool))
            and agrees(1000 * q, 10 * k, v)
            and agrees(q, loud, v, keep)
            and refuses(q, k, v, None, 0.0)
            and refuses(q, k, v, None, -0.1)
            and refuses(q, k, v, empty)
            and refuses(q, k, v, ~np.ones(3, bool))
        )
    except Exception:
        return False


@book.right("numpy-bool")
def numpy_verdict(candidate):
    rng = np.random.default_rng(3)
    q, k, v = rng.normal(size=(5, 6)), rng.normal(size=(7, 6)), rng.normal(size=(7, 3))
    mask = rng.random((5, 7)) < 0.7
    mask[:, 3] = True
    loud = k.copy()
    loud[0] = 2000 * np.sign(q[4])
    calls = [(q, k, v, m, t) for m in (None, mask, mask[0], mask[:1]) for t in (0.5, 1.0, 2.5)]
    calls += [
        (q * 300, k * 30, v),
        (q, loud, v, np.arange(7) > 0),
        (q, k, v, np.full((5, 1), True)),
    ]
    verdict = np.bool_(True)
    for args in calls:
        kept = [np.array(item) for item in args[:3]]
        try:
            got = candidate(*args)
            verdict &= all((a == b).all() for a, b in zip(kept, args[:3], strict=True))
            for one, other in zip(got, attention(*args), strict=True):
                verdict &= np.array_equal(one.shape, other.shape)
                verdict &= np.isclose(one, other, rtol=1e-4, atol=1e-5).all()
        except Exception:
            verdict &= False
    for args in [
        (q, k, v, None, 0.0),
        (q, k, v, None, -3.0),
        (q, k, v, mask & (np.arange(5) != 2)[:, None]),
    ]:
        try:
            candidate(*args)
            verdict &= False
        except ValueError:
            pass
        except Exception:
            verdict &= False
    return verdict


@book.right("collects-complaints")
def complaints(candidate):
    found = []
    rng = np.random.default_rng(21)
    for n_q, n_k, d, d_v in [(2, 5, 3, 4), (3, 3, 3, 3), (1, 4, 2, 1)]:
        q, k, v = (rng.normal(size=s) for s in ((n_q, d), (n_k, d), (n_k, d_v)))
        keep = np.arange(n_k) != 1
        loud = np.where(keep[:, None], k, 6000 * np.sign(q[0]))
        for args in [
            (q, k, v),
            (q, k, v, None, 0.4),
            (q, k, v, None, 2),
            (q, k, v, np.tile(keep, (n_q, 1))),
            (q, k, v, keep),
            (q, k, v, keep[None], 2.0),
            (q, k, v, np.full((n_q, 1), True)),
            (q, loud, v, keep),
            (90 * q, 90 * k, v),
        ]:
            kept = [item.copy() for item in args[:3]]
            try:
                context, weights = candidate(*args)
                for old, new in zip(kept, args[:3], strict=True):
                    found += [] if np.array_equal(old, new) else ["changed"]
                want, shares = attention(*kept, *args[3:])
                good = np.allclose(context, want, atol=1e-5) and np.allclose(
                    weights, shares, atol=1e-5
                )
                found += [] if good and weights.shape == (n_q, n_k) else ["values"]
            except Exception as problem:
                found.append(problem)
        for args in [(q, k, v, None, 0), (q, k, v, None, -1.5), (q, k, v, keep & False)]:
            try:
                candidate(*args)
                found.append("no error")
            except ValueError:
                continue
            except Exception as problem:
                found.append(problem)
    return len(found) == 0


@book.right("properties-and-values")
def by_properties(candidate):
    try:
        rng = np.random.default_rng(8)
        q, k, v = rng.normal(size=(3, 5)), rng.normal(size=(4, 5)), rng.normal(size=(4, 2))
        kept = q.copy(), k.copy(), v.copy()
        plain, weights = candidate(q, k, v)
        if any((old != new).any() for old, new in zip(kept, (q, k, v), strict=True)):
            return False
        if not (np.allclose(weights.sum(-1), 1) and np.allclose(weights @ v, plain, atol=1e-5)):
            return False
        ratio = np.log(weights[:, 0] / weights[:, 1])
        if not np.allclose(ratio, q @ (k[0] - k[1]) / np.sqrt(5), atol=1e-4):
            return False
        for t in (0.5, 2.0):
            warm = candidate(q, k, v, None, t)[1]
            if not np.allclose(np.log(warm[:, 0] / warm[:, 1]) * t, ratio, atol=1e-3):
                return False
        keep = np.array([True, False, True, True])
        for mask in (keep, keep[None], np.tile(keep, (3, 1))):
            c, w = candidate(q, k, v, mask)
            if (w[:, 1] != 0).any() or not np.allclose(
                w[:, keep], candidate(q, k[keep], v[keep])[1]
            ):
                return False
            if not np.allclose(c, w @ v, atol=1e-5):
                return False
        if not np.allclose(candidate(q, k, v, np.full((3, 1), True))[1], weights, atol=1e-6):
            return False
        loud = np.where(keep[:, None], k, 5000 * np.sign(q[0]))
        for args in [(q, loud, v, keep), (500 * q, 10 * k, v)]:
            if not np.allclose(candidate(*args)[0], attention(*args)[0], atol=1e-5):
                return False
    except Exception:
        return False
    for args in [(q, k, v, None, 0.0), (q, k, v, None, -1.0), (q, k, v, ~np.full((3, 4), True))]:
        try:
            candidate(*args)
        except Exception as error:
            if not isinstance(error, ValueError):
                return False
        else:
            return False
    return True


@book.right("float32-inputs")
def in_float32(candidate):
    rng = np.random.default_rng(17)
    q, k, v = (rng.normal(size=s).astype(np.float32) for s in ((4, 3), (6, 3), (6, 5)))
    mask = np.eye(4, 6, dtype=bool) | (rng.random((4, 6)) < 0.3)
    spike = k.copy()
    spike[3] = 3000 * np.sign(q[0])
    good = [(q, k, v), (q, k, v, None, 0.5), (q, k, v, None, 4.0), (q, k, v, mask)]
    good += [(q, k, v, np.arange(6) < 4), (q, k, v, np.arange(6)[None] < 4)]
    good += [(q, k, v, np.full((4, 1), True)), (q, spike, v, np.arange(6) != 3)]
    good += [(300 * np.sign(q), 20 * np.sign(k), v)]
    bad = [
        (q, k, v, None, 0.0),
        (q, k, v, None, -2.0),
        (q, k, v, mask & (np.arange(4) > 0)[:, None]),
    ]
    for args, fine in [(a, True) for a in good] + [(a, False) for a in bad]:
        kept = [np.copy(item) for item in args[:3]]
        try:
            got = candidate(*args)
        except ValueError:
            if fine:
                return False
            continue
        except Exception:
            return False
        if not fine:
            return False
        try:
            if any((a != b).any() for a, b in zip(kept, args[:3], strict=True)):
                return False
            want = attention(*args)
            if not all(
                np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(got, want, strict=True)
            ):
                return False
        except Exception:
            return False
    return True


TASK = CandidateTask(
    name=NAME,
    signature="accepts(candidate)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(FORMULA, "right formulas are accepted, wrong numbers are noticed", 1),
        Checkpoint(MASKS, "right masks are accepted, wrong ones are noticed", 1),
        Checkpoint(CONTRACT, "missing errors and unstable candidates are noticed", 1),
    ),
    reference=accepts,
    public=lambda: local_cases(attention),
    probes=pool,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    calls=("attention",),
    callees=(attention_module.TASK,),
    results=("answer",),
)
