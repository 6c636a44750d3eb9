"""Measure one second of motion of a UR5 as an FMU, through FMPy and directly, and compare it with ``torsor.simulate``.

    python benchmarks/fmi.py

The script prints the table of docs/deploy/fmi.md. It needs FMPy, a C compiler and the package example-robot-data, which
contains the robot.
"""

import tempfile
import timeit
from collections.abc import Callable
from importlib.metadata import files
from pathlib import Path
from typing import Any

import fmpy
from fmpy.fmi3 import FMU3Slave

import torsor

Q0, TAU = [0.1, -1.0, 1.0, 0.2, 0.3, 0.4], [5.0, -20.0, 3.0, 1.0, 0.2, 0.1]


def milliseconds(call: Callable[[], Any]) -> float:
    """Return the shortest time of a call (ms)."""
    return 1e3 * min(timeit.repeat(call, number=1, repeat=9))


def stepped(folder: str, count: int) -> float:
    """Return the time (ms) to simulate one second in ``count`` communication steps, called from Python."""
    about = fmpy.read_model_description(folder)
    unit = FMU3Slave(
        guid=about.instantiationToken,
        unzipDirectory=folder,
        modelIdentifier=about.coSimulation.modelIdentifier,
        instanceName="ur5",
    )
    unit.instantiate()

    def run() -> None:
        for k in range(count):
            unit.doStep(k / count, 1 / count)

    times = []
    for _ in range(9):
        unit.reset()
        unit.enterInitializationMode()
        unit.exitInitializationMode()
        times.append(timeit.timeit(run, number=1))
    unit.freeInstance()
    return 1e3 * min(times)


def main() -> None:
    """Print the table."""
    path = next(Path(str(each.locate())) for each in files("example-robot-data") or [] if each.name == "ur5_robot.urdf")
    robot = torsor.load(path.resolve())
    forces = {f"tau.{name}": force for name, force in zip(robot.coordinate_names, TAU, strict=True)}
    with tempfile.TemporaryDirectory() as place:
        sizes = {}
        for name, options in {"FMI 3": {}, "FMI 2": {"version": 2}, "sources only": {"binary": False}}.items():
            file = Path(place, "ur5.fmu")
            took = timeit.timeit(lambda: torsor.export.fmi(robot, file, q0=Q0, **options), number=1)  # noqa: B023
            sizes[name] = f"{file.stat().st_size / 1e3:.0f} kB in {took:.1f} s"
        print(sizes)
        torsor.export.fmi(robot, file, q0=Q0)
        folder = fmpy.extract(str(file), str(Path(place, "extracted")))
        for count in (1, 100, 1000):
            print(f"{count} communication steps: {stepped(folder, count):.2f} ms")
        about = fmpy.read_model_description(folder)
        common = {"model_description": about, "stop_time": 1.0, "start_values": forces, "validate": False}
        for kind, interval in (("CoSimulation", 1e-2), ("CoSimulation", 1e-3), ("ModelExchange", 1e-2)):
            options = common | {"fmi_type": kind, "output_interval": interval, "relative_tolerance": 1e-6}
            print(f"{kind} by FMPy, {interval} s: {milliseconds(lambda: fmpy.simulate_fmu(folder, **options)):.1f} ms")  # noqa: B023
    torsor.simulate(robot, Q0, duration=1.0, controller=TAU)
    print(f"torsor.simulate: {milliseconds(lambda: torsor.simulate(robot, Q0, duration=1.0, controller=TAU)):.1f} ms")


if __name__ == "__main__":
    main()
