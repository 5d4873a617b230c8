"""Run notebooks in processes of their own, and get data back: see `Executor`."""

from .client import Executed, Executor, Kernel
from .limits import Limits
from .wire import Foreign, MalformedMessage, Opaque, Outcome, Raised, Strided

__all__ = [
    "Executed",
    "Executor",
    "Foreign",
    "Kernel",
    "Limits",
    "MalformedMessage",
    "Opaque",
    "Outcome",
    "Raised",
    "Strided",
]
