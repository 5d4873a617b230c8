"""`diagnose_shapes`: the shape clinic as a function, asked through the locked `clinic_answer`.

The answer holds a name, the argument is a dict of tuples; `clinic_answer` turns both into plain text and
numbers, so that the answer is compared like every other one: [place of the tensor in TENSORS, sizes of the
right shape], or [-1] for None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autograder.tasks.attention_mechanism._given import AskedThrough
from autograder.tasks.model import Alternative, Case, Checkpoint, Misconception

TENSORS = ("decoder_state", "encoder_states", "W_a", "U_a", "v_a", "W")


@dataclass(frozen=True)
class Adapted:
    """A `diagnose_shapes` as the grader asks it; `answer` is the answer cell's text."""

    function: Callable

    def __call__(self, kind, text):
        parts = [part.split(":") for part in text.split(";")]
        shapes = {name.strip(): tuple(map(int, sizes.split())) for name, sizes in parts}
        found = self.function(kind, shapes)
        if found is None:
            return np.array([-1.0])
        tensor, shape = found
        return np.array([TENSORS.index(tensor), *shape], dtype=float)

    @property
    def answer(self) -> str:
        return inspect.getsource(self.function).replace(
            f"def {self.function.__name__}(", "def diagnose_shapes("
        )


def as_text(shapes) -> str:
    """`{"W": (3, 4)}` as "W: 3 4"."""
    return "; ".join(f"{name}: {' '.join(map(str, shape))}" for name, shape in shapes.items())


FINE, WRONG, ONES = "diagnose_shapes-fine", "diagnose_shapes-wrong", "diagnose_shapes-ones"


