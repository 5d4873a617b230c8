"""Isolation of students' processes on Linux, with the kernel's own means and nothing to install.

Two steps. The warm process, before it takes orders, moves into a mount namespace whose root is a new tmpfs
that shows only the system's libraries and the interpreter's packages, read-only: not the course, not a
home folder, not another student (`isolate`, `build_root`). Each child, after the fork, gets PID, mount,
IPC, network and UTS namespaces of its own, private writable folders of limited size, and then loses every
privilege for good (`Spawner`): its own unprivileged user id where grading runs as root, its own user
namespace where it does not.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from pathlib import Path

from . import limits as _limits
from . import seccomp

HOME = "/home/student"
FIRST_UID = 0x60000000
UIDS = 0x00100000

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
LAST_CAPABILITY = 63

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("ld.so.cache", "localtime", "timezone", "fonts", "alternatives", "mime.types")
DEVICES = ("null", "zero", "full", "random", "urandom")
PARTS = ("lib", "lib64", "bin", "pyvenv.cfg")

_PACKAGES = [path for path in sys.path if path.endswith("-packages")]
_INTERPRETER = (sys.prefix, sys.exec_prefix, sys.base_prefix, *_PACKAGES)
TEMP = "/scratch" if any(path.startswith("/tmp/") for path in _INTERPRETER) else "/tmp"
"""A child's temporary folder: its own, so not over an interpreter that itself lies in /tmp."""

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def unavailable() -> str:
    """Why this machine cannot isolate at all; "" when it is worth a try."""
    if _libc is None:
        return f"there is no isolation for {sys.platform} here, only for Linux"
    if not seccomp.supported():
        return f"no system-call filter for {os.uname().machine}"
    return ""


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _text(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    result = _libc.mount(_text(source), _text(target), _text(kind), flags, _text(data))
    _check(result, f"mount {target}")


def _tmpfs(target: str, size: int, mode: str, owner: int = 0, inodes: int = 4096) -> None:
    data = f"size={size},nr_inodes={inodes},mode={mode},uid={owner},gid={owner}"
    _mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, data)


def _pivot_root(new: str, old: str) -> None:
    number = SYS_PIVOT_ROOT[os.uname().machine]
    _check(_libc.syscall(number, _text(new), _text(old)), "pivot_root")


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns"))


def _set_attributes(path: str, attributes: int) -> None:
    wanted = _Attributes(attributes, 0, 0, 0)
    result = _libc.syscall(
        SYS_MOUNT_SETATTR,
        ctypes.c_int(AT_FDCWD),
        _text(path),
        ctypes.c_uint(AT_RECURSIVE),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
    _check(result, f"make {path} read-only")


# ------------------------------------------------------------------------------ the warm process


def isolate() -> None:
    """Give the warm process namespaces of its own (while it has one thread and no imports).

    Raises:
        OSError: when the kernel or the container forbids it; the text says which step.
    """
    reason = unavailable()
    if reason:
        raise OSError(0, reason)
    if os.geteuid() == 0:
        _check(_libc.unshare(CLONE_NEWNS), "a mount namespace")
    else:
        _own_user_namespace(CLONE_NEWNS | CLONE_NEWPID, 0)
        _become_first_process()
    _mount(None, "/", None, MS_REC | MS_PRIVATE)


def _own_user_namespace(more: int, inside: int) -> None:
    """A user namespace in which our id is `inside`, and namespaces that belong to it."""
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(CLONE_NEWUSER | more), "a user namespace")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inside} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{inside} {gid} 1")


def _become_first_process() -> None:
    """Go on in a fork, which is process 1 of the new PID namespace; the old one waits for it."""
    pid = os.fork()
    if pid == 0:
        _libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0)
        return
    os.closerange(3, 256)  # our copy of the owner's socket would keep it open
    os.waitpid(pid, 0)
    os._exit(0)


def visible(hidden: str) -> dict[str, str]:
    """Host paths that students' code may read: {path in the sandbox: real path on the host}.

    Args:
        hidden: the course's folder, which is never shown (its `.venv` may be inside, and is).
    """
    wanted = [path for path in SYSTEM if os.path.isdir(path) and not os.path.islink(path)]
    wanted += [f"/etc/{name}" for name in ETC]
    for prefix in dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix)):
        wanted += [os.path.join(prefix, part) for part in PARTS]
    wanted += _PACKAGES
    shown: dict[str, str] = {}
    for path in wanted:
        covered = any(path == other or path.startswith(other + "/") for other in shown)
        real = os.path.realpath(path)
        holds_course = (os.path.realpath(hidden) + "/").startswith(real + "/")
        if os.path.exists(real) and not covered and not holds_course:
            shown[path] = real
    return shown


