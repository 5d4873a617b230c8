"""Get out: namespaces, mounts, privileges, the filter."""

from ..bank import attack

_LIBC = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    result = getattr(libc, name)(*args)
    print(name, result, os.strerror(ctypes.get_errno()) if result < 0 else "")
    return result
"""


@attack(stock="it has the grader's rights already: nothing to escape from")
def new_namespaces():
    """Makes namespaces in which it is root."""
    return (
        _LIBC
        + """
for flag in (0x10000000, 0x00020000, 0x20000000, 0x10020000):
    if call("unshare", flag) == 0:
        print("$WIN unshared")
pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
print("clone", pid, ctypes.get_errno())
if pid > 0:
    print("$WIN cloned")
"""
    )


@attack(stock="it has the grader's rights already: nothing to escape from")
def mounts():
    """Mounts, unmounts and remounts to see and write more."""
    return (
        _LIBC
        + """
done = [
    call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None),
    call("mount", None, b"/", None, 32 | 4096, None),
    call("umount2", b"/proc", 2),
    call("mount", b"proc", b"/proc", b"proc", 0, None),
    libc.syscall(428, -100, b"/", 1),
    call("chroot", b"/tmp"),
]
if any(result >= 0 for result in done):
    print("$WIN mounted")
"""
    )


@attack(stock="it has the grader's rights already: nothing to escape from")
def become_root():
    """Asks for other user ids, capabilities, and set-user-id programs."""
    return (
        _LIBC
        + """
import subprocess
for name in ("setuid", "setgid"):
    if call(name, 0) == 0:
        print("$WIN", name)
for command in (["su", "-c", "id"], ["sudo", "-n", "id"], ["mount", "-t", "tmpfs", "x", "/mnt"]):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL)
        print(command, done.returncode, done.stderr[:100])
        if done.returncode == 0:
            print("$WIN", command)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(command, error)
"""
    )


@attack(stock="it has the grader's rights already: nothing to escape from")
def kernel_interfaces():
    """Calls what kernel holes are usually found in: bpf, io_uring, userfaultfd, keys, perf."""
    return (
        _LIBC
        + """
for name, number, args in (
    ("bpf", 321, (0, 0, 0)), ("io_uring_setup", 425, (1, 0)), ("userfaultfd", 323, (0,)),
    ("add_key", 248, (0, 0, 0, 0, 0)), ("perf_event_open", 298, (0, 0, -1, -1, 0)),
    ("memfd_secret", 447, (0,)), ("kexec_load", 246, (0, 0, 0, 0)), ("ptrace", 101, (0, 0, 0, 0)),
):
    result = libc.syscall(number, *args)
    print(name, result, os.strerror(ctypes.get_errno()))
    if result >= 0 or ctypes.get_errno() not in (1, 38):
        print("$WIN", name)
"""
    )


@attack(stock="it has no filter to go round")
def other_call_numbers():
    """Goes round the filter with the x32 numbers of the system calls."""
    return """
import os
pid = os.fork()
if pid == 0:
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(0x40000000 + 272, 0x10000000)
    os._exit(7)
print(os.waitpid(pid, 0)[1], "(7 would mean that the call came back)")
"""


@attack()
def lift_the_limits():
    """Raises its resource limits and its priority."""
    return """
import os, resource
for name in ("RLIMIT_NPROC", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_CPU"):
    number = getattr(resource, name)
    try:
        resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if resource.getrlimit(number)[1] == resource.RLIM_INFINITY:
            print("$WIN lifted", name)
    except (ValueError, OSError) as error:
        print(name, error)
try:
    os.nice(-10)
    print("$WIN nice")
except OSError as error:
    print(error.strerror)
"""


@attack(stock="it reads them, and needs no trick")
def kernel_settings():
    """Writes kernel settings and raw devices."""
    return """
import os, glob
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
             "/proc/self/oom_score_adj", "/sys/kernel/uevent_helper", "/dev/mem", "/dev/vda", "/dev/sda"):
    try:
        with open(path, "r+") as file:
            if path.endswith("oom_score_adj"):
                file.write("-1000")
                file.flush()
            print("$WIN opened", path)
    except OSError as error:
        print(path, error.strerror)
"""
