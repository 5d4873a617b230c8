"""Attention mechanism: Bahdanau and Luong, many heads, a bottleneck measured, weights as explanation."""

from __future__ import annotations

from autograder.tasks.attention_mechanism import (
    additive_attention,
    bahdanau_decoder,
    diagnose_shapes,
    dot_attention,
    experiments,
    general_attention,
    masked_softmax,
    multi_head_general,
)
from autograder.tasks.model import AssignmentTasks, NotebookTasks

ASSIGNMENT = AssignmentTasks(
    name="attention-mechanism",
    title="Attention mechanism: the breakthrough",
    notebooks=(
        NotebookTasks(
            "1-additive-and-luong",
            (
                additive_attention.TASK,
                dot_attention.TASK,
                general_attention.TASK,
                experiments.MOVED_STATE,
            ),
            minutes=20,
        ),
        NotebookTasks(
            "2-padding-and-heads",
            (
                masked_softmax.TASK,
                multi_head_general.TASK,
                experiments.MASK_POLARITY,
                diagnose_shapes.TASK,
            ),
            minutes=15,
        ),
        NotebookTasks("3-copy-task", (bahdanau_decoder.TASK, experiments.COPY_TRAINED), minutes=30),
        NotebookTasks(
            "4-is-it-an-explanation", (experiments.MASKED_OUT, experiments.WORDS), minutes=10
        ),
    ),
    evidence="artifacts/attention-mechanism.json",
)
