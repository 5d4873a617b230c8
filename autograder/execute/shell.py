"""The notebook's interpreter: IPython's shell as ipykernel sets it up, without ZMQ, threads or files.

The shell is made before the fork (that costs 40 ms and reads nothing of a student), its `Sink` is opened
in the child. matplotlib_inline is first imported after the shell exists, or pictures would vanish.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import threading
import time
from binascii import b2a_base64
from collections.abc import Callable

from ipykernel.zmqshell import ZMQInteractiveShell as _KernelShell
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from traitlets import Type
from traitlets.config import Config

__builtins__ = dict(vars(builtins))  # as in wire: not to be patched by accident

_getpid, _write, _pread, _fstat, _ftruncate = (
    os.getpid,
    os.write,
    os.pread if hasattr(os, "pread") else None,
    os.fstat,
    os.ftruncate,
)
_monotonic = time.monotonic

STREAMS = ("stdout", "stderr")
BUFFER = 8192
DELAY = 0.02
NO_INPUT = (
    "input() has nobody to answer it while a notebook is graded: "
    "assign the value in the cell instead"
)
NO_INSTALL = "Packages are not installed while a notebook is graded; this line was passed over.\n"
NO_BACKEND = "No window can be opened while a notebook is graded; figures are shown inline.\n"


class Sink:
    """Where a cell's outputs go: `send(message)` is called with `{"out": output node}`."""

    def __init__(self, send: Callable[[dict], None], limits: dict, pid: int) -> None:
        self.send, self.pid = send, pid
        self.text_limit = limits["output"]
        self.display_limit = limits["total_output"] // 4
        self.muted = True
        self.lock = threading.RLock()
        self.files: dict[str, int] = {}
        self.offsets = dict.fromkeys(STREAMS, 0)
        self._begin()

    def _begin(self) -> None:
        self.buffer: list[tuple[str, str]] = []
        self.size, self.room, self.sent_at = 0, self.text_limit, 0.0

    def open(self) -> None:
        """A cell begins: outputs count from here."""
        with self.lock:
            self._drain(keep=False)
            self._begin()
            self.muted = False

    def close(self) -> None:
        """A cell has ended: send what is left, and drop what comes later."""
        with self.lock:
            self.flush()
            self.muted = True
            self._begin()

    def text(self, name: str, text: str) -> None:
        """Text printed to a stream; long text is cut, and that is said."""
        if self.pid != _getpid():  # a process that the student's code forked
            _write(1 if name == "stdout" else 2, text.encode("utf-8", "replace"))
            return
        with self.lock:
            if self.muted or self.room < 0:
                return
            if len(text) > self.room:
                text = text[: self.room] + f"\n[output cut at {self.text_limit} characters]\n"
                self.room = -1
            else:
                self.room -= len(text)
            self.buffer.append((name, text))
            self.size += len(text)
            # Whole lines, soon: a kernel that dies in the middle of a cell keeps what it had said.
            late = text[-1:] == "\n" and _monotonic() - self.sent_at > DELAY
            if late or self.size > BUFFER:
                self._send_text()

    def _send_text(self) -> None:
        pending, self.buffer, self.size = self.buffer, [], 0
        merged: list[list[str]] = []
        for name, text in pending:
            if merged and merged[-1][0] == name:
                merged[-1].append(text)
            else:
                merged.append([name, text])
        for name, *parts in merged:
            self.send(
                {"out": {"output_type": "stream", "name": name, "text": _clean("".join(parts))}}
            )
        self.sent_at = _monotonic()

    def flush(self) -> None:
        """Send buffered text, and what was written to the file descriptors below Python."""
        if self.pid != _getpid():
            return
        with self.lock:
            if self.buffer:
                self._send_text()
            self._drain(keep=not self.muted)

    def _drain(self, keep: bool) -> None:
        for name, fd in self.files.items():
            try:
                size = _fstat(fd).st_size
                if size == 0:
                    continue
                raw = _pread(fd, min(size, 4 * self.text_limit), 0) if keep else b""
                _ftruncate(fd, 0)
            except OSError:
                continue
            if raw:
                self.text(name, raw.decode("utf-8", "replace"))
                self._send_text()

    def display(self, node: dict) -> None:
        """A display_data, execute_result or error node, or a request to clear or update."""
        if self.pid != _getpid():
            return
        with self.lock:
            if self.muted:
                return
            self.flush()
            node = _plain(node)
            if _weight(node) > self.display_limit:
                note = {"text/plain": "[an output was too large to keep]"}
                node = {"output_type": "display_data", "data": note, "metadata": {}}
            self.send({"out": node})


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value, depth: int = 0):
    """Copy to plain JSON types; bytes (pictures) become base64, unknown objects their name."""
    if depth > 20:
        return None
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _clean(str.__str__(value))
    if isinstance(value, bytes):
        return b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item, depth + 1) for item in value]
    return str(type(value))


def _weight(value) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(16 + len(key) + _weight(item) for key, item in value.items())
    if isinstance(value, list):
        return sum(8 + _weight(item) for item in value)
    return 8


