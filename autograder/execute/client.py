"""The grader's side: start the warm process, open kernels, ask them, and take no word of theirs on trust."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.course import CourseError

from . import wire
from .limits import Limits
from .messages import discreet
from .sandbox import unavailable
from .wire import MalformedMessage, Outcome, Raised

START_TIMEOUT = 300.0
MAX_OUTPUTS = 2000
MAX_ASKED = 5000
_MIME = ("display_data", "execute_result", "update_display_data")


@dataclass
class Executed:
    """What one cell did: nbformat v4 outputs, and `ok`, `error`, `timeout` or `dead`."""

    outputs: list[dict] = field(default_factory=list)
    status: str = "ok"


class _Died(Exception):
    """The kernel went away, or had to be put down; `reason` is a sentence."""

    def __init__(self, reason: str, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.timed_out = reason, timed_out


class _Line:
    """Requests to a process that forks notebooks, one at a time; safe to use from many threads."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._number = 0
        self.broken = ""
        self.edges: dict[str, _Edge] = {}

    def _read(self) -> dict:
        data = bytearray()
        try:
            while not data.endswith(b"\n"):
                more = self._control.recv(1 << 18)
                if not more:
                    return {"error": "it ended at once; see the lines above"}
                data += more
            return json.loads(data)
        except (OSError, ValueError) as error:
            return {"error": str(error)}

    def ask(self, request: dict, fd: int | None = None) -> dict:
        """One request and its answer; `{"error": ...}` when the process is gone or stuck."""
        with self._lock:
            if self.broken:
                return {"error": self.broken}
            self._number += 1
            line = json.dumps(request | {"n": self._number}).encode() + b"\n"
            try:
                sent = socket.send_fds(self._control, [line], [] if fd is None else [fd])
                self._control.sendall(line[sent:])
                answer = self._read()
            except OSError as error:
                answer = {"error": str(error)}
            if answer.get("n") != self._number:
                # Without its answer the line cannot be used again; its children go with it.
                self.broken = f"the warm process failed: {answer.get('error', 'wrong answer')}"
                self.kill()
                return {"error": self.broken}
            return answer

    def kill(self) -> None:
        """End the process at once."""
        self._control.close()

    def hang_up(self) -> None:
        """Close the line, and those of the states that were forked from it: they end by themselves."""
        for edge in self.edges.values():
            edge.line.hang_up()
        with contextlib.suppress(OSError):
            self._control.close()


@dataclass
class _Edge:
    """What a request to a released state gave: the state after it, and the messages (as JSON)."""

    line: _Line
    messages: str


class _ReleasedState(_Line):
    """A process that holds the state after some cells of a release; it runs nothing of students."""

    def __init__(self, parent: _Line, request: dict, limits: Limits) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        message = {"op": "grow", "request": request, "limits": limits.as_dict()}
        try:
            self._kid = parent.ask(message, theirs.fileno()).get("kid")
        finally:
            theirs.close()
        self._parent = parent
        self._control.settimeout(limits.cell)
        answer = self._read() if self._kid is not None else {}
        self._control.settimeout(60.0)
        self.messages = answer.get("messages")
        if self.messages is None or answer.get("threads") != 1:
            self.broken = "this cell cannot be shared"
            self.kill()

    def kill(self) -> None:
        super().kill()
        if self._kid is not None:
            self._parent.ask({"op": "forget", "kid": self._kid})


def _step(line: _Line, request: dict, limits: Limits) -> _Edge:
    """The released state after a request, from the tree or made now; `line.broken` if it can't be shared."""
    key = json.dumps(request, sort_keys=True)
    if key not in line.edges:
        if request["op"] == "execute":
            after = _ReleasedState(line, request, limits)
            line.edges[key] = _Edge(after, json.dumps(after.messages or []))
        else:
            # Asking changes nothing that later cells can see: no fork is needed.
            answer = line.ask({"op": "released", "request": request})
            after = _Alias(line)
            line.edges[key] = _Edge(after, json.dumps(answer.get("messages", [])))
    return line.edges[key]


