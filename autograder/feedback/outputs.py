"""A cell's outputs as plain blocks: text, and pictures that were decoded. Nothing else is ever shown."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape

from PIL import Image

from autograder.feedback.text import plain, shortened

FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
LARGEST_DECODED = 40_000_000  # pixels
LARGEST_ENCODED = 12_000_000  # bytes of base64 text
NO_DESCRIPTION = "Picture made by the cell above; it came without a description."
SVG = "image/svg+xml"
_LABEL = re.compile(r'<svg[^>]*\saria-label="([^"]{1,1000})"')
_VIEW = re.compile(r'<svg[^>]*\sviewBox="[\d.]+ [\d.]+ ([\d.]{1,8}) ([\d.]{1,8})"')
_FIGURE_REPR = re.compile(r"<[\w. ]*(?:Figure|AxesImage|Axes|IPython)[^>]*>")


@dataclass(frozen=True)
class Limits:
    """How much of a notebook a page shows; a page over its size is built again with the next ones.

    `svg` is for notebooks of our own: what a student's kernel made is never shown as SVG.
    """

    text: int = 6_000
    source: int = 12_000
    picture: int = 90_000
    pictures: int = 560_000
    cells: int = 400
    outputs: int = 20
    highlight: bool = True
    svg: bool = False


@dataclass(frozen=True)
class Block:
    """One thing to show: `kind` is `text`, `error`, `picture` or `note` (our own words)."""

    kind: str
    text: str = ""
    uri: str = ""
    width: int = 0
    height: int = 0

    @property
    def long_lines(self) -> bool:
        """Prose rather than numbers: its lines are broken on the page."""
        return any(len(line) > 100 for line in self.text.split("\n"))


@dataclass
class Room:
    """What is left of a page's allowance for pictures."""

    left: int
    dropped: int = field(default=0)


def blocks(outputs: Iterable[Mapping], limits: Limits, room: Room) -> list[Block]:
    """What to show of a cell's outputs.

    HTML, JavaScript and widgets are never shown as such, SVG only of our own notebooks and inside a picture,
    where it runs nothing: otherwise their text form is shown, or a note that says so.
    """
    found: list[Block] = []
    streams: list[str] = []
    listed = [output for output in outputs if isinstance(output, Mapping)]
    for output in listed[: limits.outputs]:
        kind = output.get("output_type")
        if kind == "stream":
            streams.append(_text(output.get("text")))
            continue
        _flush(streams, found, limits)
        if kind == "error":
            found.append(_error(output, limits))
        elif kind in ("display_data", "execute_result"):
            found.extend(_display(output, limits, room))
    _flush(streams, found, limits)
    if len(listed) > limits.outputs:
        found.append(Block("note", f"{len(listed) - limits.outputs} more outputs are not shown."))
    return found


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "".join(str(part) for part in value)
    return "" if value is None else str(value)


def _flush(streams: list[str], found: list[Block], limits: Limits) -> None:
    text = "".join(streams)
    streams.clear()
    if text.strip():
        found.append(Block("text", _shown(text, limits.text)))


def _shown(text: str, limit: int) -> str:
    return shortened(text, limit)[0].rstrip()


def _error(output: Mapping, limits: Limits) -> Block:
    lines = _text("\n".join(str(line) for line in output.get("traceback") or []))
    name = f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    return Block("error", _shown(lines or name, limits.text))


def _display(output: Mapping, limits: Limits, room: Room) -> list[Block]:
    data = output.get("data")
    if not isinstance(data, Mapping):
        return []
    text = _text(data.get("text/plain"))
    for mime, kind in FORMATS.items():
        if mime in data:
            metadata = output.get("metadata")
            alt = _described(metadata, mime, text)
            return [_picture(_text(data[mime]), kind, alt, limits, room)]
    if limits.svg and SVG in data:
        return [_drawing(_text(data[SVG]), room)]
    if text.strip() and not _FIGURE_REPR.fullmatch(text.strip()):
        return [Block("text", _shown(text, limits.text))]
    if any(mime != "text/plain" for mime in data):
        return [Block("note", "An output that is neither text nor a picture is not shown here.")]
    return []


