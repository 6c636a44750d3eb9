"""The library of an FMU for this machine: C sources through the compiler of the system."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torsor.base.errors import ModelError

_COMPILERS = ("cc", "gcc", "clang")
_OPTIONS = ("-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-fvisibility=hidden")
# Names of a system in FMI 3 and 2, and the suffix of its libraries.
_SYSTEMS = {
    "linux": ("linux", "linux64", ".so"),
    "darwin": ("darwin", "darwin64", ".dylib"),
    "win32": ("windows", "win64", ".dll"),
}
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SOURCES_ONLY = "`binary=False` for the sources alone"
_SHOWN = 600  # characters of what the compiler says that an error shows


def library_path(identifier: str, fmi: int, where: str) -> str:
    """Return the path of the library of this machine within an FMU.

    FMI 2 has a name for the system and the size of a pointer only: linux64 may be either processor.
    """
    system, machine = _SYSTEMS.get(sys.platform), _MACHINES.get(platform.machine().lower())
    if system is None or machine is None:
        found, allowed = f"no name for {sys.platform} on {platform.machine()} in FMI", "Linux, macOS, Windows"
        raise ModelError(found, where=where, allowed=allowed, fix=_SOURCES_ONLY)
    name, name_2, suffix = system
    folder = name_2 if fmi == 2 else f"{machine}-{name}"
    return f"binaries/{folder}/{identifier}{suffix}"


def compiler(where: str) -> list[str]:
    """Return the command of the C compiler: that of the environment variable CC, or the first that is found."""
    try:
        given = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:  # a quotation mark that is not closed
        raise ModelError(f"CC is {os.environ['CC']!r}: {error}", where=where, allowed="a command") from None
    for each in given[:1] or _COMPILERS:
        if (found := shutil.which(each)) is not None:
            return [str(Path(found).absolute()), *given[1:]]
    what = f"CC names {given[0]!r}, which is not found" if given else "no C compiler is found"
    allowed = f"{', '.join(_COMPILERS)}, or the one that the environment variable CC names"
    fix = f"install one (Debian: apt install gcc; macOS: xcode-select --install), or {_SOURCES_ONLY}"
    raise ModelError(what, where=where, allowed=allowed, fix=fix)


def build_library(program: Sequence[str], folder: Path, texts: Mapping[str, str], where: str) -> bytes:
    """Return the shared library of C sources, which are written into a folder; ``program`` is the compiler."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii", newline="\n")
    library = folder / "library"
    sources = [name for name in texts if name.endswith(".c")]
    command = [*program, *_OPTIONS, *sources, "-o", library.name, "-lm"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        failed, said = done.returncode != 0, " ".join(done.stderr.split())[-_SHOWN:] or "it writes no library"
    except OSError as error:  # a file that is no program
        failed, said = True, str(error)
    if failed or not library.exists():
        fix = f"another compiler by the environment variable CC, or {_SOURCES_ONLY}"
        raise ModelError(f"{program[0]} fails: {said}", where=where, fix=fix)
    return library.read_bytes()
