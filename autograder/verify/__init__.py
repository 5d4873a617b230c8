"""From a student's notebook to verdicts: what is asked of the kernel, and how the answers are judged."""