class Stream(io.TextIOBase):
    """sys.stdout and sys.stderr of the notebook."""

    encoding = "UTF-8"
    errors = "replace"

    def __init__(self, name: str) -> None:
        self.name = f"<{name}>"
        self._stream = name
        self.sink: Sink | None = None

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.sink is not None and text:
            self.sink.text(self._stream, text)
        return len(text)

    def writelines(self, lines) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self.sink is not None:
            self.sink.flush()

    def fileno(self) -> int:
        return 1 if self._stream == "stdout" else 2

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False


class _Hook(DisplayHook):
    """The value of a cell's last expression becomes an execute_result."""

    topic = None
    sink: Sink | None = None

    def start_displayhook(self) -> None:
        self._node: dict | None = None

    def write_output_prompt(self) -> None:
        self._count = self.prompt_count

    def write_format_data(self, format_dict, md_dict=None) -> None:
        self._node = {
            "output_type": "execute_result",
            "data": format_dict,
            "metadata": md_dict or {},
            "execution_count": self._count,
        }

    def finish_displayhook(self) -> None:
        if self._node and self._node["data"] and self.sink is not None:
            self.sink.display(self._node)
        self._node = None


class _Publisher(DisplayPublisher):
    """display(...) becomes display_data."""

    sink: Sink | None = None

    def publish(
        self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs
    ) -> None:
        self._validate_data(data, metadata)
        node = {"output_type": "display_data", "data": data, "metadata": metadata or {}}
        display_id = (transient or {}).get("display_id")
        if display_id is not None:
            node["display_id"] = display_id
        if update:
            node["output_type"] = "update_display_data"
        if self.sink is not None:
            self.sink.display(node)

    def clear_output(self, wait=False) -> None:
        if self.sink is not None:
            self.sink.display({"output_type": "clear_output", "wait": bool(wait)})


class ZMQInteractiveShell(_KernelShell):
    """ipykernel's shell with outputs of its own; it keeps the class name that libraries look for."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    def init_ipython_dir(self, ipython_dir) -> None:
        """No folder: nothing of a user's settings is read, nothing is written."""

    def init_profile_dir(self, profile_dir) -> None:
        self.profile_dir = None

    def enable_gui(self, gui=None) -> None:
        if gui not in (None, "inline", "agg"):
            print(NO_BACKEND, end="")

    def enable_matplotlib(self, gui=None):
        """`%matplotlib anything` is inline here."""
        if gui not in (None, "inline", "agg"):
            print(NO_BACKEND, end="")
        return super().enable_matplotlib("inline")

    def ask_exit(self) -> None:
        print("exit is passed over while a notebook is graded")

    def _showtraceback(self, etype, evalue, stb) -> None:
        try:
            evalue = str(evalue)
        except Exception:
            evalue = "<unprintable>"
        self.display_pub.sink.display(
            {
                "output_type": "error",
                "ename": str(etype.__name__),
                "evalue": evalue,
                "traceback": list(stb),
            }
        )
        self._last_traceback = stb

    def system_piped(self, cmd: str) -> None:
        """`!command`: its output goes to the cell; installing is passed over."""
        line = self.var_expand(cmd, depth=1)
        if _installs(line):
            print(NO_INSTALL, end="")
            return
        import subprocess

        done = subprocess.run(line, shell=True, stdin=subprocess.DEVNULL, check=False)
        self.user_ns["_exit_code"] = done.returncode

    system = system_piped
    system_raw = system_piped


def _installs(line: str) -> bool:
    words = line.replace(";", " ").replace("&&", " ").split()
    tools = {"pip", "pip3", "conda", "mamba", "micromamba", "uv", "apt", "apt-get"}
    return any(word.rsplit("/", 1)[-1] in tools for word in words[:6])


def _no_input(prompt="") -> str:
    __tracebackhide__ = True
    raise EOFError(NO_INPUT)


def make_shell() -> ZMQInteractiveShell:
    """The one shell of this process; needs no folder and starts no thread."""
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    shell = ZMQInteractiveShell.instance(config=config)
    for name in ("pip", "conda", "mamba", "micromamba", "uv"):
        shell.register_magic_function(
            lambda line, cell=None: print(NO_INSTALL, end=""), "line_cell", name
        )
    if "" in sys.path:
        sys.path.remove("")
    return shell


def connect(shell: ZMQInteractiveShell, sink: Sink) -> None:
    """Give the shell its outputs; again in a fork of a process that was connected before."""
    import getpass

    shell.display_pub.sink = sink
    shell.displayhook.sink = sink
    for name in STREAMS:
        if name not in _streams:
            _streams[name] = Stream(name)
            setattr(sys, name, _streams[name])
        _streams[name].sink = sink
    if "" not in sys.path:
        builtins.input = _no_input
        getpass.getpass = _no_input
        # A submitted module never comes before an installed one of the same name.
        sys.path.append("")


_streams: dict[str, Stream] = {}
