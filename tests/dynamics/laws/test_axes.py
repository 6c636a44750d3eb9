"""Motions of frames in own, aligned and world axes, and of points, on trees with every kind of joint."""

import casadi as ca
import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.robot.accessors import method_of
from torsor.spatial import from_rpy, make_pose

AXES = ("local", "aligned", "world")
POINT = np.array([0.3, -0.2, 0.1])
RATES = ("jacobian", "velocity", "acceleration", "jerk")


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-11) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


CURVED = ("spherical", "free", "planar", "helical")


@pytest.fixture(scope="module", params=["curved", pytest.param("every kind", marks=pytest.mark.slow)])
def tree(request: pytest.FixtureRequest) -> torsor.Robot:
    many = request.param == "every kind"  # with a joint that follows another
    robot = torsor.library.random_tree(7, 9, branching=0.1) if many else torsor.library.random_tree(4, 4, CURVED, 0.0)
    camera = make_pose(from_rpy([0.3, -0.4, 0.5]), [0.1, 0.2, -0.3])
    shifted = camera @ make_pose(p=POINT)
    link = robot.link_names[-1]
    return robot.with_frame("camera", link, camera).with_frame("shifted", link, shifted).to(device="casadi")


def state(robot: torsor.Robot) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [robot.integrate(robot.neutral(), rng.normal(size=robot.nv)), *rng.normal(size=(3, robot.nv))]


def rate_in_time(robot: torsor.Robot, name: str, axes: str, values: list[np.ndarray]) -> np.ndarray:
    """Return the rate of a quantity's components along a motion with the rates ``values``, by forward mode."""
    function, t = robot.function(name, "camera", axes=axes), ca.SX.sym("t")
    q, *rates = values
    given = [robot.function("integrate")(q, t * rates[0])]
    given += [rate + t * more for rate, more in zip(rates, [*rates[1:], np.zeros(robot.nv)], strict=True)]
    result = function(*given[: function.n_in()])
    rate = ca.jacobian(ca.vec(result), t)
    found = ca.Function("rate", [t], [ca.reshape(rate, result.shape)])(0.0).full()
    return found if found.shape[1] > 1 else found[:, 0]


@pytest.mark.parametrize("axes", AXES)
def test_the_twist_is_the_jacobian_times_velocities_and_rates_are_rates(tree: torsor.Robot, axes: str) -> None:
    q, v, a, j = state(tree)
    J, J_rate = tree.jacobian(q, "camera", axes), tree.task.jacobian_rate(q, v, "camera", axes)
    close(tree.velocity(q, v, "camera", axes), J @ v)
    close(J_rate, rate_in_time(tree, "jacobian", axes, [q, v, a, j]))
    acceleration = J @ a + J_rate @ v
    if axes == "local":
        acceleration[3:] += np.cross((J @ v)[:3], (J @ v)[3:])
    else:  # base axes do not turn: each is the rate of the one before
        close(tree.acceleration(q, v, a, "camera", axes), rate_in_time(tree, "velocity", axes, [q, v, a, j]))
        close(tree.task.jerk(q, v, a, j, "camera", axes), rate_in_time(tree, "acceleration", axes, [q, v, a, j]))
    close(tree.acceleration(q, v, a, "camera", axes), acceleration)


def test_aligned_vectors_are_the_local_ones_turned(tree: torsor.Robot) -> None:
    q, *rates = state(tree)
    R = tree.pose(q, "camera")[:3, :3]
    both = np.kron(np.eye(2), R)
    for k, name in enumerate(RATES):
        given = (q, *rates[:k], "camera")
        close(method_of(tree, name)(*given, axes="aligned"), both @ method_of(tree, name)(*given))


@pytest.mark.parametrize("axes", AXES[:2])
def test_a_point_is_the_origin_of_a_shifted_frame(tree: torsor.Robot, axes: str) -> None:
    q, v, *rates = state(tree)
    for name, given in [("jacobian_rate", (q, v)), *((name, (q, v, *rates)[: k + 1]) for k, name in enumerate(RATES))]:
        method = method_of(tree, name)
        close(method(*given, "camera", axes, POINT), method(*given, "shifted", axes))


