"""Resolution of ``package://`` and ``model://`` names in given folders, in the environment and next to the file."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from torsor.base.errors import ModelError
from torsor.base.files import read_limited
from torsor.formats.meshes.mesh_files import SEARCH_VARIABLES, is_package, own_folders, split_prim
from torsor.formats.xml import parse_xml_text, text_of

SCHEMES = ("package://", "model://")
SEARCH_FIX = f"pass its folder, `search=FOLDER`, or set {', '.join(SEARCH_VARIABLES)} in the environment"
MAX_PACKAGE_DEPTH = 3  # of a package below a listed folder: workspace/src/repository/package
_SEARCH_FOLDERS: ContextVar[tuple[Path, ...]] = ContextVar("search", default=())


@contextmanager
def searching(folders: Sequence[str | Path]) -> Iterator[None]:
    """Search the given folders first for packages and models, while a file is read."""
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
    """Return the package and model folders listed in the environment, in the order of ``SEARCH_VARIABLES``."""
    listed = ((name, word) for name in SEARCH_VARIABLES for word in os.environ.get(name, "").split(os.pathsep) if word)
    return [Path(item, "share") if name == "AMENT_PREFIX_PATH" else Path(item) for name, item in listed]


class Finder:
    """Finder of the files that a description refers to. Meshes may be loaded only from ``folders``."""

    def __init__(self, path: Path):
        self.path, self.folders = path, own_folders(path)
        self._packages: dict[str, Path | None] = {}
        self._files: dict[str, Path | None] = {}
        self._paths: dict[str, str | None] = {}

    def find(self, name: str) -> Path | None:
        """Return the path of a file or folder, or None if it is not found.

        A name without a scheme is a path relative to the file, or else a model on the search path, as in Gazebo.
        ``package:///NAME/...`` is read as ``package://NAME/...``.
        """
        if name not in self._files:
            scheme = next((item for item in SCHEMES if name.startswith(item)), "")
            inside = name.removeprefix("file://")
            try:
                result = None if scheme else _existing(self.path.parent, inside)
                if scheme or (result is None and "://" not in name and not Path(name).is_absolute()):
                    package, _, inside = name.removeprefix(scheme).lstrip("/").partition("/")
                    result = _existing(self.package(package), inside)
                self._files[name] = result
            except (OSError, ValueError):  # no file can have such a name
                self._files[name] = None
        return self._files[name]

    def file(self, name: str) -> str | None:
        """Return the path of a file or of a mesh in a USD stage, or None if it is not found."""
        if name not in self._paths:
            path = self.find(name)
            self._paths[name] = str(path) if path is not None and split_prim(path)[0].is_file() else None
        return self._paths[name]

    def package(self, package: str) -> Path | None:
        """Return the folder of a package or model from the search path, or from the folder of the file and its parents.

        The folder has the name of the package, or contains a package.xml with that <name>. A folder that is not on
        the search path must contain the file itself or be marked as a package.
        """
        if package not in self._packages:
            folders, above = given_folders(), self.path.resolve().parents
            listed = (*folders, *environment_folders())
            places = (*listed, *above)
            tries = [place / package for place in places] + [place for place in places if place.name == package]
            named = package != ".." and Path(package).name == package  # a single folder, not a path through several
            result = next((folder for folder in tries if named and folder.is_dir()), None)
            if named and package and result is None:  # the folder of a clone may have a different name from its package
                own = next((k for k, folder in enumerate(above) if is_package(folder)), -1)
                beside = above[own + 1 : own + 2]  # the folder that contains the neighbouring packages
                depths = *((place, MAX_PACKAGE_DEPTH) for place in listed), *((place, 1) for place in beside)
                seen = set[Path]()
                inside = (folder for place, depth in depths for folder in _packages_in(place, depth, seen))
                result = next((folder for folder in (*above, *inside) if _package_name(folder) == package), None)
            self._packages[package] = result
            known = result is not None and (result.resolve() in above or any(map(result.is_relative_to, folders)))
            if result is not None and (known or is_package(result)):
                self.folders = (*self.folders, str(result))
        return self._packages[package]


def _existing(folder: Path | None, inside: str) -> Path | None:
    """Return a file or folder inside a folder, or None if there is none."""
    if folder is None:
        return None
    path = folder / inside
    return path if split_prim(path)[0].exists() else None


def _package_name(folder: Path) -> str:
    """Return the name in the package.xml of a folder, or an empty string."""
    try:
        return text_of(parse_xml_text(read_limited(folder / "package.xml"), folder.name), "name")
    except (OSError, ModelError):
        return ""


def _packages_in(folder: Path, depth: int, seen: set[Path]) -> Iterator[Path]:
    """Yield the ROS packages in a folder and ``depth`` levels of folders below it. Packages contain no other packages.

    Folders in ``seen`` are skipped, and visited folders are added to it, because symbolic links may form cycles.
    """
    if folder.resolve() in seen:
        return
    seen.add(folder.resolve())
    if (folder / "package.xml").is_file():
        yield folder
    elif depth:
        try:
            inside = sorted(item for item in folder.iterdir() if not item.name.startswith(".") and item.is_dir())
        except OSError:  # not readable
            return
        for item in inside:
            yield from _packages_in(item, depth - 1, seen)
