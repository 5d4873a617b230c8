"""Bytes: what can be understood is read, what can't is refused with a sentence."""

import codecs
import contextlib
import json

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.ingest import Unreadable, decode

from .samples import cell, released, solved


def bytes_of(notebook) -> bytes:
    return json.dumps(notebook).encode()


def sources(notebook):
    return [c.source for c in notebook.cells]


def read(data):
    notebook, says = decode(data)
    nbformat.validate(notebook)
    return notebook, says


def test_a_clean_notebook_is_read_without_a_word():
    notebook, says = read(bytes_of(solved()))
    assert says == []
    assert sources(notebook) == sources(solved())


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "utf-16-le"),
        (b"", "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (b"", "cp1252"),
    ],
)
def test_encodings(mark, encoding):
    nb = solved()
    cell(nb, "words").source = "Größe é"
    data = mark + json.dumps(nb, ensure_ascii=False).encode(encoding)
    notebook, says = read(data)
    assert "Größe é" in sources(notebook)
    assert len(says) == 1


def test_line_ends():
    nb = solved()
    for one in nb.cells:
        one.source = one.source.replace("\n", "\r\n")
    data = json.dumps(nb, indent=1).replace("\n", "\r\n").encode()
    notebook, says = read(data)
    assert sources(notebook) == sources(solved())
    assert len(says) == 1
    assert "line ends" in says[0]


def test_source_as_list_of_lines():
    nb = json.loads(json.dumps(solved()))
    for one in nb["cells"]:
        one["source"] = one["source"].splitlines(keepends=True)
    assert sources(read(bytes_of(nb))[0]) == sources(solved())


@pytest.mark.parametrize("minor", [0, 1, 2, 4, 5, None, "x"])
def test_format_4_with_and_without_ids(minor):
    nb = json.loads(json.dumps(solved()))
    nb["nbformat_minor"] = minor
    for one in nb["cells"]:
        del one["id"]
    notebook, says = read(bytes_of(nb))
    assert sources(notebook) == sources(solved())
    assert any("without an id" in s for s in says)


def test_format_3():
    cells = []
    for one in solved().cells:
        old = {"cell_type": one.cell_type, "metadata": one.metadata}
        if one.cell_type == "code":
            old |= {
                "input": one.source.splitlines(keepends=True),
                "language": "python",
                "collapsed": False,
                "prompt_number": 3,
                "outputs": [{"output_type": "pyout", "text": ["4"], "prompt_number": 3}],
            }
        else:
            old["source"] = [one.source]
        cells.append(old)
    cells.insert(0, {"cell_type": "heading", "level": 2, "source": ["Week"], "metadata": {}})
    nb = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    notebook, says = read(bytes_of(nb))
    assert sources(notebook) == ["## Week", *sources(solved())]
    assert any("format 3.0" in s for s in says)


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("id", None, "without an id"),
        ("id", 7, "not allowed"),
        ("id", "../../x", "not allowed"),
        ("id", "setup-2\n", "not allowed"),
        ("id", "setup", "used twice"),
        ("source", None, "damaged"),
        ("source", {"a": 1}, "damaged"),
        ("metadata", None, "metadata"),
        ("metadata", [], "metadata"),
        ("metadata", {"nbgrader": "yes"}, "metadata"),
        ("cell_type", "chunk", "type"),
        ("outputs", [{"output_type": "display_data"}], "outputs"),
        ("outputs", "none", "outputs"),
        ("outputs", [{"output_type": "stream", "text": "x" * 3_000_000}], "outputs"),
        ("source", "a = 1\x00", "characters"),
        ("source", "a = '\ud800'", "characters"),
    ],
)
def test_a_cell_with_one_damaged_part(key, value, word):
    nb = json.loads(json.dumps(solved()))
    nb["cells"][3][key] = value
    notebook, says = read(bytes_of(nb))
    assert len(notebook.cells) == len(nb["cells"])
    assert len(says) == 1
    assert word in says[0]


def test_cells_that_are_no_cells_are_left_out():
    nb = json.loads(json.dumps(solved()))
    nb["cells"] += [None, 3, "text"]
    notebook, says = read(bytes_of(nb))
    assert sources(notebook) == sources(solved())
    assert says == ["3 cells that could not be read were left out."]


