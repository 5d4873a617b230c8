"""Feedback pages: the student's work and what was found, safe to open anywhere."""
