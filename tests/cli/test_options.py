"""Each option has one meaning in all commands, outputs are never replaced silently, and help fits on a screen."""

import argparse
from collections import defaultdict
from pathlib import Path

import pytest

from torsor.cli.main import COMMANDS, GROUPS, _parser, main
from torsor.cli.options import SHARED

# The first words of the help of options that several commands have, and that are declared in one place of the code.
ELSEWHERE = {
    "--help": "show this help",
    "--help-all": "show all options",
    "--base": "type of the root link",
    "--strict": "turn warnings about the robot file into errors",
    "--snap": "round angles",
    "--search": "folder with packages",
    "--xacro": "argument of a .xacro file",
    "--q": "joint positions",
    "--v": "joint velocities",
    "--states": "table of states",
}
DIFFERENT = ("--to",)  # a file format, or the place of a box: each is the natural word in its command
LINES, COLUMNS = 40, 80  # of the help of a command
FEW_LINES = 24  # of most commands


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all commands."""
    actions = _parser("completion")._actions
    return dict(next(action.choices for action in actions if isinstance(action, argparse._SubParsersAction)))


def test_an_option_has_one_meaning_in_all_commands() -> None:
    owners = defaultdict(list)
    for command, parser in parsers().items():
        for action in parser._actions:
            if action.option_strings:
                owners[action.option_strings[-1]].append((command, action))
    meanings = {flag: text for flag, (_, text) in SHARED.items()} | ELSEWHERE
    for flag, uses in owners.items():
        if flag in DIFFERENT or (len(uses) == 1 and flag not in SHARED):
            continue
        assert flag in meanings, f"{flag} is used by {[command for command, _ in uses]}, but not declared as shared"
        for command, action in uses:
            assert str(action.help).startswith(meanings[flag]), f"{flag} of {command}: {action.help}"
        if flag not in ("--output", "--target"):  # a folder of figures; a place, or the position of a hand
            assert len({action.metavar for _, action in uses}) == 1, f"{flag} has several metavars"
    assert "--version" not in owners, "torsor --version prints the version"
    assert set(SHARED) <= set(owners), "all shared options are in use"
    assert all(action.option_strings == ["-o", "--output"] for _, action in owners["--output"])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_on_a_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="0"):
            main([name, flag])
        texts[flag] = capsys.readouterr().out.splitlines()
        examples = [line for line in texts[flag] if line.startswith("  torsor ")]
        assert max(len(line) for line in texts[flag] if line not in examples) <= COLUMNS
    assert len(texts["--help"]) <= LINES
    options = {action.option_strings[-1] for action in parsers()[name]._actions if action.option_strings}
    assert all(any(option in line for line in texts["--help-all"]) for option in options)


def test_most_help_takes_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for name in COMMANDS:
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        counts.append(len(capsys.readouterr().out.splitlines()))
    assert sum(count <= FEW_LINES for count in counts) > len(COMMANDS) / 2


def test_commands_are_listed_in_groups_with_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    assert len(GROUPS) == 4 and all(f"{title}:" in lines for title in GROUPS)
    assert all(sum(line.startswith(f"  {name} ") for line in lines) == 1 for name in COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        "dynamics two_link --output x.csv",
        "kinematics two_link --output x.npz",
        "equations two_link gravity_force -o x.tex",
        "simulate two_link --duration 0.002 -o x.npz",
        "simulate two_link --duration 0.002 --plot x.png",
        "info two_link --json x.json",
        "info two_link --report x.html",
        "view two_link -o x.html",
        "convert two_link x.urdf",
        "demo -o x.png",
    ],
)
def test_files_are_replaced_with_force_only(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(next(word for word in arguments.split() if word.startswith("x.")))
    path.write_text("kept")
    assert main(arguments.split()) == 1
    assert capsys.readouterr().err == f"error: {path}: the file exists; fix: --force replaces it\n"
    assert path.read_text() == "kept"
    assert main([*arguments.split(), "--force"]) == 0
    assert path.read_bytes() != b"kept"
