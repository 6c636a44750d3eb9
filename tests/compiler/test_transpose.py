"""Arrays of any size and strides are passed to kernels and back correctly, for any block width."""

import re

import casadi as ca
import numpy as np
import pytest

from torsor.compiler import compile, read_program
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.loop import INLINE, Transposer
from torsor.compiler.llvm.rules import Scalar
from torsor.compiler.llvm.target import TARGETS

# Parts of every length, with and without a single last entry; and loops over tiles.
SIZES = (1, 2, 3, 6, 13, INLINE + 7)


def copies() -> ca.Function:
    inputs = [ca.SX.sym(f"x{size}", size) for size in SIZES]
    return ca.Function("copies", inputs, [2 * x for x in inputs])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [2, 4, 8, pytest.param(16, marks=pytest.mark.slow)])
def test_each_entry_of_each_state_comes_to_its_place(width: int, dtype: str) -> None:
    kernel = compile(copies(), dtype, width=width)
    rng = np.random.default_rng(0)
    for states in (1, width, 2 * width + 1):
        dense = [rng.normal(size=(states, size)).astype(dtype) for size in SIZES]
        spread = [np.repeat(each, 2, axis=1)[:, ::2] for each in dense]
        one_row = [np.broadcast_to(each[:1], each.shape) for each in dense]
        turned = [np.asfortranarray(each) for each in dense]
        for arrays in (dense, spread, one_row, turned):
            given = [array[:, 0] if array.shape[1] == 1 else array for array in arrays]  # a number has no axis
            for found, x in zip(kernel(*given), given, strict=True):
                assert np.array_equal(found, 2 * x)


@pytest.mark.parametrize(("width", "dtype"), [(2, "float64"), (4, "float64"), (8, "float64"), (4, "float32")])
def test_results_are_written_between_other_numbers(width: int, dtype: str) -> None:
    kernel = compile(copies(), dtype, width=width)
    given = [np.ones((width + 1, size)[: 1 + (size > 1)], dtype) for size in SIZES]
    wide = [np.full((width + 1, size + 2), 7.0, dtype) for size in SIZES]
    kernel(*given, out=tuple(each[:, 1] if each.shape[1] == 3 else each[:, 1:-1] for each in wide))
    for each in wide:
        assert (each[:, 1:-1] == 2).all() and (each[:, [0, -1]] == 7).all()


@pytest.mark.parametrize(
    ("target", "shuffles"),
    # For each entry: one shuffle within 128 bits, and with 512 bits one more, as four entries of a row are loaded.
    [("Neoverse N1", 4), ("AVX2", 4), ("AVX-512", 8)],
)
def test_four_entries_are_transposed_with_few_shuffles(target: str, shuffles: int) -> None:
    machine = TARGETS[target]
    rows = [f"%r{k}" for k in range(machine.width("float64"))]
    transposer = Transposer(Scalar("float64"), rows, "%b")
    transposer.pack(4)
    head = f"define void @f(ptr %b, {', '.join(f'ptr {row}' for row in rows)}) {{"
    text = machine.assembly(["\n".join([head, *transposer.lines, "  ret void", "}"])])
    assert len(re.findall(r"\t(zip[12]|vunpck[lh]pd|vshuff64x2|vperm\w+)\b", text)) == shuffles
    inserted = re.findall(r"\tvinsertf\w+\t\$\d, [^%]*\(%", text)  # while they are loaded
    assert len(inserted) == (0 if machine.is_arm else 4)


def test_only_large_arrays_are_moved_by_functions() -> None:
    def called(size: int) -> bool:
        x = ca.SX.sym("x", size)
        return "@pack.tiles" in write_llvm(read_program(ca.Function("f", [x], [x[0] + 1])), (1, 0), "float64", 2)[0]

    assert not called(INLINE) and called(INLINE + 1)
