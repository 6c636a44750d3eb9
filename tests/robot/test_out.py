"""``out=``: robot methods write their results to given arrays, on every target."""

import inspect
from operator import attrgetter

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.robot.accessors import CLASSES
from torsor.robot.method_names import PATHS

ROBOT = torsor.library.two_link().with_frame("tip", "link2", np.eye(4))
CLOSED = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0}).with_active(["joint1"])
STATES = 5
OPTIONS = {"place": "tip", "forced": ["joint1"]}
PRODUCTS = {"derivatives.jvp", "derivatives.vjp"}  # their inputs are named, see below
METHODS = {"": torsor.Robot, **CLASSES}


def taking_out() -> list[str]:
    found = [
        f"{accessor}.{name}".lstrip(".")
        for accessor, owner in METHODS.items()
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if "out" in inspect.signature(method).parameters and name[0] != "_"
    ]
    return [name for name in found if name not in PRODUCTS]


def parameters(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a method, named below the robot."""
    accessor, _, method = name.rpartition(".")
    return dict(inspect.signature(getattr(METHODS[accessor], method)).parameters)


def given(robot: torsor.Robot, name: str) -> tuple[list[np.ndarray], dict[str, object]]:
    """Return random arrays for the arguments of a method that have no default, and its options."""
    rng = np.random.default_rng(0)
    arrays, options = [], {}
    for each in parameters(name).values():
        if each.name in OPTIONS:
            options[each.name] = OPTIONS[each.name]
        elif each.name != "self" and each.default is each.empty:
            ones = ("q_active", "v_active", "a_active", "tau_active", "forces")
            length = 1 if each.name in ones else robot.nv
            arrays.append(rng.normal(size=(STATES, length)))
    if robot.loops:
        arrays[0] = arrays[0][:, :1] / np.array([[1.0, 2.0]])[:, : arrays[0].shape[1]]
        if "v" in parameters(name):
            arrays[1] = arrays[1][:, :1] / np.array([[1.0, 2.0]])
    return arrays, options


def results(found: object) -> tuple[np.ndarray, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(
    "name",
    [name if k % 3 == 0 else pytest.param(name, marks=pytest.mark.slow) for k, name in enumerate(sorted(taking_out()))],
)
def test_a_method_writes_its_results_to_out_and_returns_it(name):
    robot = CLOSED if name.startswith("closed") else ROBOT
    arrays, options = given(robot, name)
    wanted = results(attrgetter(name)(robot)(*arrays, **options))
    out = tuple(np.full_like(each, np.nan) for each in wanted)
    found = results(attrgetter(name)(robot)(*arrays, **options, out=out if len(out) > 1 else out[0]))
    assert all(a is b for a, b in zip(found, out, strict=True))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(out, wanted, strict=True))


def test_every_algorithm_takes_out():
    named = {name for name in torsor.dynamics.ALGORITHMS if hasattr(torsor.Robot, name)} | set(PATHS.values())
    assert named <= set(taking_out())


def test_products_with_derivatives_write_values_and_derivatives_to_out():
    q, v, tau = np.random.default_rng(1).normal(size=(3, STATES, 2))
    for call, count in (
        (lambda out=None: ROBOT.derivatives.jvp("bias_force", (q, v), (v, None), out=out), 2),
        (lambda out=None: ROBOT.derivatives.vjp("bias_force", (q, v), tau, out=out), 3),
    ):
        wanted = call()
        flat = [wanted[0], *results(wanted[1])]
        out = [np.full_like(each, np.nan) for each in flat]
        found = call(out)
        assert len(flat) == count and all(a is b for a, b in zip([found[0], *results(found[1])], out, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(out, flat, strict=True))


def test_an_array_that_cannot_take_the_result_of_a_closed_mechanism_is_refused():
    q, still = [0.4, 0.2], [0.0, 0.0]
    with refused(argument="out", where="closed_velocities", allowed="(2,)"):
        CLOSED.closed.velocities(q, still, out=np.zeros(3), coordinates="all")
    with refused(argument="out", where="assemble"):
        CLOSED.closed.assemble([0.4], out=1.0)


@pytest.mark.parametrize("target", [{"dtype": "float32"}, {"device": "casadi"}, {"threads": 3}, {"threads": "auto"}])
def test_out_is_filled_on_every_target(target):
    robot, arrays = ROBOT.to(**target), given(ROBOT, "derivatives.inverse_dynamics")[0]
    external = np.ones((2, 6))
    for options in ({}, {"external": external}, {"external": external, "fixed_in": "world"}):
        wanted = robot.derivatives.inverse_dynamics(*arrays, **options)
        out = [np.full_like(each, np.nan) for each in wanted]
        robot.derivatives.inverse_dynamics(*arrays, **options, out=(out[0], None, out[2]))
        assert np.array_equal(out[0], wanted[0])
        assert np.isnan(out[1]).all()
        assert np.array_equal(out[2], wanted[2])


def test_out_may_be_one_of_the_inputs():
    for robot in (ROBOT, ROBOT.to(threads=2), ROBOT.to(dtype="float32")):
        q, v, a = given(ROBOT, "inverse_dynamics")[0]
        wanted = robot.inverse_dynamics(q, v, a)
        memory = np.concatenate([a, a])
        assert np.array_equal(robot.inverse_dynamics(q, v, memory[:STATES], out=memory[2 : STATES + 2]), wanted)


def test_parametric_robots_and_cut_loops_take_out():
    arm = ROBOT.parametric(["links.link2.mass"])
    q = given(ROBOT, "gravity_force")[0][0]
    out = np.empty((STATES, 2))
    assert arm.gravity_force(q, [2.0], out=out) is out
    assert np.array_equal(out, arm.gravity_force(q, [2.0]))
    assert CLOSED.mass_matrix(q, loops="open", out=(found := np.empty((STATES, 2, 2)))) is found
    assert np.array_equal(found, CLOSED.mass_matrix(q, loops="open"))


def read_only() -> np.ndarray:
    array = np.empty((STATES, 2))
    array.flags.writeable = False
    return array


TARGETS = [{}, {"dtype": "float32"}, {"device": "casadi"}, {"threads": 2}]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "out",
    [
        np.empty((STATES, 3)),
        np.empty((4, STATES, 2)),
        np.empty(2),
        np.float64(3),
        read_only(),
        (np.empty((STATES, 2)), np.empty(3)),
    ],
)
def test_wrong_out_is_refused_by_name(target, out):
    robot, arrays = ROBOT.to(**target), given(ROBOT, "bias_force")[0]
    with refused(argument="out", where="bias_force"):
        robot.bias_force(*arrays, out=out)
    with refused(argument="q", where="bias_force"):
        robot.bias_force(np.ones((STATES, 3)), arrays[1], out=np.empty((STATES, 2)))


def test_out_of_whole_numbers_is_refused():
    for target in TARGETS:
        with refused(argument="out", where="bias_force"):
            ROBOT.to(**target).bias_force(*given(ROBOT, "bias_force")[0], out=np.empty((STATES, 2), np.int64))


@pytest.mark.parametrize("target", [{}, {"dtype": "float32"}, {"threads": 2}])
def test_results_in_one_place_are_refused(target):
    robot, arrays = ROBOT.to(**target), given(ROBOT, "derivatives.inverse_dynamics")[0]
    memory = np.empty((2 * STATES, 2, 2))
    with refused(argument="out", fix="one array for each result"):
        robot.derivatives.inverse_dynamics(*arrays, out=(memory[:STATES], memory[1 : STATES + 1], None))
    dq, dv, _ = robot.derivatives.inverse_dynamics(*arrays, out=(memory[:STATES], memory[STATES:], None))
    assert np.array_equal(dq, robot.derivatives.inverse_dynamics(*arrays)[0])
    assert np.array_equal(dv, robot.derivatives.inverse_dynamics(*arrays)[1])


def test_the_method_of_multipliers_takes_no_out():
    with refused(what="out is not supported", fix='use `method="projection"`'):
        CLOSED.closed.forward_dynamics([0.4, 0.2], [0.0], [1.0], method="multipliers", out=np.empty(1))


def test_threads_of_a_robot_are_a_number_or_auto():
    assert ROBOT.to(threads="auto").target.threads == "auto"
    assert ROBOT.to(threads="auto").to(dtype="float32").target.threads == "auto"
    for wrong in ("all", "", "2"):
        with refused(argument="threads", allowed="a whole number from 1, or 'auto'"):
            ROBOT.to(threads=wrong)
    with refused(argument="threads"):
        ROBOT.to(threads=0)
