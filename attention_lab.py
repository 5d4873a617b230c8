"""Helper of the attention course: checkpoints, evidence and pictures; it travels in each notebook."""

import json
import sys
from base64 import b64encode
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np

__version__ = "1.0.0"
COLOURS, HATCHES = ("#1e8798", "#7f2635", "#f3b23a", "#4b5f9e"), ("", "//", "..", "xx")
QUIVER = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.012, "zorder": 4}
MISTAKES = {  # what a checkpoint can recognise: likely cause | what to try
    "stale": "an input was changed after this was computed | run the section from its first cell",
    "unscaled": "these are raw dot products, not scaled | divide by np.sqrt(K.shape[-1])",
    "wrong_axis": "softmax ran over queries (axis 0) | use axis=-1, keepdims=True in max and sum",
    "transposed": "queries and keys are swapped | rows are queries: print shapes, look at each .T",
    "unmasked": "the mask was not used | pass np.where(allowed, scores, -np.inf) to softmax",
    "mask_after": "the mask came after the softmax | put -inf into the scores, then apply softmax",
    "empty_row": "the masks block all, and softmax of only -inf is 0/0 | give each row a True (1)",
    "temperature": "0 divides by nothing, below 0 the ranking turns | 0.5 is sharper, 2.0 is softer",
    "nothing": "nothing is changed or removed | put in new numbers, or one False",
    "no_sum": "no division by the row's sum | divide by powers.sum(axis=-1, keepdims=True)",
    "leak": "the mask is missing, transposed, inverted or late | print it: row = query, True = may",
    "claim": "its test gave False, or its cell was not run | print both sides of the comparison",
    "no_fit": "the arrays do not fit together | print shapes; look for keepdims=True, an index, .T",
    "not_finite": "a row without an allowed key (0/0), or numbers too large | print its input by rows",
    "not_run": "its cell was not run, or stopped with an error | run the section from its first cell",
}


class CheckError(AssertionError):
    """A failed check. `advice` is "likely cause | what to try", or the name of a mistake above."""

    def __init__(self, seen: str, advice: str = ""):
        super().__init__(seen, advice)
        self.seen, self.checkpoint = seen, ""
        self.cause, _, self.attempt = MISTAKES.get(advice, advice).partition(" | ")

    def __str__(self) -> str:
        head = f"✗ {self.checkpoint}\n" if self.checkpoint else ""
        parts = (("Seen", self.seen), ("Likely cause", self.cause), ("Try", self.attempt))
        return head + "\n".join(f"  {label}: {text}." for label, text in parts if text)

    def _render_traceback_(self) -> list[str]:  # IPython shows this in place of the frames
        return str(self).splitlines()


_RUN, _LESSON = {}, {}  # checkpoint -> (sign, what is left); name -> what the lesson starts from
_TABLES, _NAMED = {}, {}  # for check_task; checkpoint -> what was found: {(function, mistake)}


def begin(checkpoints, **lesson) -> None:
    """Name this notebook's checkpoints, for `summary`, and the lesson's inputs, for `unchanged`."""
    _RUN.update(dict.fromkeys(checkpoints, ("·", "not run yet")))
    _LESSON.update(lesson)


def summary() -> None:
    """Print how many checkpoints pass, and what is left."""
    print(f"{sum(sign == '✓' for sign, _ in _RUN.values())} of {len(_RUN)} checkpoints pass.")
    print("".join(f"{s} {name}: {left}\n" for name, (s, left) in _RUN.items() if s != "✓"), end="")


@contextmanager
def checkpoint(name: str):
    """`with checkpoint(name):` prints one line or raises one CheckError. Still to do is no error."""
    try:
        yield
        sign, text = "✓", "passed"
    except NotImplementedError as todo:
        sign, text = "○", f"right so far; still to do: {todo}"
    except Exception as error:
        known = "not_run" if isinstance(error, NameError) else "no_fit"
        told = CheckError(f"{type(error).__name__}: {error}", known)
        told = error if isinstance(error, CheckError) else told
        told.checkpoint, _RUN[name] = name, ("✗", told.seen)
        raise told from None
    _RUN[name] = (sign, text)
    print(f"{sign} {name}: {text}")


