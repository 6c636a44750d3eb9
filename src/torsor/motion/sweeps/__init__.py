"""Studies of many cases: ``torsor.sweep`` computes them in parallel, on this machine or on a cluster.

Results are streamed to SQLite or Parquet. A study that was stopped or killed can be resumed; no case is lost or stored
twice. See docs/plan/sweep.md.
"""

from torsor.motion.declaration import NAMED_PROBLEMS as PROBLEMS
from torsor.motion.sweeps.cases import Cases, grid, samples
from torsor.motion.sweeps.executors import Processes
from torsor.motion.sweeps.files import Study, load_study
from torsor.motion.sweeps.results import Results, read
from torsor.motion.sweeps.sweep import sweep

__all__ = ["PROBLEMS", "Cases", "Processes", "Results", "Study", "grid", "load_study", "read", "samples", "sweep"]
