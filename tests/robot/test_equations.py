"""Printed equations: equal to the traced functions, equal to textbook formulas, in LaTeX that compiles."""

import importlib
from typing import Any

import casadi as ca
import numpy as np
import pytest
import sympy as sp

import torsor
from refusals import refused
from torsor.cli.main import main
from torsor.compiler.program import every_operation, read_program, uncovered
from torsor.library.trees import random_tree
from torsor.robot.equations.equations import Equations, direct
from torsor.robot.equations.letters import Letters, Parameters
from torsor.robot.equations.rules import RULES
from torsor.robot.robot import Robot

ARM = torsor.library.planar_chain(2)


def evaluated(found: Equations, values: dict[str, float]) -> list[np.ndarray]:
    """Return the numbers of the results, subexpressions first."""

    def number(expression: sp.Expr) -> float:
        used = sorted(expression.free_symbols, key=str)
        return float(sp.lambdify(used, expression, "math")(*(values[str(each)] for each in used)))

    for symbol, meaning in found.subexpressions:
        values[str(symbol)] = number(meaning)
    entries = [sp.flatten(each) if hasattr(each, "shape") else [each] for each in found.results.values()]
    return [np.array([number(each) for each in every]) for every in entries]


def check_equal(robot: Robot, name: str, *, place: str | None = None, seed: int = 0, **options: object) -> Equations:
    """Check the equations against the traced function at random numbers."""
    found = robot.equations(name, form="sympy", place=place, **options)
    rng, arguments = np.random.default_rng(seed), []
    values = {str(symbol): value for symbol, value in found.parameters.items()}
    for symbols in found.inputs.values():
        arguments.append(rng.uniform(-1.0, 1.0, len(symbols)))
        values |= {str(symbol): float(x) for symbol, x in zip(symbols, arguments[-1], strict=True)}
    function = robot.function(name, place, **{key: options[key] for key in ("forced", "axes") if key in options})
    expected = function.call([ca.DM(each) for each in arguments])
    for got, truth in zip(evaluated(found, values), expected, strict=True):
        numbers = truth.full().ravel()
        assert np.abs(got - numbers).max() <= 1e-12 * max(np.abs(numbers).max(), 1.0)
    return found