def check_true(claim: str, holds, advice: str = "") -> None:
    """The claim holds (everywhere, if `holds` is an array)."""
    if not np.all(holds):
        at = f", first at {_first(np.logical_not(holds))}" if np.ndim(holds) else ""
        raise CheckError(f"this does not hold: {claim}{at}", advice)


def check_array(name: str, value, shape=None, finite: bool = True) -> None:
    """A plain numeric array, of this shape (None = any length), without NaN or infinity."""
    if type(value) is not np.ndarray or value.dtype.kind not in "biuf":
        advice = "a numpy array is needed | use np.array(..., dtype=float), or .detach().numpy()"
        raise CheckError(f"`{name}` is a {type(value).__name__}", advice)
    wanted = value.shape if shape is None else tuple(shape)
    fits = [n in (None, m) for n, m in zip(wanted, value.shape, strict=False)]
    if value.ndim != len(wanted) or not all(fits):
        known = "no_fit" if value.ndim != len(wanted) else "stale"
        seen = f"`{name}` has shape {value.shape}, not {wanted}".replace("None", "any")
        raise CheckError(seen, "transposed" if value.shape[::-1] == wanted else known)
    if finite and not np.isfinite(value).all():
        at = _first(~np.isfinite(value))
        raise CheckError(f"`{name}` has NaN or infinity, first at {at}", "not_finite")


def check_close(name: str, seen, expected, rtol=1e-5, atol=1e-6, **mistakes) -> None:
    """`seen` equals `expected`. `mistakes`: what a known mistake would give, unscaled=Q @ K.T."""
    expected = np.asarray(expected)
    check_array(name, seen, expected.shape)
    near = np.isclose(seen, expected, rtol=rtol, atol=atol)
    if near.all():
        return
    at = _first(~near)
    told = f"`{name}`{at} is {seen[tuple(at)]:.6g}, the property gives {expected[tuple(at)]:.6g}"
    for known, wrong in {"transposed": expected.T, **mistakes}.items():
        if np.shape(wrong) == seen.shape and np.allclose(seen, wrong, rtol=rtol, atol=atol):
            raise CheckError(told, known)
    raise CheckError(f"{told} ({np.sum(~near)} of {near.size} differ)", "stale")


def check_weights(name: str, weights, scores, allowed=True) -> None:
    """Softmax of the allowed scores: 0 if blocked, rows sum to 1, ratios e**(score difference)."""
    check_array(name, weights, np.shape(scores))
    allowed = np.broadcast_to(np.asarray(allowed, dtype=bool), np.shape(scores))
    check_true(f"each query of `{name}` keeps a key", allowed.any(axis=-1), "empty_row")
    leak = f"{np.where(allowed, 0, weights).max():.4g}"
    check_true(f"`{name}` is 0 at masked keys (it has {leak})", allowed | (weights == 0), "leak")
    sums, down = weights.sum(axis=-1), weights.sum(axis=0)
    known = "wrong_axis" if np.allclose(down, 1) else "no_sum" if allowed.all() else "mask_after"
    check_true(f"rows of `{name}` sum to 1 ({sums[0]:.4g})", np.isclose(sums, 1, 0, 1e-6), known)
    scores = np.where(allowed, scores, -np.inf)
    ratios = np.exp(scores - scores.max(axis=-1, keepdims=True))
    check_close(name, weights, ratios * weights.max(axis=-1, keepdims=True))


def _first(where) -> list[int]:
    return [int(i) for i in np.argwhere(where)[0]]


