"""Tables in compiled functions: entries on every device, several tables, derivatives, the cache, and other targets."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice
from torsor.compiler import read_program, table
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.compiler.cuda.code import Plan, write_kernel
from torsor.compiler.cuda.gpu import H200
from torsor.compiler.cuda.large_functions import whole
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.target import TARGETS

pytestmark = pytest.mark.skipif(ca.CasadiMeta.version().startswith("3.6."), reason="CasADi 3.6 has no calls in SX")
FIRST, SECOND = (np.random.default_rng(seed).normal(size=shape) for seed, shape in ((1, (30, 41)), (2, (7, 5))))


def two_tables() -> ca.Function:
    i, j = ca.SX.sym("i"), ca.SX.sym("j")
    first, second = table(FIRST), table(SECOND)
    return ca.Function("two", [i, j], [first(i), second(j) - first(2 * j), first(i) * second(j)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("device", ["cpu", "casadi", "cuda"])
def test_entries_are_those_of_the_tables(device: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: here)
    i, j = np.arange(FIRST.size), np.arange(FIRST.size) % SECOND.size
    first, second = FIRST.ravel(), SECOND.ravel()
    wanted = first[i], second[j] - first[2 * j], first[i] * second[j]
    kernel = torsor.compile(two_tables(), dtype=dtype, device=device)
    found = kernel(i.astype(dtype), j.astype(dtype))
    for one, truth in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, truth, rtol=0, atol=8 * np.finfo(dtype).eps * np.abs(truth).max())
    for k in (0, 17, len(i) - 1):
        single = kernel(i[k].astype(dtype), j[k].astype(dtype))
        assert [float(one) for one in single] == [float(one[k]) for one in found]


def test_every_entry_of_a_large_table_is_read_in_float32() -> None:
    values, i = np.random.default_rng(0).random((1000, 1001)), ca.SX.sym("i")
    kernel = torsor.compile(ca.Function("large", [i], [table(values)(i)]), dtype="float32")
    found = kernel(np.arange(values.size, dtype=np.float32))
    np.testing.assert_allclose(found, values.ravel(), rtol=0, atol=1e-7)


def test_derivatives_of_entries_are_structurally_zero() -> None:
    x = ca.SX.sym("x", 3)
    height = table(FIRST)(ca.floor(x[0]))
    scalar = height * x[1] ** 2 + ca.sin(x[2]) * height
    wanted = ca.vertcat(0, 2 * height * x[1], height * ca.cos(x[2]))
    many = ca.vertcat(*(scalar * k for k in range(5)))  # derivatives are forward ones
    results = [ca.gradient(scalar, x), ca.jtimes(scalar, x, ca.DM.eye(3)).T, ca.jacobian(many, x)[1, :].T, wanted]
    results += [ca.hessian(scalar, x)[0][1, :].T, ca.vertcat(0, 2 * height, 0)]
    kernel = torsor.compile(ca.Function("slopes", [x], results))
    *slopes, truth, curvature, wanted_curvature = kernel(np.array([250.7, 0.3, -0.8]))
    for found in slopes:
        np.testing.assert_allclose(found.ravel(), truth, rtol=0, atol=1e-15)
    np.testing.assert_allclose(curvature, wanted_curvature, rtol=0, atol=1e-15)
    assert not ca.depends_on(ca.jacobian(many, x[0]), x)


def test_the_cache_distinguishes_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORSOR_CACHE", str(tmp_path))
    here, i = ProcessorDevice(), ca.SX.sym("i")
    monkeypatch.setattr(cuda_kernel, "current", lambda: here)
    changed = FIRST.copy()
    changed[3, 4] += 1e-3
    at = np.full(2, 3.0 * FIRST.shape[1] + 4)
    for device in ("cpu", "cuda", "cpu", "cuda"):  # compiled, then read from the cache
        for values in (FIRST, changed):
            kernel = torsor.compile(ca.Function("entry", [i], [table(values)(i)]), device=device)
            assert kernel(at)[0] == pytest.approx(values[3, 4], abs=1e-14)


def test_a_serialised_function_keeps_its_tables() -> None:
    again = ca.Function.deserialize(two_tables().serialize())
    assert read_program(again) == read_program(two_tables())


@pytest.mark.parametrize("name", ["AVX2", "AVX-512", "NEON", "Windows, AVX2"])
def test_other_processors_have_code_for_tables(name: str) -> None:
    target = TARGETS[name]
    for dtype in ("float64", "float32"):
        modules = write_llvm(read_program(two_tables()), (0,) * 5, dtype, target.width(dtype), target=target)
        assert sum("@table." in module for module in modules) == 3 and all(target.objects(modules))


def test_gpus_read_tables_through_the_read_only_cache() -> None:
    ptx = H200.ptx(write_kernel(whole(read_program(two_tables())), "float32", Plan((False,) * 5)).module)
    assert ptx.count("ld.global.nc.b32") == 2 + 3  # two inputs, and three entries


def test_other_calls_and_targets_are_refused() -> None:
    i = ca.SX.sym("i")
    inner = ca.Function("inner", [i], [ca.sin(i)], {"never_inline": True})
    with pytest.raises(NotImplementedError, match="OP_CALL has no rule"):
        torsor.compile(ca.Function("mixed", [i], [table(FIRST)(i) + inner(i)]))
    with pytest.raises(ValueError, match=r"OP_CALL has no rule.*tables, such as height fields"):
        torsor.compiler.export_c([two_tables()], "two.c")
