"""PTX without a GPU: every method has PTX that LLVM verifies and that calls no missing function."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import casadi as ca
import pytest

import torsor
from methods import TREE_METHODS, request_of
from torsor.compiler import read_program
from torsor.compiler.cuda.code import Plan, write_kernel
from torsor.compiler.cuda.device import current
from torsor.compiler.cuda.gpu import H200, GpuModel
from torsor.compiler.cuda.large_functions import whole

ROBOT = torsor.library.random_tree(4, seed=1)


def ptx_of(function: ca.Function, dtype: str, staged: bool) -> str:
    program = read_program(function)
    counts = [rows * columns for rows, columns in (*program.inputs, *program.outputs)]
    return H200.ptx(
        write_kernel(whole(program), dtype, Plan(tuple(staged and 1 < count < 40 for count in counts))).module
    )


def check(ptx: str) -> None:
    assert ".visible .entry torsor(" in ptx
    defined = set(re.findall(r"\.func[^;{]*?\b([\w$.]+)\s*\(", ptx))
    assert not re.findall(r"\.extern \.func", ptx)
    assert set(re.findall(r"call[^;]*?,?\s([\w$.]+),\s*\(", ptx)) <= defined


QUICK = {"acceleration", "chart", "energy_regressor", "friction_force", "integrate", "jacobian", "mass_matrix"}
QUICK |= {"joint_wrench_derivatives", "potential_energy", "velocities"}
METHODS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in sorted(TREE_METHODS)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", METHODS)
def test_the_ptx_of_every_method_calls_nothing_that_is_missing(name: str, dtype: str) -> None:
    robot = ROBOT
    check(ptx_of(robot.kernels.traced(request_of(robot, name)), dtype, staged=True))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("staged", [False, True])
def test_the_compiler_of_the_driver_takes_the_ptx_and_spills_nothing(dtype: str, staged: bool, tmp_path: Path) -> None:
    if shutil.which("ptxas") is None:
        pytest.skip("ptxas is not installed")
    for name in ("inverse_dynamics", "forward_dynamics"):
        (tmp_path / "k.ptx").write_text(ptx_of(torsor.library.six_axis_arm().function(name), dtype, staged))
        command = ["ptxas", "-v", "-arch=sm_90", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert "0 bytes spill stores, 0 bytes spill loads" in found


def test_a_card_gets_the_newest_code_that_its_driver_reads() -> None:
    assert GpuModel.of(90, 13000) == GpuModel(90, 87)
    assert GpuModel.of(90, 11080) == GpuModel(90, 78)
    assert GpuModel.of(100, 12000) == GpuModel(90, 80)  # that PTX version does not support the GPU
    assert ".target sm_75" in GpuModel.of(75, 12080).ptx("")
    with pytest.raises(RuntimeError, match=r"GPU driver is for CUDA 11.4; allowed: 11.8 or newer"):
        GpuModel.of(90, 11040)
    with pytest.raises(RuntimeError, match=r"compute capability 6.1; allowed: 7.5"):
        GpuModel.of(61, 12080)


def test_without_cupy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    current.cache_clear()
    x = ca.SX.sym("x")
    with pytest.raises(ImportError, match=r'device "cuda" needs CuPy; fix: pip install "torsor\[gpu\]"'):
        torsor.compile(ca.Function("f", [x], [x]), device="cuda")
    with pytest.raises(ImportError, match=r'device "cuda" needs CuPy; fix: pip install "torsor\[gpu\]"'):
        torsor.library.two_link().to(device="cuda")  # at once, not at the first call
    current.cache_clear()
