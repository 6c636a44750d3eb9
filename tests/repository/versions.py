"""Versions of the packages that Torsor needs: the lock file, and tests with the lowest and the newest ones.

    python tests/repository/versions.py lock    # make lock: writes constraints.txt
    python tests/repository/versions.py test    # make test-versions

All environments are temporary and outside of the clone; packages come from the index that pip is set up with.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOCKED = "dev,docs"  # the extras that `make` installs, with what they include
# Wheels for these are checked by `lock`; newer tags include what older ones allow.
PLATFORMS = {
    machine: [f"manylinux_2_{minor}_{machine}" for minor in (34, 28, 27, 24, 17)] + [f"manylinux2014_{machine}"]
    for machine in ("x86_64", "aarch64")
}
TOOLS = ("pytest", "hypothesis", "mpmath")
# About a minute: the core, and a file for each optional package.
SELECTION = (
    "tests/compiler/test_fusion.py",
    "tests/robot/test_machine_code.py",
    "tests/spatial",
    "tests/dynamics/laws/test_parameters.py",
    "tests/formats/test_closures_yaml.py",
    "tests/formats/test_usd_surfaces.py",
    "tests/formats/test_xacro.py",
    "tests/human/recordings/test_c3d.py",
    "tests/view/test_mesh_colors.py",
)


def requirements(extras: tuple[str, ...] = ()) -> list[Requirement]:
    """Return the dependencies of the project and of some extras, with those that the extras include."""
    texts = list(PROJECT["dependencies"])
    for extra in extras:
        texts += PROJECT["optional-dependencies"][extra]
    found, seen = [], set(extras)
    for each in map(Requirement, texts):
        if each.name == PROJECT["name"]:
            found += [more for more in requirements(tuple(sorted(each.extras - seen))) if more not in found]
            seen |= each.extras
        elif each not in found:
            found.append(each)
    return found


def runtime_extras(kind: str) -> tuple[str, ...]:
    """Return the extras of users that the development environment includes.

    No version of coal can be installed with the lowest NumPy: through Boost it needs NumPy 2.2.
    """
    own = [Requirement(each) for each in PROJECT["optional-dependencies"]["dev"]]
    found = set().union(*(each.extras for each in own if each.name == PROJECT["name"]))
    return tuple(sorted(found - ({"collision"} if kind == "lowest" else set())))


def pythons() -> dict[str, Path]:
    """Return the Pythons that are installed, on PATH or by pyenv, {"3.11": program}."""
    candidates: dict[str, list[Path]] = {version: [] for version in PYTHONS}
    for version in PYTHONS:
        if program := shutil.which(f"python{version}"):
            candidates[version].append(Path(program))
    if pyenv := shutil.which("pyenv"):
        for name in run([pyenv, "versions", "--bare", "--skip-aliases"]).split():
            if (short := ".".join(name.split(".")[:2])) in candidates:
                candidates[short].append(Path(run([pyenv, "prefix", name]).strip(), "bin", "python"))
    return {
        version: next(program for program in programs if _runs(program, version))
        for version, programs in candidates.items()
        if any(_runs(program, version) for program in programs)
    }


def _runs(program: Path, version: str) -> bool:
    """Whether a program is that Python; one that pyenv puts on PATH may only say that it is not active."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.startswith(f"Python {version}.")


