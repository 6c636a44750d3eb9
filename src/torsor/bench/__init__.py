"""``torsor bench``: Torsor beside its peers, in one process."""

from torsor.bench.figures import Limit, Row, run_benchmarks

__all__ = ["Limit", "Row", "run_benchmarks"]