@pytest.mark.parametrize(
    ("metadata", "word"),
    [
        (None, "metadata"),
        ([], "metadata"),
        ({"widgets": {"application/vnd.jupyter.widget-state+json": {"a": {}}}}, "Widget"),
        ({"widgets": []}, "Widget"),
        ({"kernelspec": "python3"}, "kernel"),
        ({"kernelspec": {"name": "conda-env-x", "display_name": "x"}}, "conda-env-x"),
        ({"kernelspec": {"name": "ir", "language": "R"}}, "Python"),
        ({"kernelspec": {"name": "python3", "display_name": "Python 3"}}, None),
    ],
)
def test_notebook_metadata(metadata, word):
    nb = json.loads(json.dumps(solved()))
    nb["metadata"] = metadata
    _, says = read(bytes_of(nb))
    assert len(says) == (word is not None)
    assert word is None or word in says[0]


def test_no_name_of_a_person_is_kept():
    nb = solved()
    cell(nb, "double").metadata["executionInfo"] = {
        "user": {"displayName": "Ada Lovelace", "userId": "123"},
        "timestamp": 1700000000000,
    }
    nb.metadata["colab"] = {"authorship_tag": "Ada", "provenance": []}
    nb.metadata["authors"] = [{"name": "Ada"}]
    notebook, says = read(bytes_of(nb))
    assert "Ada" not in json.dumps(notebook)
    assert says == []


def test_text_after_the_end_and_quoted_notebooks():
    good = bytes_of(solved())
    assert "after the notebook's end" in read(good + b"\n\n;junk")[1][0]
    assert "unpacked" in read(json.dumps(good.decode()).encode())[1][0]
    assert read(good + b"\n\x00\x00\n")[1] == []


CONFLICT = (
    b'{"cells": [\n<<<<<<< HEAD\n {"a": 1}\n=======\n {"a": 2}\n>>>>>>> theirs\n], "nbformat": 4}'
)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\x00" * 100, "empty"),
        (b" \n\n", "empty"),
        (bytes_of(solved())[:900], "cut off"),
        (bytes_of(solved())[:-1], "cut off"),
        (CONFLICT, "Git merge"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"def softmax(x):\n    return x", "plain text"),
        (b"PK\x03\x04abc", "zip"),
        (b"%PDF-1.7", "PDF"),
        (b"[1, 2]", "no notebook"),
        (b"{}", "no cells"),
        (b'{"url": "https://x", "doc_id": "1"}', "Google Drive"),
        (b'{"cells": 3}', "can't be read"),
        (b'{"cells": [1 2]}', "not valid JSON"),
        (b'"text"', "text, not a notebook"),
        (b"[" * 200_000, "deeply"),
        (b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deeply"),
        (b'{"cells": []}{"cells": []}', "two notebooks"),
        (b'{"cells": [' + b"{}," * 6000 + b"{}]}", "limit"),
        (b'{"cells": [], "nbformat": ' + b"9" * 10_000 + b"}", "JSON"),
    ],
)
def test_what_cannot_be_read_says_why_and_what_to_do(data, word):
    with pytest.raises(Unreadable, match=word) as caught:
        decode(data)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_picture_pasted_into_a_text_cell_is_left_out():
    nb = solved()
    cell(nb, "words").source = "See ![](data:image/png;base64," + "A" * 2_000_000 + ") here."
    notebook, says = read(bytes_of(nb))
    assert "See ![]() here." in sources(notebook)
    assert "shortened" in says[0]


def test_a_code_cell_of_megabytes_is_refused():
    nb = solved()
    cell(nb, "double").source = "x = '" + "A" * 2_000_000 + "'"
    with pytest.raises(Unreadable, match="million characters"):
        decode(bytes_of(nb))


def test_too_large():
    with pytest.raises(Unreadable, match="51 MB"):
        decode(b"{" + b" " * (51 * 1024 * 1024))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
CELL = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading"]) | JSON,
        "source": st.text(max_size=20) | JSON,
        "metadata": JSON,
        "id": st.sampled_from(["a", "b"]) | JSON,
        "outputs": JSON,
        "execution_count": JSON,
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(CELL | JSON, max_size=5), JSON, JSON)
def test_any_json_with_a_list_of_cells_becomes_a_valid_notebook(cells, metadata, version):
    data = {"cells": cells, "metadata": metadata, "nbformat": version}
    read(json.dumps(data).encode())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 3000), st.binary(max_size=6))
def test_damaged_bytes_are_read_or_refused(at, junk):
    data = bytes_of(released())
    with contextlib.suppress(Unreadable):
        read(data[:at] + junk + data[at + len(junk) :])