def build_root(hidden: str) -> None:
    """Move the warm process into a root that shows only what `visible` says; there is no way back."""
    shown = visible(hidden)
    links = {path: os.readlink(path) for path in SYSTEM if os.path.islink(path)}
    _tmpfs("/tmp", 2**20, "0755")
    os.mkdir("/tmp/new")
    os.mkdir("/tmp/old")
    _pivot_root("/tmp", "/tmp/old")
    os.chdir("/")
    _tmpfs("/new", 2**20, "0755")
    for path, real in shown.items():
        _bind("/old" + real, "/new" + path)
    for path, target in links.items():
        if not os.path.lexists("/new" + path):
            os.symlink(target, "/new" + path)
    for folder in ("/proc", "/tmp", TEMP, "/dev/shm", "/etc", HOME):
        os.makedirs("/new" + folder, exist_ok=True)
    for name in ("fd", "stdin", "stdout", "stderr"):
        number = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}[name]
        os.symlink("/proc/self/fd" + number, f"/new/dev/{name}")
    Path("/new/etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    Path("/new/etc/group").write_text("root:x:0:\n")
    Path("/new/etc/hosts").write_text("127.0.0.1 localhost\n")
    for path in shown:
        _set_attributes("/new" + path, ATTR_NODEV)
    for name in DEVICES:
        _bind(f"/old/dev/{name}", f"/new/dev/{name}")
    _set_attributes("/new", ATTR_RDONLY | ATTR_NOSUID)
    _mount("proc", "/new/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    os.chdir("/new")
    _pivot_root(".", ".")
    _check(_libc.umount2(b".", MNT_DETACH), "leave the old root")
    os.chdir("/")


def _bind(real: str, target: str) -> None:
    if stat.S_ISDIR(os.stat(real).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w"):
            pass
    _mount(real, target, None, MS_BIND | MS_REC)


# ------------------------------------------------------------------------------------- a child


class Spawner:
    """Forks confined children of the warm process."""

    def __init__(self) -> None:
        self.root = os.geteuid() == 0 and _maps_everything()
        self.namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self.filter = seccomp.build()

    def fork(self) -> int:
        """os.fork into a new PID namespace, in which the child is process 1."""
        _check(_libc.unshare(CLONE_NEWPID), "a PID namespace")
        try:
            pid = os.fork()
        except OSError:
            _libc.setns(self.namespace, CLONE_NEWPID)
            raise
        if pid:
            _check(_libc.setns(self.namespace, CLONE_NEWPID), "leave the PID namespace")
        return pid

    def enter(self, number: int, limits: dict, files: list | None = None):
        """In the child: namespaces and folders of its own.

        Args:
            number: unique among the children of a run.
            files: what `gather` found in the working folder that this process was forked in.

        Returns:
            The working folder, and a function that takes away all privileges; call it last.
        """
        owner = FIRST_UID + number % UIDS if self.root else 0
        self.settle(int(limits["files"]), owner, files or [])
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        _check(_libc.sethostname(b"notebook", 8), "a host name")
        Path("/proc/self/oom_score_adj").write_text("1000")
        os.nice(5)  # a flood of processes must not starve the grader

        def confine(limits: dict) -> None:
            self._confine(owner, limits)

        return HOME, confine

    def settle(self, size: int, owner: int, files: list) -> None:
        """Namespaces and empty private folders of its own for this process, then `files`."""
        _check(
            _libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS),
            "a child's namespaces",
        )
        for folder in (HOME, TEMP, "/dev/shm"):
            _libc.umount2(
                _text(folder), MNT_DETACH
            )  # that of the process we were forked from, if any
            _tmpfs(folder, size, "0700", owner, 8192)
        for path, content in files:
            if content is None:
                os.mkdir(path)
            else:
                Path(path).write_bytes(content)
            os.chown(path, owner, owner)

    def trial(self) -> None:
        """Confine a child once before the first notebook, so that what is forbidden shows at once.

        Raises:
            OSError: which step is forbidden.
        """
        reader, writer = os.pipe()
        pid = self.fork()
        if pid == 0:
            try:
                limits = _limits.Limits().as_dict()
                _, confine = self.enter(0, limits)
                confine(limits)
            except OSError as error:
                os.write(writer, str(error).encode()[:1000])
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(pid, 0)
        reason = os.read(reader, 1000).decode()
        os.close(reader)
        if reason:
            raise OSError(0, reason)

    def usage(self, pid: int) -> int:
        """Bytes of memory that a child and its offspring took on top of what they share with us."""
        total, ours = 0, _anonymous_memory("self")
        space = _pid_namespace(str(pid))
        for name in os.listdir("/proc"):
            if name.isdigit() and space and _pid_namespace(name) == space:
                total += max(0, _anonymous_memory(name) - ours)
        return total

    def _confine(self, owner: int, limits: dict) -> None:
        for capability in range(LAST_CAPABILITY + 1):
            if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                break
        if self.root:
            os.setgroups([])
            os.setresgid(owner, owner, owner)
            os.setresuid(owner, owner, owner)
        else:
            _own_user_namespace(0, 1000)
        _limits.limit_processes(limits)
        _drop_capabilities()
        _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
        _check(_libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "death with the parent")
        _check(_libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "its own /proc entries")
        seccomp.install(_libc, self.filter)


def gather(limit: int = 8 * 2**20) -> list[tuple[str, bytes | None]]:
    """Folders (None) and files below the working folder, to be made again in a fork.

    Raises:
        OSError: if there is something else, or too much of it.
    """
    found: list[tuple[str, bytes | None]] = []
    for base, folders, names in os.walk(HOME):
        found += [(os.path.join(base, name), None) for name in folders]
        for name in names:
            path = os.path.join(base, name)
            state = os.lstat(path)
            limit -= state.st_size
            if not stat.S_ISREG(state.st_mode) or limit < 0:
                raise OSError(0, f"{path} cannot be shared")
            found.append((path, Path(path).read_bytes()))
    if os.listdir(TEMP) or os.listdir("/dev/shm"):
        raise OSError(0, "files outside the working folder cannot be shared")
    return found


def _maps_everything() -> bool:
    """Whether user ids other than ours exist here (not so in a user namespace that we made)."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = (int(word) for word in line.split())
        if inside <= FIRST_UID and inside + count > FIRST_UID + UIDS:
            return True
    return False


def _drop_capabilities() -> None:
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "drop the capabilities")


def _pid_namespace(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _anonymous_memory(pid: str) -> int:
    # Not from smaps: that takes locks which a busy process holds, and would make us wait for it.
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return 0
    return 0
