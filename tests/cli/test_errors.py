"""A user error prints one line and exits with status 1; a bug in Torsor prints a traceback and exits with status 70."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import torsor
from torsor import AssemblyError, ModelError, MotionError, SimulationError
from torsor.base.errors import missing
from torsor.base.figures import shown_figure
from torsor.base.files import check_target, replacing
from torsor.base.progress import Bar
from torsor.cli.main import main
from torsor.cli.outputs import check_folder
from torsor.view import plot_motion


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Run a command that raises an internal error, and return the exit status."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("torsor.cli.info.load_robot", fail)
    return main(["info", "two_link"])


@pytest.mark.parametrize(
    "error",
    [
        ModelError("mass is -1"),
        AssemblyError("the loop stays open"),
        FileNotFoundError(2, "No such file or directory", "arm.urdf"),
        PermissionError(13, "Permission denied", "/home/arm.urdf"),
        OSError(28, "No space left on device"),
        missing("figures need matplotlib", "plot"),
    ],
)
def test_mistakes_of_the_user_are_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, error) == 1
    assert capsys.readouterr().err == f"error: {error}\n"


def conflict() -> MotionError:
    error = MotionError("no motion")
    error.conflict = ("Torques",)
    return error


@pytest.mark.parametrize(
    ("error", "status"), [(conflict(), 3), (SimulationError("too fast"), 3), (MotionError("no motion was found"), 4)]
)
def test_what_has_no_result_has_statuses_of_its_own(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, error) == status
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("operands could not be broadcast together"),
        KeyError("tau"),
        ZeroDivisionError("division by zero"),
        RuntimeError("CasADi failed"),
        AssertionError(),
        ModuleNotFoundError("No module named 'torsor.gone'", name="torsor.gone"),
        OSError("cannot load library"),
        FileNotFoundError(2, "No such file", str(Path(sys.modules["torsor"].__path__[0]) / "data.json")),
    ],
)
def test_internal_errors_are_no_mistake_of_the_user(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(monkeypatch, error) == 70
    shown = capsys.readouterr().err
    assert shown.startswith(f"internal error: {type(error).__name__}") and "Please report it" in shown
    assert "Traceback (most recent call last)" not in shown and "--debug" in shown
    assert not any(line.startswith("error: ") for line in shown.splitlines())


def test_an_internal_error_of_export_is_no_mistake_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr("torsor.export.source.export_c", fail)
    monkeypatch.chdir(tmp_path)
    assert main(["export", "two_link", "c"]) == 70


def test_ctrl_c_has_its_own_status(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(monkeypatch, KeyboardInterrupt()) == 130
    assert "stopped by Ctrl-C" in capsys.readouterr().err


def test_a_stopped_simulation_writes_what_it_has_and_has_the_status_of_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stopped(self: Bar, t: float) -> None:
        if t > 2.0:
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "at", stopped)
    output = tmp_path / "motion.npz"
    assert main(["simulate", "two_link", "--duration", "9", "-o", str(output)]) == 130
    saved = torsor.load_result(output)
    assert saved.status == "interrupted" and 2.0 < saved.times[-1] < 8.0


@pytest.mark.parametrize("arguments", [["dance"], ["info"], ["info", "two_link", "--colour", "red"]])
def test_a_wrong_command_line_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2 and "usage: torsor" in capsys.readouterr().err


def test_without_a_command_the_commands_are_listed_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: torsor" in "".join(capsys.readouterr())


def test_a_path_that_is_taken_is_the_users_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert main(["export", "two_link", str(tmp_path / "taken")]) == 1
    assert capsys.readouterr().err.startswith("error: ")


LOCKED = Path("/proc")  # a folder in which nobody can write, not even root


@pytest.mark.skipif(not (LOCKED / "self").exists(), reason="this system has no such folder")
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["predict", "two-link-time", "--json"], "x.json"),
        (["predict", "two-link-time", "--output"], "x.csv"),
        (["predict", "two-link-time", "-o"], "x.npz"),
        (["predict", "two-link-time", "--plot"], "x.png"),
        (["simulate", "two_link", "--output"], "x.csv"),
        (["reproduce", "--all", "--report"], "x.md"),
        (["reproduce", "--all", "--report"], "x.html"),
        (["reproduce", "--all", "--output"], ""),
        (["reproduce", "--errata"], "x.md"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_computed(
    arguments: list[str], place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for work in ("predict._options_of", "simulate.simulate", "reproduce._computed"):
        monkeypatch.setattr(f"torsor.cli.{work}", lambda *_, **__: pytest.fail("it is computed"))
    path = LOCKED / place
    assert main([*arguments, str(path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}: it cannot be written (") and said.endswith("; fix: choose another place\n")


def test_a_check_of_an_output_leaves_files_and_folders_as_they_are(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("{}")
    for path in (kept, tmp_path / "new.json"):
        check_target(path)
    for folder in (tmp_path, tmp_path / "new"):
        check_folder(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"] and kept.read_text() == "{}"


def test_the_folder_of_the_figures_of_a_report_must_not_be_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page").write_text("")
    assert main(["reproduce", "--all", "--report", str(tmp_path / "page.md")]) == 1
    assert "page: this is a file; allowed: a folder" in capsys.readouterr().err


def test_a_file_that_cannot_be_replaced_is_named_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x.md"
    with pytest.raises(FileNotFoundError) as caught, replacing(path) as part:
        part.write_text("")
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("name", ["broken.urdf", "broken.xml", "broken.toml"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00broken", b"<robot", b"<robot/>", b"a = ["])
def test_a_broken_file_is_the_users_mistake(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    for command in ("info", "predict"):
        assert main([command, str(tmp_path / name)]) == 1
        assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "two_link", "--duration", "-1"], "two_link: --duration is -1.0;"),
        (["simulate", "two_link", "--step", "nan"], "--step is nan;"),
        (["simulate", "two_link", "--q0", "nan", "0"], "q0"),
        (["simulate", "two_link", "--v0", "1e400", "0"], "v0"),
        (["simulate", "two_link", "--tau", "-1e-3"], "--tau has 1 number; allowed: 2"),
        (["simulate", "two_link", "--plot", "arm.gif2"], "the suffix is '.gif2'"),
        (["simulate", "two_link", "--output", "arm.txt"], "the suffix is '.txt'; allowed: .npz, .csv"),
        (["cache", "--json", "no/such/folder.json"], "its folder does not exist"),
        (["export", "two_link", "c", "--name", "a b"], "--name is 'a b'; allowed: letters"),
    ],
)
def test_values_of_options_are_the_users_mistakes(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and words in shown


def test_python_m_torsor_prints_help_without_heavy_imports() -> None:
    inside = (
        "import runpy, sys; sys.argv = ['torsor', '--help']\n"
        "try: runpy.run_module('torsor', run_name='__main__')\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "print(sorted({'matplotlib', 'scipy', 'mujoco', 'jax', 'torch', 'numpy', 'rich'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", inside], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"
    for command in ("info", "count", "simulate", "predict", "export", "cache", "demo"):
        assert f"\n  {command} " in shown


def test_figures_without_matplotlib_name_the_extra_by_one_kind_of_error(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = [each for each in sys.modules if each.split(".")[0] == "matplotlib"]
    shown_figure.cache_clear()
    for name in [*loaded, "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    arm, state = torsor.library.two_link(), np.zeros((3, 2))
    for draw in (
        lambda: plot_motion(arm, [0, 1, 2], state, state, state, "arm.png"),
        lambda: torsor.human.draw(torsor.library.human()),
    ):
        with pytest.raises(ImportError, match=r'need matplotlib; fix: pip install "torsor\[plot\]"'):
            draw()


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "casadi":
            raise KeyboardInterrupt

sys.argv[:] = ["{command}", "info", "two_link"]
sys.meta_path.insert(0, Interrupt())
import torsor
torsor.Robot
"""


