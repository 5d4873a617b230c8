"""A system-call filter for students' processes, written as BPF by hand: no library is needed.

It refuses what a notebook never needs and what kernel holes are usually reached through: other namespaces,
mounts, tracing, keys, modules, io_uring, bpf, System V memory, and every socket family but AF_UNIX. All
else stays allowed, so that numpy, torch, matplotlib and subprocesses work as anywhere. The namespaces and
the lost privileges are what isolates; this makes the kernel's surface smaller.
"""

from __future__ import annotations

import ctypes
import errno
import platform

# name: (x86_64, aarch64); None where the machine has no such call
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "lookup_dcookie": (212, 18),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_IOCTL = (16, 29)
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_AF_UNIX = 1

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def supported() -> bool:
    """Whether the numbers of this machine's system calls are known here."""
    return platform.machine() in _MACHINES


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter as (code, jump if true, jump if false, k)."""
    arch, column = _MACHINES[machine]
    refuse = _ERRNO | errno.EPERM
    code = [(_LOAD, 0, 0, _ARCH), (_JEQ, 1, 0, arch), (_RETURN, 0, 0, _KILL)]
    code.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":  # the x32 interface numbers the calls anew
        code += [(_JGE, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]
    for numbers in _REFUSED.values():
        if numbers[column] is not None:
            code += [(_JEQ, 0, 1, numbers[column]), (_RETURN, 0, 0, refuse)]
    # glibc falls back to clone, whose flags can be seen, when clone3 is not there
    code += [(_JEQ, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    code += [
        (_JEQ, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _ARG0),
        (_JSET, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for call in (_SOCKET, _SOCKETPAIR):
        code += [
            (_JEQ, 0, 4, call[column]),
            (_LOAD, 0, 0, _ARG0),
            (_JEQ, 1, 0, _AF_UNIX),
            (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
            (_RETURN, 0, 0, _ALLOW),
        ]
    code += [
        (_JEQ, 0, 5, _IOCTL[column]),
        (_LOAD, 0, 0, _ARG1),
        (_JEQ, 2, 0, _TERMINAL_INPUT[0]),
        (_JEQ, 1, 0, _TERMINAL_INPUT[1]),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return code


def build():
    """The filter of this machine in the kernel's format; keep it until `install`."""
    code = program(platform.machine())
    instructions = (_Instruction * len(code))(*[_Instruction(*line) for line in code])
    return _Program(len(code), instructions)


def install(libc, filter_) -> None:
    """Put the filter on the calling thread for good (no_new_privs must be set)."""
    if libc.prctl(22, 2, ctypes.byref(filter_), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "the system-call filter was refused")
