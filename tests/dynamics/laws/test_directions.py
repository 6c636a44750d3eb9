"""Directional derivatives of every method: differences, adjoint pairs, and sparsity patterns."""

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics import ALGORITHMS
from torsor.robot.accessors import PATHS, method_of

COMPILED = torsor.library.random_tree(6, seed=4)
ROBOT = COMPILED.to(device="casadi")  # most functions are called once, and most of the time is for making code
RNG = np.random.default_rng(8)
# Hybrid dynamics and closed loops need more than a tree: they are tried where they are tested.
NAMES = [name for name, each in ALGORITHMS.items() if not (each.hybrid or each.closed)]
LIGHT = [name for name in NAMES if name in PATHS or hasattr(torsor.Robot, name) or name.startswith("chart")]
# The last link of the tree cannot move in all directions, so that it has no finite Cartesian mass matrix.
LIGHT = [name for name in LIGHT if not name.endswith("derivatives") and name != "cartesian_mass_matrix"]


def options(name: str) -> dict:
    return {"place": ROBOT.link_names[-1]} if ALGORITHMS[name].at_place else {}


def inputs(name: str, external: bool = False) -> tuple[np.ndarray, ...]:
    request = ROBOT.kernels.request(name, external=external, **options(name))
    shapes = request.arguments(ROBOT)
    q = ROBOT.integrate(ROBOT.neutral(), RNG.normal(size=ROBOT.nv))
    return tuple(q if each in request.positions else RNG.normal(size=shape) for each, shape in shapes.items())


def packed(value) -> list[np.ndarray]:
    return [np.asarray(each) for each in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("components", [False, True])
def test_a_directional_derivative_is_the_limit_of_differences(name: str, components: bool) -> None:
    state, h = inputs(name), 1e-6
    positions = ROBOT.kernels.request(name, **options(name)).positions
    names = list(ROBOT.kernels.request(name, **options(name)).arguments(ROBOT))
    curved = [each in positions and not components for each in names]
    tangents = [RNG.normal(size=ROBOT.nv if c else x.shape) for c, x in zip(curved, state, strict=True)]

    def at(step: float) -> list[np.ndarray]:
        there = [
            ROBOT.integrate(x, step * t) if c else x + step * t for c, x, t in zip(curved, state, tangents, strict=True)
        ]
        place = [options(name)["place"]] if options(name) else []
        if name.startswith("chart"):
            return packed(np.asarray(ROBOT.function(name)(*there).full())[:, 0])
        return packed(method_of(ROBOT, name)(*there, *place))

    value, change = ROBOT.derivatives.jvp(name, state, tangents, components=components, **options(name))
    for found, expected in zip(packed(value), at(0.0), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max(initial=0)))
    for found, after, before in zip(packed(change), at(h), at(-h), strict=True):
        expected = (after - before) / (2 * h)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7 * max(1.0, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("name", NAMES)
def test_pushing_forward_and_pulling_back_are_adjoint(name: str) -> None:
    external = ALGORITHMS[name].external
    state = inputs(name, external)
    request = ROBOT.kernels.request(name, external=external, **options(name))
    tangents = [RNG.normal(size=shape) for shape in request.tangents(ROBOT).values()]
    weights = tuple(RNG.normal(size=shape) for shape in request.results(ROBOT).values())
    value, change = ROBOT.derivatives.jvp(name, state, tangents, external=external, **options(name))
    same, gradients = ROBOT.derivatives.vjp(
        name, state, weights if len(weights) > 1 else weights[0], external=external, **options(name)
    )
    for one, other in zip(packed(value), packed(same), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, np.abs(one).max(initial=0)))
    forward = [w * d for w, d in zip(weights, packed(change), strict=True)]
    backward = [g * t for g, t in zip(gradients, tangents, strict=True)]
    scale = sum(np.abs(each).sum() for each in forward + backward)
    assert abs(sum(each.sum() for each in forward) - sum(each.sum() for each in backward)) <= 1e-12 * scale


def test_analytical_derivatives_are_the_directional_ones() -> None:
    q, v, a = inputs("inverse_dynamics")
    d = RNG.normal(size=(3, ROBOT.nv))
    _, change = ROBOT.derivatives.jvp("inverse_dynamics", (q, v, a), d)
    dq, dv, da = ROBOT.derivatives.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(change, dq @ d[0] + dv @ d[1] + da @ d[2], rtol=0, atol=1e-11 * np.abs(change).max())


