"""Does the command line find its command, whatever the options are called?"""

import pytest

from autograder import __main__ as cli


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
