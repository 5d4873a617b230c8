"""What runs in a notebook's own process: the loop that does what the grader asks.

Requests and replies are frames of `wire`. Whoever wrote the notebook owns this process, so that nothing
here is trusted by the grader: it is written to keep working after clumsy code, and to hold nothing that
a clever one would want.
"""

from __future__ import annotations

import _signal as _c_signal
import builtins
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import types

import numpy as np

from . import limits as _limits
from . import sandbox, wire
from .shell import NO_BACKEND, Sink, connect, make_shell

__builtins__ = dict(vars(builtins))  # as in wire: not to be patched by accident

_getpid, _exit = os.getpid, os._exit
_signal = _c_signal.signal  # below the Python wrapper, which uses patchable builtins
_SIGINT, _SIG_IGN = int(signal.SIGINT), int(signal.SIG_IGN)
_default_int_handler = signal.default_int_handler
_BaseException, _Exception, _KeyboardInterrupt = BaseException, Exception, KeyboardInterrupt
_type, _len, _dict, _list, _getattr = type, len, dict, list, getattr
_encode, _decode = wire.encode, wire.decode
_encode_outcome, _decode_outcome = wire.encode_outcome, wire.decode_outcome
_exceptions = {
    name: cls
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, Exception)
}
_thread_ident = threading.get_ident


ENVIRONMENT = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TERM": "xterm-color",
    "CLICOLOR": "1",
    "FORCE_COLOR": "1",
    "CLICOLOR_FORCE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}


class Connection:
    """Frames on a socket; a frame is never torn by an interrupt."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._send, self._receive = sock.sendall, sock.recv_into
        self._lock = threading.RLock()
        self._main = _thread_ident()
        self._pending = False
        self.request = 0

    def _defer(self, number, frame) -> None:
        self._pending = True

    def allow_interrupt(self) -> None:
        """The student's code runs now: SIGINT from the grader raises KeyboardInterrupt in it."""
        _signal(_SIGINT, _default_int_handler)

    def forbid_interrupt(self) -> None:
        """Our own code runs now: a late SIGINT must not tear it."""
        _signal(_SIGINT, _SIG_IGN)

    def send(self, message: dict) -> None:
        """Send one message under the current request's number."""
        message["id"] = self.request
        try:
            frame = wire.pack(message)
        except wire.TooLarge:
            return
        if _thread_ident() != self._main:
            self._send_frame(frame)
            return
        handler = _signal(_SIGINT, self._defer)
        try:
            self._send_frame(frame)
        finally:
            _signal(_SIGINT, _SIG_IGN if handler is None else handler)
        if self._pending:
            self._pending = False
            if handler is _default_int_handler:
                _default_int_handler(_SIGINT, None)

    def _send_frame(self, frame: bytes) -> None:
        try:
            with self._lock:
                self._send(frame)
        except OSError:
            _exit(0)  # the grader has gone

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            n = self._receive(view[got:])
            if n == 0:
                _exit(0)
            got += n
        return data

    def receive(self) -> dict:
        """The next message of the grader."""
        length = int.from_bytes(self._exactly(4), "big")
        return wire._loads(bytes(self._exactly(length)))


