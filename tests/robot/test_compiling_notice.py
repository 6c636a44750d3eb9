"""A slow first call shows on a terminal that it compiles; elsewhere nothing is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="terminals of this kind are those of POSIX systems")

CALL = """
import sys
import torsor, torsor.base.progress
torsor.base.progress.PATIENCE = 0.0
torsor.library.two_link().gravity_force([0.1, 0.2])
"""


def on_a_terminal(folder: Path) -> str:
    """What a first call prints to standard error if that is a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TORSOR_CACHE": str(folder), "TERM": "xterm"}
    subprocess.run([sys.executable, "-c", CALL], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the terminal is at its end
            break
        if not part:
            break
        found += part
    os.close(ours)
    return found.decode()


def test_a_first_call_on_a_terminal_says_that_it_compiles(tmp_path: Path) -> None:
    assert "compiling gravity_force (first time only)" in on_a_terminal(tmp_path)
    assert on_a_terminal(tmp_path) == ""  # the second process finds the code on disk


def test_a_first_call_without_a_terminal_is_silent(tmp_path: Path) -> None:
    environment = os.environ | {"TORSOR_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, env=environment, check=True)
    assert done.stderr == b"" and done.stdout == b""


LINES = """
import sys, time
import torsor.base.progress as progress
progress.LINE_PATIENCE = 0.2
progress.print_lines()
with progress.working("outer"):
    time.sleep(0.5)
    with progress.working("inner"):
        time.sleep(0.5)
    with progress.working("after a pause"):
        with progress.working("at once"):
            pass
"""


def test_the_command_line_prints_lines_with_pauses() -> None:
    done = subprocess.run([sys.executable, "-c", LINES], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["outer", "inner", "after a pause"] and done.stdout == ""