def _described(metadata: object, mime: str, text: str) -> str:
    """The picture's text alternative: the helper's, from the metadata or the text form of the output."""
    if isinstance(metadata, Mapping):
        for place in (metadata.get(mime), metadata):
            if isinstance(place, Mapping) and isinstance(place.get("alt"), str):
                return plain(place["alt"])[:1_000].strip() or NO_DESCRIPTION
    shown = plain(text[:4_000]).strip()
    if shown and not (shown.startswith("<") and shown.endswith(">")):
        return shown[:1_000]
    return NO_DESCRIPTION


def _picture(encoded: str, kind: str, alt: str, limits: Limits, room: Room) -> Block:
    if len(encoded) > LARGEST_ENCODED:
        return Block("note", f"A picture is too large to be shown. {alt}")
    fitted = fit(encoded.strip(), kind, limits.picture)
    if fitted is None:
        return Block("note", "An output says that it is a picture, but it is not one.")
    uri, width, height = fitted
    if len(uri) > room.left:
        room.dropped += 1
        return Block("note", f"A picture is left out to keep this page small. {alt}")
    room.left -= len(uri)
    return Block("picture", alt, uri, width, height)


def _drawing(text: str, room: Room) -> Block:
    """An SVG of ours as a picture; its words are those of its own `aria-label`."""
    label = _LABEL.search(text)
    alt = unescape(label.group(1)) if label else NO_DESCRIPTION
    size = _VIEW.search(text)
    uri = f"data:{SVG};base64,{base64.b64encode(text.encode('utf-8')).decode('ascii')}"
    if size is None or len(uri) > room.left:
        return Block("note", f"A picture is left out. {alt}")
    room.left -= len(uri)
    return Block("picture", alt, uri, *(round(float(number)) for number in size.groups()))


def fit(encoded: str, kind: str, budget: int) -> tuple[str, int, int] | None:
    """A data URI of a picture that was decoded, made smaller when it is over `budget` characters.

    Returns:
        the URI, width and height in pixels; None if the bytes are no picture of that kind.
    """
    key = hashlib.sha256(encoded.encode("utf-8", "replace")).hexdigest()
    return _fit(_Encoded(encoded, key), kind, budget)


class _Encoded:
    """Base64 text compared by its digest, so that the cache does not hold megabytes of keys."""

    def __init__(self, text: str, key: str) -> None:
        self.text = text
        self.key = key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Encoded) and other.key == self.key


@lru_cache(maxsize=256)  # plots of given data are the same for the whole class
def _fit(encoded: _Encoded, kind: str, budget: int) -> tuple[str, int, int] | None:
    try:
        raw = base64.b64decode("".join(encoded.text.split()), validate=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(raw), formats=[kind])
            width, height = picture.size
            if width * height > LARGEST_DECODED or not width or not height:
                return None
            picture.load()
    except (
        binascii.Error,
        ValueError,
        OSError,
        SyntaxError,
        Warning,
        Image.DecompressionBombError,
    ):
        return None
    if len(raw) * 4 // 3 <= budget:
        mime = f"image/{kind.lower()}"
        return f"data:{mime};base64,{base64.b64encode(raw).decode()}", width, height
    return _smaller(picture, budget)


def _smaller(picture: Image.Image, budget: int) -> tuple[str, int, int]:
    """The picture in fewer colours, then in fewer pixels, until it fits."""
    flat = Image.new("RGB", picture.size, "white")
    flat.paste(picture.convert("RGBA"), mask=picture.convert("RGBA").getchannel("A"))
    for longest in (1_400, 1_000, 760, 560, 400, 240, 120):
        copy = flat.copy()
        copy.thumbnail((longest, longest))
        few = copy.quantize(128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        png = _encode(few, "PNG", optimize=True)
        jpeg = _encode(copy, "JPEG", quality=72)
        mime, data = min(("png", png), ("jpeg", jpeg), key=lambda pair: len(pair[1]))
        uri = f"data:image/{mime};base64,{base64.b64encode(data).decode()}"
        if len(uri) <= budget:
            break
    return uri, *copy.size


def _encode(picture: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()