def reference(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a") if shapes[name]]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shape
    return None


def additive(d_s, d_h, d_attn, T_enc, **wrong):
    """Sound shapes of additive attention, with the ones in `wrong` put in."""
    sound = {
        "decoder_state": (d_s,),
        "encoder_states": (T_enc, d_h),
        "W_a": (d_attn, d_s),
        "U_a": (d_attn, d_h),
        "v_a": (d_attn,),
    }
    return "additive", {**sound, **wrong}


def general(d_s, d_h, T_enc, **wrong):
    sound = {"decoder_state": (d_s,), "encoder_states": (T_enc, d_h), "W": (d_s, d_h)}
    return "general", {**sound, **wrong}


def dot(d_s, d_h, T_enc):
    return "dot", {"decoder_state": (d_s,), "encoder_states": (T_enc, d_h)}


def _cases(d_s, d_h, d_attn, T_enc, e):
    """All questions for four sizes that differ; `e` is a fifth size."""
    fine = [
        additive(d_s, d_h, d_attn, T_enc),
        additive(d_attn, d_attn, d_attn, T_enc),
        additive(d_s, d_h, 1, T_enc),
        general(d_s, d_h, T_enc),
        general(d_s, 1, T_enc),
        dot(d_h, d_h, T_enc),
        dot(1, 1, T_enc),
    ]
    wrong = [
        additive(d_s, d_h, d_attn, T_enc, W_a=(d_s, d_attn)),
        additive(d_s, d_h, d_attn, T_enc, W_a=(d_attn, d_h)),
        additive(d_s, d_h, d_attn, T_enc, W_a=(e, d_s)),
        additive(d_s, d_h, d_attn, T_enc, W_a=(d_attn,)),
        additive(d_s, d_h, d_attn, T_enc, U_a=(d_h, d_attn)),
        additive(d_s, d_h, d_attn, T_enc, U_a=(d_attn, d_s)),
        additive(d_s, d_h, d_attn, T_enc, U_a=(e, d_h)),
        additive(d_s, d_h, d_attn, T_enc, v_a=(d_attn, e)),
        additive(d_s, d_h, d_attn, T_enc, v_a=(d_h,)),
        additive(d_s, d_h, d_attn, T_enc, v_a=(e,)),
        general(d_s, d_h, T_enc, W=(d_h, d_s)),
        general(d_s, d_h, T_enc, W=(d_h, d_h)),
        general(d_s, d_h, T_enc, W=(d_s, d_s)),
        general(d_s, d_h, T_enc, W=(d_s, e)),
        dot(d_s, d_h, T_enc),
        dot(T_enc, d_h, T_enc),
    ]
    ones = [
        additive(d_s, d_h, d_attn, T_enc, v_a=(d_attn, 1)),
        additive(d_s, d_h, d_attn, T_enc, v_a=(1, d_attn)),
        additive(d_s, d_h, d_attn, T_enc, v_a=(1,)),
        additive(d_s, d_h, d_attn, T_enc, W_a=(d_attn, 1)),
        additive(d_s, d_h, d_attn, T_enc, W_a=(1, d_s)),
        additive(d_s, d_h, d_attn, T_enc, U_a=(1, d_h)),
        additive(d_s, d_h, d_attn, T_enc, U_a=(d_attn, 1)),
        general(d_s, d_h, T_enc, W=(1, d_h)),
        general(d_s, d_h, T_enc, W=(d_s, 1)),
        general(d_s, d_h, T_enc, W=(1, 1)),
        dot(1, d_h, T_enc),
        dot(d_s, 1, T_enc),
    ]
    return [
        *(_ask(FINE, "sound", *args) for args in fine),
        *(_ask(WRONG, "one wrong shape", *args) for args in wrong),
        *(_ask(ONES, "a size of 1", *args) for args in ones),
    ]


def _ask(checkpoint, note, kind, shapes):
    return Case((kind, as_text(shapes)), checkpoint, f"{kind}, {note}: {as_text(shapes)}")


def public():
    return _cases(4, 3, 5, 6, 7)


def probes(rng):
    found = []
    for _ in range(2):
        found += _cases(*(int(n) for n in rng.permutation(np.arange(2, 12))[:5]))
    return found


def ones_fit(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        try:
            np.broadcast_shapes(shapes[name], shape)
        except ValueError:
            return name, shape
    return None


def sizes_in_any_order(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if sorted(shapes[name]) != sorted(shape):
            return name, shape
    return None


def d_attn_from_W_a(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        d_attn = shapes["W_a"][0]
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shape
    return None


def d_attn_from_v_a(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        d_attn = shapes["v_a"][0]
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shape
    return None


def only_the_number_of_axes(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if len(shapes[name]) != len(shape):
            return name, shape
    return None


def only_the_last_size(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name][-1] != shape[-1]:
            return name, shape
    return None


def sizes_swapped(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_h, d_s)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_h), "U_a": (d_attn, d_s), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shape
    return None


def blames_the_memory(kind, shapes):
    (d_s,), (T_enc, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        return None if d_s == d_h else ("encoder_states", (T_enc, d_s))
    if kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shape
    return None


def returns_the_wrong_shape(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shapes[name]
    return None


def v_a_as_a_column(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot":
        right = {"decoder_state": (d_h,)}
    elif kind == "general":
        right = {"W": (d_s, d_h)}
    else:
        votes = [shapes[name][0] for name in ("W_a", "U_a", "v_a")]
        d_attn = max(votes, key=votes.count)
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn, 1)}
    for name, shape in right.items():
        if shapes[name] != shape:
            return name, shape
    return None


def always_fine(kind, shapes):
    return None


def _table(kind, shapes):
    d_s = shapes["decoder_state"][0]
    d_h = shapes["encoder_states"][1]
    if kind == "dot":
        return None if d_s == d_h else ("decoder_state", (d_h,))
    if kind == "general":
        return None if shapes["W"] == (d_s, d_h) else ("W", (d_s, d_h))
    firsts = [shapes[name][:1] for name in ("W_a", "U_a", "v_a")]
    d_attn = firsts[0] if firsts[0] in firsts[1:] else firsts[1]
    for name, rest in (("W_a", (d_s,)), ("U_a", (d_h,)), ("v_a", ())):
        if shapes[name] != d_attn + rest:
            return name, d_attn + rest
    return None


def _letters(kind, shapes):
    from collections import Counter

    spec = {"additive": {"W_a": "as", "U_a": "ah", "v_a": "a"}, "general": {"W": "sh"}}
    sizes = {"s": shapes["decoder_state"][-1], "h": shapes["encoder_states"][-1]}
    spec["dot"] = {"decoder_state": "h"}
    named = spec[kind]
    if kind == "additive":
        sizes["a"] = Counter(shapes[n][0] for n in named if shapes[n]).most_common(1)[0][0]
    right = {name: tuple(sizes[c] for c in letters) for name, letters in named.items()}
    bad = [name for name in named if tuple(shapes[name]) != right[name]]
    return (bad[0], right[bad[0]]) if bad else None


def _median(kind, shapes):
    state, memory = shapes["decoder_state"], shapes["encoder_states"]
    if kind == "dot" and state != memory[1:]:
        return "decoder_state", memory[1:]
    if kind == "general" and shapes["W"] != state + memory[1:]:
        return "W", state + memory[1:]
    if kind == "additive":
        d_attn = sorted((*shapes[n], 0)[0] for n in ("W_a", "U_a", "v_a"))[1:2]
        d_attn = tuple(d_attn)
        if shapes["W_a"] != d_attn + state:
            return "W_a", d_attn + state
        if shapes["U_a"] != d_attn + memory[1:]:
            return "U_a", d_attn + memory[1:]
        if shapes["v_a"] != d_attn:
            return "v_a", d_attn
    return None


def _as_list(kind, shapes):
    d_s, d_h = shapes["decoder_state"][0], shapes["encoder_states"][1]
    want = {}
    if kind == "additive":
        heads = [shapes[n][0] for n in ["W_a", "U_a", "v_a"] if len(shapes[n]) > 0]
        d_attn = sorted(heads, key=heads.count)[-1]
        want = {"v_a": [d_attn], "U_a": [d_attn, d_h], "W_a": [d_attn, d_s]}
    if kind == "general":
        want = {"W": [d_s, d_h]}
    if kind == "dot":
        want = {"decoder_state": [d_h]}
    for name in want:
        if list(shapes[name]) != want[name]:
            return [name, tuple(want[name])]
    return None


def _try_each(kind, shapes):
    (d_s,), (_, d_h) = shapes["decoder_state"], shapes["encoder_states"]
    if kind != "additive":
        name, shape = ("W", (d_s, d_h)) if kind == "general" else ("decoder_state", (d_h,))
        return None if shapes[name] == shape else (name, shape)
    for d_attn in [n[0] for n in (shapes["W_a"], shapes["U_a"], shapes["v_a"]) if n]:
        right = {"W_a": (d_attn, d_s), "U_a": (d_attn, d_h), "v_a": (d_attn,)}
        bad = [name for name in right if shapes[name] != right[name]]
        if not bad:
            return None
        if len(bad) == 1:
            return bad[0], right[bad[0]]
    return None


def _agreement(kind, shapes):
    d_s, d_h = shapes["decoder_state"][0], shapes["encoder_states"][1]
    if kind == "dot":
        return ("decoder_state", (d_h,)) if d_s != d_h else None
    if kind == "general":
        return ("W", (d_s, d_h)) if shapes["W"] != (d_s, d_h) else None
    a, b, c = ((*shapes[name], None)[0] for name in ("W_a", "U_a", "v_a"))
    d_attn = a if a in (b, c) else b
    if (d_attn, d_s) != shapes["W_a"]:
        return "W_a", (d_attn, d_s)
    if (d_attn, d_h) != shapes["U_a"]:
        return "U_a", (d_attn, d_h)
    return None if shapes["v_a"] == (d_attn,) else ("v_a", (d_attn,))


ALL = (FINE, WRONG, ONES)
TASK = AskedThrough(
    name="clinic_answer",
    cell="diagnose_shapes",
    signature="diagnose_shapes(kind, shapes)",
    docstring="""Which tensor of an attention layer has the wrong shape, and what it should be.

Args:
    kind: "additive", "dot" or "general".
    shapes: dict, tensor name -> tuple of ints. Always "decoder_state" (d_s,) and "encoder_states"
        (T_enc, d_h); for "additive" also "W_a", "U_a", "v_a"; for "general" also "W".
        At most one of them is wrong. The two states count as given; for "dot" only "encoder_states"
        does. d_attn is what most of W_a, U_a and v_a have as their first size.

Returns:
    (tensor, right_shape), for example ("W_a", (5, 4)); None if all shapes are sound. A size of 1
    where another size belongs is wrong: that it would broadcast is no excuse.""",
    checkpoints=(
        Checkpoint(FINE, "sound shapes give None", 1),
        Checkpoint(WRONG, "the wrong tensor is named, with the shape it should have", 2),
        Checkpoint(ONES, "a size of 1 never fits by broadcasting", 1),
    ),
    reference=Adapted(reference),
    public=public,
    probes=probes,
    misconceptions=(
        Misconception(
            "clinic-ones-fit",
            Adapted(ones_fit),
            (ONES,),
            "A size of 1 was let through because numpy could broadcast it. Compare the tuples with ==.",
        ),
        Misconception(
            "clinic-any-order",
            Adapted(sizes_in_any_order),
            (WRONG,),
            "A transposed matrix counts as sound: the sizes were compared in any order. (5, 4) and "
            "(4, 5) are different shapes.",
        ),
        Misconception(
            "clinic-d_attn-from-W_a",
            Adapted(d_attn_from_W_a),
            (WRONG, ONES),
            "When W_a is wrong, U_a is blamed: d_attn was read from W_a alone. Take what two of the "
            "three agree on.",
        ),
        Misconception(
            "clinic-d_attn-from-v_a",
            Adapted(d_attn_from_v_a),
            (WRONG, ONES),
            "When v_a is wrong, W_a is blamed: d_attn was read from v_a alone. Take what two of the "
            "three agree on.",
        ),
        Misconception(
            "clinic-only-axes",
            Adapted(only_the_number_of_axes),
            (WRONG, ONES),
            "Only the number of axes is compared. Compare the sizes too.",
        ),
        Misconception(
            "clinic-only-last-size",
            Adapted(only_the_last_size),
            (WRONG, ONES),
            "Only the last size is compared, so that a wrong d_attn passes. Compare whole tuples.",
        ),
        Misconception(
            "clinic-sizes-swapped",
            Adapted(sizes_swapped),
            ALL,
            "d_s and d_h are exchanged: W_a belongs to the decoder state, U_a to the encoder states, "
            "and W is (d_s, d_h).",
        ),
        Misconception(
            "clinic-blames-the-memory",
            Adapted(blames_the_memory),
            (WRONG, ONES),
            "For dot the encoder states were named. They count as given; it is the decoder state that "
            "must get d_h numbers.",
        ),
        Misconception(
            "clinic-returns-wrong-shape",
            Adapted(returns_the_wrong_shape),
            (WRONG, ONES),
            "The tensor is right, but the shape returned is the one it has. Return the one that it should "
            "have.",
        ),
        Misconception(
            "clinic-v_a-as-column",
            Adapted(v_a_as_a_column),
            ALL,
            "v_a is expected to be (d_attn, 1). It is (d_attn,): with a column the scores become "
            "(T_enc, 1), and broadcast later.",
        ),
        Misconception(
            "clinic-always-fine",
            Adapted(always_fine),
            (WRONG, ONES),
            "The answer is always None. A branch finds the tensor and does not say so. Does each one return?",
        ),
    ),
    alternatives=(
        Alternative("first-sizes", Adapted(_table)),
        Alternative("letters", Adapted(_letters)),
        Alternative("median-of-three", Adapted(_median)),
        Alternative("list-for-a-pair", Adapted(_as_list)),
        Alternative("agreement-of-two", Adapted(_agreement)),
        Alternative("try-each-d_attn", Adapted(_try_each)),
    ),
    results=("diagnosis",),
    axes=(("place 0 is the tensor, then the sizes: place",),),
)
