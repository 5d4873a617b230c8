"""Small tools for writing task modules: collect wrong and right implementations, draw inputs.

    book = Book("softmax")

    @book.wrong("wrong-axis", fails="rows", message="...", source="...")
    def over_the_queries(z):
        return ...

    @book.right("loops")
    def row_by_row(z):
        return ...

`answer_source(function, "softmax")` is the text of an answer cell that holds such a function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import numpy as np

from autograder.tasks.model import Alternative, Misconception


class Book:
    """The misconceptions and alternatives of one function, in the order in which they are written."""

    def __init__(self, function: str):
        self.function = function
        self.misconceptions: list[Misconception] = []
        self.alternatives: list[Alternative] = []

    def wrong(
        self, name: str, fails: str, message: str, source: str = "", public_only: bool = False
    ) -> Callable[[Callable], Callable]:
        """Register a misconception; `fails` lists properties (`rows stable` means `softmax-rows`, ...)."""
        grade_ids = tuple(f"{self.function}-{word}" for word in fails.split())

        def keep(implementation: Callable) -> Callable:
            self.misconceptions.append(
                Misconception(name, implementation, grade_ids, message, source, public_only)
            )
            return implementation

        return keep

    def right(self, name: str) -> Callable[[Callable], Callable]:
        """Register a correct implementation that is written differently."""

        def keep(implementation: Callable) -> Callable:
            self.alternatives.append(Alternative(name, implementation))
            return implementation

        return keep


def answer_source(function: Callable, name: str) -> str:
    """The text of an answer cell that defines `function` under `name`, without decorators.

    An implementation that is more than a function says it itself, in an attribute `answer`.
    """
    if hasattr(function, "answer"):
        return function.answer
    lines = inspect.getsource(function).splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\s*def ", line))
    text = inspect.cleandoc("\n" + "\n".join(lines[start:]))
    return re.sub(r"^def \w+\(", f"def {name}(", text, count=1) + "\n"


def normal(rng: np.random.Generator, *shape: int, dtype: type = np.float64) -> np.ndarray:
    """Normal numbers rounded to 3 digits, so that float32 and float64 hold nearly the same."""
    return np.round(rng.normal(size=shape), 3).astype(dtype)


def sizes(rng: np.random.Generator, count: int, low: int = 2, high: int = 8) -> list[int]:
    """`count` sizes of which no two are equal."""
    return [int(n) for n in rng.permutation(np.arange(low, high + 1))[:count]]