def test_ctrl_c_while_the_command_is_imported_ends_in_words() -> None:
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(command="/usr/bin/torsor")], capture_output=True, text=True
    )
    assert (found.returncode, found.stderr) == (130, "stopped by Ctrl-C before there was a result\n")
    other = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(command="mine.py")], capture_output=True, text=True
    )
    assert "Traceback" in other.stderr  # programs that import Torsor keep what they have


def shown_help(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the exit statuses that the full help of a command lists."""
    with pytest.raises(SystemExit):
        main([command, "--help-all"])
    lines = capsys.readouterr().out.partition("exit status:")[2].splitlines()[1:]
    return [line.split()[0] for line in lines if line[2] != " "]


def test_help_lists_the_exit_statuses_that_can_occur(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("info", "cache", "count", "export"):
        assert shown_help(command, capsys) == ["0", "1", "2", "70", "130"]
    assert shown_help("simulate", capsys) == ["0", "1", "2", "3", "70", "130"]
    assert shown_help("predict", capsys) == ["0", "1", "2", "3", "4", "5", "70", "130"]


def test_messages_name_options_not_arguments_of_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "lift", "--tie-break"]) == 1
    shown = capsys.readouterr().err
    assert "--tie-break" in shown and "tie_break" not in shown
    assert main(["export", "four_bar", str(tmp_path), "--names", "mass_matrix"]) == 1
    shown = capsys.readouterr().err
    assert "robot.open_tree() cuts" in shown and "loops=" not in shown