class Child:
    """One notebook: a shell, the objects that were kept under a key, and the requests."""

    def __init__(self, connection, shell, sink: Sink, kept: dict | None = None) -> None:
        self.connection, self.shell, self.sink = connection, shell, sink
        self.kept: dict = {} if kept is None else kept
        self.pid = _getpid()
        self.operations = {
            "file": self.file,
            "execute": self.execute,
            "bind": self.bind,
            "values": self.values,
            "call": self.call,
            "serve": self.serve,
        }

    def run(self) -> None:
        """Serve requests until the grader goes away."""
        connection = self.connection
        while True:
            request = connection.receive()
            connection.request = request["id"]
            try:
                connection.forbid_interrupt()
                self.operations[request["op"]](request)
            except _BaseException as error:
                connection.forbid_interrupt()
                if self.pid != _getpid():
                    _exit(0)
                connection.send({"done": {"failed": _type(error).__name__[:100]}})

    def _still_me(self) -> None:
        if self.pid != _getpid():  # the student's code forked and the copy came back here
            _exit(0)

    def file(self, request: dict) -> None:
        """Write one submitted file into the working folder."""
        path = request["path"]
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as handle:
            handle.write(wire.b64decode(request["data"]))
        self.connection.send({"done": {}})

    def execute(self, request: dict) -> None:
        """Run one cell as a kernel would."""
        connection, sink = self.connection, self.sink
        sink.open()
        status = "error"
        try:
            connection.allow_interrupt()
            result = self.shell.run_cell(request["source"], store_history=True)
            connection.forbid_interrupt()
            if result.success:
                status = "ok"
        except _KeyboardInterrupt:
            connection.forbid_interrupt()
            sink.display(_interrupted())
        finally:
            connection.forbid_interrupt()
            self._still_me()
            _flush_below()
            sink.close()
        connection.send({"done": {"status": status}})

    def bind(self, request: dict) -> None:
        """Keep the object that a name is bound to now, and what the notebook's other names mean now."""
        names = self.shell.user_ns
        found = request["name"] in names
        if found:
            self.kept[request["key"]] = names[request["name"]], names.copy()
        self.connection.send({"done": {"bound": found}})

    def values(self, request: dict) -> None:
        """Send the values of variables, one message each."""
        names = self.shell.user_ns
        for name in request["names"]:
            if name in names:
                self.connection.send({"value": [name, _encode(names[name])]})
        self.connection.send({"done": {}})

    def call(self, request: dict) -> None:
        """Call a kept function once per tuple of arguments, each time with fresh ones."""
        function, names = self.kept.get(request["key"], (None, {}))
        for arguments in request["calls"]:
            outcome = self._outcome(function, names, [_decode(item) for item in arguments])
            self._still_me()
            self.connection.send({"outcome": outcome})
        self.connection.send({"done": {}})

    def _outcome(self, function, names: dict, arguments: list) -> dict:
        # A function calls others by name: give the names the meaning that they had when it was kept.
        namespace = self.shell.user_ns
        later = namespace.copy()
        namespace.update(names)
        try:
            return self._called(function, arguments)
        finally:
            namespace.clear()
            namespace.update(later)

    def _called(self, function, arguments: list) -> dict:
        before = [_encode(item) for item in arguments]
        connection = self.connection
        try:
            try:
                connection.allow_interrupt()
                value = function(*arguments)
                connection.forbid_interrupt()
                out = {"value": _encode(value)}
            finally:
                connection.forbid_interrupt()
        except _BaseException as error:
            raised = wire.raised_from(error)
            out = _encode_outcome(wire.Outcome(raised=raised))
        out["changed"] = [i for i, item in enumerate(arguments) if _encode(item) != before[i]]
        return out

    def serve(self, request: dict) -> None:
        """Call a kept function with an object whose every call is answered by the grader."""
        function, names = self.kept.get(request["key"], (None, {}))
        outcome = self._outcome(function, names, [_make_candidate(self._ask)])
        self._still_me()
        outcome["changed"] = []
        self.connection.send({"outcome": outcome})
        self.connection.send({"done": {}})

    def _ask(self, arguments: tuple, keywords: dict):
        connection = self.connection
        message = {"ask": [_encode(item) for item in arguments]}
        if keywords:
            message["keywords"] = [[str(k), _encode(v)] for k, v in keywords.items()]
        connection.forbid_interrupt()  # the answer is read whole, or the next would be misread
        try:
            connection.send(message)
            answer = connection.receive()
        finally:
            connection.allow_interrupt()
        outcome = _decode_outcome(answer["answer"])
        for index, value in answer["answer"].get("after", []):
            arguments[index][...] = _decode(value)  # what the candidate left in its argument
        if outcome.raised is not None:
            raised = outcome.raised
            for name in (raised.type, *raised.bases):
                if name in _exceptions:
                    raise _exceptions[name](raised.message)
            raise RuntimeError(raised.message)
        return outcome.value


def _make_candidate(ask):
    """A function-like object that shows nothing of what it stands for."""

    def candidate(*arguments, **keywords):
        """A candidate implementation; it runs elsewhere."""
        return ask(arguments, keywords)

    return candidate


def _interrupted() -> dict:
    return {
        "output_type": "error",
        "ename": "KeyboardInterrupt",
        "evalue": "",
        "traceback": ["KeyboardInterrupt"],
    }


def _flush_below() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


# ------------------------------------------------------------------------------------ preparation


def prepare():
    """Everything that can be done once, before the fork; returns the shell."""
    shell = make_shell()
    _stub_colab()
    return shell


class Recorder:
    """Stands in for a connection while a released cell runs for everybody: keeps what it would send."""

    def __init__(self) -> None:
        self.messages: list[dict] = []
        self.request = 0

    def send(self, message: dict) -> None:
        self.messages.append(message)

    def allow_interrupt(self) -> None:
        """The grader waits for this process; it is stopped from outside if it takes too long."""

    forbid_interrupt = allow_interrupt