def run(command: list[str | Path]) -> str:
    """Return what a command writes to its standard output; end with its messages if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def environment(program: Path, folder: Path) -> Path:
    """Create a virtual environment with the newest pip; return its Python."""
    run([program, "-m", "venv", folder])
    python = next(each for each in (folder / "bin/python", folder / "Scripts/python.exe") if each.exists())
    run([python, "-m", "pip", "install", "--quiet", "--upgrade", "pip"])
    return python


# ----------------------------------------------------------------------------------------------------- lock file


def resolved(python: Path, folder: Path, *options: str | Path) -> dict[str, str]:
    """Return the versions, by name, that pip would install for the extras of the development environment."""
    report, target = folder / "report.json", f"{ROOT}[{LOCKED}]"
    dry: list[str | Path] = ["--dry-run", "--ignore-installed", "--quiet", "--only-binary", ":all:", "--report", report]
    run([python, "-m", "pip", "install", *dry, *options, target])
    found = (each["metadata"] for each in json.loads(report.read_text(encoding="utf-8"))["install"])
    versions = {str(canonicalize_name(each["name"])): each["version"] for each in found}
    del versions[PROJECT["name"]]
    return versions


def write_lock(versions: dict[str, str]) -> None:
    """Write the constraints file."""
    head = f"# Exact versions of all that `.[{LOCKED}]` installs: `make` installs them, `make lock` updates them.\n"
    LOCK.write_text(head + "".join(f"{name}=={versions[name]}\n" for name in sorted(versions)), encoding="utf-8")


def lock() -> None:
    """Write the newest versions that the oldest Python of the project can have, and check that others have them too."""
    found = pythons()
    if PYTHONS[0] not in found:
        raise SystemExit(f"Python {PYTHONS[0]} is not installed: the lock file is made with the oldest Python")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = environment(found[PYTHONS[0]], folder / "venv")
        versions = resolved(python, folder)
        write_lock(versions)
        print(f"{LOCK.name}: {len(versions)} packages, resolved with Python {PYTHONS[0]}")
        failed = False
        for machine, tags in PLATFORMS.items():
            for version in PYTHONS:
                lacking = _without_wheel(python, folder, versions, version, tags)
                failed |= bool(lacking) and version != PYTHONS[-1]  # not all have wheels for the newest Python
                print(f"Python {version}, {machine}: without a wheel: {', '.join(lacking) or 'none'}", flush=True)
    if failed:
        raise SystemExit("some versions have no wheel: require another one in pyproject.toml, or build from source")


def _without_wheel(python: Path, folder: Path, versions: dict[str, str], version: str, tags: list[str]) -> list[str]:
    """Return the locked packages without a wheel for a Python and a platform."""
    common: list[str | Path] = ["--quiet", "--no-deps", "--dry-run", "--ignore-installed", "--target", folder / "none"]
    # Some packages leave out early patch releases of a Python.
    place = ["--only-binary", ":all:", "--python-version", f"{version}.7", *(f"--platform={tag}" for tag in tags)]
    command = [python, "-m", "pip", "install", *common, *place]
    whole, lacking = [f"{name}=={number}" for name, number in versions.items()], list[str]()
    while (done := subprocess.run([*command, *whole], capture_output=True, text=True)).returncode:
        match = re.search(r"No matching distribution found for (\S+)", done.stderr)
        if match is None or match[1] not in whole:
            raise SystemExit(done.stderr[-4000:])
        lacking.append(match[1])
        whole.remove(match[1])
    return lacking


# ------------------------------------------------------------------------------------------ lowest and newest versions


def lowest(python: Path) -> Iterator[str]:
    """Yield the lowest version of each dependency that pyproject.toml allows and this Python has a wheel of."""
    for each in requirements(runtime_extras("lowest")):
        if each.marker is not None and not each.marker.evaluate():
            continue
        listing = run([python, "-m", "pip", "index", "versions", "--only-binary", ":all:", each.name])
        match = re.search(r"Available versions: (.*)", listing)
        offered = [Version(text) for text in match[1].split(", ")] if match else []
        allowed = sorted(each.specifier.filter(offered))
        if not allowed:
            raise SystemExit(f"{each}: there is no wheel for {python}")
        yield f"{each.name}=={allowed[0]}"


def tried(program: Path, kind: str, folder: Path) -> bool:
    """Run the selection in a new environment with the "lowest" or the "newest" versions; return whether it passes."""
    python = environment(program, folder / "venv")
    pins = folder / "pins.txt"
    pins.write_text("\n".join(lowest(python)) if kind == "lowest" else "")
    print(pins.read_text().replace("\n", ", "), flush=True)
    extras = ",".join(runtime_extras(kind))
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--prefer-binary", "--constraint", pins]
    done = subprocess.run([*install, *TOOLS, "--editable", f"{ROOT}[{extras}]"])
    if done.returncode:
        return False
    options = ["-x", "-m", "not slow", "-p", "no:cacheprovider", "-W", "default"]
    cache = os.environ | {"TORSOR_CACHE": str(folder / "kernels"), "PYTHONDONTWRITEBYTECODE": "1"}
    return not subprocess.run([python, "-m", "pytest", *options, *SELECTION], cwd=ROOT, env=cache).returncode


def test(only: list[str]) -> None:
    """Try all installed Pythons, or those that are named, such as 3.11 or 3.11-lowest."""
    results: dict[str, bool] = {}
    for version, program in pythons().items():
        for kind in ("lowest", "newest"):
            name = f"{version}-{kind}"
            if only and version not in only and name not in only:
                continue
            print(f"\nPython {version} with the {kind} versions", flush=True)
            with tempfile.TemporaryDirectory() as place:
                results[name] = tried(program, kind, Path(place))
    print(*(f"{name}: {'passed' if passed else 'FAILED'}" for name, passed in results.items()), sep="\n")
    if not results or not all(results.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["lock"]:
        lock()
    elif sys.argv[1:2] == ["test"]:
        test(sys.argv[2:])
    else:
        raise SystemExit(__doc__)
