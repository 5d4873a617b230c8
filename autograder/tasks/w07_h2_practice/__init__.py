"""The independent practice of W07 H2: ten functions, recorded experiments, transfer, a question in words."""

from __future__ import annotations

from autograder.tasks.model import AssignmentTasks, NotebookTasks
from autograder.tasks.w07_h2_practice import (
    accepts,
    attention,
    causal_mask,
    entropy,
    experiments,
    mha_mask,
    padding_mask,
    remove_key,
    scaled_scores,
    softmax,
    torch_attention,
)

ASSIGNMENT = AssignmentTasks(
    name="w07-h2-practice",
    title="W07 H2: Attention, independent practice",
    notebooks=(
        NotebookTasks(
            "1-attention",
            (scaled_scores.TASK, softmax.TASK, attention.TASK, accepts.TASK),
        ),
        NotebookTasks("2-masks", (causal_mask.TASK, padding_mask.TASK, mha_mask.TASK)),
        NotebookTasks(
            "3-experiments",
            (
                entropy.TASK,
                experiments.TEMPERATURE,
                experiments.IDENTICAL,
                experiments.LARGE,
                remove_key.TASK,
                torch_attention.TASK,
                experiments.CAPTIONS,
                experiments.SEARCH,
                experiments.WORDS,
            ),
        ),
    ),
)
