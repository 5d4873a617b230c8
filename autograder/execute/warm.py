"""The warm process: it imports once what the lessons need, then forks a child for each notebook.

    python -m autograder.execute.warm FD SANDBOX

It is exec'd afresh by `Executor` (never forked from the grader, which has threads and secrets), gets a
minimal environment, talks to its owner over the socket FD, and ends when that closes. No student's code
and no student's file ever comes into it: a notebook's files and cells go from the grader to the child
directly, over a socket of their own that is only passed on here.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import select
import shutil
import signal
import socket
import sys
import time

from . import child, sandbox

PRELOAD = ("numpy", "matplotlib.pyplot", "torch", "torch.nn.functional")


def threads() -> int:
    """How many threads this process has (1 where that cannot be told)."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def preload(with_torch: bool) -> None:
    """Import what the lessons use; all of it must stay single-threaded (a fork copies one thread only).

    Args:
        with_torch: also what torch itself imports when it is first used (800 modules, 1 s).
    """
    for name in PRELOAD:
        with contextlib.suppress(ImportError):
            __import__(name)
    if "matplotlib" in sys.modules:
        from matplotlib.figure import Figure

        # The first picture finds fonts and imports what writes PNG (50 ms): once, here.
        figure = Figure()
        figure.add_subplot(title="0").imshow([[0.0]])
        figure.savefig(io.BytesIO(), format="png")
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
        if with_torch:  # `torch.use_deterministic_algorithms` and optimizers do it
            torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    if any(name.startswith("matplotlib_inline.backend") for name in sys.modules):
        raise RuntimeError("matplotlib_inline was imported before the fork: pictures would vanish")


