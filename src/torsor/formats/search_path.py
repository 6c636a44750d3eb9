"""Resolution of ``package://`` and ``model://``: given folders, those of the environment, and the file's own."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from torsor.base.errors import ModelError
from torsor.formats.meshes.mesh_files import SEARCH_VARIABLES, is_package, own_folders, split_prim

SCHEMES = ("package://", "model://")
SEARCH_FIX = f"pass its folder, `search=FOLDER`, or set {', '.join(SEARCH_VARIABLES)} in the environment"
_SEARCH_FOLDERS: ContextVar[tuple[Path, ...]] = ContextVar("search", default=())


@contextmanager
def searching(folders: Sequence[str | Path]) -> Iterator[None]:
    """Search these folders first, for packages and models, while a file is read."""
    for folder in folders:
        if not isinstance(folder, (str, Path)) or not Path(folder).is_dir():
            raise ModelError(f"search contains {str(folder)!r}", allowed="folders that exist")
    before = _SEARCH_FOLDERS.set(tuple(Path(folder).absolute() for folder in folders))
    try:
        yield
    finally:
        _SEARCH_FOLDERS.reset(before)


def given_folders() -> tuple[Path, ...]:
    """Return the folders to search first."""
    return _SEARCH_FOLDERS.get()


def environment_folders() -> list[Path]:
    """Return the package and model folders that the environment lists, in the order of ``SEARCHED``."""
    listed = ((name, word) for name in SEARCH_VARIABLES for word in os.environ.get(name, "").split(os.pathsep) if word)
    return [Path(item, "share") if name == "AMENT_PREFIX_PATH" else Path(item) for name, item in listed]


class Finder:
    """The files that a description refers to; ``folders`` are those from which it may load meshes."""

    def __init__(self, path: Path):
        self.path, self.folders = path, own_folders(path)
        self._packages: dict[str, Path | None] = {}
        self._files: dict[str, Path | None] = {}

    def find(self, name: str) -> Path | None:
        """Return the path of a file or folder, or None if it is not found."""
        if name not in self._files:
            scheme = next((item for item in SCHEMES if name.startswith(item)), None)
            folder: Path | None = self.path.parent
            inside = name.removeprefix("file://")
            try:
                if scheme is not None:
                    package, _, inside = name.removeprefix(scheme).partition("/")
                    folder = self.package(package)
                result = None if folder is None else folder / inside
                self._files[name] = result if result is not None and split_prim(result)[0].exists() else None
            except (OSError, ValueError):  # no file can have such a name
                self._files[name] = None
        return self._files[name]

    def file(self, name: str) -> str | None:
        """Return the path of a file or of a mesh in a USD stage, or None if it is not found."""
        path = self.find(name)
        return str(path) if path is not None and split_prim(path)[0].is_file() else None

    def package(self, package: str) -> Path | None:
        """Return the folder of a package or model: on the search path, or in or above the folder of the file.

        An unlisted folder must contain the file itself or be marked as a package; no other folder is used.
        """
        if package not in self._packages:
            folders, above = given_folders(), self.path.resolve().parents
            places = (*folders, *environment_folders(), *above)
            tries = [place / package for place in places] + [place for place in places if place.name == package]
            named = package != ".." and Path(package).name == package  # a single folder, not a path through several
            result = next((folder for folder in tries if named and folder.is_dir()), None)
            self._packages[package] = result
            if result is not None and (
                is_package(result)
                or result.resolve() in above
                or any(result.is_relative_to(value) for value in folders)
            ):
                self.folders = (*self.folders, str(result))
        return self._packages[package]
