"""Array arguments of the methods: shapes are checked, precision is kept, and inputs are not modified."""

import copy
import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import torsor
from refusals import refused, warned
from torsor.dynamics import ALGORITHMS
from torsor.robot.accessors import method_of
from torsor.robot.method_names import PATHS
from torsor.spatial import from_rpy, make_pose

PLACED = [name for name, algorithm in ALGORITHMS.items() if algorithm.at_place]
# Hybrid dynamics has one more argument and result; it is tested in tests/dynamics/laws.
WITH_EXTERNAL = [name for name, each in ALGORITHMS.items() if each.external and not (each.results or each.closed)]
# This robot has no loops; they are tested in tests/robot/closed_loops.
METHODS = [
    name
    for name, each in ALGORITHMS.items()
    if (name in PATHS or hasattr(torsor.Robot, name))
    and not (each.results or each.closed or "c" in each.output or "multipliers" in each.inputs)
]


@pytest.fixture(scope="module")
def robot() -> torsor.Robot:
    """Return a tree with a ball joint, so that nq differs from nv; results depend on each coordinate."""
    return torsor.library.random_tree(3, seed=2, types=("prismatic", "spherical", "helical"))


def sizes(robot: torsor.Robot, name: str) -> dict[str, int]:
    length = {
        "q": robot.nq,
        "q_end": robot.nq,
        "v": robot.nv,
        "a": robot.nv,
        "tau": robot.nv,
        "dv": robot.nv,
        "j": robot.nv,
        "weight": robot.nv,
    }
    return {each: length[each] for each in ALGORITHMS[name].inputs}


def state(robot: torsor.Robot, name: str, batch: tuple[int, ...] = (), seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*batch, length)) for length in sizes(robot, name).values()]


def call(robot: torsor.Robot, name: str, values: list, **settings) -> np.ndarray:
    if name in PLACED:
        values = [*values, robot.link_names[-1]]
    return method_of(robot, name)(*values, **settings)


def test_every_method_is_tried() -> None:
    assert len(METHODS) >= 20
    assert {name for name in PLACED if not ALGORITHMS[name].results} <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_length_names_the_argument_and_what_is_allowed(robot: torsor.Robot, name: str) -> None:
    values = state(robot, name)
    for k, (argument, length) in enumerate(sizes(robot, name).items()):
        for wrong in (np.zeros(length + 1), np.zeros(length - 1), np.zeros((length, 2)), np.zeros(0), 0.0):
            with refused(where=name, argument=argument, value=wrong, allowed=f"(..., {length})"):
                call(robot, name, [*values[:k], wrong, *values[k + 1 :]])


@pytest.mark.parametrize("name", WITH_EXTERNAL)
def test_a_wrong_shape_of_external_names_what_is_allowed(robot: torsor.Robot, name: str) -> None:
    links = len(robot.links)
    for wrong in (
        np.zeros(6),
        np.zeros((links + 1, 6)),
        np.zeros((6, links)),
        np.zeros((links, 3)),
        np.zeros(6 * links),
    ):
        with refused(argument="external", allowed="(..., 3, 6)"):
            call(robot, name, state(robot, name), external=wrong)


@pytest.mark.parametrize("name", METHODS)
def test_leading_axes_that_do_not_broadcast_are_an_error(robot: torsor.Robot, name: str) -> None:
    values = state(robot, name)
    if len(values) > 1:
        wrong = [np.zeros((3, values[0].size)), np.zeros((4, values[1].size)), *values[2:]]
        with refused(where=name, allowed="equal lengths, or 1"):
            call(robot, name, wrong)


def ragged(length: int) -> list:
    return [[0.0] * length, [0.0] * (length - 1)]