def test_directions_take_batches_and_inputs_that_stay() -> None:
    q, v = RNG.normal(size=(2, 5, 2))
    robot = torsor.library.two_link()
    _, change = robot.derivatives.jvp("bias_force", (q, v), (None, np.ones(2)))
    _, one = robot.derivatives.jvp("bias_force", (q[3], v[3]), (np.zeros(2), np.ones(2)))
    assert change.shape == (5, 2)
    np.testing.assert_array_equal(change[3], one)


@pytest.mark.parametrize(
    "name", ["inverse_dynamics_derivatives", "mass_matrix", "joint_wrench_derivatives", "jacobian"]
)
def test_values_and_pattern_are_the_whole(name: str) -> None:
    state = [RNG.normal(size=(4, *each.shape)) for each in inputs(name)]
    state[0] = ROBOT.integrate(ROBOT.neutral(), RNG.normal(size=(4, ROBOT.nv)))
    place = [options(name)["place"]] if options(name) else []
    parts, whole = (
        COMPILED.derivatives.sparse(name, *state, **options(name)),
        packed(method_of(COMPILED, name)(*state, *place)),
    )
    for part, full in zip(parts if isinstance(parts, tuple) else (parts,), whole, strict=True):
        np.testing.assert_array_equal(part.dense().reshape(full.shape), full)
        assert part.values.shape == (4, part.rows.size) and part.rows.size < full[0].size


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda r: r.derivatives.jvp("mass_matrix", (np.zeros(2), np.zeros(2)), (np.zeros(2),)),
            "mass_matrix got 2 inputs",
        ),
        (lambda r: r.derivatives.jvp("mass_matrix", (np.zeros(2),), ()), "mass_matrix got 0 tangents"),
        (lambda r: r.derivatives.vjp("force_rate", (np.zeros(2),) * 4, (np.zeros(2),)), "force_rate got 1 cotangents"),
        (lambda r: r.derivatives.vjp("force_rate", (np.zeros(2),) * 4, None), "force_rate got None cotangents"),
        (
            lambda r: r.derivatives.jvp("mass_matrix", (np.zeros(2),), (None,), links=3),
            "takes no 'links'",
        ),
        (
            lambda r: r.function("inverse_dynamics", external=np.zeros((2, 6))),
            "external",
        ),
        (lambda r: r.function("hybrid_dynamics", forced=[["joint1"]]), "forced contains ['joint1']"),
        (lambda r: r.force_rate(*np.zeros((4, 2)), higher=None), "higher"),
        (
            lambda r: r.derivatives.inverse_dynamics(*np.zeros((3, 2)), fixed_in=np.zeros(2)),
            "fixed_in",
        ),
        (lambda r: r.inertial.base(among=None), "parameter names"),
        (lambda r: r.derivatives.jvp("nothing", (), ()), "nothing"),
        (lambda r: r.derivatives.sparse("mass_matrix"), "mass_matrix got 0 inputs"),
        (lambda r: r.derivatives.sparse("mass_matrix", np.zeros(2), order=2), "order of mass_matrix is 2"),
        (lambda r: r.derivatives.sparse("mass_matrix", np.zeros(2), external=True), "takes no external wrenches"),
        (lambda r: r.function("inverse_dynamics", external="world"), "external"),
    ],
)
def test_mistakes_are_named(call, message: str) -> None:
    with refused(message):
        call(torsor.library.two_link())


def test_a_result_of_one_row_has_its_pattern_too() -> None:
    robot, (q, v, a) = torsor.library.planar_chain(1), RNG.normal(size=(3, 4, 1))
    found = robot.derivatives.sparse("joint_wrenches", q, v, a)
    np.testing.assert_array_equal(found.dense(), robot.joint_wrenches(q, v, a))


def test_higher_rates_may_come_one_by_one() -> None:
    robot, state = torsor.library.two_link(), RNG.normal(size=(6, 2))
    found = robot.force_rate(*state[:4], higher=(each for each in state[4:]))
    np.testing.assert_array_equal(found, robot.force_rate(*state[:4], higher=state[4:]))


def test_a_robot_without_joints_has_no_base_parameters() -> None:
    robot = torsor.build("stone", [torsor.Link("base", 1.0)], [])
    assert len(robot.inertial.base()) == 0
    with pytest.raises(torsor.ModelError, match="no such link; allowed: there is none"):
        robot.parametric(["links.0.mass"])
