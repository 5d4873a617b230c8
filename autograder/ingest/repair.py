"""Puts a submitted notebook's cells back in order, from the released notebook.

The order of work: what was split is joined, what was merged is cut apart, each released cell finds its
submitted one (by grade id, then by cell id and content, then by position), edited locked cells get the
release's text back, and missing and moved cells go where the release has them. Two rules hold
throughout: what the release locks comes from the release, and nothing that a student wrote is lost.

When an answer cell is there several times, the student's answer is the last copy, in the notebook's order,
that differs from the release and defines what the released cell defines (if none defines it, the
last that differs). The other copies run in place as ordinary cells; untouched copies are left out, since
running them would undo the answer.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from difflib import SequenceMatcher

from nbformat import NotebookNode

from autograder.ingest import colab
from autograder.ingest.decode import ID
from autograder.ingest.pieces import Piece, Released, released_cells, submitted_pieces
from autograder.ingest.text import bound, normal, parse, runs_alone, statement_names, words

ALIKE = 0.6
"""Two texts are the same cell, edited, from this ratio of difflib on."""
PAIR_LIMIT = 4000
SPLIT_PARTS = 6
MANY = 4
"""More repairs of one kind than this are told in one sentence."""

_MADE = re.compile(r"^cell-\d+(-\d+)?$")
"""Ids that `decode` made because there were none; it has told that already."""

_NAME = re.compile(r"`[^`]*`")

Matches = dict[int, Piece]


def repair(nb: NotebookNode, released: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """The notebook with every released cell in it, and one sentence for each repair.

    Args:
        nb: as `decode` yields it; it is not changed.
        released: the notebook of the same name under `release/`.

    Returns:
        A notebook in format 4.5 without outputs, with the release's metadata, and the sentences.
    """
    says: list[str] = []
    cells = released_cells(released)
    pieces = submitted_pieces(nb)
    _forget_unknown_ids(pieces, cells, says)
    emptied = _drop_emptied(pieces, cells)
    pieces = _join_split(pieces, cells, says)
    older = _older(nb, released, says)
    pieces = _cut_merged(pieces, cells, says, older)
    matches = _match(pieces, cells, says)
    _restore_types(matches, cells, says)
    pieces = _restore_locked(pieces, matches, cells, [] if older else says)
    _tell_settings(matches, cells, says)
    order = _arrange(pieces, matches, cells, emptied, says)
    return _build(order, released, says), _together(says)


def _together(says: list[str]) -> list[str]:
    """The sentences, where more than `MANY` differ in the cell's name alone told as one."""
    groups: dict[str, list[str]] = defaultdict(list)
    for sentence in says:
        groups[_NAME.sub("", sentence, count=1)].append(sentence)
    told: list[str] = []
    for same in groups.values():
        if len(same) <= MANY:
            told.extend(dict.fromkeys(same))
            continue
        names = [match[0] for sentence in same[1:] if (match := _NAME.search(sentence))]
        likewise = f"likewise {', '.join(names)}" if names else f"{len(same)} times"
        told.append(f"{same[0][:-1]} ({likewise}).")
    return told


# --- reading what is there -----------------------------------------------------------------------


