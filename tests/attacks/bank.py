"""What an attack is, and the list of all of them.

An attack is a few lines of code that a student adds to a notebook whose answer is wrong (the *control* is
the same notebook without those lines). It succeeds if it earns more than its control, or if it reads, writes,
starts, stops or reaches something that a submission must not: the judge looks at the score, the files, the
database, the processes and the network. `kinds/` holds the attacks, one small function each; the function
returns the code of the added cell, in which these words are replaced:

    $ROOT  the course's folder        $PEER  another student's submitted notebook
    $WIN   printed by an attack that has got what it must not
    $MARK  a word of this attack      $PORT  a TCP and UDP port on which the judge listens
    $PID   the grader's process id    $GRADE the checkpoint that the wrong answer loses
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import kinds


@dataclass(frozen=True)
class Attack:
    """One attack.

    Args:
        name: of the function, with dashes; also the attacker's student id.
        kind: name of the module in `kinds/`.
        aim: first line of its docstring.
        code: the added cell; "" if there is none.
        place: `after` the wrong answer, `first` or `last` in the notebook, or `check`: in place of the checkpoint.
        edit: changes the notebook itself (metadata, cells).
        files: changes the folder that is handed in.
        stock: what stock nbgrader does with it where that is not obvious: a note for the table.
    """

    name: str
    kind: str
    aim: str
    code: str
    place: str
    edit: Callable | None
    files: Callable[[Path, dict], None] | None
    stock: str = ""


@dataclass
class _Registry:
    attacks: list[Attack] = field(default_factory=list)


_registry = _Registry()


def attack(place: str = "after", *, edit=None, files=None, stock: str = ""):
    """Register a function as an attack; it returns the code of the added cell."""

    def register(function):
        _registry.attacks.append(
            Attack(
                name=function.__name__.replace("_", "-"),
                kind=function.__module__.rsplit(".", 1)[-1],
                aim=function.__doc__.strip().splitlines()[0],
                code=function() or "",
                place=place,
                edit=edit,
                files=files,
                stock=stock,
            )
        )
        return function

    return register


def attacks() -> list[Attack]:
    """Every attack of `kinds/`, in the order of the files."""
    for module in sorted(pkgutil.iter_modules(kinds.__path__), key=lambda item: item.name):
        importlib.import_module(f"{kinds.__name__}.{module.name}")
    return list(_registry.attacks)
