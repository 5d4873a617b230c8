"""How three programs save a notebook: what each adds, takes away, and how it writes the file.

Each function takes a notebook that was run (nbclient leaves the times of each run in its cells) and returns the
bytes of the file that a student then hands in. `test_jupyterlab.py` (tests/browser) has the real JupyterLab.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import datetime

import nbformat

from autograder.classroom import saved_by_colab

NAME = "Zora Example"
"""The account's name, which Colab writes into every cell that was run."""


def lines(text: str | list[str]) -> list[str]:
    """A text as the list that files hold: each line with its line end."""
    return text if isinstance(text, list) else text.splitlines(keepends=True)


def _split(nb: dict) -> dict:
    """All long texts as lists of lines."""
    for cell in nb["cells"]:
        cell["source"] = lines(cell["source"])
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = lines(output["text"])
            for mime, data in output.get("data", {}).items():
                if isinstance(data, str) and not mime.startswith("image/"):
                    output["data"][mime] = lines(data)
    return nb


def _when(cell: dict) -> tuple[datetime, datetime] | None:
    """Beginning and end of the cell's run."""
    times = cell["metadata"].get("execution")
    if not times:
        return None
    start, end = (times[key] for key in ("iopub.status.busy", "shell.execute_reply"))
    return tuple(datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (start, end))


def colab(nb: nbformat.NotebookNode) -> bytes:
    """File > Download in Colab: no locks, its own ids, times and the account's name, a kernel without language."""
    runs = [_when(cell) for cell in nb.cells]
    saved = _split(saved_by_colab(nb))
    saved["metadata"]["language_info"] = {"name": "python"}
    for cell, run in zip(saved["cells"], runs, strict=True):
        cell["metadata"].pop("execution", None)
        if cell["cell_type"] != "code":
            continue
        info = cell["metadata"]["executionInfo"]
        info["user"]["displayName"] = NAME
        info["user_tz"] = -60
        if run is not None:
            start, end = run
            info["timestamp"] = round(end.timestamp() * 1000)
            info["elapsed"] = round((end - start).total_seconds() * 1000)
        if cell["outputs"]:
            cell["metadata"]["colab"] = {"base_uri": "https://localhost:8080/", "height": 240}
    ordered = {key: saved[key] for key in ("nbformat", "nbformat_minor", "metadata", "cells")}
    return json.dumps(ordered, indent=2, ensure_ascii=False).encode()


def vscode(nb: nbformat.NotebookNode) -> bytes:
    """Save in VS Code: keys sorted, the file's own indent, no times; locks are kept and mean nothing there.

    Cells keep their ids, and a cell that was added gets one of eight hexadecimal digits.
    """
    saved = _split(json.loads(json.dumps(nb)))
    environment = {"display_name": ".venv (3.12.4)", "language": "python", "name": "python3"}
    saved["metadata"]["kernelspec"] = environment
    saved["metadata"]["language_info"] = _language("3.12.4")
    for cell in saved["cells"]:
        cell["metadata"].pop("execution", None)
        for output in cell.get("outputs", []):
            output.pop("transient", None)
    own = {"cell_type": "code", "execution_count": None, "id": "3f2a91bc", "outputs": []}
    own |= {"metadata": {"vscode": {"languageId": "python"}}, "source": ["mine = 1 + 1\n", "mine"]}
    saved["cells"].append(own)
    return (json.dumps(saved, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def jupyterlab(nb: nbformat.NotebookNode) -> bytes:
    """Save in JupyterLab with "Record timing" on and the cell inspector opened: its server writes the file."""
    saved = copy.deepcopy(nb)
    saved.metadata["kernelspec"] = {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    }
    saved.metadata["language_info"] = _language("3.11.9")
    for number, cell in enumerate(saved.cells):
        if cell.cell_type == "code":
            cell.metadata["trusted"] = True
            cell.metadata["scrolled"] = True
        if number % 4 == 1 and "editable" not in cell.metadata:
            inspected = {"editable": True, "slideshow": {"slide_type": ""}, "tags": []}
            cell.metadata.update(inspected)
    return (nbformat.writes(saved) + "\n").encode()


def _language(version: str) -> dict:
    return {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": version,
    }


WAYS: dict[str, Callable[[nbformat.NotebookNode], bytes]] = {
    "colab": colab,
    "vscode": vscode,
    "jupyterlab": jupyterlab,
}
