"""`make bench`: what grading a class costs, beside stock nbgrader on the same submissions in the same run."""
