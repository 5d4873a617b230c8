"""The trusted side of the course: nothing in this package is ever released to students."""
