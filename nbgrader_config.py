"""What this course sets for nbgrader and formgrader. The steps themselves are in `autograder/`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
# nbgrader starts `alembic` through PATH, also where this environment was not activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.course_id = "attention"
# nbgrader copies what students hand in beside their notebooks into autograded/ and feedback/; no pages of theirs.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "feedback",
    "*.htm*",
    "*.xhtml",
    "*.svg",
    "*.js",
]

# The repository that the "Open in Colab" links name: the students' one, made by `make publish`.
c.EmbedHelper.colab_repository = "example-university/attention-students"

c.GenerateAssignment.preprocessors = [
    "autograder.nbgrader_steps.RequireCheckedGrader",
    "autograder.nbgrader_steps.EmbedHelper",
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ClearSolutions",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
    "autograder.nbgrader_steps.StableNotebook",
]

c.Autograde.pre_convert_hook = "autograder.nbgrader_steps.before_autograde"
c.Autograde.sanitize_preprocessors = [
    "autograder.nbgrader_steps.IngestSubmission",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "autograder.nbgrader_steps.GradeByEvidence",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.post_convert_hook = "autograder.nbgrader_steps.after_autograde"

# formgrader shows a submission as the student wrote it: without this its scripts would run there.
c.HTMLExporter.preprocessors = ["autograder.feedback.inert.InertNotebook"]
c.GenerateFeedback.exporter_class = "autograder.feedback.exporter.FeedbackExporter"
c.ExportApp.plugin_class = "autograder.lms.export.CourseExport"
