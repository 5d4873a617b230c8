"""Does the command line find its command, whatever the options are called?"""

import subprocess
import sys

import pytest

from autograder import __main__ as cli
from tests.conftest import ROOT


def test_an_option_with_the_name_of_a_command_is_no_command(tmp_path, capsys, monkeypatch):
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["--root", "demo", "grade", "no-such-assignment"]) == 2
    assert "no-such-assignment" in capsys.readouterr().err


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit):
        cli.main(["grad"])
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([name, "--help"])
    assert stop.value.code == 0
    assert cli.COMMANDS[name][1].split()[0] in capsys.readouterr().out


@pytest.mark.parametrize(("first", "loaded"), [("import autograder.__main__", False), ("", True)])
def test_no_start_waits_for_a_grammar_that_nothing_uses(first, loaded):
    code = f"{first}\nimport sys, nbformat\nprint(bool(sys.modules.get('rfc3987_syntax')))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == [str(loaded)], done.stderr