def signal_at_death_of_parent(number: int) -> None:
    """Linux: get this signal when the thread that made this process ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(1, number, 0, 0, 0)


class Warm:
    """The loop: `spawn`, `signal`, `poll`, as lines of JSON, one answer for each."""

    def __init__(self, control: socket.socket, confined: bool, shell, released=None) -> None:
        self.released = released
        self.control, self.confined, self.shell = control, confined, shell
        self.children: dict[int, int | None] = {}
        self.homes: dict[int, str] = {}
        self.states: list[int] = []
        self.stopping = False
        self.limbo = sandbox.Spawner() if confined else None

    def run(self) -> None:
        while not self.stopping:
            readable, _, _ = select.select([self.control], [], [], 0.5)
            self.reap()
            if not readable:
                continue
            data, fds, _, _ = socket.recv_fds(self.control, 65536, 4)
            if not data:
                return
            while not data.endswith(b"\n"):
                more = self.control.recv(65536)
                if not more:
                    return
                data += more
            try:
                request = json.loads(data)
                self.answer(self.handle(request, fds) | {"n": request["n"]})
            finally:
                for fd in fds:
                    os.close(fd)

    def answer(self, message: dict) -> None:
        with contextlib.suppress(OSError):
            self.control.sendall(json.dumps(message).encode() + b"\n")

    def handle(self, request: dict, fds: list[int]) -> dict:
        if request["op"] == "spawn":
            try:
                return {"kid": self.spawn(request, fds[0])}
            except OSError as error:
                return {"error": f"{error.strerror} (errno {error.errno})"}
        if request["op"] == "grow":
            try:
                return {"kid": self.grow(request, fds[0])}
            except OSError as error:
                return {"error": str(error)}
        if request["op"] == "released":
            return {"messages": self.released.do(request["request"])}
        kid = request["kid"]
        if request["op"] == "signal" and self.children.get(kid, 0) is None:
            with contextlib.suppress(ProcessLookupError):
                if request["signal"] == signal.SIGKILL and not self.confined:
                    os.killpg(kid, signal.SIGKILL)  # a child leads a session of its own
                os.kill(kid, request["signal"])
        if request["op"] == "forget":
            return self.forget(kid)
        if request["op"] == "usage":
            alive = self.children.get(kid, 0) is None
            return {"bytes": self.limbo.usage(kid) if self.limbo and alive else None}
        self.reap()
        return {"alive": self.children.get(kid, 0) is None, "status": self.children.get(kid)}

    def forget(self, kid: int) -> dict:
        """Kill a child and wait until it, and in a sandbox all its offspring, is gone."""
        if self.children.get(kid, 0) is None:
            with contextlib.suppress(ProcessLookupError):
                if not self.confined:
                    os.killpg(kid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(kid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(kid, 0)
        self.children.pop(kid, None)
        if kid in self.homes:
            shutil.rmtree(self.homes.pop(kid), ignore_errors=True)
        return {"alive": False, "status": None}

    def close(self) -> None:
        """The owner has gone: leave no process and no folder."""
        for kid in self.states:
            self._await(kid)
        for kid in list(self.children):
            self.forget(kid)

    def _await(self, kid: int, seconds: float = 10.0) -> None:
        """Wait for a released state, whose own line is closed too: it has children to wait for."""
        deadline = time.monotonic() + seconds
        while self.children.get(kid, 0) is None and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.01)

    def reap(self) -> None:
        for kid, status in list(self.children.items()):
            if status is None:
                with contextlib.suppress(ChildProcessError):
                    pid, code = os.waitpid(kid, os.WNOHANG)
                    if pid:
                        self.children[kid] = os.waitstatus_to_exitcode(code)

    def spawn(self, request: dict, fd: int) -> int:
        if threads() != 1:
            raise OSError(11, "the warm process has more than one thread")
        pid = self.limbo.fork() if self.limbo else os.fork()
        if pid == 0:
            self.become_child(request, fd)
        self.children[pid] = None
        if not self.limbo:
            self.homes[pid] = request["home"]
        return pid

    def grow(self, request: dict, fd: int) -> int:
        """Fork a process that goes on with a cell of the release, and then forks students' processes.

        It is as trusted as this one: what it executes is the instructor's, byte for byte.
        """
        if threads() != 1:
            raise OSError(11, "more than one thread")
        pid = os.fork()
        if pid == 0:
            self.become_released(request, fd)
        self.children[pid] = None
        self.states.append(pid)
        return pid

    def become_released(self, request: dict, fd: int) -> None:
        try:
            signal_at_death_of_parent(signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.control.close()
            state = self.released or child.Released(self.shell)
            files = sandbox.gather() if self.released else []
            self.limbo.settle(int(request["limits"]["files"]), 0, files)
            state.settle(request["limits"], sandbox.HOME)
            node = Warm(socket.socket(fileno=os.dup(fd)), True, self.shell, state)
            messages = state.do(request["request"])
            gc.freeze()
            sandbox.gather()  # what cannot be handed on is found now
            node.answer({"messages": messages, "threads": threads()})
            node.run()
            node.close()
        except BaseException as error:
            with contextlib.suppress(BaseException):
                os.write(2, f"released cell: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)

    def become_child(self, request: dict, fd: int) -> None:
        try:
            signal_at_death_of_parent(signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            sock = socket.socket(fileno=os.dup(fd))
            limits = request["limits"]
            home, confine = request.get("home"), None
            if self.limbo:
                files = sandbox.gather() if self.released else []
                home, confine = self.limbo.enter(request["number"], limits, files)
            else:
                os.setsid()
            _close_all_but(sock.fileno())
            child.start(sock, self.shell, limits, home, confine, self.released)
        except BaseException as error:
            with contextlib.suppress(BaseException):
                os.write(2, f"child: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)


def _close_all_but(keep: int) -> None:
    limit = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, keep)
    os.closerange(keep + 1, min(limit, 65536))


def main() -> None:
    """Serve the owner at the other end of the socket whose number is given."""
    control = socket.socket(fileno=int(sys.argv[1]))
    confined = sys.argv[2] == "sandbox"
    if sys.argv[3] == "main":
        signal_at_death_of_parent(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's business
    root = sys.path.pop(0)
    os.chdir("/")
    try:
        # Before the imports: without a kernel that allows it there is no reason to wait for them.
        if confined:
            sandbox.isolate()
        preload(with_torch=sys.argv[4] == "torch")
        shell = child.prepare()
        if confined:
            sandbox.build_root(hidden=root)
    except (OSError, RuntimeError) as error:
        control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "autograder"]:
        del sys.modules[name]
    gc.collect()
    gc.freeze()
    warm = Warm(control, confined, shell)
    try:
        if confined:
            warm.limbo.trial()
    except OSError as error:
        control.sendall(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    warm.answer({"ready": True})
    # Not an exception: the orderly end must not be interrupted by the signal that asks for it.
    signal.signal(signal.SIGTERM, lambda number, frame: setattr(warm, "stopping", True))
    try:
        warm.run()
    finally:
        warm.close()


if __name__ == "__main__":
    main()
    atexit._run_exitfuncs()
    os._exit(0)  # taking torch apart module by module takes longer than a notebook, for nothing
