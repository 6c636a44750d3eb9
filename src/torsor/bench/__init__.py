"""``torsor bench``: Torsor beside its peers, in one process."""

from torsor.bench.figures import Limit, run_benchmarks
from torsor.bench.measure import Row

__all__ = ["Limit", "Row", "run_benchmarks"]