class _Alias(_Line):
    """The same process after it was asked something: the states that follow are others."""

    def __init__(self, line: _Line) -> None:
        self._line, self.edges = line, {}

    @property
    def broken(self) -> str:
        return self._line.broken

    def hang_up(self) -> None:
        for edge in self.edges.values():
            edge.line.hang_up()

    def ask(self, request: dict, fd: int | None = None) -> dict:
        return self._line.ask(request, fd)


def _refusal(reason: str) -> str:
    return (
        f"this machine cannot isolate students' code ({reason}); --no-sandbox grades "
        "without isolation: students' code then runs with your rights"
    )


class WarmProcess(_Line):
    """One warm process and the line to it."""

    def __init__(self, sandbox: bool, with_torch: bool = False) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        self.sandbox = sandbox
        self.growing = threading.Lock()
        command = [
            sys.executable,
            "-s",
            "-m",
            "autograder.execute.warm",
            str(theirs.fileno()),
            "sandbox" if sandbox else "open",
            "main" if threading.current_thread() is threading.main_thread() else "thread",
            "torch" if with_torch else "",
        ]
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).resolve().parents[2],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._ready = False

    def wait_ready(self) -> None:
        """Wait for the imports; raises CourseError when it cannot work here."""
        with self._lock:
            if self._ready:
                return
            self._control.settimeout(START_TIMEOUT)
            answer = self._read()
            if "error" in answer:
                text = answer["error"]
                raise CourseError(
                    _refusal(text)
                    if self.sandbox
                    else f"the process that runs notebooks did not start: {text}"
                )
            self._control.settimeout(60.0)
            self._ready = True

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """End it; its children end with it."""
        self.hang_up()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    """All that the warm process, and so a student's code, gets to see of ours."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    kept = ("LANG", "LC_ALL", "SYSTEMROOT", "TZ")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env.update(
        PATH=os.pathsep.join([os.path.dirname(sys.executable), os.defpath.lstrip(":")]),
        HOME="/nonexistent",
        MPLCONFIGDIR=os.path.join(base, "matplotlib"),
        MPLBACKEND="module://matplotlib_inline.backend_inline",
        PYTHONHASHSEED="0",
        PYTHONDONTWRITEBYTECODE="1",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        NUMEXPR_NUM_THREADS="1",
    )
    return env


class Executor:
    """Opens kernels.

    Args:
        workers: how many kernels the caller means to have at once (a hint).
        cold: a fresh interpreter for every notebook, instead of a fork of the warm one.
        sandbox: isolate students' code; CourseError where that cannot be had.
        released: sources of the code cells of each released notebook, in order. A notebook that begins with
            the same cells, byte for byte, shares their run with others (warm and with the sandbox only).
    """

    def __init__(
        self,
        workers: int = 2,
        cold: bool = False,
        sandbox: bool = True,
        released: Sequence[Sequence[str]] = (),
    ) -> None:
        reason = unavailable() if sandbox else ""
        if reason:
            raise CourseError(_refusal(reason))
        if not hasattr(socket, "send_fds"):
            raise CourseError("notebooks are run on Linux and macOS; on Windows, grade in WSL")
        self.workers, self.cold, self.sandbox = workers, cold, sandbox
        share = sandbox and not cold
        self.released = [tuple(sources) for sources in released] if share else []
        # It takes a second: only for lessons that use torch, or of which nothing is known.
        uses = any("torch" in source for sources in released for source in sources)
        self._with_torch = not cold and (uses or not released)
        self._lock = threading.Lock()
        self._warm: WarmProcess | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the warm process now and wait for it; raises CourseError where it cannot run."""
        self._process().wait_ready()

    def _process(self) -> WarmProcess:
        if self.cold:
            return WarmProcess(self.sandbox)
        with self._lock:
            if self._warm is not None and self._warm.broken:
                self._warm.close()
                self._warm = None
            if self._warm is None:
                self._warm = WarmProcess(self.sandbox, self._with_torch)
            return self._warm

    def kernel(self, files: Path | Sequence[Path] = (), limits: Limits | None = None) -> Kernel:
        """A new process for one notebook, with copies of `files` (or of a folder's) in its working folder.

        Raises:
            RuntimeError: if no process could be started, which is not the student's fault.
        """
        process = self._process()
        process.wait_ready()
        limits = limits or Limits.configured()
        kernel = Kernel(process, self.cold, limits, next(self._numbers), self.released)
        try:
            if files:
                kernel.send_files(files)
            if not self.released:
                kernel.start()
        except RuntimeError:
            if not process.broken:
                raise
            process = self._process()  # a new one
            process.wait_ready()
            kernel = Kernel(process, self.cold, limits, next(self._numbers), self.released)
            if files:
                kernel.send_files(files)
        return kernel

    def close(self) -> None:
        """End the warm process."""
        with self._lock:
            if self._warm is not None:
                self._warm.close()
                self._warm = None


