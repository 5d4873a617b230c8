"""A Jupyter server of its own for a course folder: no token, one user, settings that a test can rely on."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    # Cells that are out of sight stay in the page, so that a test can find them.
    # Times of the runs are in the file if somebody has switched that on; a part of the report is made from them.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none", "recordTiming": True},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(folder: Path, home: Path):
    """`jupyter lab` in `folder`; yields its address and ends it afterwards.

    Args:
        folder: what the server shows; nbgrader_config.py is read from here.
        home: the user's home, settings and nbgrader's cache below it.
    """
    config = home / ".jupyter"
    for name, values in SETTINGS.items():
        path = config / "lab" / "user-settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    port = _free_port()
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "run"),
        "JUPYTERLAB_SETTINGS_DIR": str(config / "lab" / "user-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(config / "lab" / "workspaces"),
    }
    log = home / "server.log"
    command = [
        str(bin_folder / "jupyter"), "lab", "--allow-root", "--no-browser",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process, log)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait(address: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(240):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).read()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"jupyter lab did not start:\n{log.read_text()[-3000:]}")


class Lab:
    """A notebook that is open in JupyterLab."""

    def __init__(self, page, address: str, path: str, notebook: Path):
        self.page, self.notebook = page, notebook
        page.set_default_timeout(90_000)
        page.goto(f"{address}/lab/tree/{path}?reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_selector("[data-status='idle'], .jp-Notebook-ExecutionIndicator")
        page.get_by_text("| Idle").wait_for()

    def index(self, cell_id: str) -> int:
        cells = json.loads(self.notebook.read_text())["cells"]
        return [cell["id"] for cell in cells].index(cell_id)

    def cell(self, cell_id: str):
        """The cell with that id (its place in the file)."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.index(cell_id))

    def menu(self, menu: str, entry: str) -> None:
        self.page.locator(".lm-MenuBar-item", has_text=menu).first.click()
        self.page.locator(".lm-Menu-item", has_text=entry).first.click()

    def run_all(self) -> None:
        """Run every cell and wait until the last code cell has its number."""
        self.menu("Run", "Run All Cells")
        self.wait_until_done()

    def wait_until_done(self) -> None:
        self.page.wait_for_function(
            "() => ![...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputPrompt')]"
            ".some(p => p.textContent.includes('*'))"
        )
        self.page.get_by_text("| Idle").wait_for()

    def write(self, cell_id: str, source: str) -> None:
        """Replace a cell's text as somebody at the keyboard does."""
        editor = self.cell(cell_id).locator(".cm-content")
        editor.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(source)

    def run(self, *cell_ids: str) -> None:
        for cell_id in cell_ids:
            self.cell(cell_id).locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            self.wait_until_done()

    def output(self, cell_id: str) -> str:
        return "\n".join(self.cell(cell_id).locator(".jp-OutputArea-output").all_inner_texts())

    def save(self) -> dict:
        """Save, and return the notebook as it now is on disk."""
        before = self.notebook.stat().st_mtime_ns
        self.page.keyboard.press("Control+S")
        for _ in range(100):
            if self.notebook.stat().st_mtime_ns != before:
                break
            self.page.wait_for_timeout(100)
        return json.loads(self.notebook.read_text())
