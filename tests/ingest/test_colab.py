"""Lines that only work elsewhere: made harmless, kept readable, told."""

import pytest

from autograder.ingest.colab import rewrite


@pytest.mark.parametrize(
    "line",
    [
        "%pip install einops",
        "!pip install -q einops",
        "!pip3 install einops",
        "! pip install einops",
        "!python -m pip install einops",
        "!{sys.executable} -m pip install einops",
        "%conda install einops",
        "!apt-get install graphviz",
        "%cd /content/drive/MyDrive",
        "%matplotlib qt",
        "%reset -f",
        "%matplotlib notebook",
        "from google.colab import drive",
        "from google.colab import files, output as out",
        "import google.colab",
        "import google.colab.files as gf",
        "from google import colab",
        "import os; os.chdir('/content/drive/MyDrive')",
        "import matplotlib; matplotlib.use('TkAgg')",
        "import matplotlib.pyplot as plt\nplt.switch_backend('Qt5Agg')",
    ],
)
@pytest.mark.parametrize("indent", [False, True])
def test_the_rest_of_the_cell_still_runs(line, indent):
    head = "if True:\n" if indent else ""
    pad = "    " if indent else ""
    source = head + "\n".join(pad + part for part in line.split("\n")) + "\nvalue = 4"
    new, found = rewrite(source)
    assert len(found) == 1
    names = {}
    exec(new.replace("%matplotlib inline", "pass"), names)
    assert names["value"] == 4
    assert new.count("\n") == source.count("\n")


def test_a_drive_mount_does_nothing():
    new, _ = rewrite("from google.colab import drive\ndrive.mount('/content/drive')\nok = 1")
    names = {}
    exec(new, names)
    assert names["ok"] == 1
    assert "# left out when grading: from google.colab import drive" in new


def test_continued_lines_go_together():
    new, _ = rewrite("!pip install \\\n   einops \\\n   torch\nx = 1")
    names = {}
    exec(new, names)
    assert names["x"] == 1


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import google.colab\n    IN = True\nexcept ImportError:\n    IN = False",
        "x = 1",
        "text = '''\n!pip install x\n'''",
        "import matplotlib.pyplot as plt\nplt.style.use('ggplot')\n%matplotlib inline",
        "import os\nos.chdir('data')",
        "pip = 3\nconda = pip % 2",
        "google = 'a search engine'",
        "this is not python, pip or google",
    ],
)
def test_other_lines_stay(source):
    assert rewrite(source) == (source, [])