def _shown(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_ " else "?" for c in text[:40])


def _forget_unknown_ids(pieces: list[Piece], cells: list[Released], says: list[str]) -> None:
    known = {cell.grade_id for cell in cells}
    for piece in pieces:
        if piece.grade_id is not None and piece.grade_id not in known:
            says.append(
                f"A cell carried the grade id `{_shown(piece.grade_id)}`, which this notebook does not "
                "have; that id was ignored."
            )
            piece.grade_id = None
        if "skip-execution" in piece.tags:
            says.append("A cell carried the tag `skip-execution`; the tag was removed.")


def _drop_emptied(pieces: list[Piece], cells: list[Released]) -> set[int]:
    """Takes out released cells that were emptied, which are then put back like deleted ones."""
    emptied: set[int] = set()
    for piece in list(pieces):
        cell = _claims(piece, cells) if not piece.text else None
        if cell is not None and cell.text:
            pieces.remove(piece)
            emptied.add(cell.index)
    return emptied


def _claims(piece: Piece, cells: list[Released]) -> Released | None:
    """The released cell that this piece says it is, by grade id or by cell id."""
    for cell in cells:
        if piece.grade_id is not None and cell.grade_id == piece.grade_id:
            return cell
    if piece.grade_id is None and piece.id:
        for cell in cells:
            if cell.id == piece.id:
                return cell
    return None


def _squeezed(text: str) -> str:
    return "\n".join(line for line in normal(text).split("\n") if line.strip())


# --- split and merged cells ----------------------------------------------------------------------


def _join_split(pieces: list[Piece], cells: list[Released], says: list[str]) -> list[Piece]:
    """Joins the parts of a cell that was split, where only the whole makes sense."""
    result: list[Piece] = []
    start = 0
    while start < len(pieces):
        piece = pieces[start]
        cell = _claims(piece, cells)
        count = _parts(pieces[start : start + SPLIT_PARTS], cell, cells)
        if count > 1:
            parts = pieces[start : start + count]
            piece.source = "\n".join(part.source.strip("\n") for part in parts)
            said = cell.said() if cell is not None else "A cell"
            says.append(f"{said} had been split in {count}; its parts were joined.")
        result.append(piece)
        start += count
    return result


def _parts(pieces: list[Piece], cell: Released | None, cells: list[Released]) -> int:
    """How many pieces, from the first one on, are one cell."""
    first = pieces[0]
    # A part that was made Markdown or raw text is code if its released cell is.
    is_code = first.kind == "code" if cell is None else cell.kind == "code"
    if not is_code or not first.text or (cell is not None and first.text == cell.text):
        return 1
    whole = first.source
    target = _squeezed(cell.source) if cell is not None else None
    broken = not runs_alone(first.source)
    joined = 1
    for number, part in enumerate(pieces[1:], 2):
        other = _claims(part, cells)
        if part.kind != first.kind or (other is not None and other is not cell):
            break
        alone = runs_alone(part.source)
        indented = normal(part.source).startswith((" ", "\t"))
        # A cell of the student's own that works stays one, whatever stands before it.
        if alone and (joined > 1 or (cell is None and not indented)):
            break
        whole = whole.strip("\n") + "\n" + part.source.strip("\n")
        if _squeezed(whole) == target:
            return number
        if cell is not None and cell.locked:
            continue
        broken = broken or not alone
        if broken and runs_alone(whole):
            joined = number
        elif not broken and not indented:
            break
    return joined


def _cut_merged(
    pieces: list[Piece], cells: list[Released], says: list[str], older: bool
) -> list[Piece]:
    """Cuts a released cell's text out of the cell that it was merged into, if it is nowhere else."""
    there = {cell.index for piece in pieces if (cell := _claims(piece, cells))}
    texts = {piece.text for piece in pieces}
    absent = [c for c in cells if c.index not in there and c.text not in texts and c.text]
    result: list[Piece] = []
    for piece in pieces:
        own = _claims(piece, cells)
        if own is not None and piece.text == own.text:
            result.append(piece)
            continue
        fragments, found = [piece], []
        cut_own = own is not None and (
            (own.locked and not older) or _holds_answer(piece, own, absent)
        )
        for cell in [own, *absent] if cut_own else absent:
            fragments, cut = _cut(fragments, cell)
            if cut and cell is not own:
                found.append(cell)
        absent = [cell for cell in absent if cell not in found]
        if found:
            names = ", ".join(f"`{cell.called}`" for cell in found)
            says.append(f"The text of {names} had been merged into another cell; it was cut out.")
        elif len(fragments) > 1:
            says.append(
                f"{own.said()} had other text in it, which now stands in a cell of its own."
            )
        _name_fragments(fragments, piece, own)
        if own is not None and len(fragments) > 1:
            _code_beside(fragments, own, absent)
        for fragment in fragments:
            parts = _cut_code_from_prose(fragment, absent)
            if len(parts) > 1:
                says.append("An answer had been merged into a text cell; it was cut out.")
            result.extend(parts)
    return result


def _holds_answer(piece: Piece, own: Released, absent: list[Released]) -> bool:
    """Does the cell seem to hold, besides its own text, that of an open cell that is not there?"""
    for cell in absent:
        if not cell.locked and abs(cell.index - own.index) == 1:
            return True
        if cell.answer and cell.names and cell.names <= bound(piece.source):
            return True
    return False


def _code_beside(fragments: list[Piece], own: Released, absent: list[Released]) -> None:
    """What was cut off a text cell is code, if it can be and the code cell beside it is not there."""
    beside = any(
        cell.kind == "code" and not cell.locked and abs(cell.index - own.index) == 1
        for cell in absent
    )
    for fragment in fragments:
        if beside and not fragment.id and fragment.kind != "code" and parse(fragment.source):
            fragment.kind = "code"


def _cut_code_from_prose(piece: Piece, absent: list[Released]) -> list[Piece]:
    """A definition at the end of an edited text cell, as code, if its answer cell is not there."""
    for cell in absent:
        if piece.kind == "code" or not cell.answer or len(cell.names) != 1:
            continue
        match = re.search(rf"^def {next(iter(cell.names))}\b", piece.text, re.MULTILINE)
        if match and match.start() and parse(piece.text[match.start() :]) is not None:
            rest = Piece("code", piece.text[match.start() :])
            piece.source = piece.text[: match.start()]
            return [piece, rest]
    return [piece]


def _cut(pieces: list[Piece], cell: Released) -> tuple[list[Piece], bool]:
    """Takes the lines of `cell` out of the first piece that holds them as whole lines."""
    wanted = cell.text.split("\n")
    if len(cell.text) < 20:
        return pieces, False
    for number, piece in enumerate(pieces):
        lines = piece.text.split("\n")
        if len(lines) <= len(wanted):
            continue
        for start in range(len(lines) - len(wanted) + 1):
            if lines[start : start + len(wanted)] == wanted:
                end = start + len(wanted)
                middle = Piece(cell.kind, cell.source, cell.id, cell.grade_id)
                middle.settings = dict(cell.cell["metadata"].get("nbgrader") or {})
                around = [
                    Piece(piece.kind, normal("\n".join(part)))
                    for part in (lines[:start], lines[end:])
                ]
                before, after = around
                new = [p for p in (before, middle, after) if p is middle or p.text]
                return pieces[:number] + new + pieces[number + 1 :], True
    return pieces, False


def _name_fragments(fragments: list[Piece], piece: Piece, own: Released | None) -> None:
    """Gives the merged cell's identity to the fragment that is it."""
    free = [f for f in fragments if not f.id]
    if own is None or not free or any(f is piece or f.id == own.id for f in fragments):
        return
    heir = next((f for f in free if own.names & bound(f.source)), free[0])
    heir.id, heir.grade_id, heir.settings = piece.id, piece.grade_id, piece.settings


# --- which submitted cell is which released one --------------------------------------------------


def _match(pieces: list[Piece], cells: list[Released], says: list[str]) -> Matches:
    matches: Matches = {}
    _match_grade_ids(pieces, cells, matches, says)
    _match_cell_ids(pieces, cells, matches)
    _match_same_text(pieces, cells, matches)
    _match_definitions(pieces, cells, matches)
    _match_alike(pieces, cells, matches)
    _match_positions(pieces, cells, matches)
    _tell_lost_metadata(matches, cells, says)
    return matches


def _free(pieces: list[Piece], matches: Matches) -> list[Piece]:
    taken = {id(piece) for piece in matches.values()}
    return [piece for piece in pieces if id(piece) not in taken]


def _open(cells: list[Released], matches: Matches) -> list[Released]:
    return [cell for cell in cells if cell.index not in matches]


def _match_grade_ids(
    pieces: list[Piece], cells: list[Released], matches: Matches, says: list[str]
) -> None:
    groups: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        if piece.grade_id is not None:
            groups[piece.grade_id].append(piece)
    for cell in cells:
        group = groups.get(cell.grade_id or "", [])
        if not group:
            continue
        chosen = _choose(group, cell)
        matches[cell.index] = chosen
        if len(group) == 1:
            continue
        if cell.kind != "code" and not cell.locked:
            _join_prose(group, chosen, cell, pieces, says)
            continue
        kept = False
        for piece in group:
            if piece is chosen:
                continue
            piece.grade_id, piece.id, piece.settings = None, "", {}
            if piece.text in ("", cell.text) or (cell.locked and piece.text in cell.text):
                pieces.remove(piece)
            else:
                kept = True
        times = "twice" if len(group) == 2 else f"{len(group)} times"
        if cell.locked:
            rest = "the other text runs as an ordinary cell" if kept else "one is enough"
        else:
            rest = "the last copy that differs from the release counts as your answer"
            rest += ", and the others run as ordinary cells" if kept else ""
        says.append(f"{cell.said()} was there {times}; {rest}.")


def _join_prose(
    group: list[Piece], chosen: Piece, cell: Released, pieces: list[Piece], says: list[str]
) -> None:
    """An answer in words that stands in several cells is read as one, so that no part is overlooked."""
    texts: list[str] = []
    for piece in group:
        if piece.text != cell.text and not any(piece.text in text for text in texts):
            texts = [text for text in texts if text not in piece.text] + [piece.text]
    chosen.source = "\n\n".join(texts) or chosen.source
    pieces[:] = [piece for piece in pieces if piece is chosen or not any(piece is g for g in group)]
    says.append(f"{cell.said()} was there {len(group)} times; the texts were joined into one.")


def _choose(group: list[Piece], cell: Released) -> Piece:
    if cell.locked:
        return next((piece for piece in group if piece.text == cell.text), group[0])
    changed = [piece for piece in group if piece.text not in ("", cell.text)]
    defining = [p for p in changed if cell.names and cell.names <= bound(p.source)]
    last = (defining or changed or group)[-1]
    # Of equal copies the first one is where the cell was.
    return next(piece for piece in group if piece.text == last.text)


def _match_cell_ids(pieces: list[Piece], cells: list[Released], matches: Matches) -> None:
    free = {piece.id: piece for piece in reversed(_free(pieces, matches)) if piece.id}
    for cell in _open(cells, matches):
        piece = free.get(cell.id)
        if piece is None or piece.grade_id is not None:
            continue
        if piece.kind != cell.kind and not _likeness(piece.text, cell.text):
            # Another text in a cell of another type is the student's own; both are kept.
            continue
        # An id alone says nothing of a locked cell whose text is another one now: keep that text.
        if not cell.locked or piece.text == cell.text or _likeness(piece.text, cell.text):
            matches[cell.index] = piece


def _match_same_text(pieces: list[Piece], cells: list[Released], matches: Matches) -> None:
    by_text: dict[str, list[Piece]] = defaultdict(list)
    for piece in _free(pieces, matches):
        by_text[piece.text].append(piece)
    for cell in _open(cells, matches):
        if cell.text and by_text.get(cell.text):
            matches[cell.index] = by_text[cell.text].pop(0)


def _match_definitions(pieces: list[Piece], cells: list[Released], matches: Matches) -> None:
    """An answer cell is the last cell that defines its function."""
    for cell in _open(cells, matches):
        if not cell.answer or not cell.names:
            continue
        defining = [p for p in _free(pieces, matches) if _defines(p, cell)]
        if defining:
            matches[cell.index] = ([p for p in defining if p.kind == "code"] or defining)[-1]


def _defines(piece: Piece, cell: Released) -> bool:
    return cell.names <= bound(_as_code(piece.source) if piece.kind != "code" else piece.source)


def _likeness(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1; 0 where it is below `ALIKE`."""
    longer, shorter = max(len(one), len(other)), min(len(one), len(other))
    if not shorter or longer > 3 * shorter + 40:
        return 0.0
    if longer > 5000:
        ours, theirs = set(one.split("\n")), set(other.split("\n"))
        ratio = len(ours & theirs) / max(len(ours), len(theirs))
    else:
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
            return 0.0
        ratio = matcher.ratio()
    return ratio if ratio >= ALIKE else 0.0


def _match_alike(pieces: list[Piece], cells: list[Released], matches: Matches) -> None:
    """The pairs that are most alike find each other first; a common place in the order breaks ties."""
    free, open_cells = _free(pieces, matches), _open(cells, matches)
    # Comparing is slow: a notebook with thousands of own cells must not hold up the class.
    free = free[: PAIR_LIMIT // max(len(open_cells), 1)]
    number = {id(piece): n for n, piece in enumerate(pieces)}
    pairs = [
        (_likeness(piece.text, cell.text), -abs(number[id(piece)] - cell.index), cell, piece)
        for cell in open_cells
        for piece in free
        if piece.kind == cell.kind
    ]
    taken: set[int] = set()
    for alike, _, cell, piece in sorted(pairs, key=lambda p: p[:2], reverse=True):
        if alike and cell.index not in matches and id(piece) not in taken:
            matches[cell.index] = piece
            taken.add(id(piece))


def _match_positions(pieces: list[Piece], cells: list[Released], matches: Matches) -> None:
    """Between two recognised neighbours, as many left over here as there: they are the same ones."""
    place = {id(piece): number for number, piece in enumerate(pieces)}
    for cell in _open(cells, matches):
        if cell.index in matches or cell.locked:
            continue
        before = max((i for i in matches if i < cell.index), default=None)
        after = min((i for i in matches if i > cell.index), default=None)
        low = place[id(matches[before])] if before is not None else -1
        high = place[id(matches[after])] if after is not None else len(pieces)
        taken = {id(piece) for piece in matches.values()}
        here = [p for p in pieces[low + 1 : high] if id(p) not in taken and p.kind == cell.kind]
        first = before + 1 if before is not None else 0
        last = after if after is not None else len(cells)
        there = [c for c in cells[first:last] if c.kind == cell.kind and not c.locked]
        if len(here) != len(there):
            continue
        for other, piece in zip(there, here, strict=True):
            if other.kind != "code" or not other.names or other.names & bound(piece.source):
                matches[other.index] = piece


def _tell_lost_metadata(matches: Matches, cells: list[Released], says: list[str]) -> None:
    lost = [c for c in cells if c.index in matches and c.grade_id and not matches[c.index].grade_id]
    graded = [c for c in cells if c.grade_id]
    if lost and len(lost) == len(graded):
        says.append(
            "All cells had lost their nbgrader metadata; they were recognised by their content."
        )
    else:
        _tell(
            says,
            lost,
            "{} had lost its nbgrader metadata; it was recognised by its content.",
            "{} cells had lost their nbgrader metadata; they were recognised by their content.",
        )
    ids = [
        c
        for c in cells
        if c.index in matches
        and c.id
        and matches[c.index].id not in ("", c.id)
        and not _MADE.match(matches[c.index].id)
        and c not in lost
    ]
    if ids:
        count = "One cell" if len(ids) == 1 else f"{len(ids)} cells"
        says.append(f"{count} had another cell id than in the release; the release's was put back.")


def _tell(says: list[str], cells: list[Released], one: str, many: str) -> None:
    if len(cells) > MANY:
        says.append(many.format(len(cells)))
    else:
        says.extend(one.format(cell.said()) for cell in cells)


def _older(nb: NotebookNode, released: NotebookNode, says: list[str]) -> bool:
    """Was the notebook made from another version of the release? Then its locked cells differ rightly."""
    mine = (nb["metadata"].get("attention_course") or {}).get("release")
    theirs = (released["metadata"].get("attention_course") or {}).get("release")
    if mine is None or theirs is None or mine == theirs:
        return False
    says.append(
        f"The notebook was made from another version of the release ({_shown(mine)}); its locked "
        f"cells were brought to the present one ({_shown(theirs)})."
    )
    return True


# --- types, locked text, settings ----------------------------------------------------------------


def _as_code(source: str) -> str:
    """Text of a cell that was made Markdown, as code: without the fence or heading mark put around it."""
    text = normal(source)
    lines = text.split("\n")
    if len(lines) >= 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    if parse(text) is None or not bound(text):
        stripped = text.lstrip("#").lstrip(" ")
        if stripped != text and parse(stripped) is not None and bound(stripped):
            return stripped
    return source


def _restore_types(matches: Matches, cells: list[Released], says: list[str]) -> None:
    names = {"code": "code", "markdown": "text (Markdown)", "raw": "raw text"}
    for cell in cells:
        piece = matches.get(cell.index)
        if piece is None or piece.kind == cell.kind:
            continue
        if cell.kind == "code":
            piece.source = _as_code(piece.source)
        says.append(
            f"{cell.said()} had been changed to {names.get(piece.kind, 'another type')}; "
            f"it is {names[cell.kind]} again."
        )
        piece.kind = cell.kind


def _restore_locked(
    pieces: list[Piece], matches: Matches, cells: list[Released], says: list[str]
) -> list[Piece]:
    """Gives locked cells the release's text; names that only the student's text binds stay."""
    result = list(pieces)
    for cell in cells:
        piece = matches.get(cell.index)
        if piece is None or not cell.locked:
            continue
        if piece.text != cell.text:
            own = _additions(piece, cell, cells) if cell.kind == "code" else ""
            sentence = f"{cell.said()} had been edited; the release's text was put back"
            if own:
                result.insert(result.index(piece) + 1, Piece("code", own))
                sentence += ", and what you had added stands in a cell of its own after it"
            says.append(f"{sentence}.")
        piece.source = cell.source
    return result


def _additions(piece: Piece, cell: Released, cells: list[Released]) -> str:
    """The statements of an edited locked cell that bind names which its release does not bind."""
    tree = parse(piece.source)
    if tree is None:
        wanted = {name for other in cells if other.answer for name in other.names}
        return piece.source if wanted & bound(piece.source) else ""
    own = []
    lines = piece.source.split("\n")
    for number, node in enumerate(tree.body):
        names = statement_names(node) or bound(ast.unparse(node))
        if names and not names & cell.names:
            decorated = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(d.lineno for d in decorated)])
            follower = tree.body[number + 1].lineno if number + 1 < len(tree.body) else None
            last = node.end_lineno if follower != node.end_lineno else node.end_lineno - 1
            own.append("\n".join(lines[first - 1 : last]))
    return "\n".join(own)


def _tell_settings(matches: Matches, cells: list[Released], says: list[str]) -> None:
    for cell in cells:
        piece = matches.get(cell.index)
        if piece is None or not piece.grade_id:
            continue
        right = cell.cell["metadata"]["nbgrader"]
        changed = sorted(
            key
            for key in set(right) | set(piece.settings)
            if piece.settings.get(key) != right.get(key) and key != "checksum"
        )
        if changed:
            listed = ", ".join(f"`{_shown(key)}`" for key in changed[:MANY])
            says.append(f"{cell.said()} had other settings ({listed}); the release's count.")


# --- order ---------------------------------------------------------------------------------------


def _longest_rising(numbers: list[int]) -> set[int]:
    """Values of one longest rising subsequence."""
    tails: list[int] = []
    tail_at: list[int] = []
    previous: list[int | None] = []
    for position, value in enumerate(numbers):
        slot = bisect_left(tails, value)
        previous.append(tail_at[slot - 1] if slot else None)
        if slot == len(tails):
            tails.append(value)
            tail_at.append(position)
        else:
            tails[slot] = value
            tail_at[slot] = position
    chosen: set[int] = set()
    position = tail_at[-1] if tail_at else None
    while position is not None:
        chosen.add(numbers[position])
        position = previous[position]
    return chosen


def _arrange(
    pieces: list[Piece],
    matches: Matches,
    cells: list[Released],
    emptied: set[int],
    says: list[str],
) -> list[tuple[Released | None, Piece]]:
    """All cells in the order to run them: the student's, with released ones where the release has them."""
    which = {id(piece): cells[index] for index, piece in matches.items()}
    present = [which[id(p)].index for p in pieces if id(p) in which]
    staying = _longest_rising(present)
    moved: list[Released] = []
    order: list[tuple[Released | None, Piece]] = []
    waiting: dict[int, Piece] = {}
    for number, piece in enumerate(pieces):
        cell = which.get(id(piece))
        if cell is None or cell.index in staying:
            order.append((cell, piece))
        elif _needs_place(cell, piece, pieces[:number], which):
            order.append((cell, piece))
            says.append(
                f"{cell.said()} had been moved; it stays where you put it, because it uses names "
                "that you define just before."
            )
        else:
            moved.append(cell)
            waiting[cell.index] = piece
    _tell(
        says,
        moved,
        "{} had been moved; it was put back in its place.",
        "{} cells had been moved; they were put back in their places.",
    )
    _bring_back(order, waiting, matches, cells, emptied, says)
    return order


def _needs_place(
    cell: Released, piece: Piece, earlier: list[Piece], which: dict[int, Released]
) -> bool:
    """Was an unlocked cell moved below cells of the student's own whose names it uses?"""
    if cell.locked or piece.kind != "code":
        return False
    mentioned = words(piece.source) - bound(piece.source)
    for other in reversed(earlier):
        known = which.get(id(other))
        if known is not None and known.index < cell.index:
            return False
        if known is None and other.kind == "code" and bound(other.source) & mentioned:
            return True
    return False


def _bring_back(
    order: list[tuple[Released | None, Piece]],
    waiting: Matches,
    matches: Matches,
    cells: list[Released],
    emptied: set[int],
    says: list[str],
) -> None:
    texts: list[Released] = []
    placed = {cell.index for cell, _ in order if cell is not None}
    for cell in cells:
        if cell.index in placed:
            continue
        piece = waiting.get(cell.index)
        if piece is None:
            piece, said = _replacement(cell, order, cell.index in emptied)
            if cell.kind != "code" and cell.grade_id is None:
                texts.append(cell)
            else:
                says.append(said)
            matches[cell.index] = piece
        order.insert(_place(cell, order), (cell, piece))
    if texts:
        count = "A text cell" if len(texts) == 1 else f"{len(texts)} text cells"
        verb = "was" if len(texts) == 1 else "were"
        says.append(f"{count} of the lesson had been deleted and {verb} put back.")


def _place(cell: Released, order: list[tuple[Released | None, Piece]]) -> int:
    """Checkpoints stand after all that the student wrote there, other cells before it."""
    if cell.graded and cell.locked:
        for position, (other, _) in enumerate(order):
            if other is not None and other.index > cell.index:
                return position
        return len(order)
    best = max(
        (other.index for other, _ in order if other is not None and other.index < cell.index),
        default=None,
    )
    if best is None:
        return 0
    return 1 + next(n for n, (other, _) in enumerate(order) if other and other.index == best)


def _replacement(
    cell: Released, order: Iterable[tuple[Released | None, Piece]], emptied: bool
) -> tuple[Piece, str]:
    """A deleted cell's text: the release's, unless that would overwrite what the student defines."""
    gone = "emptied" if emptied else "deleted"
    if not cell.locked and cell.kind == "code" and cell.names:
        own: set[str] = set()
        for other, piece in order:
            if piece.kind == "code" and (other is None or not other.locked):
                own |= bound(piece.source) - (other.names if other is not None else frozenset())
        if cell.names <= own:
            names = ", ".join(f"`{name}`" for name in sorted(cell.names)[:MANY])
            comment = f"# This cell had been {gone}; {names} is defined in another cell."
            said = (
                f"{cell.said()} had been {gone}; its place is marked, and the definition of {names} "
                "in another of your cells counts."
            )
            return Piece("code", comment), said
    return Piece(cell.kind, cell.source), f"{cell.said()} had been {gone}; it was put back."


# --- the repaired notebook -----------------------------------------------------------------------


def _build(
    order: list[tuple[Released | None, Piece]], released: NotebookNode, says: list[str]
) -> NotebookNode:
    taken = {cell.id for cell, _ in order if cell is not None}
    result = []
    rewritten: list[str] = []
    for number, (cell, piece) in enumerate(order):
        new = NotebookNode(cell_type=piece.kind, source=piece.source, metadata=NotebookNode())
        if cell is not None:
            new["id"] = cell.id
            new["metadata"] = deepcopy(cell.cell["metadata"])
        else:
            new["id"] = _own_id(piece.id, number, taken)
        if piece.kind == "code":
            new["execution_count"], new["outputs"] = None, []
            if cell is None or not (cell.locked or piece.text == cell.text):
                new["source"], found = colab.rewrite(piece.source)
                rewritten.extend(found)
        result.append(new)
    says.extend(f"Lines for {what} are left out when grading." for what in dict.fromkeys(rewritten))
    return NotebookNode(
        nbformat=4, nbformat_minor=5, metadata=deepcopy(released["metadata"]), cells=result
    )


def _own_id(given: str, number: int, taken: set[str]) -> str:
    new = given if given and ID.match(given) else f"own-{number + 1}"
    attempt = 1
    while new in taken:
        attempt += 1
        new = f"own-{number + 1}-{attempt}"
    taken.add(new)
    return new
