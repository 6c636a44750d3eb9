"""The C sources of FMUs compile without a warning, behave well with a hostile importer, and link side by side."""

import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import torsor

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")

ARM = torsor.library.two_link()
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
DRIVERS = Path(__file__).parent / "drivers"
COUNTED = "-Wl,--wrap=malloc,--wrap=calloc"


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sources(folder: Path, version: int, robot: torsor.Robot = ARM, inverse: bool = False) -> list[Path]:
    (path,) = torsor.export.fmi(
        robot, folder / "a.fmu", ["joint_wrenches", "kinetic_energy"], version, inverse, ["links.0.mass"], binary=False
    )
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return sorted((folder / "sources").glob("*.c"))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("options", [[], pytest.param(SANITIZED, marks=pytest.mark.slow)], ids=["plain", "sanitized"])
def test_an_importer_that_does_everything(version: int, options: list[str], tmp_path: Path) -> None:
    files, driver = sources(tmp_path, version), DRIVERS / f"fmi{version}_driver.c"
    program, counted = tmp_path / "driver", [COUNTED] if version == 3 else []
    run("gcc", *STRICT, *options, *counted, "-I", files[0].parent, *files, driver, "-o", program, "-lm")
    assert run(program) == "done\n"


@pytest.mark.parametrize("version", [2, 3])
def test_inverse_dynamics_compile_without_a_warning(version: int, tmp_path: Path) -> None:
    run("gcc", *STRICT, "-fsyntax-only", *sources(tmp_path, version, inverse=True))


@pytest.mark.slow
def test_closed_loops_compile_without_a_warning_and_run_under_sanitizers(tmp_path: Path) -> None:
    belt = ARM.with_coupling("belt", {"joint1": 1.0, "joint2": -2.0})
    files, program = sources(tmp_path, 3, belt), tmp_path / "driver"
    run("gcc", *STRICT, "-O2", *SANITIZED, "-I", files[0].parent, *files, DRIVERS / "loops.c", "-o", program, "-lm")
    assert run(program) == "done\n"


@pytest.mark.slow
def test_two_fmus_link_into_one_program(tmp_path: Path) -> None:
    main, objects = "int puts(const char *);\n", []
    for name in ("one", "model"):  # the second is the name of a file of the sources
        (folder := tmp_path / name).mkdir()
        for file in sources(folder, 3, replace(ARM, name=name)):
            objects.append(folder / f"{file.stem}.o")
            run("gcc", *STRICT, f"-DFMI3_FUNCTION_PREFIX={name}_", "-c", file, "-o", objects[-1])
        main += f"const char *{name}_fmi3GetVersion(void);\n"
    main += "int main(void) { return puts(one_fmi3GetVersion()) < 0 || puts(model_fmi3GetVersion()) < 0; }\n"
    (tmp_path / "main.c").write_text(main)
    run("gcc", tmp_path / "main.c", *objects, "-o", tmp_path / "both", "-lm")
    assert run(tmp_path / "both") == "3.0\n3.0\n"
