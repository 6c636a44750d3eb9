"""Base class of results: saving, exporting and plotting."""

from pathlib import Path
from typing import Any, ClassVar

from torsor.base.archive import Archive, write_archive
from torsor.base.documents import header, write_document
from torsor.base.files import check_suffix
from torsor.base.summary import Summary
from torsor.base.tables import Column, write_table


class Result:
    """Base class of the results of computations, with ``save``, ``to_dict`` and ``plot``.

    Notebooks display a result as a short table. File formats are .npz (the complete result with robot and settings, for
    ``torsor.load_result``), .json (plain values with units, for other programs) and, for tables, .csv. ``undefined``
    lists the arrays that are NaN where a quantity is undefined.

    Example:
        >>> isinstance(torsor.simulate(torsor.library.planar_chain(1), duration=0.01), Result)
        True
    """

    kind: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = (".npz", ".csv", ".json")
    undefined: ClassVar[tuple[str, ...]] = ()

    def save(self, path: str | Path) -> None:
        """Write the result atomically: .npz to load it again, .csv or .json for other programs.

        Example:
            >>> import tempfile
            >>> fall = torsor.simulate(torsor.library.planar_chain(1), duration=0.01)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     fall.save(folder + "/fall.npz")
            ...     torsor.load_result(folder + "/fall.npz").q.tolist() == fall.q.tolist()
            True
        """
        path = Path(path)
        suffix = path.suffix.lower()
        check_suffix(path, self.suffixes)
        if suffix == ".npz":
            write_archive(path, self._archive())
        elif suffix == ".csv":
            write_table(path, self._columns())
        else:
            write_document(path, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON; ``torsor.base.documents.schema_of(kind)`` is its schema."""
        return {"torsor": header(self.kind), **self._content()}

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a matplotlib figure of the result, and save it if ``path`` is given."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _archive(self) -> Archive:
        """Return all data that ``load`` needs."""
        raise NotImplementedError

    def _columns(self) -> list[Column]:
        """Return the columns of the .csv file."""
        raise NotImplementedError

    def _content(self) -> dict[str, Any]:
        """Return the plain values of the JSON document without its header."""
        raise NotImplementedError

    def _summary(self) -> Summary:
        """Return the short table for notebooks."""
        raise NotImplementedError
