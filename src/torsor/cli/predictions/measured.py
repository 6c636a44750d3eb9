"""Where a search starts: at an earlier result, or at a measured motion."""

from pathlib import Path
from typing import Any

from torsor.base.errors import ModelError
from torsor.motion import MotionProblem, MotionResult

MEASURED = (".mot", ".sto")


def given_start(problem: MotionProblem, path: Path | None, times: list[float] | None) -> Any:
    """Return the start of ``solve`` in a file, None without one."""
    if path is None:
        if times is not None:
            raise ModelError("--guess-times without --guess", where=problem.name, fix="add --guess FILE")
        return None
    if path.suffix.lower() in MEASURED:
        from torsor.human.measured import measured_start
        from torsor.human.recordings import load

        table = load(path).table
        first, last = (table.times[0], table.times[-1]) if times is None else times
        return measured_start(problem, table, float(first), float(last))
    if times is not None:
        raise ModelError("--guess-times with a result", where=path.name, allowed="for .mot and .sto files")
    from torsor.base.archive import load_result

    found = load_result(path)
    result = getattr(found, "result", found)  # a stride has the motion as its result
    if not isinstance(result, MotionResult):
        raise ModelError(f"a {type(found).__name__}", where=path.name, allowed="a motion or a stride")
    return result
