"""Small functions of the compiler that have no separate tests elsewhere."""

import casadi as ca
import numpy as np
import pytest

from torsor.compiler.c import CScalar, _constants, c_names, string_literal
from torsor.compiler.cuda.code import threads_of_block
from torsor.compiler.cuda.layout import Tile, choose_staged, collapsed
from torsor.compiler.js import JsScalar, _type_of, data, js_names
from torsor.compiler.llvm.angles import passes
from torsor.compiler.llvm.code import _runs
from torsor.compiler.llvm.loop import _parts
from torsor.compiler.llvm.rules import _is_immediate
from torsor.compiler.machine_code import used_inputs
from torsor.compiler.program import every_operation, operations_of, uncovered
from torsor.compiler.source import camel, comment, plain, words
from torsor.compiler.threads import _merged


def test_identifiers_are_unique_and_not_reserved():
    c, js = c_names(), js_names()
    assert [c.new(each) for each in ("tau", "tau", "double", "2-x")] == ["tau", "tau_2", "double_", "x2_x"]
    wanted = ["massMatrix", "massMatrix_2", "delete_", "x2X"]
    assert [js.new(each) for each in ("mass_matrix", "mass matrix", "delete", "2-x")] == wanted
    assert (words("größe"), camel("jacobian_left hand")) == ("gr__e", "jacobianLeftHand")


def test_texts_cannot_end_a_string_a_comment_or_a_script():
    assert string_literal('say "ö"') == r'"say \042\303\266\042"'
    assert plain("rad/s */ </script> größe") == "rad/s __ <_script> gr__e"
    assert data(["</script>", -0.0, float("inf")]) == r'["\u003c/script>", -0.0, Infinity]'
    assert comment("one", "two") == "/* one\n * two */\n"


def test_literals():
    assert (CScalar("float64").literal(0.25), CScalar("float32").literal(0.1)) == ("0.25", "0x1.99999ap-4f")
    assert (JsScalar("float32").literal(0.1), JsScalar("float64").literal(-0.0)) == ("0.10000000149011612", "(-0)")
    assert JsScalar("float32").expression(ca.OP_ADD, "a", "b") == "Math.fround(a + b)"


def test_constants_of_cpp_and_types_of_typescript():
    text = _constants({"jointNames": ["a"], "lower": [0.5, float("inf")]}, CScalar("float64"))
    assert 'std::array<const char *, 1> joint_names{{"a"}};' in text
    assert "std::array<Scalar, 2> lower{{0.5, INFINITY}};" in text
    wanted = '{ readonly "name": string; readonly "lower": readonly number[]; readonly "active": readonly string[] }'
    assert _type_of({"name": "arm", "lower": [0.0], "active": []}) == wanted


def test_layouts_of_arrays():
    assert [collapsed((4, 3), each) for each in ((24, 8), (0, 0), (0, 8))] == [8, 0, None]
    assert Tile.of(6, 4, 0) == Tile(offset=0, pitch=24, access=8, size=768)
    assert choose_staged((6, 6, 3000), 4, (True, False, True)) == (True, False, False)
    assert (threads_of_block(0), threads_of_block(40_000)) == (128, 32)
    assert _merged([4, 3, 2], [[48, 16, 8], [16, 0, 8]]) == ([4, 3, 2], [[48, 16, 8], [16, 0, 8]])
    assert _merged([4, 3, 2], [[48, 16, 8], [0, 0, 0]]) == ([24], [[8], [0]])
    assert used_inputs([(2, 1), (0, 1), (3, 3)]) == [0, 2]


def test_divisions_of_work():
    assert [tuple(each) for each in passes(29, 32)] == [(5, 5), (4, 1)]
    assert _runs({7: "0", 5: "0", 6: "0", 8: "1"}) == [(5, 7, "0"), (8, 8, "1")]
    assert _parts(11, 4) == [(0, 4), (4, 4), (8, 2), (9, 2)]


@pytest.mark.parametrize(("number", "fits"), [(0.0, True), (-0.5, True), (31.0, True), (33.0, False), (0.1, False)])
def test_immediates_of_aarch64(number, fits):
    assert _is_immediate(number) == fits


def test_operations_without_a_rule_are_named():
    known = {*operations_of(every_operation()), ca.OP_ASSIGN, ca.OP_LIFT}
    assert uncovered(known - {ca.OP_MUL, ca.OP_SIN}) == ["OP_MUL", "OP_SIN"]
    assert np.array_equal(every_operation().size_out("numbers"), (13, 1))
