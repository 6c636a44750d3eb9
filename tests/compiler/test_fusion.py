"""Which products are fused with which sums, and how CasADi's list of operations is read."""

import gc
import re

import casadi as ca
import numpy as np
import pytest

from torsor.compiler import program as programs
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.fusion import FROM, MAX_FUSION_DISTANCE, MINUS, PLUS, fused, with_reciprocals
from torsor.compiler.llvm.target import TARGETS
from torsor.compiler.program import read_program, uncollected


def fused_codes(*results: ca.SX) -> list[int]:
    function = ca.Function("f", [ca.vertcat(*ca.symvar(ca.vertcat(*results)))], [ca.vertcat(*results)])
    return [each.code for each in fused(read_program(function)).operations if each.code in (PLUS, MINUS, FROM)]


def test_a_sum_takes_one_product_and_of_two_the_second():
    a, b, c, d = ca.vertsplit(ca.SX.sym("x", 4))
    assert fused_codes(a * b + c) == fused_codes(c + a * b) == [PLUS]
    assert fused_codes(a * b - c) == [MINUS]
    assert fused_codes(c - a * b) == fused_codes(a * b - c * d) == [FROM]
    assert fused_codes(c - a * a) == [FROM]
    assert fused_codes(a * b + c * d) == [PLUS]


def test_a_product_that_others_use_is_not_fused():
    a, b, c = ca.vertsplit(ca.SX.sym("x", 3))
    product = a * b
    assert fused_codes(product + c, ca.sin(product)) == []
    assert fused_codes(product + c, product) == []  # it is a result too
    assert fused_codes(product + product * c) == [PLUS]  # the second product, of which the first is a factor


def test_a_product_far_before_its_sum_is_not_fused():
    x = ca.SX.sym("x", 2)
    for length, expected in ((MAX_FUSION_DISTANCE - 5, [PLUS]), (MAX_FUSION_DISTANCE + 5, [])):
        value = x[1]
        for _ in range(length):
            value = ca.sqrt(value)
        assert fused_codes(x[0] * x[1] + value) == expected


@pytest.mark.parametrize("target", ["AVX2", "AVX-512", "NEON"])
def test_llvm_fuses_no_other_products(target):
    x = ca.SX.sym("x", 4)
    product, value = x[0] * x[1], x[3]
    for _ in range(MAX_FUSION_DISTANCE + 5):
        value = ca.sqrt(value)
    processor = TARGETS[target]
    for results, count in (((product + value,), 0), ((product + x[2], product - value), 0), ((x[2] + product,), 1)):
        function = ca.Function("f", [x], [ca.vertcat(*results, x[2] < x[3])])
        modules = write_llvm(read_program(function), (1, 1), "float64", processor.width("float64"), target=processor)
        text = processor.assembly(modules)
        assert len(re.findall(r"\b(?:vfn?m(?:add|sub)\w*|fml[as])\b", text)) == count


def test_operations_are_read_the_same_in_bulk_and_one_by_one(monkeypatch):
    x, p = ca.SX.sym("x", ca.Sparsity.lower(3)), ca.SX.sym("p")
    y = ca.if_else(p > 0.5, ca.atan2(x, p), ca.fmin(x, 2.5)) + ca.constpow(p, 3.0) - ca.tanh(x @ x.T)
    function = ca.Function("f", [x, p], [y, ca.vertcat(p, 0, 7.25, ca.hypot(p, x[2, 1])), x])
    assert programs._stored(function, function.n_instructions()) is not None
    in_bulk = read_program(function)
    monkeypatch.setattr(programs, "_stored", lambda *_: None)  # as with a version that stores them in another way
    assert read_program(function) == in_bulk
    assert {type(each) for operation in in_bulk.operations for each in operation.arguments} == {int}


def test_a_table_that_is_not_what_casadi_returns_is_not_used(monkeypatch):
    x = ca.SX.sym("x", 2)
    function = ca.Function("f", [x], [x[0] * x[1] + 2])
    text = function.serialize()
    record = programs._record(*programs._instruction(function, 2))
    letters = "".join(chr(97 + (each & 15)) + chr(97 + (each >> 4)) for each in record)
    assert letters in text

    class Another:
        def __getattr__(self, name):
            return getattr(function, name)

        def serialize(self):
            return text.replace(letters, letters[::-1])

    assert programs._stored(Another(), function.n_instructions()) is None
    assert np.array_equal(programs._table(Another()), programs._table(function))


def test_the_search_for_cycles_goes_on_afterwards():
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_whole_numbers_and_comparisons_of_quotients_are_exact():
    x = ca.SX.sym("x", 2)
    quotient = x[0] / x[1]
    program = with_reciprocals(read_program(ca.Function("f", [x], [ca.floor(quotient), 3 / x[1], 7 / x[1]])))
    codes = [each.code for each in program.operations]
    assert [codes.count(code) for code in (ca.OP_DIV, ca.OP_INV, ca.OP_MUL)] == [1, 1, 2]
