"""``torsor bench``: Torsor compared with other libraries, in one process."""

from torsor.bench.figures import run_benchmarks
from torsor.bench.limits import Limit
from torsor.bench.measure import Row

__all__ = ["Limit", "Row", "run_benchmarks"]
