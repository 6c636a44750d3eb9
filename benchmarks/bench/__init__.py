"""Comparison of Torsor with other libraries in one process."""

from bench.figures import run_benchmarks
from bench.limits import Limit
from bench.measure import Row

__all__ = ["Limit", "Row", "run_benchmarks"]
