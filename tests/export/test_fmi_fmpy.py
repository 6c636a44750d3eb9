"""FMPy, an independent importer, finds no fault in FMUs and simulates them, if it supports this platform."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torsor
from fmus import coordinates
from torsor.mechanism import Joint, Link

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed: pip install fmpy")
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="a C compiler is not installed")

ARM = torsor.library.two_link()
ODD = torsor.build(
    '../"odd" <robot>\t& more',
    [Link("base"), Link("pa lm", 1.0, inertia=0.1 * np.eye(3)), Link("finger<1>", 1.0, inertia=0.1 * np.eye(3))],
    [Joint('it\'s "a\\b" & c', "revolute", "base", "pa lm"), Joint("Größe/λ", "prismatic", "pa lm", "finger<1>")],
)
Q0, V0, TAU = [0.4, -0.9], [0.3, 1.1], [1.5, -0.4]
START = coordinates("q", ARM.position_names, Q0) | coordinates("v", ARM.coordinate_names, V0)
FORCES = coordinates("tau", ARM.coordinate_names, TAU)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("robot", [ARM, ODD], ids=["arm", "odd"])
def test_fmpy_finds_no_problem(robot: torsor.Robot, inverse: bool, version: int, tmp_path: Path) -> None:
    from fmpy.validation import validate_fmu

    names = ["joint_wrenches", f"pose:{robot.link_names[0]}", "center_of_mass", "potential_energy"]
    more: dict[str, Any] = {"parameters": ["gravity", "links.0.mass", "joints.1.viscous"], "external": robot.link_names}
    (path,) = torsor.export.fmi(robot, tmp_path / "a b.fmu", names, version, inverse, binary=False, **more)
    assert validate_fmu(str(path)) == []


def skip_unless_fmpy_can(path: Path, solver: bool = False) -> None:
    """Skip with the reason why FMPy cannot simulate an FMU with a library on this platform, if there is one."""
    here = f"FMPy {fmpy.__version__} on {fmpy.platform_tuple}"
    if fmpy.platform not in fmpy.supported_platforms(str(path)):
        pytest.skip(f"{here} does not find the library of this platform")
    if solver:
        try:
            from fmpy.sundials import CVodeSolver  # noqa: F401
        except Exception as error:  # OSError of ctypes, or others of FMPy itself
            pytest.skip(f"{here} has no SUNDIALS library: {error}")


@needs_compiler
@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
@pytest.mark.parametrize("version", [2, 3])
def test_fmpy_simulates_as_simulate_does(version: int, kind: str, tmp_path: Path) -> None:
    (path,) = torsor.export.fmi(ARM, tmp_path / "arm.fmu", version=version)
    skip_unless_fmpy_can(path, solver=kind == "ModelExchange")
    found = fmpy.simulate_fmu(
        str(path),
        fmi_type=kind,
        start_values=START | FORCES,
        stop_time=0.2,
        relative_tolerance=1e-11,
        output=list(START),
        output_interval=0.01,
    )
    expected = torsor.simulate(ARM, Q0, V0, 0.2, controller=TAU)
    got = np.array([found[name][-1] for name in START])
    tolerance = 1e-12 if kind == "CoSimulation" else 1e-7
    np.testing.assert_allclose(got, [*expected.q[-1], *expected.v[-1]], rtol=0, atol=tolerance)


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
@pytest.mark.parametrize("version", [2, 3])
def test_fmpy_compiles_the_sources(version: int, tmp_path: Path) -> None:
    from fmpy.build import build_platform_binary

    (with_library,) = torsor.export.fmi(ARM, tmp_path / "arm.fmu", version=version)
    skip_unless_fmpy_can(with_library)
    (path,) = torsor.export.fmi(ARM, tmp_path / "sources.fmu", version=version, binary=False)
    folder = fmpy.extract(str(path), str(tmp_path / "extracted"))
    (build := tmp_path / "build").mkdir()
    build_platform_binary(folder, build)
    found = fmpy.simulate_fmu(folder, fmi_type="CoSimulation", start_values=START | FORCES, stop_time=0.1)
    expected = torsor.simulate(ARM, Q0, V0, 0.1, controller=TAU)
    np.testing.assert_allclose(found["q.joint1"], expected.q[:, 0], rtol=0, atol=1e-12)
