"""Helper of the attention course: evidence, checkpoints and pictures in one file of numpy.

It travels inside every notebook and holds no answers: a check compares what you have with the
property that stands in the checkpoint's own line.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from io import BytesIO
from pathlib import Path

import numpy as np

__version__ = "1.0.0"
COLOURS = ("#1e8798", "#7f2635", "#f3b23a", "#4b5f9e", "#8a8a8a")  # apart in hue and in lightness
HATCHES = ("", "//", "..", "xx", "++")
MISTAKES = {  # what a checkpoint can recognise: likely cause | what to try
    "stale": "an input was changed after this was computed | run the section from its first cell",
    "unscaled": "these are raw dot products, not scaled | divide by np.sqrt(K.shape[-1])",
    "wrong_axis": "softmax ran over queries (axis 0) | use axis=-1, keepdims=True in max and sum",
    "transposed": "queries and keys are swapped | rows are queries: print shapes, look at each .T",
    "unmasked": "the mask was not used | pass np.where(allowed, scores, -np.inf) to softmax",
    "mask_after": "the mask came after the softmax | put -inf into the scores, then apply softmax",
    "not_finite": "a row without an allowed key (0/0), or numbers too large | print its input by rows",
    "not_run": "its cell was not run, or stopped with an error | run the section from its first cell",
}


class CheckError(AssertionError):
    """A failed check. `advice` is "likely cause | what to try"."""

    def __init__(self, seen: str, advice: str = ""):
        super().__init__(seen, advice)
        self.seen, self.checkpoint = seen, ""
        self.cause, _, self.attempt = advice.partition(" | ")

    def __str__(self) -> str:
        parts = {"Seen": self.seen, "Likely cause": self.cause, "Try": self.attempt}
        head = [f"✗ {self.checkpoint}"] if self.checkpoint else []
        return "\n".join(head + [f"  {label}: {text}." for label, text in parts.items() if text])

    def _render_traceback_(self) -> list[str]:  # IPython shows this in place of the frames
        return str(self).splitlines()


class Unfinished(Exception):
    """Nothing is wrong; something is still to be done."""


_RUN: dict[str, tuple[str, str]] = {}  # checkpoint -> (sign, what is left)
_LESSON: dict[str, np.ndarray] = {}  # name -> what the lesson starts from


def begin(checkpoints, **lesson) -> None:
    """Name this notebook's checkpoints, for `summary`, and the lesson's inputs, for `unchanged`."""
    _RUN.clear()
    _RUN.update(dict.fromkeys(checkpoints, ("·", "not run yet")))
    _LESSON.update({name: np.array(value, dtype=float) for name, value in lesson.items()})


def summary() -> None:
    """Print how many checkpoints pass, and what is left."""
    print(f"{sum(sign == '✓' for sign, _ in _RUN.values())} of {len(_RUN)} checkpoints pass.")
    print("".join(f"{s} {name}: {left}\n" for name, (s, left) in _RUN.items() if s != "✓"), end="")


class checkpoint:
    """`with checkpoint(name):` runs the checks inside; one line of output, or one CheckError."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self):
        _RUN[self.name] = ("✗", "stopped before its end")

    def __exit__(self, kind, error, trace) -> bool:
        if error is None:
            _RUN[self.name] = ("✓", "")
            print(f"✓ {self.name}: passed")
        elif isinstance(error, Unfinished):
            _RUN[self.name] = ("○", f"to do: {error}")
            print(f"○ {self.name}: right so far. To do: {error}.")
        elif isinstance(error, Exception):
            if not isinstance(error, CheckError):
                advice = (
                    "the arrays do not fit together | print their shapes; keys pair with values"
                )
                advice = MISTAKES["not_run"] if isinstance(error, NameError) else advice
                error = CheckError(f"{type(error).__name__}: {error}", advice)
            error.checkpoint = self.name
            _RUN[self.name] = ("✗", error.seen)
            raise error from None
        return isinstance(error, Unfinished)


def check_true(claim: str, holds, advice: str = "") -> None:
    """The claim holds (everywhere, if `holds` is an array)."""
    if not np.all(holds):
        at = f", first at {_first(~np.asarray(holds))}" if np.ndim(holds) else ""
        raise CheckError(f"this does not hold: {claim}{at}", advice)


def check_array(name: str, value, shape=None, finite: bool = True) -> None:
    """A plain numeric array, of this shape (None = any length), without NaN or infinity."""
    if type(value) is not np.ndarray or value.dtype.kind not in "biuf":
        fix = ".detach().numpy()" if hasattr(value, "detach") else "np.array(..., dtype=float)"
        advice = f"a numpy array of numbers is needed | use {fix}"
        raise CheckError(f"`{name}` is a {type(value).__name__}", advice)
    seen = f"`{name}` has shape {value.shape}"
    if shape is not None and value.ndim != len(shape):
        advice = "an axis was dropped or added | look for keepdims=True, an index, extra brackets"
        raise CheckError(f"{seen}, not {len(shape)} axes", advice)
    if shape is not None and any(n not in (None, value.shape[i]) for i, n in enumerate(shape)):
        seen += f", expected {tuple('any' if n is None else n for n in shape)}"
        swapped = value.shape[::-1] == tuple(shape)
        raise CheckError(seen, MISTAKES["transposed" if swapped else "stale"])
    if finite and not np.isfinite(value).all():
        seen = f"`{name}` has NaN or infinity, first at {_first(~np.isfinite(value))}"
        raise CheckError(seen, MISTAKES["not_finite"])