class Kernel:
    """One notebook's process. Nothing that the student's code does makes these methods raise.

    Attributes:
        notes: submitted files that were not given to the notebook, and why.
        death: why the kernel is gone; "" while it lives.
    """

    def __init__(
        self,
        process: WarmProcess,
        own_process: bool,
        limits: Limits,
        number: int,
        released: Sequence[tuple[str, ...]] = (),
    ) -> None:
        self._process, self._own_process, self.limits = process, own_process, limits
        self._line: _Line = process
        self._released, self._executed = released, ()
        self._number = number
        self.notes: list[str] = []
        self.death = ""
        self._request = 0
        self._received = 0
        self._buffer = bytearray()
        self._displays: dict[str, dict] = {}
        self._interrupted = False
        self._home: str | None = None
        self._kid: int | None = None
        self._sock: socket.socket | None = None

    def start(self) -> None:
        """Fork the process now (done by itself when it is first needed).

        Raises:
            RuntimeError: if that cannot be done, which is not the student's fault.
        """
        if self._sock is not None or self.death:
            return
        if not self._process.sandbox:
            self._home = tempfile.mkdtemp(prefix="notebook-")
        self._sock, theirs = socket.socketpair()
        request = {"op": "spawn", "limits": self.limits.as_dict(), "home": self._home}
        answer: dict = {}
        for attempt in range(4):
            answer = self._line.ask(request | {"number": self._number}, theirs.fileno())
            self._kid = answer.get("kid")
            if self._kid is not None or self._line.broken:
                break
            time.sleep(0.5 * attempt)  # the machine may be out of processes for a moment
        theirs.close()
        if self._kid is None:
            if self._line.broken:
                self._process.edges.clear()
            self.close()
            raise RuntimeError(f"no process could be started for a notebook: {answer.get('error')}")

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        return not self.death

    def close(self) -> None:
        """Kill the process with all its offspring, and remove its folder."""
        self._died("it was closed")
        if self._kid is not None:
            self._line.ask({"op": "forget", "kid": self._kid})
            self._kid = None
        if self._own_process:
            self._process.close()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    # ------------------------------------------------------------------------------- questions

    def execute(self, source: str, timeout: float | None = None) -> Executed:
        """Run one cell; its outputs are kept also when it is interrupted or dies."""
        done = Executed()
        if self.death:
            done.status = "dead"
            return done
        outputs = _Outputs(done.outputs, self._displays)
        seconds = self.limits.cell if timeout is None else timeout
        try:
            last = self._ask(
                {"op": "execute", "source": source}, seconds, lambda m: outputs.add(m.get("out"))
            )
            done.status = "ok" if _child(last, "done", "status") == "ok" else "error"
            if self._interrupted:
                done.status = "timeout"
        except _Died as died:
            done.status = "timeout" if died.timed_out else "dead"
            outputs.error("DeadKernel", died.reason)
        return done

    def bind(self, key: str, name: str) -> bool:
        """Keep the object that `name` is bound to now, to be called later by `key`."""
        try:
            last = self._ask({"op": "bind", "key": key, "name": name}, self.limits.call)
        except _Died:
            return False
        return _child(last, "done", "bound") is True

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        """The values of variables; a name that is not bound, or whose value is malformed, is absent."""
        found: dict[str, Any] = {}
        wanted = set(names)

        def take(message: dict) -> None:
            pair = message.get("value")
            if type(pair) is list and len(pair) == 2 and pair[0] in wanted:
                with contextlib.suppress(MalformedMessage):
                    found[pair[0]] = wire.decode(pair[1])

        with contextlib.suppress(_Died, TypeError):
            self._ask({"op": "values", "names": list(names)}, self.limits.call, take)
        return found

    def call(self, key: str, calls: Sequence[tuple]) -> list[Outcome]:
        """Call a kept function once per tuple of arguments."""
        outcomes: list[Outcome] = []
        requests = [[wire.encode(item) for item in arguments] for arguments in calls]

        def take(message: dict) -> float | None:
            if "outcome" not in message or len(outcomes) >= len(requests):
                return None
            outcomes.append(_read_outcome(message["outcome"], self._interrupted))
            self._interrupted = False
            return self.limits.call  # the next call has its own time

        reason = "the kernel did not answer"
        try:
            self._ask({"op": "call", "key": key, "calls": requests}, self.limits.call, take)
        except _Died as died:
            reason = died.reason
        missing = len(requests) - len(outcomes)
        return outcomes + [Outcome(raised=_killed(reason))] * missing

    def serve(self, key: str, answer: Callable[[list], Outcome]) -> Outcome:
        """Call a kept function with an opaque candidate; `answer(arguments)` does what it would do."""
        result: list[Outcome] = []
        asked = 0

        def take(message: dict) -> float | None:
            nonlocal asked
            if "ask" in message:
                asked += 1
                if asked > MAX_ASKED:
                    raise _Died(f"the candidate was called more than {MAX_ASKED} times")
                self._send({"answer": wire.encode_outcome(_answer(message, answer))})
            elif "outcome" in message and not result:
                result.append(_read_outcome(message["outcome"], self._interrupted))
            return None

        reason = "the kernel did not answer"
        try:
            self._ask({"op": "serve", "key": key}, self.limits.call, take)
        except _Died as died:
            reason = died.reason
        return result[0] if result else Outcome(raised=_killed(reason))

    # ------------------------------------------------------------------------------ the socket

    def _ask(
        self,
        request: dict,
        seconds: float,
        take: Callable[[dict], float | None] = lambda message: None,
    ) -> dict:
        """Send a request, hand each message to `take`, return the last; raises _Died."""
        if self.death:
            raise _Died(self.death)
        shared = self._shared(request, take)
        if shared is not None:
            return shared
        self.start()
        self._request += 1
        request["id"] = self._request
        self._interrupted = False
        try:
            self._send(request)
            deadline = time.monotonic() + seconds
            killing = False
            while True:
                try:
                    message = self._receive(deadline)
                except TimeoutError:
                    if killing:
                        raise _Died(
                            f"it did not stop {self.limits.grace:g} s after its time was up",
                            timed_out=True,
                        ) from None
                    killing, self._interrupted = True, True
                    self._signal(signal.SIGINT)
                    deadline = time.monotonic() + self.limits.grace
                    continue
                if message.get("id") != self._request:
                    continue
                if "done" in message:
                    return message
                more = take(message)
                if more is not None:
                    deadline, killing = time.monotonic() + more, False
        except (_Died, MalformedMessage, OSError, wire.TooLarge) as error:
            died = error if isinstance(error, _Died) else _Died(f"{error or type(error).__name__}")
            self._died(died.reason)
            raise died from None

    def _shared(self, request: dict, take: Callable[[dict], float | None]) -> dict | None:
        """The answer of the released state, if this request is one that every such notebook begins with."""
        if self._sock is not None or not self._released:
            return None
        executed = self._executed
        if request["op"] == "execute":
            executed = (*executed, request["source"])
            known = any(sources[: len(executed)] == executed for sources in self._released)
        else:
            known = bool(executed) and request["op"] in ("bind", "values")
        if not known:
            return None
        with self._process.growing:
            edge = _step(self._line, request, self.limits)
        messages = json.loads(edge.messages)
        if edge.line.broken or not messages:
            return None
        self._line, self._executed, self._interrupted = edge.line, executed, False
        for message in messages[:-1]:
            take(message)
        return messages[-1]

    def _send(self, message: dict) -> None:
        message.setdefault("id", self._request)
        self._sock.settimeout(self.limits.call)
        self._sock.sendall(wire.pack(message))

    def _receive(self, deadline: float) -> dict:
        header = self._exactly(4, deadline)
        return wire.unpack(self._exactly(wire.frame_length(header), deadline))

    def _exactly(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._sock.settimeout(min(left, 1.0))
            try:
                data = self._sock.recv(1 << 18)
            except TimeoutError:
                self._watch_memory()
                continue
            if not data:
                raise _Died(self._how_it_ended())
            self._received += len(data)
            if self._received > 3 * self.limits.total_output:
                raise _Died("it sent more than a notebook may")
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _watch_memory(self) -> None:
        used = self._line.ask({"op": "usage", "kid": self._kid}).get("bytes")
        if type(used) is int and used > self.limits.total_memory:
            raise _Died(f"it took {used >> 20} MB of memory, more than a notebook may")

    def _signal(self, number: int) -> None:
        self._line.ask({"op": "signal", "kid": self._kid, "signal": int(number)})

    def _how_it_ended(self) -> str:
        for _ in range(20):
            answer = self._line.ask({"op": "poll", "kid": self._kid})
            if not answer.get("alive"):
                break
            time.sleep(0.05)
        code = answer.get("status")
        if type(code) is int and code < 0:
            with contextlib.suppress(ValueError):
                return f"the kernel died ({signal.Signals(-code).name})"
        return f"the kernel died (exit status {code})"

    def _died(self, reason: str) -> None:
        if not self.death:
            self.death = reason
            if self._sock is not None:
                self._sock.close()
            if self._kid is not None:
                self._signal(signal.SIGKILL)

    # ----------------------------------------------------------------------------------- files

    def send_files(self, files: Path | Sequence[Path]) -> None:
        """Copy files, or the regular ones of a folder, but no notebook, into the working folder."""
        total = 0
        folder = isinstance(files, Path)
        named = _plain_files(files, self.notes) if folder else ((one, one.name) for one in files)
        for path, name in named:
            total += path.stat().st_size
            if total > self.limits.files // 2:
                self.notes.append(
                    f"{name} and what follows it: too large to be given to a notebook"
                )
                return
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            try:
                self._ask({"op": "file", "path": name, "data": data}, self.limits.cell)
            except _Died:
                return


def _plain_files(folder: Path, notes: list[str], limit: int = 1000):
    """Regular files below a folder with their relative names; notebooks and oddities are left out."""
    count = 0
    for base, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(base, name)
            relative = path.relative_to(folder).as_posix()
            if name.endswith(".ipynb") or name.startswith("."):
                continue
            if not stat.S_ISREG(path.lstat().st_mode):
                notes.append(f"{relative}: not a regular file, left out")
                continue
            if path.stat().st_size > wire.MAX_BYTES // 2:
                notes.append(f"{relative}: too large, left out")
                continue
            count += 1
            if count > limit:
                notes.append(f"more than {limit} files: the rest was left out")
                return
            yield path, relative


def _child(message: dict, *keys: str) -> Any:
    value: Any = message
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value


def _killed(reason: str) -> Raised:
    return Raised("KernelDied", ("KernelDied",), reason)


def _read_outcome(data: Any, interrupted: bool) -> Outcome:
    if interrupted:
        message = "the call took too long and was interrupted"
        return Outcome(
            raised=Raised("TimeoutError", ("TimeoutError", "OSError", "Exception"), message)
        )
    try:
        return discreet(wire.decode_outcome(data))
    except MalformedMessage as error:
        return Outcome(raised=Raised("MalformedMessage", ("MalformedMessage",), str(error)))


def _answer(message: dict, answer: Callable[[list], Outcome]) -> Outcome:
    """What the grader's candidate does with arguments that come from the student's process."""
    try:
        asked = message["ask"]
        if type(asked) is not list or len(asked) > 50:
            raise MalformedMessage("the arguments are not a list")
        if message.get("keywords"):
            raise TypeError("call the candidate with positional arguments only")
        return answer([wire.decode(item) for item in asked])
    except Exception as error:
        return Outcome(raised=wire.raised_from(error))


class _Outputs:
    """Checks what claims to be an output node, and adds it to a cell's outputs."""

    def __init__(self, outputs: list[dict], displays: dict[str, dict]) -> None:
        self.outputs, self.displays = outputs, displays
        self._clear = False

    def error(self, name: str, text: str) -> None:
        """An error of ours, after whatever the cell had shown."""
        self.outputs.append(
            {
                "output_type": "error",
                "ename": name,
                "evalue": text,
                "traceback": [f"{name}: {text}"],
            }
        )

    def add(self, node: Any) -> None:
        """Add a node if it is one; anything else is dropped."""
        if type(node) is not dict:
            return
        kind = node.get("output_type")
        if kind == "clear_output":
            self._clear = True
            if node.get("wait") is not True:
                self._clear_now()
            return
        made = _node(kind, node)
        if made is None or len(self.outputs) >= MAX_OUTPUTS:
            return
        if kind == "update_display_data":
            known = self.displays.get(str(node.get("display_id"))[:200])
            if known is not None:
                known.update(data=made["data"], metadata=made["metadata"])
            return
        self._clear_now()
        last = self.outputs[-1] if self.outputs else {}
        if kind == "stream" and last.get("name") == made["name"]:
            last["text"] += made["text"]
            return
        self.outputs.append(made)
        if kind == "display_data" and "display_id" in node and len(self.displays) < MAX_OUTPUTS:
            self.displays[str(node["display_id"])[:200]] = made

    def _clear_now(self) -> None:
        if self._clear:
            self.outputs.clear()
            self._clear = False


def _node(kind: Any, node: dict) -> dict | None:
    if kind == "stream":
        name, text = node.get("name"), node.get("text")
        if name in ("stdout", "stderr") and type(text) is str:
            return {"output_type": "stream", "name": name, "text": text}
    elif kind == "error":
        texts = node.get("traceback")
        if type(texts) is list and all(type(line) is str for line in texts[:1000]):
            return {
                "output_type": "error",
                "ename": str(node.get("ename"))[:500],
                "evalue": str(node.get("evalue"))[:20_000],
                "traceback": texts[:1000],
            }
    elif kind in _MIME:
        data, metadata = node.get("data"), node.get("metadata")
        if type(data) is dict and type(metadata) is dict and len(data) <= 50:
            made = {"output_type": kind, "data": data, "metadata": metadata}
            if not all(_is_mime(key, value) for key, value in data.items()):
                return None
            if kind == "execute_result":
                count = node.get("execution_count")
                made["execution_count"] = count if type(count) is int else None
            return made
    return None


def _is_mime(key: str, value: Any) -> bool:
    if key.count("/") != 1 or len(key) > 200:
        return False
    return type(value) is str or key.endswith("json")