NOT_NUMBERS: dict[str, Callable[[int], object]] = {
    "none": lambda length: None,
    "none inside": lambda length: [None] * length,
    "a word": lambda length: "abc",
    "words": lambda length: ["a"] * length,
    "numbers in quotes": lambda length: ["1.0"] * length,
    "an array of text": lambda length: np.array(["1.0"] * length),
    "bytes": lambda length: b"abc",
    "a dictionary": lambda length: {"q": 1.0},
    "rows of different lengths": ragged,
    "complex numbers": lambda length: [1j] * length,
    "a complex array": lambda length: np.full(length, 1 + 2j),
    "a complex array of real numbers": lambda length: np.ones(length, dtype=complex),
    "single complex": lambda length: np.full(length, 1 + 2j, dtype=np.complex64),
    "complex objects": lambda length: np.array([1j] * length, dtype=object),
    "dates": lambda length: np.zeros(length, dtype="M8[s]"),
    "times": lambda length: np.zeros(length, dtype="m8[s]"),
    "records": lambda length: np.zeros(length, dtype=[("x", float)]),
    "whole numbers beyond floating point": lambda length: [10**400] * length,
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # a warning instead of an error must fail too
@pytest.mark.parametrize("case", NOT_NUMBERS)
def test_arguments_that_are_not_real_numbers_are_refused(robot: torsor.Robot, case: str) -> None:
    for name in ("inverse_dynamics", "mass_matrix", "jacobian", "integrate"):
        values = state(robot, name)
        for k, (argument, length) in enumerate(sizes(robot, name).items()):
            with refused(where=name, argument=argument):
                call(robot, name, [*values[:k], NOT_NUMBERS[case](length), *values[k + 1 :]])


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_complex_external_wrenches_are_refused(robot: torsor.Robot) -> None:
    values = state(robot, "inverse_dynamics")
    with refused(argument="external", where="inverse_dynamics"):
        robot.inverse_dynamics(*values, external=np.full((len(robot.links), 6), 1j))


@pytest.mark.parametrize("name", METHODS)
def test_layout_and_type_of_the_numbers_do_not_matter(robot: torsor.Robot, name: str) -> None:
    whole = [np.round(3 * each).astype(int) for each in state(robot, name, (4, 3))]
    expected = call(robot, name, [each.astype(float) for each in whole])
    layouts: list[Callable[[np.ndarray], object]] = [
        lambda x: x,
        lambda x: x.astype(np.int8),
        lambda x: x.astype(np.float32),
        lambda x: x.astype(">f8"),
        lambda x: np.asfortranarray(x.astype(float)),
        lambda x: np.repeat(x.astype(float), 2, axis=-1)[..., ::2],
        lambda x: x.astype(float)[::-1, :, ::-1].copy()[::-1, :, ::-1],
        lambda x: x.tolist(),
        lambda x: tuple(map(tuple, x.tolist())),
    ]
    for layout in layouts:
        np.testing.assert_array_equal(call(robot, name, [layout(each) for each in whole]), expected)


@pytest.mark.parametrize("name", METHODS)
def test_inputs_may_be_read_only_and_are_never_changed(robot: torsor.Robot, name: str) -> None:
    values = state(robot, name)
    kept = copy.deepcopy(values)
    for value in values:
        value.setflags(write=False)
    result = call(robot, name, values)
    for value, before in zip(values, kept, strict=True):
        np.testing.assert_array_equal(value, before)
        assert not np.shares_memory(result, value)
    if isinstance(result, np.ndarray):
        result[...] = np.nan  # a result is the caller's own
    assert np.isfinite(call(robot, name, values)).all()


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_gives_the_results_of_its_states_one_by_one(robot: torsor.Robot, name: str) -> None:
    values = state(robot, name, (2, 3))
    together = call(robot, name, values)
    for index in np.ndindex(2, 3):
        np.testing.assert_array_equal(together[index], call(robot, name, [value[index] for value in values]))
    first = [values[0][:, :1], *(value[0] for value in values[1:])]
    spread = [np.broadcast_to(value, (2, 3, value.shape[-1])) for value in first]
    expected = call(robot, name, spread) if len(values) > 1 else call(robot, name, first)
    np.testing.assert_array_equal(call(robot, name, first), expected)


@pytest.mark.parametrize("name", METHODS)
def test_an_empty_batch_gives_an_empty_batch(robot: torsor.Robot, name: str) -> None:
    one = call(robot, name, state(robot, name))
    assert call(robot, name, state(robot, name, (0,))).shape == (0, *one.shape)
    assert call(robot, name, state(robot, name, (2, 0, 3))).shape == (2, 0, 3, *one.shape)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_gives_nan_in_every_result_that_depends_on_it(robot: torsor.Robot, name: str, bad: float) -> None:
    function = robot.function(name, robot.link_names[-1] if name in PLACED else None)
    values = state(robot, name)
    for k, value in enumerate(values):
        depends = np.array(function.jac_sparsity(0, k).T.row()), np.array(function.jac_sparsity(0, k).T.get_col())
        for i in range(value.size):
            changed = value.copy()
            changed[i] = bad
            result = call(robot, name, [*values[:k], changed, *values[k + 1 :]])
            reshaped = result.reshape(function.size_out(0)).ravel(order="F")
            reached = depends[1][depends[0] == i]
            if np.isnan(bad):
                assert np.isnan(reshaped[reached]).all()
            others = np.setdiff1d(np.arange(reshaped.size), reached)
            assert np.isfinite(reshaped[others]).all()


def test_nan_in_one_state_of_a_batch_stays_there(robot: torsor.Robot) -> None:
    q, v, a = state(robot, "inverse_dynamics", (5,))
    expected = robot.inverse_dynamics(q, v, a)
    q[2] = np.nan
    result = robot.inverse_dynamics(q, v, a)
    assert np.isnan(result[2]).any()
    np.testing.assert_array_equal(np.delete(result, 2, axis=0), np.delete(expected, 2, axis=0))


def test_a_zero_quaternion_gives_nan() -> None:
    ball = torsor.Link("ball", 1.0, (0.3, 0.2, 0.1), np.eye(3))
    made = torsor.build("ball", [torsor.Link("ground"), ball], [torsor.Joint("b", "spherical", "ground", "ball")])
    assert np.isnan(made.gravity_force(np.zeros(4))).all()


@pytest.mark.parametrize("name", PLACED)
def test_an_unknown_place_is_an_error_that_lists_the_known_ones(robot: torsor.Robot, name: str) -> None:
    values = state(robot, name)
    method_of(robot, name)(*values, 1)  # what was computed before must not change the answer
    for place in ("nowhere", "", 1.0, True, ("link1",), ["link1"], b"link1"):
        with refused(where=robot.name, value=place, allowed="'link1'"):
            method_of(robot, name)(*values, place)
    for place in (len(robot.links), -len(robot.links) - 1):
        with refused(where=robot.name, allowed=f"0 to {len(robot.links) - 1}"):
            method_of(robot, name)(*values, place)
    with refused(where=robot.name, what="needs the name of a link or frame"):
        method_of(robot, name)(*values, None)


def test_places_by_index_and_by_name_agree(robot: torsor.Robot) -> None:
    q = state(robot, "poses")[0]
    for i, name in enumerate(robot.link_names):
        for index in (i, i - len(robot.links), np.int64(i)):
            np.testing.assert_array_equal(robot.pose(q, index), robot.pose(q, name))


def test_a_function_is_named_with_its_link_as_in_an_export() -> None:
    robot, q = torsor.library.two_link(), [0.3, -0.2]
    named, placed = robot.function("jacobian:link2")(q), robot.function("jacobian", "link2")(q)
    np.testing.assert_array_equal(named.toarray(), placed.toarray())
    with refused(fix="omit the link: 'mass_matrix'"):
        robot.function("mass_matrix:link2")
    with refused(value="hand"):
        robot.function("jacobian:hand")
    with refused(value="jacobain:link2", allowed="jacobian:LINK,") as caught:
        robot.function("jacobain:link2")
    assert len(str(caught.value)) < 250


def test_an_unknown_algorithm_is_an_error_that_lists_similar_ones(robot: torsor.Robot) -> None:
    for ask in (robot.function, robot.operation_count):
        with refused(value="dynamics", allowed="inverse_dynamics"):
            ask("dynamics")
        with refused(what="jacobian needs the name of a link or frame"):
            ask("jacobian")
        with refused(what="mass_matrix takes no link or frame"):
            ask("mass_matrix", "link1")
        with refused(what="mass_matrix takes no external wrenches"):
            ask("mass_matrix", external=True)
        with refused(value="nowhere"):
            ask("jacobian", "nowhere")


def test_the_robot_is_immutable(robot: torsor.Robot) -> None:
    link, joint = robot.links[0], robot.joints[0]
    for part, name in ((robot, "gravity"), (robot, "links"), (link, "mass"), (joint, "axis")):
        with pytest.raises(AttributeError):
            setattr(part, name, 0.0)
    with pytest.raises(TypeError):
        robot.links[0] = link
    arrays = [robot.gravity, link.com, link.inertia, joint.placement, joint.axis, joint.point, joint.lower, joint.upper]
    arrays += [joint.velocity_limit, joint.effort_limit, joint.coulomb, joint.viscous, joint.rotor_inertia]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


def test_places_and_joint_frames_are_immutable() -> None:
    robot = torsor.library.two_link()
    expected = robot.pose([0.1, 0.2], "link2")
    with pytest.raises(ValueError, match="read-only"):
        robot.place("link2").pose[0, 3] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        robot.joints[1].frame[0, 3] = 5.0
    with pytest.raises(TypeError):
        robot.places["elsewhere"] = robot.place("link1")
    np.testing.assert_array_equal(robot.velocities([0.1, 0.2], [0.0, 0.0]), np.zeros((2, 6)))
    np.testing.assert_array_equal(robot.pose([0.1, 0.2], "link2"), expected)


def test_limits_and_neutral_are_copies(robot: torsor.Robot) -> None:
    for give in (lambda: robot.lower, lambda: robot.velocity_limit, robot.neutral, lambda: robot.effort_limit):
        before = give().copy()
        values = give()
        if values.flags.writeable:
            values[...] = 7.0
        np.testing.assert_array_equal(give(), before)


def test_arrays_given_to_parts_may_change_afterwards() -> None:
    com, inertia, placement = np.array([0.1, 0.2, 0.3]), np.eye(3), np.eye(4)
    link = torsor.Link("a", 1.0, com, inertia)
    joint = torsor.Joint("j", "revolute", "g", "a", placement)
    for array in (com, inertia, placement):
        array[...] = np.nan
    assert link.com.tolist() == [0.1, 0.2, 0.3]
    assert link.inertia.tolist() == np.eye(3).tolist()
    assert joint.placement.tolist() == np.eye(4).tolist()


def test_copies_are_equal_and_compute_the_same(robot: torsor.Robot) -> None:
    values = state(robot, "inverse_dynamics")
    expected = robot.inverse_dynamics(*values)
    for twin in (copy.copy(robot), copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert twin == robot
        np.testing.assert_array_equal(twin.inverse_dynamics(*values), expected)


def test_copies_of_parametric_robots_compute_the_same() -> None:
    arm = torsor.library.two_link().parametric({"payload": {"links.link2.mass": 2.0}})
    expected = arm.mass_matrix([0.1, 0.2], [0.5])
    for twin in (copy.copy(arm), copy.deepcopy(arm), pickle.loads(pickle.dumps(arm))):
        assert twin.names == arm.names
        np.testing.assert_array_equal(twin.mass_matrix([0.1, 0.2], [0.5]), expected)


@pytest.mark.parametrize("massless", [True, False])
def test_without_mass_there_is_no_centre_of_mass_and_no_momentum(massless: bool) -> None:
    wheel = torsor.Link("wheel", inertia=np.eye(3))
    spin = torsor.Joint("spin", "revolute", "ground", "wheel")
    links, joints = ([torsor.Link("ground"), wheel], [spin]) if massless else ([torsor.Link("ground")], [])
    robot = torsor.build("empty", links, joints)
    state = np.zeros(robot.nv)
    assert np.isnan(robot.center_of_mass(state)).all()
    momentum = robot.momentum(state, state + 2.0)
    assert momentum.tolist() == [0.0, 0.0, 2.0 * robot.nv, 0.0, 0.0, 0.0]


SEVERAL = ["inverse_dynamics_derivatives", "joint_wrench_derivatives", "force_rate", "joint_wrench_rates"]


@pytest.mark.parametrize("name", SEVERAL)
def test_methods_with_several_results_take_batches_and_refuse_mistakes(name: str) -> None:
    robot = torsor.library.random_tree(3, seed=1)
    many, one = (call(robot, name, state(robot, name, batch)) for batch in ((2, 3), ()))
    assert [each.shape for each in many] == [(2, 3, *each.shape) for each in one]
    assert [each.shape for each in call(robot, name, state(robot, name, (0,)))] == [(0, *each.shape) for each in one]
    with refused(argument="q"):
        call(robot, name, [np.zeros(99), *state(robot, name)[1:]])
    values = state(robot, name)
    values[1][0] = np.nan
    assert any(np.isnan(each).any() for each in call(robot, name, values))


def test_integers_beyond_floats_and_names_that_are_lists_are_refused() -> None:
    robot = torsor.library.two_link()
    for huge in (10**400, [10**400, 0]):
        with refused(argument="q", allowed="real numbers"):
            robot.inverse_dynamics(huge, [0.0, 0.0], [0.0, 0.0])
        with refused(argument="j", allowed="real numbers"):
            robot.force_rate([0.0, 0.0], [0.0, 0.0], [0.0, 0.0], huge)
    with refused(value=["mass_matrix"]):
        robot.function(["mass_matrix"])  # type: ignore[arg-type]


class Tensor:
    """What frameworks for learning hand to NumPy: an object with ``__array__``, or an error of their own."""

    def __init__(self, values: np.ndarray, tracked: bool = False):
        self.values, self.tracked = values, tracked

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        if self.tracked:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return np.asarray(self.values)


TARGETS = [{"threads": 1}, {"threads": 2}, {"dtype": "float32"}, {"device": "casadi"}]


@pytest.mark.parametrize("batch", [(), (3,), (600,)])
def test_arrays_of_other_kinds_are_the_same_whatever_the_target(robot: torsor.Robot, batch: tuple[int, ...]) -> None:
    plain = state(robot, "inverse_dynamics", batch)
    kinds: list[Callable[[np.ndarray], object]] = [
        lambda x: np.ma.array(x, mask=False),
        lambda x: x.astype(np.longdouble),
        lambda x: Tensor(x),
        lambda x: x.view(type("Mine", (np.ndarray,), {})),
    ]
    for target in TARGETS:
        made = robot.to(**target)
        expected = made.inverse_dynamics(*plain)
        for kind in kinds:
            found = made.inverse_dynamics(*(kind(each) for each in plain))
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("batch", [(), (3,), (600,)])
def test_what_is_no_number_is_refused_whatever_the_target(robot: torsor.Robot, batch: tuple[int, ...]) -> None:
    q, v, a = state(robot, "inverse_dynamics", batch)
    hidden = np.ma.array(v, mask=np.zeros(v.shape, dtype=bool))
    hidden[..., 0] = np.ma.masked
    for target in TARGETS:
        for wrong in (hidden, Tensor(v, tracked=True), v > 0, (v > 0).tolist()):
            with refused(argument="v"):
                robot.to(**target).inverse_dynamics(q, wrong, a)  # type: ignore[arg-type]


def test_all_methods_take_and_refuse_the_same_arrays() -> None:
    belt = torsor.library.two_link().with_coupling("belt", {"joint1": 1.0, "joint2": -2.0}).with_active(["joint1"])
    rrr = torsor.library.three_rrr()
    q, one, still = np.array([0.4, 0.2]), np.ones(1), np.zeros(3)
    calls: list[Callable[[Callable[[np.ndarray], object]], np.ndarray]] = [
        lambda kind: belt.closed.inverse_dynamics(kind(q), kind(one), kind(one)),  # type: ignore[arg-type]
        lambda kind: belt.closed.forward_dynamics(kind(q), kind(0 * q), kind(q), coordinates="all"),  # type: ignore[arg-type]
        lambda kind: belt.closed.forward_dynamics(kind(q), kind(one), kind(one), method="multipliers"),  # type: ignore[arg-type]
        lambda kind: rrr.inverse_dynamics(kind(rrr.home), kind(still), kind(still)),  # type: ignore[arg-type]
    ]
    for call_with in calls:
        expected = call_with(lambda x: x)
        for kind in (Tensor, lambda x: x.astype(np.longdouble), lambda x: np.ma.array(x, mask=False)):
            np.testing.assert_array_equal(call_with(kind), expected)
        for kind in (lambda x: np.ma.masked_all(x.shape), lambda x: x > 0, lambda x: Tensor(x, tracked=True)):
            with pytest.raises(ValueError):  # the words are those of each method
                call_with(kind)


@pytest.mark.parametrize("order", [10**400, 10**6, 0, -1, 1.0, True])
def test_orders_beyond_any_use_are_refused_at_once(order: object) -> None:
    with refused(allowed="1 to 64"):
        torsor.library.two_link().function("force_rate", order=order)  # type: ignore[arg-type]


def with_light_link(inertia: float) -> torsor.Robot:
    """Two hinges on one line, with a light link between them: their accelerations are nearly undetermined."""
    light, heavy = torsor.Link("light", 0.1, inertia=inertia * np.eye(3)), torsor.Link("heavy", 5.0, inertia=np.eye(3))
    joints = [torsor.Joint("first", "revolute", "base", "light"), torsor.Joint("second", "revolute", "light", "heavy")]
    return torsor.build("arm", [torsor.Link("base"), light, heavy], joints)


def test_single_precision_that_cannot_give_accelerations_warns_once() -> None:
    robot, zero = with_light_link(1e-9).to(dtype="float32", device="casadi"), np.zeros(2)
    with warned(where="arm", fix="robot.to(dtype='float64'"):
        robot.forward_dynamics(zero, zero, zero)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.forward_dynamics(zero, zero, zero, np.zeros((2, 6)))  # once for a robot
        robot.inverse_dynamics(zero, zero, zero)
        with_light_link(1e-9).to(device="casadi").forward_dynamics(zero, zero, zero)
        with_light_link(1e-2).to(dtype="float32", device="casadi").forward_dynamics(zero, zero, zero)


@pytest.mark.parametrize(("turned", "warned"), [(np.pi / 2, True), (0.0, False)])
def test_positions_within_the_limits_count_for_single_precision(turned: float, warned: bool) -> None:
    """Hinges z, x, z, light but for the last, at right angles: the two z axes coincide after a quarter turn about x."""
    light = [torsor.Link(name, 0.1, inertia=1e-9 * np.eye(3)) for name in ("one", "two")]
    links = [torsor.Link("base"), *light, torsor.Link("heavy", 5.0, inertia=np.eye(3))]
    quarter = make_pose(from_rpy([np.pi / 2, 0, 0]))
    joints = [
        torsor.Joint("first", "revolute", "base", "one"),
        torsor.Joint("middle", "revolute", "one", "two", quarter, (1, 0, 0), lower=turned - 1e-3, upper=turned + 1e-3),
        torsor.Joint("last", "revolute", "two", "heavy"),
    ]
    robot, zero = torsor.build("wrist", links, joints).to(dtype="float32", device="casadi"), np.zeros(3)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        robot.forward_dynamics(zero, zero, zero)
    assert ["at some positions" in str(each.message) for each in found] == [True] * warned