class Released:
    """The state after some cells of a release, from which students' processes are forked.

    No student's code ever runs in it: its requests come from the release, byte for byte.
    """

    def __init__(self, shell) -> None:
        self.shell, self.kept = shell, {}
        self.generators: dict = {}
        self.child: Child | None = None

    def settle(self, limits: dict, home: str) -> None:
        """In a new fork: outputs of its own, and the environment of a notebook."""
        if self.child is None:
            _reseed()
            self.generators = _generators()
            _environment(home)
            _tolerate_backends()
        os.chdir(home)
        self.recorder = Recorder()
        sink = Sink(self.recorder.send, limits, _getpid())
        sink.files = _redirect()
        connect(self.shell, sink)
        self.child = Child(self.recorder, self.shell, sink, self.kept)

    def do(self, request: dict) -> list[dict]:
        """Execute, bind or read values; returns the messages that a student's process would send."""
        self.recorder.messages = []
        self.child.operations[request["op"]](request)
        return self.recorder.messages


def start(sock: socket.socket, shell, limits: dict, home: str, confine=None, released=None) -> None:
    """Become the process of one notebook; never returns.

    Args:
        sock: the grader's end is the other one.
        home: the private working folder.
        confine: called last before the first request; takes away what the process may not do.
        released: the `Released` state that this process was forked from, or None.
    """
    try:
        if released is None:
            _reseed()
            _environment(home)
            _tolerate_backends()
        else:
            _reseed(untouched=released.generators)
            os.chdir(home)
        connection = Connection(sock)
        sink = Sink(connection.send, limits, _getpid())
        sink.files = _redirect()
        connect(shell, sink)
        connection.forbid_interrupt()
        _limits.apply_rlimits(limits)
        if confine is not None:
            confine(limits)
        Child(connection, shell, sink, released.kept if released else None).run()
    finally:
        _exit(1)


def _environment(home: str) -> None:
    """Nothing of the grader's environment; what a kernel would set."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    os.environ.update(ENVIRONMENT)
    os.environ.update(HOME=home, MPLCONFIGDIR=os.path.join(home, ".config"))
    if home == sandbox.HOME and sandbox.TEMP != "/tmp":
        os.environ["TMPDIR"] = sandbox.TEMP
        tempfile.tempdir = None  # what was found before the fork is no longer there
    os.chdir(home)


def _redirect() -> dict[str, int]:
    """Point the file descriptors 0, 1, 2 away from the grader's; 1 and 2 to files that we can read."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    files = {}
    for name, number in (("stdout", 1), ("stderr", 2)):
        fd = _anonymous_file(name)
        os.dup2(fd, number)
        files[name] = fd
    return files


def _anonymous_file(name: str) -> int:
    if hasattr(os, "memfd_create"):
        import fcntl

        fd = os.memfd_create(name)
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
        return fd
    import tempfile

    fd, path = tempfile.mkstemp()
    os.close(fd)
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    os.unlink(path)
    return fd


def _reseed(untouched: dict | None = None) -> None:
    """Unseeded generators would be the same in every child.

    Args:
        untouched: states that generators had before the release's cells ran; those that these cells seeded
            or used are left as they are.
    """
    entropy = int.from_bytes(os.urandom(16), "big")
    now = {} if untouched is None else _generators()
    seeds = {
        "random": lambda: random.seed(entropy),
        "numpy": lambda: np.random.seed(entropy % 2**32),
        "torch": lambda: sys.modules["torch"].default_generator.manual_seed(entropy % 2**63),
    }
    for name, seed in seeds.items():
        if (name != "torch" or "torch" in sys.modules) and (
            untouched is None or now.get(name) == untouched.get(name)
        ):
            seed()


def _generators() -> dict:
    """The states of the global generators."""
    states = {
        "random": repr(random.getstate()),
        "numpy": repr(np.random.get_state(legacy=False)["state"]),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = bytes(torch.default_generator.get_state().numpy())
    return states


def _tolerate_backends() -> None:
    """`matplotlib.use("TkAgg")` does not fail a cell: figures stay inline."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    real = pyplot.switch_backend

    def switch_backend(newbackend):
        __tracebackhide__ = True
        try:
            return real(newbackend)
        except ImportError:
            print(NO_BACKEND, end="")
            return real(ENVIRONMENT["MPLBACKEND"])

    pyplot.switch_backend = switch_backend


class _Anything(types.ModuleType):
    """A module whose every function says that it does nothing here."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)

        def nothing(*arguments, **keywords):
            print(f"{self.__name__}.{name} is passed over while a notebook is graded")
            return {} if name == "upload" else None

        return nothing


def _stub_colab() -> None:
    """`from google.colab import drive; drive.mount(...)` must not cost a student the cell."""
    try:
        import google  # a namespace package, where one is installed
    except ImportError:
        google = types.ModuleType("google")
        google.__path__ = []
        sys.modules["google"] = google
    colab = _Anything("google.colab")
    colab.__path__ = []
    sys.modules["google.colab"] = google.colab = colab
    for name in ("drive", "files", "output", "userdata", "auth", "widgets", "data_table"):
        module = _Anything(f"google.colab.{name}")
        sys.modules[module.__name__] = module
        setattr(colab, name, module)