def test_all_points_have_the_same_twist_at_the_origin_of_the_base(tree: torsor.Robot) -> None:
    q, *rates = state(tree)
    for k, name in enumerate(RATES[:3]):
        given, method = (q, *rates[:k]), method_of(tree, name)
        close(method(*given, "camera", "world"), method(*given, tree.link_names[-1], "world"))


@pytest.mark.parametrize("axes", AXES[1:])
@pytest.mark.parametrize("name", ["velocity", "acceleration"])
def test_derivatives_are_those_of_the_traced_function(tree: torsor.Robot, name: str, axes: str) -> None:
    point = axes == "aligned"
    values = state(tree)[: 2 if name == "velocity" else 3]
    symbols = [ca.SX.sym("x", each.size) for each in values]
    step, function = ca.SX.sym("step", tree.nv), tree.function(name, "camera", axes=axes, point=point)
    last = [POINT] if point else []
    moved = function(tree.function("integrate")(symbols[0], step), *symbols[1:], *last)
    outputs = [ca.substitute(ca.jacobian(moved, step), step, 0)]
    outputs += [ca.jacobian(function(*symbols, *last), each) for each in symbols[1:]]
    expected = ca.Function("expected", symbols, outputs)(*values)
    found = method_of(tree, f"{name}_derivatives")(*values, "camera", axes, *last)
    for one, other in zip(found, expected, strict=True):
        close(one, other.full())


def test_derivatives_of_jerks_in_other_axes_match_differences() -> None:
    robot = torsor.library.two_link().to(device="casadi")
    q, v, a, j = np.random.default_rng(1).normal(size=(4, 2))
    found, h = robot.derivatives.jerk(q, v, a, j, "link2", "world"), 1e-6
    for k in range(4):
        for i in range(2):
            up, down = (
                [each + s * h * np.eye(2)[i] * (n == k) for n, each in enumerate((q, v, a, j))] for s in (1, -1)
            )
            change = robot.task.jerk(*up, "link2", "world") - robot.task.jerk(*down, "link2", "world")
            close(found[k][:, i], change / (2 * h), 1e-8)


def test_places_on_the_base_do_not_move_in_any_axes() -> None:
    robot = torsor.library.two_link().with_frame("post", "base", make_pose(p=[1, 2, 3])).to(device="casadi")
    for axes in AXES:
        assert not robot.jacobian([1.0, 2.0], "post", axes).any()
        assert not robot.task.jacobian_rate([1.0, 2.0], [1.0, 1.0], "post", axes).any()
        assert not robot.task.jerk(*np.ones((4, 2)), "post", axes).any()
        assert not any(each.any() for each in robot.derivatives.acceleration(*np.ones((3, 2)), "post", axes))


def test_points_are_inputs_of_one_kernel_and_have_batches() -> None:
    robot = torsor.library.two_link()
    points = np.random.default_rng(0).normal(size=(5, 3))
    J = robot.jacobian([0.3, 0.4], "link2", "aligned", points)
    assert J.shape == (5, 6, 2)
    kept = len(robot.kernels._kernels)
    close(robot.jacobian([0.3, 0.4], "link2", "aligned", points[2]), J[2])
    assert len(robot.kernels._kernels) == kept
    assert robot.jacobian(np.zeros((0, 2)), "link2", "aligned", [0, 0, 1.0]).shape == (0, 6, 2)
    single = robot.to(dtype="float32").jacobian([0.3, 0.4], "link2", "aligned", points)
    assert single.dtype == np.float32
    close(single, J, 1e-6)


def test_wrong_axes_and_points_are_refused_in_words() -> None:
    robot = torsor.library.two_link()
    for call, words in [
        (lambda: robot.jacobian([0, 0], "link2", "global"), "axes"),
        (lambda: robot.jacobian([0, 0], "link2", None), "axes"),
        (lambda: robot.velocity([0, 0], [0, 0], "link2", "world", [0, 0, 1]), "use `axes='aligned'`"),
        (lambda: robot.jacobian([0, 0], "link7"), "link7"),
        (lambda: robot.jacobian([0, 0], None), "jacobian needs the name of a link or frame"),
        (lambda: robot.derivatives.jvp("poses", ([0, 0],), (None,), axes="world"), "axes"),
    ]:
        with refused(words):
            call()
    with refused(argument="point"):
        robot.jacobian([0.0, 0.0], "link2", "aligned", [1.0, 2.0])
