"""Results that last: files with the robot and the settings in them, tables and documents with units, and figures."""

from torsor.results.archive import FORMAT, KINDS, load_result
from torsor.results.documents import schema_of
from torsor.results.result import Result

__all__ = ["FORMAT", "KINDS", "Result", "load_result", "schema_of"]