def check_close(name: str, seen, expected, rtol=1e-5, atol=1e-6, **mistakes) -> None:
    """`seen` equals `expected`. `mistakes`: what a known mistake would give, unscaled=Q @ K.T."""
    expected = np.asarray(expected)
    check_array(name, seen, expected.shape)
    near = np.isclose(seen, expected, rtol=rtol, atol=atol)
    if near.all():
        return
    at = _first(~near)
    told = f"`{name}`{at} is {seen[tuple(at)]:.6g}, the property gives {expected[tuple(at)]:.6g}"
    for known, wrong in {**mistakes, "transposed": expected.T}.items():
        if np.shape(wrong) == seen.shape and np.allclose(seen, wrong, rtol=rtol, atol=atol):
            raise CheckError(told, MISTAKES[known])
    raise CheckError(f"{told} ({np.sum(~near)} of {near.size} differ)", MISTAKES["stale"])


def check_rows_sum_to_one(name: str, weights) -> None:
    """Each query's weights are between 0 and 1 and sum to 1 over the keys (last axis)."""
    check_array(name, weights)
    sums, advice = (
        weights.sum(axis=-1),
        "no division by the row's sum | use keepdims=True in the sum",
    )
    if not np.allclose(sums, 1, rtol=0, atol=1e-6):
        over_queries = np.allclose(weights.sum(axis=0), 1, rtol=0, atol=1e-6)
        advice = MISTAKES["wrong_axis"] if over_queries else advice
        advice = MISTAKES["mask_after"] if not over_queries and (weights == 0).any() else advice
        row = _first(~np.isclose(sums, 1, rtol=0, atol=1e-6))
        raise CheckError(f"row {row} of `{name}` sums to {sums[tuple(row)]:.6g}, not 1", advice)
    check_true(f"every weight in `{name}` is at least 0", weights >= 0, MISTAKES["stale"])


def check_zero_where(name: str, weights, blocked, why: str) -> None:
    """`weights` is exactly 0 wherever `blocked` is True."""
    check_array(name, weights, np.shape(blocked))
    leaks = np.asarray(blocked, dtype=bool) & (weights != 0)
    if leaks.any():
        at = _first(leaks)
        advice = (
            "the mask is missing, transposed, inverted or late | print it: row = query, True = may"
        )
        raise CheckError(f"`{name}`{at} is {weights[tuple(at)]:.6g}, not exactly 0: {why}", advice)


def _first(where) -> list[int]:
    return [int(i) for i in np.argwhere(where)[0]]


def unchanged(**inputs) -> bool:
    """Are all of these still what the lesson starts from? (`my_Q` is compared with its `Q`.)"""
    starts = {name: _LESSON[name.removeprefix("my_")] for name in inputs}
    same = (np.shape(x) == starts[n].shape and np.allclose(x, starts[n]) for n, x in inputs.items())
    return all(same)


def check_changed(**inputs) -> None:
    """At least one of these inputs is no longer the lesson's."""
    if unchanged(**inputs):
        mine = " or ".join(name for name in inputs if name.startswith("my_"))
        raise Unfinished(f"change {mine} in the cell above, run it, then this")