def unchanged(**inputs) -> bool:
    """Are all of these still what the lesson starts from? (`my_Q` is compared with its `Q`.)"""
    pairs = [(value, _LESSON[name.removeprefix("my_")]) for name, value in inputs.items()]
    same = (a == b if isinstance(b, str) else np.allclose(a, b, 0, 1e-4) for a, b in pairs)
    return all(np.shape(a) == np.shape(b) for a, b in pairs) and all(same)


class Evidence:
    """Values, predictions, assertions as strict JSON. `required`: key -> section that makes it."""

    def __init__(self, path, required=None):
        self.path, self.required = Path(path), dict(required or {})
        self.data = {"schema_version": 1, "predictions": {}, "assertions": {}}

    def record(self, **values) -> None:
        """Keep arrays, numbers or text under their names."""
        self.data.update({name: _plain(name, value) for name, value in values.items()})

    def predict(self, name: str, answer) -> None:
        """Keep what you expect before you run; None = not yet. Never graded for being right."""
        answer = _plain(name, answer.strip() or None if isinstance(answer, str) else answer)
        self.data["predictions"][name] = answer
        said = "open: replace None by what you expect" if answer is None else f"recorded: {answer}"
        print(f"Prediction {name!r} is {said}.")

    def confirm(self, name: str, holds) -> None:
        """Keep a named assertion, and whether it holds."""
        self.data["assertions"][name] = bool(np.all(holds))
        print(f"Assertion {name!r} {'holds' if np.all(holds) else 'does NOT hold'}.")

    def check_yours(self, prediction: str, **inputs) -> None:
        """Still to do unless one of these inputs was changed and the prediction was answered."""
        mine = " or ".join(name for name in inputs if name.startswith("my_"))
        todo = [f"change {mine}"] if unchanged(**inputs) else []
        if self.data["predictions"].get(prediction) is None:
            todo.append(f'answer evidence.predict("{prediction}", ...)')
        if todo:
            raise NotImplementedError(" and ".join(todo))

    def check_complete(self) -> None:
        """Every required key is there; if not, say which section makes it."""
        have = {**self.data, **{f"assertions.{k}": v for k, v in self.data["assertions"].items()}}
        missing = [f"{key} ({at})" for key, at in self.required.items() if have.get(key) is None]
        if missing:
            raise CheckError(f"not in the evidence: {', '.join(missing)}", "not_run")

    def save(self) -> None:
        """Write the file in one step, and show the JSON so that it travels inside the notebook."""
        self.check_complete()
        used = [sys.modules[n] for n in ("numpy", "torch", "attention_lab") if n in sys.modules]
        versions = {module.__name__: str(module.__version__) for module in used}
        self.data["environment"] = {"python": sys.version.split()[0], **versions}
        rows = (f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in self.data.items())
        text = "{\n  " + ",\n  ".join(rows) + "\n}"
        part = self.path.with_suffix(".part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text + "\n", encoding="utf-8")
            part.replace(self.path)
            print(f"Evidence written to {self.path.as_posix()} and shown below.")
        except OSError as error:
            print(f"No file written ({error}); the evidence below is in the notebook you hand in.")
        _display({"application/json": json.loads(text), "text/plain": text})


def _plain(name: str, value):
    """The value as strict JSON data; arrays and tensors become lists."""
    try:
        return json.loads(json.dumps(value, default=lambda x: x.tolist(), allow_nan=False))
    except ValueError:
        raise CheckError(f"`{name}` holds NaN or infinity", "not_finite") from None
    except (AttributeError, TypeError):
        raise CheckError(f"`{name}` is a {type(value).__name__}, not numbers or text") from None


def _display(bundle: dict, metadata: dict | None = None) -> None:
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        sys.modules["IPython"].display.display(bundle, raw=True, metadata=metadata or {})


@contextmanager
def _picture(title: str, told: list[str], size, left: float = 0.75, **labels):
    """Draw on axes of this size; `told`, made from the data, is printed and kept as the alt text."""
    from matplotlib.figure import Figure

    words, stream = f"{title}: {'; '.join(told)}.", BytesIO()
    wide, high = left + size[0] + 0.25, 0.6 + size[1] + 0.4  # a layout engine doubles the time
    figure, place = Figure((wide, high)), (left / wide, 0.6 / high, size[0] / wide, size[1] / high)
    figure.add_axes(place, **labels).locator_params(nbins=4)  # ticks take half of the time
    figure.axes[0].set_title(title, y=1)  # where it would be; to look for a place takes time
    yield figure.axes[0]
    figure.savefig(stream, format="png", dpi=100)
    png = b64encode(stream.getvalue()).decode("ascii")
    _display({"image/png": png, "text/plain": words}, {"image/png": {"alt": words}})
    print("In words:", words)


def _names(names, count: int, letter: str) -> list[str]:
    names = [str(name) for name in (names if names is not None else [])]
    return names if len(names) == count else [f"{letter}{i}" for i in range(count)]


def heatmap(weights, queries=None, keys=None, title="Attention weights") -> None:
    """Weights (N_q, N_k): rows are queries, columns keys; numbers in the cells where they fit."""
    weights = np.atleast_2d(np.asarray(weights, dtype=float))
    (n_q, n_k), small = weights.shape, weights.size <= 64
    queries, keys = _names(queries, n_q, "q"), _names(keys, n_k, "k")
    tops = [range(n_k) if n_k <= 4 else [int(np.argmax(row))] for row in weights[:12]]
    said = [", ".join(f"{keys[j]} {weights[i, j]:.2f}" for j in js) for i, js in enumerate(tops)]
    told = [f"{query} to {each}" for query, each in zip(queries, said, strict=False)]
    size = (max(0.85 * n_k, 0.095 * len(title)), 0.4 + 0.55 * n_q) if small else (5.4, 3.8)
    axis = {"xlabel": "key (source)", "ylabel": "query (destination)"}
    with _picture(title, told, size, 0.6 + 0.08 * max(map(len, queries)), **axis) as axes:
        image = axes.imshow(weights, cmap="YlGnBu", vmin=0, vmax=1, aspect="auto")
        if not small:
            axes.figure.colorbar(image, ax=axes, label="weight")
            return
        axes.set(xticks=[], yticks=[])  # names are plain text: ticks take four times as long
        axes.xaxis.labelpad, axes.yaxis.labelpad = 18, 8 + 6 * max(map(len, queries))
        for j, key in enumerate(keys):
            axes.text(j, n_q - 0.42, key, ha="center", va="top")
        for i, query in enumerate(queries):
            axes.text(-0.57, i, query, ha="right", va="center")
        for (i, j), w in np.ndenumerate(weights):
            axes.text(j, i, f"{w:.2f}", ha="center", va="center", color="w" if w > 0.6 else "k")


def arrows(K, Q, keys=None, queries=None, title="Keys are points, queries are arrows") -> None:
    """First two coordinates: keys as labelled points, queries as arrows from the origin."""
    points = np.vstack([np.asarray(K, dtype=float)[:, :2], np.asarray(Q, dtype=float)[:, :2]])
    names = _names(keys, len(K), "k") + _names(queries, len(Q), "q")
    told = [f"{name} at ({x:g}, {y:g})" for name, (x, y) in zip(names, points, strict=True)]
    limits = (min(0, points.min()) - 0.3, max(0, points.max()) + 0.6)
    labels = {"xlabel": "key dimension 1", "ylabel": "key dimension 2", "aspect": "equal"}
    with _picture(title, told, (3.8, 3.2), xlim=limits, ylim=limits, **labels) as axes:
        axes.grid(alpha=0.3)
        axes.scatter(*points[: len(K)].T, s=110, color=COLOURS[0], edgecolor="black", zorder=3)
        axes.quiver(*np.zeros((2, len(Q))), *points[len(K) :].T, color=COLOURS[1], **QUIVER)
        for name, at, shrink in zip(names, points, [1] * len(K) + [0.5] * len(Q), strict=True):
            axes.annotate(name, at * shrink, (8, 7), textcoords="offset points")


def bars(weights, keys=None, title="Attention weights") -> None:
    """One query's weights, (N_k,) or (1, N_k), as labelled bars."""
    weights = np.asarray(weights, dtype=float).reshape(-1)
    keys, size = _names(keys, len(weights), "k"), (max(3.2, 1.1 * len(weights)), 2.2)
    told = [f"{key} {weight:.4f}" for key, weight in zip(keys, weights, strict=True)]
    with _picture(title, told, size, xlabel="key", ylabel="weight", ylim=(0, 1.1)) as axes:
        look = {"hatch": (HATCHES * len(keys))[: len(keys)], "color": COLOURS, "ec": "black"}
        axes.bar_label(axes.bar(keys, weights, **look), fmt="%.4f", padding=3)


def load_tables(tables: dict) -> None:
    """Take what the reference and known mistakes give on the public inputs (no code of them)."""
    _TABLES.update(tables)


def fingerprint(value, brief=False) -> list:
    """[kind and shape, checksum, size of the numbers]: nearly equal results, nearly equal prints."""
    kind, parts = type(value).__name__, value if isinstance(value, (list, tuple)) else [value]
    parts = [np.array(p.detach() if hasattr(p, "detach") else p) for p in parts]
    kind += f" {value}"[:80] * (isinstance(value, Exception) and not brief)
    if isinstance(value, Exception) or not parts or any(p.dtype.kind not in "biuf" for p in parts):
        return [kind, 0.0, 0.0]
    kind += ",".join(f"{p.shape}{'?' * (p.dtype.kind == 'b')}".replace(" ", "") for p in parts)
    flat = np.concatenate([p.astype(float).ravel() for p in parts])
    flat = np.nan_to_num(flat, nan=37.0, posinf=41.0, neginf=-43.0)  # so that these compare, too
    return [kind, float(flat @ np.cos(1.0 + np.arange(flat.size))), float(np.abs(flat).sum())]


def _read(items: list) -> list:
    return [np.array(x["array"], x["dtype"]) if isinstance(x, dict) else x for x in items]


def _called(function, arguments: list) -> tuple:
    """What a call gives, a value or an exception, and whether it changed an argument."""
    given, kept = _read(arguments), _read(arguments)
    try:
        with np.errstate(all="ignore"):
            value = function(*given)
    except Exception as error:
        value = error
    return value, not all(np.array_equal(a, b) for a, b in zip(given, kept, strict=True))


def _differs(task: dict, case: dict, value):
    """How a result differs from the reference, (kind of fault or "", sentence), or None."""
    want, kind, at = case["want"], type(value).__name__, f"input: {case['note']}"
    if isinstance(value, Exception):
        right = want == "ValueError" and isinstance(value, ValueError)
        return None if right else (kind, f"{kind} came up ({at}): {value}")
    if isinstance(want, str):
        return None if want == "returns" else ("", f"no ValueError came up ({at})")
    if isinstance(want, bool):
        return None if "bool" in kind and value == want else (kind, f"it said {value} ({at})")
    got = [value] if len(want) == 1 else value
    if not isinstance(got, (list, tuple)) or len(got) != len(want):
        return f"{kind}, one", f"a {kind} came back, not {len(want)} arrays"
    for label, axes, a, b in zip(task["results"], task["axes"], _read(want), got, strict=True):
        if type(b) is not np.ndarray or b.shape != a.shape:
            known = type(b).__name__.replace("ndarray", "turned" * (np.shape(b) == a.shape[::-1]))
            return known, f"the {label} is a {type(b).__name__} {np.shape(b)}, not {a.shape} ({at})"
        near = np.isclose(b, a, case["rtol"], case["atol"])
        near &= (b == 0) | (a != 0) | (label not in case["zero"])
        if not near.all():
            place = " ".join(f"{axis} {i}" for axis, i in zip(axes, _first(~near), strict=False))
            seen = f"{b[~near][0] + 0:.4g}, not {a[~near][0] + 0:.4g}"
            return "", f"the {label} first differs at {place}: {seen} ({at})"
        if b.dtype.kind != ("b" if a.dtype.kind == "b" else "f"):
            return "dtype", f"the {label} has dtype {b.dtype}"


def diagnose(grade_id: str, function) -> tuple:
    """(verdict, names of the mistakes, what was seen, advice) for one checkpoint of a function."""
    task = next(t for t in _TABLES["tasks"].values() if grade_id in t["checks"])
    cases, here = task["cases"], np.array([c["check"] == grade_id for c in task["cases"]])
    _NAMED[grade_id] = set()
    values, moved = zip(*[_called(function, case["args"]) for case in cases], strict=True)
    bad = [_differs(task, case, value) for case, value in zip(cases, values, strict=True)]
    errors = [case["want"] == "ValueError" for case in cases]  # they count if the next call returns
    bad = [b or (e and after) for b, e, after in zip(bad, errors, [*bad[1:], None], strict=True)]
    mine = [b for b, own in zip(bad, here, strict=True) if b and own]
    if task["mutation"] in ("", grade_id) and any((here | bool(task["mutation"])) & moved):
        mine = mine or [("changed", "an argument was changed by the call")]
    if not mine or isinstance(values[0], NotImplementedError):
        return "not-attempted" if mine else "right", [], "not written yet", []
    prints = [fingerprint(v, e) for v, e in zip(values, errors, strict=True)]
    spared = np.array([e and not b for e, b in zip(errors, bad, strict=True)])

    def same(theirs) -> np.ndarray:  # an outcome of None is that of the reference
        rows = [(c, p, t or c["print"] or p) for c, p, t in zip(cases, prints, theirs, strict=True)]
        room = [c["atol"] + 0.2 * c["rtol"] * max(p[2], t[2]) for c, p, t in rows]
        near = [abs(p[1] - t[1]) <= r for (_, p, t), r in zip(rows, room, strict=True)]
        return np.array(near) & [p[0] == t[0] for _, p, t in rows]

    for callees, theirs in task["carried"]:
        if callees.items() <= set().union(*_NAMED.values()) and (same(theirs) | spared)[here].all():
            return "carried", [], f"right, given what your {' and '.join(callees)} returns", []
    wrong = {n: w for n, w in task["wrong"].items() if any(moved) or not w["moves"]}
    found = {n: same(w["outcomes"]) for n, w in wrong.items() if grade_id in w["fails"]}
    found = {n: s.sum() for n, s in found.items() if (s | spared)[here].all()}
    told = {n: wrong[n]["message"] for n, count in found.items() if count == max(found.values())}
    seen = f"this equals {' and '.join(told)} on {here.sum()} of {here.sum()} inputs"
    if len({kind for kind, _ in mine}) == 1:  # one fault that has a name in every task
        told = dict([_TABLES["faults"][k] for k, _ in mine if k in _TABLES["faults"]]) | told
    _NAMED[grade_id] = {(task["name"], name) for name in told}
    return "wrong", list(told), seen if found else mine[0][1], list(told.values())


def check_task(grade_id: str, function) -> None:
    """One checkpoint: a line if it passes, or what was seen, the likely cause and what to try."""
    verdict, _, seen, advice = diagnose(grade_id, function)
    if verdict in ("carried", "not-attempted"):
        _RUN[grade_id] = ("○", seen)
        return print(f"○ {grade_id}: {seen}.")
    with checkpoint(grade_id):
        if verdict == "wrong":
            raise CheckError(seen, " Or: ".join(advice).replace(". ", " | ", 1).rstrip("."))
