"""Files of results by their suffix: .sqlite, .sqlite3 and .db, or .parquet."""

from collections.abc import Callable, Mapping
from pathlib import Path

from torsor.base.errors import ModelError
from torsor.base.files import check_name
from torsor.motion.sweeps.parquet import ParquetStore
from torsor.motion.sweeps.sqlite import SqliteStore
from torsor.motion.sweeps.store import Store

_Kind = Callable[[Path, Mapping[str, str], str | None], Store]
KINDS: dict[str, _Kind] = dict.fromkeys((".sqlite", ".sqlite3", ".db"), SqliteStore) | {".parquet": ParquetStore}


def new_store(path: Path | None, subject: str, units: Mapping[str, str], resume: bool) -> Store:
    """Open the file of a study for writing; None is a table in memory. An existing file is continued if ``resume``."""
    if path is None:
        return SqliteStore(None, units, subject)
    kind = _kind(path)
    check_name(path)
    if path.exists() and not resume:
        fix = "`resume=True` goes on with it; or give another file"
        raise ModelError("there are results already", where=str(path), fix=fix)
    if not path.parent.is_dir():
        raise ModelError("its folder does not exist", where=str(path), fix="make the folder first")
    return kind(path, units, subject)


def open_store(path: Path) -> Store:
    """Open the file of a study for reading, also while it is written."""
    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return kind(path, {}, None)


def _kind(path: Path) -> _Kind:
    if path.suffix.lower() not in KINDS:
        raise ModelError(f"the suffix is {path.suffix!r}", value=path.suffix, where=str(path), allowed=", ".join(KINDS))
    return KINDS[path.suffix.lower()]
