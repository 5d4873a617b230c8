"""The machine that a table was made on, in one line."""

from __future__ import annotations

import os
import platform


def machine() -> str:
    """Cores, kernel, Python and user; nothing that names the machine."""
    who = "root" if hasattr(os, "geteuid") and os.geteuid() == 0 else "a user"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    release = ".".join(platform.release().split("-")[0].split(".")[:2])
    return (
        f"{cores} cores, {platform.system()} {release} ({platform.machine()}), "
        f"Python {platform.python_version()}, as {who}"
    )