@pytest.mark.parametrize("symbols", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("name", ["mass_matrix", "inverse_dynamics", "coriolis_matrix", "bias_force"])
def test_equations_of_a_planar_arm_have_the_values_of_the_function(name: str, symbols: bool) -> None:
    check_equal(ARM, name, symbols=symbols)


@pytest.mark.parametrize("name", ["kinetic_energy", "potential_energy", "forward_dynamics", "momentum"])
def test_other_algorithms_have_the_values_of_the_function(name: str) -> None:
    check_equal(ARM, name, symbols=True)


@pytest.mark.parametrize("name", ["pose", "jacobian", "velocity"])
def test_equations_of_a_place(name: str) -> None:
    check_equal(torsor.library.scara(), name, place="tool")


@pytest.mark.parametrize("axes", ["aligned", "world"])
def test_equations_of_a_jacobian_in_base_axes(axes: str) -> None:
    check_equal(torsor.library.scara(), "jacobian", place="tool", axes=axes)


@pytest.mark.parametrize("simplify", [True, False])
def test_elastic_arm_and_standard_denavit_hartenberg_frames(simplify: bool) -> None:
    check_equal(torsor.library.elastic_arm(), "inverse_dynamics", simplify=simplify)
    check_equal(torsor.library.two_link(), "inverse_dynamics", symbols=True, simplify=simplify)


@pytest.mark.parametrize("simplify", [True, False])
def test_every_kind_of_joint_with_springs_friction_motors_and_followers(simplify: bool) -> None:
    check_equal(random_tree(2, seed=3, types=("spherical", "revolute")), "gravity_force", simplify=simplify)
    check_equal(random_tree(3, seed=1, types=("helical", "revolute", "prismatic")), "bias_force", simplify=simplify)


def test_large_robots_are_refused_with_the_count_and_printed_without_simplification() -> None:
    arm = torsor.library.six_axis_arm()
    with refused(allowed="up to", fix="simplify=False"):
        arm.equations("inverse_dynamics_derivatives")
    check_equal(arm, "inverse_dynamics", simplify=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mass_matrix", "inverse_dynamics", "gravity_force", "coriolis_matrix"])
@pytest.mark.parametrize("symbols", [False, True], ids=["numbers", "symbols"])
def test_industrial_arms(name: str, symbols: bool) -> None:
    check_equal(torsor.library.stanford(), name, symbols=symbols)
    if name in ("mass_matrix", "gravity_force") or not symbols:
        check_equal(torsor.library.six_axis_arm(), name, symbols=symbols)


def test_the_mass_matrix_of_two_links_is_that_of_the_textbook() -> None:
    m_1, m_2, l_1, r_1, r_2, I_1, I_2, q_2 = sp.symbols("m_1 m_2 l_1 r_1 r_2 I_1zz I_2zz q_2")
    M = ARM.equations("mass_matrix", form="sympy", symbols=True).expression
    both = I_2 + m_2 * (r_2**2 + l_1 * r_2 * sp.cos(q_2))
    first = I_1 + m_1 * r_1**2 + I_2 + m_2 * (l_1**2 + r_2**2 + 2 * l_1 * r_2 * sp.cos(q_2))
    expected = sp.Matrix([[first, both], [both, I_2 + m_2 * r_2**2]])
    assert (M - expected).applyfunc(sp.expand) == sp.zeros(2, 2)


def test_gravity_has_the_cosine_of_the_sum_of_parallel_axes() -> None:
    m_1, m_2, l_1, r_1, r_2, g, q_1, q_2 = sp.symbols("m_1 m_2 l_1 r_1 r_2 g q_1 q_2")
    found = ARM.equations("gravity_force", form="sympy", symbols=True)
    second = m_2 * g * r_2 * sp.cos(q_1 + q_2)
    first = (m_1 * r_1 + m_2 * l_1) * g * sp.cos(q_1) + second
    assert (found.expression - sp.Matrix([first, second])).applyfunc(sp.expand) == sp.zeros(2, 1)
    assert dict(found.subexpressions)[sp.Symbol("c_12")] == sp.cos(q_1 + q_2)


def test_the_square_of_a_length_is_a_square() -> None:
    """A waist and two parallel axes: the inertia about the waist is that of masses at a distance from its axis."""
    robot = torsor.from_mdh(
        [
            torsor.MDHLink(-1),
            torsor.MDHLink(0, alpha=np.pi / 2),
            torsor.MDHLink(1, d=0.4, mass=2.0, com=(0.3, 0, 0), name="tip"),
        ],
        name="waist",
    )
    found = robot.equations("mass_matrix", form="sympy", symbols=True)
    assert str(found.result[0, 0]) == "m_3*(c_2*l_2 + c_23*r_3)**2"


def test_without_sympy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'need SymPy; fix: pip install "torsor\[symbolic\]"'):
        importlib.reload(torsor.robot.equations)


def test_named_symbols_and_paths() -> None:
    named = ARM.equations("gravity_force", form="sympy", symbols={"M": "links.link2.mass"})
    assert named.parameters == {sp.Symbol("M"): 1.0}
    listed = ARM.equations("gravity_force", form="sympy", symbols=["links.link2.mass", "gravity.y"])
    assert listed.parameters == {sp.Symbol("m_2"): 1.0, sp.Symbol("g_y"): -9.81}


def test_latex_is_drawn_by_mathtext() -> None:
    from matplotlib.mathtext import MathTextParser

    parser = MathTextParser("path")
    for name in ("inverse_dynamics", "forward_dynamics"):
        for left, right in ARM.equations(name, form="sympy", symbols=True).lines():
            parser.parse(f"${left} = {right}$")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"form": "word"}, "form"),
        ({"symbols": ["links.nose.mass"]}, "links.nose.mass"),
        ({"symbols": {"2m": "links.link2.mass"}}, "2m"),
        ({"symbols": {"q_1": "links.link2.mass"}}, "q_1"),
        ({"symbols": {"c_2": "links.link2.mass"}}, "c_2"),
        ({"symbols": {"cos": "links.link2.mass"}}, "cos"),
        ({"symbols": {"lambda": "links.link2.mass"}}, "lambda"),
        ({"symbols": {"mass_matrix": "links.link2.mass"}}, "input or result of mass_matrix"),
        ({"symbols": "all"}, "paths"),
        ({"digits": 0}, "digits"),
        ({"simplify": "no"}, "simplify"),
        ({"place": "link1"}, "takes no link"),
        ({"axes": "aligned"}, "axes"),
    ],
)
def test_wrong_arguments(options: dict, words: str) -> None:
    with refused(words):
        ARM.equations("mass_matrix", **options)
    with refused(value="mass_matrices"):
        ARM.equations("mass_matrices")


def test_every_operation_has_a_rule_with_its_value() -> None:
    assert not uncovered(RULES)
    function = every_operation()
    program = read_program(function)
    x, y = sp.symbols("x y")
    entries, made = direct(program, {"x": [x], "y": [y]}, Letters(), Parameters())
    for at in ((0.3, 0.7), (-0.6, 0.4)):
        expected = dict(zip(function.name_out(), function.call([ca.DM(each) for each in at]), strict=True))
        point = dict(zip((x, y), map(sp.Float, at), strict=True))
        for name, (value, *_) in zip(function.name_out(), entries, strict=True):
            truth = float(expected[name][0])
            if name == "op_erfinv":  # CasADi's has eight digits, SymPy's is the inverse
                value, truth = sp.erf(value), at[0]
            if name != "numbers" and np.isfinite(truth):
                assert complex(value.subs(made).subs(point)) == pytest.approx(truth, abs=1e-13), name


def test_the_command_prints_and_writes(tmp_path, capsys) -> None:
    assert main(["equations", "two_link", "mass_matrix"]) == 0
    assert r"M_{12} = M_{21} &= 0.04 c_{2} + 0.12" in capsys.readouterr().out
    assert main(["equations", "six_axis_arm", "forward_dynamics"]) == 1
    assert "operations" in (words := capsys.readouterr().err) and "--no-simplify" in words
    path = tmp_path / "mass.py"
    assert main(["equations", "two_link", "mass_matrix", "--form", "sympy", "--symbols", "-o", str(path)]) == 0
    space = dict[str, Any]()
    exec(path.read_text(), space)  # it imports what it needs, and makes the symbols of the inputs
    expected = torsor.library.two_link().mass_matrix([0.0, 0.3])
    found = space["mass_matrix"].subs({space["q_2"]: 0.3})
    assert np.allclose(np.array(found, dtype=float), expected, rtol=1e-14)
    assert main(["equations", "two_link", "jacobian:link2", "--axes", "aligned"]) == 0
    assert "= - 0.4 s_{1} - 0.4 s_{12}" in capsys.readouterr().out
