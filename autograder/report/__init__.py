"""The report on a class: scores, checkpoints, misconceptions in words, suspect checks."""