class Evidence:
    """Values, predictions and named assertions, saved as strict JSON and shown in the notebook.

    `required` maps a key ("Q", "assertions.causal_mask") to the section that makes it. The file at
    `path` is written, never read. `data` is a plain dictionary.
    """

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

    def check_predicted(self, name: str) -> None:
        if self.data["predictions"].get(name) is None:
            raise Unfinished(f'replace None in evidence.predict("{name}", None), run it, then this')

    def check_complete(self) -> None:
        """Every required key is there; if not, say which section makes it."""
        have = {**self.data, **{f"assertions.{k}": v for k, v in self.data["assertions"].items()}}
        missing = [
            f"{key} ({made})" for key, made in self.required.items() if have.get(key) is None
        ]
        if missing:
            raise CheckError(f"not in the evidence: {', '.join(missing)}", MISTAKES["not_run"])

    def save(self) -> None:
        """Write the file in one step, and show the JSON so that it travels inside the notebook."""
        self.check_complete()
        modules = {name: sys.modules.get(name) for name in ("numpy", "torch", "attention_lab")}
        versions = {name: str(module.__version__) for name, module in modules.items() if module}
        self.data["environment"] = {"python": sys.version.split()[0], **versions}
        rows = [
            f"  {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in self.data.items()
        ]
        text = "{\n" + ",\n".join(rows) + "\n}"
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
    """The value as strict JSON data."""
    value = value.detach().cpu().numpy() if hasattr(value, "detach") else value  # a torch tensor
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, dict):
        return {str(key): _plain(name, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(name, item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        raise CheckError(f"`{name}` holds {value}; JSON has no NaN", MISTAKES["not_finite"])
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckError(f"`{name}` is a {type(value).__name__}, not numbers, text or an array")


def _display(bundle: dict, metadata: dict | None = None) -> None:
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        sys.modules["IPython"].display.display(bundle, raw=True, metadata=metadata or {})


def _figure(width: float, height: float, **labels):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.set(**labels)
    return figure, axes


def _show(figure, text: str) -> None:
    """The picture, and its text alternative: printed, and in the picture's metadata."""
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    png = b64encode(stream.getvalue()).decode("ascii")
    _display({"image/png": png, "text/plain": text}, {"image/png": {"alt": text}})
    print("In words:", text)


def _names(names, count: int, letter: str) -> list[str]:
    names = [str(name) for name in (names if names is not None else [])]
    return names if len(names) == count else [f"{letter}{i}" for i in range(count)]


def heatmap(weights, queries=None, keys=None, title="Attention weights") -> None:
    """Weights (N_q, N_k): rows are queries, columns keys; numbers in the cells where they fit."""
    weights = np.atleast_2d(np.asarray(weights, dtype=float))
    (n_q, n_k), small = weights.shape, weights.size <= 64
    queries, keys = _names(queries, n_q, "q"), _names(keys, n_k, "k")
    size = (2.6 + 0.85 * n_k, 1.4 + 0.55 * n_q) if small else (6.4, 4.8)
    figure, axes = _figure(*size, xlabel="key (source)", ylabel="query (destination)", title=title)
    image = axes.imshow(weights, cmap="YlGnBu", vmin=0, vmax=1, aspect="auto")
    figure.colorbar(image, ax=axes, label="weight")
    if small:
        axes.set_xticks(range(n_k), keys)
        axes.set_yticks(range(n_q), queries)
        for (row, column), weight in np.ndenumerate(weights):
            style = {"ha": "center", "va": "center", "color": "white" if weight > 0.5 else "black"}
            axes.text(column, row, f"{weight:.2f}", **style)
    told = []
    for query, row in list(zip(queries, weights, strict=True))[:12]:
        every = ", ".join(f"{key} {weight:.2f}" for key, weight in zip(keys, row, strict=True))
        told.append(f"{query}: {every if n_k <= 4 else f'most at {keys[int(np.argmax(row))]}'}")
    _show(figure, f"{title}, {n_q} queries by {n_k} keys. {'; '.join(told)}.")


def arrows(K, Q, keys=None, queries=None, title="Keys are points, queries are arrows") -> None:
    """First two coordinates: keys as labelled points, queries as arrows from the origin."""
    points = np.vstack([np.asarray(K, dtype=float)[:, :2], np.asarray(Q, dtype=float)[:, :2]])
    names = _names(keys, len(K), "k") + _names(queries, len(Q), "q")
    figure, axes = _figure(4.8, 4.0, xlabel="dimension 1", ylabel="dimension 2", title=title)
    look = {"arrowstyle": "-|>", "color": COLOURS[1], "lw": 2.2, "shrinkA": 0, "shrinkB": 0}
    for i, (x, y) in enumerate(points):
        if i < len(K):
            axes.scatter(x, y, s=110, color=COLOURS[0], edgecolor="black", zorder=3)
        else:
            axes.annotate("", (x, y), (0, 0), arrowprops=look)
        at = (x, y) if i < len(K) else (x / 2, y / 2)
        axes.annotate(names[i], at, (8, 7), textcoords="offset points")
    limits = (min(0, points.min()) - 0.3, max(0, points.max()) + 0.6)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    told = [f"{name} ({x:g}, {y:g})" for name, (x, y) in zip(names, points, strict=True)]
    _show(figure, f"{title}. {', '.join(told)}.")


def bars(weights, keys=None, title="Attention weights") -> None:
    """One query's weights, (N_k,) or (1, N_k), as labelled bars."""
    weights = np.asarray(weights, dtype=float).reshape(-1)
    keys, size = _names(keys, len(weights), "k"), 1.6 + 1.1 * len(weights)
    figure, axes = _figure(size, 3.0, xlabel="key", ylabel="attention weight", title=title)
    for i, weight in enumerate(weights):
        look = {"color": COLOURS[i % 5], "hatch": HATCHES[i % 5], "edgecolor": "black"}
        axes.bar(keys[i], weight, **look)
        axes.annotate(f"{weight:.4f}", (i, weight), (0, 4), textcoords="offset points", ha="center")
    axes.set_ylim(0, 1.1)
    _show(
        figure, f"{title}. {', '.join(f'{k} {w:.4f}' for k, w in zip(keys, weights, strict=True))}."
    )
