"""Tree dynamics raise an error for a robot with loops, unless ``loops="open"`` is given."""

from operator import attrgetter

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor.dynamics import ALGORITHMS
from torsor.robot.accessors import method_of
from torsor.robot.autodiff.functions import node_of

TREE = {name: each for name, each in ALGORITHMS.items() if each.instead}
LINKAGE = torsor.library.four_bar().to(device="casadi")
Q = LINKAGE.closed.assemble([0.7])


def options(name: str) -> dict[str, object]:
    forced = {"forced": [LINKAGE.coordinate_names[0]]} if ALGORITHMS[name].hybrid else {}
    return forced | ({"place": LINKAGE.link_names[-1]} if ALGORITHMS[name].at_place else {})


def values(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [Q if each == "q" else rng.normal(size=LINKAGE.nv) for each in ALGORITHMS[name].inputs]


@pytest.mark.parametrize("name", TREE)
def test_every_method_of_the_trees_dynamics_names_the_loops_and_the_method_that_closes_them(name: str) -> None:
    given = values(name)
    method = TREE[name].instead.split(",")[0].split(" ")[0]
    fix = "there is no method for closed loops" if method == "none" else f"{method} "
    assert method == "none" or attrgetter(method.removeprefix("robot."))(LINKAGE)
    asked = [
        lambda: method_of(LINKAGE, name)(*given, **options(name)),
        lambda: LINKAGE.function(name, **options(name)),
        lambda: LINKAGE.operation_count(name, **options(name)),
        lambda: LINKAGE.derivatives.jvp(name, given, [None] * len(given), **options(name)),
        lambda: LINKAGE.derivatives.vjp(name, given, np.zeros(1), **options(name)),
        lambda: LINKAGE.derivatives.sparse(name, *given, **options(name)),
        lambda: method_of(LINKAGE.parametric(["gravity"]), name)(*given, np.zeros(3), **options(name)),
        lambda: node_of(LINKAGE, name, options(name)),
    ]
    for ask in asked:
        with refused(where=LINKAGE.name, what=name, fix=fix):
            ask()


@pytest.mark.parametrize("name", TREE)
def test_told_so_they_compute_the_tree_that_is_left(name: str) -> None:
    given, tree = values(name), LINKAGE.open_tree()
    expected = method_of(tree, name)(*given, **options(name))
    opened = LINKAGE.kernels.compiled(LINKAGE.kernels.request(name, loops="open", **options(name)))(*given)
    np.testing.assert_array_equal(opened, expected)
    if name in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_force", "gravity_force", "joint_wrenches"):
        np.testing.assert_array_equal(method_of(LINKAGE, name)(*given, loops="open"), expected)
    with refused(where=LINKAGE.name, what=name):  # having been told once is not being told
        method_of(LINKAGE, name)(*given, **options(name))


def test_a_four_bar_is_not_the_tree_that_its_joints_form() -> None:
    still = np.zeros(LINKAGE.nv)
    tree = LINKAGE.inverse_dynamics(Q, still, still, loops="open")
    own = LINKAGE.closed.inverse_dynamics(Q, [0.0], [0.0])
    G = LINKAGE.closed.velocities(Q, [1.0])
    np.testing.assert_allclose(own, G @ tree, rtol=1e-12)  # virtual work
    assert abs(own[0] - tree[0]) > 1.0


def test_what_is_right_for_a_closed_mechanism_is_not_refused() -> None:
    v = LINKAGE.closed.velocities(Q, [1.3])
    for name in ("kinetic_energy", "velocities", "momentum"):
        np.testing.assert_array_equal(
            method_of(LINKAGE, name)(Q, v), method_of(LINKAGE.open_tree(), name)(Q, v), err_msg=name
        )
    for name in ("poses", "potential_energy", "center_of_mass", "spring_force"):
        assert np.isfinite(method_of(LINKAGE, name)(Q)).all(), name
    still = np.zeros(LINKAGE.nv)
    power = LINKAGE.inertial.power_regressor(Q, v, still) @ LINKAGE.inertial.values  # closed loops do no work
    assert power == pytest.approx(v @ LINKAGE.inverse_dynamics(Q, v, still, loops="open"), rel=1e-12)


def test_a_tree_is_its_own_open_tree_and_may_be_told_so() -> None:
    arm = torsor.library.two_link()
    assert arm.open_tree() is arm
    np.testing.assert_array_equal(arm.mass_matrix([0.1, 0.2], loops="open"), arm.mass_matrix([0.1, 0.2]))


@pytest.mark.parametrize(
    ("name", "loops", "text"),
    [
        ("mass_matrix", "closed", "loops"),
        ("mass_matrix", True, "loops"),
        (
            "constrained_velocities",
            "open",
            "constrained_velocities keeps the loops closed",
        ),
    ],
)
def test_other_words_for_loops_are_refused(name: str, loops: object, text: str) -> None:
    with refused(text):
        LINKAGE.function(name, loops=loops)  # type: ignore[arg-type]


def test_the_regressor_of_a_closed_mechanism_names_that_of_its_drives() -> None:
    with refused(fix="robot.closed.regressor"):
        LINKAGE.inertial.regressor(Q, np.zeros(LINKAGE.nv), np.zeros(LINKAGE.nv))
    assert len(LINKAGE.inertial.base()) < len(LINKAGE.open_tree().inertial.base())
