"""Functions for studies in the tests, in a separate module, so that other processes can import them."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


def twice(a: float, b: float = 0.0) -> dict[str, Any]:
    return {"twice": 2 * a + b}


def everything(a: float) -> dict[str, Any]:
    """Values of all kinds; one case fails."""
    if a == 2:
        raise ValueError("a is 2")
    return {"T": a / 3, "is_even": a % 2 == 0, "word": f"case {a:g}", "row": np.arange(3) + a, "deep": {"x": a}}


def slowly(a: float, seconds: float = 0.02) -> float:
    time.sleep(seconds)
    return a * a


def dies(a: float, folder: str, times: int = 1) -> float:
    """Kill the own process the first ``times`` times that a case is computed."""
    tries = Path(folder, f"{a:g}")
    with tries.open("a") as file:
        file.write(".")
    if tries.stat().st_size <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return a * a


def compiles(a: float, log: str) -> float:
    """Compute with a robot and note what is compiled."""
    import torsor
    from torsor.compiler.llvm import native

    emit = native.emit

    def noted(*given: Any) -> list[bytes]:
        with Path(log).open("a") as file:
            file.write("compiled\n")
        return emit(*given)

    native.emit = noted
    try:
        robot = torsor.library.two_link()
        return float(robot.inverse_dynamics([a, 0.0], [0.0, 0.0], [0.0, 0.0])[0])
    finally:
        native.emit = emit
