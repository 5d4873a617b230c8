"""Reads what a student handed in, and repairs what accidents did to it."""

from autograder.ingest.decode import Unreadable, decode
from autograder.ingest.model import Ingested, Submission
from autograder.ingest.repair import repair
from autograder.ingest.submission import REFUSED, open_submission

__all__ = ["REFUSED", "Ingested", "Submission", "Unreadable", "decode", "open_submission", "repair"]
