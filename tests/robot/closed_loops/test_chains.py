"""Jacobian and derivatives of the chain of a loop agree with derivatives of its closure error, for every joint."""

import casadi as ca
import numpy as np
import pytest

import torsor
from torsor.dynamics.loops.closure import Chain, Closures, closure_error
from torsor.dynamics.recursions.configuration import steps
from torsor.dynamics.recursions.kinematics import moves
from torsor.dynamics.trees.tree import Tree
from torsor.spatial import from_rpy, make_pose

from .mechanisms import KINDS


def branched(kind: str, types: tuple[str, ...]) -> torsor.Robot:
    """Two branches of a random tree, joined at their ends however they lie: the equations need not hold."""
    robot = torsor.library.random_tree(6, 5, types=types, branching=0.6, extras=False)
    ends = robot.link_names[-1], robot.link_names[3]
    poses = (
        make_pose(from_rpy([0.1, 0.2, 0.3]), [0.1, 0.2, 0.3]),
        make_pose(from_rpy([0.4, -0.2, 0.3]), [0.5, 0.2, 0.3]),
    )
    robot = robot.with_frame("a", ends[0], poses[0]).with_frame("b", ends[1], poses[1])
    return robot.with_loop("loop", "a", "b", kind, length=0.5 if kind == "rod" else 0.0)


@pytest.mark.parametrize("types", [("revolute", "prismatic", "helical"), ("planar", "spherical")], ids=["one", "many"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exact", [False, True])
def test_chains_are_the_derivatives_of_the_equations(kind: str, types: tuple[str, ...], exact: bool) -> None:
    robot, rng = branched(kind, types), np.random.default_rng(0)
    tree = Tree.of(robot)
    q, v, a, along = (
        ca.SX.sym(name, n) for name, n in (("q", tree.nq), ("v", tree.nv), ("a", tree.nv), ("d", tree.nv))
    )
    E, cut = steps(tree, q), tree.closures[0]
    phi = closure_error(tree, q) if exact else cut.loop.rows(*Chain(tree, moves(tree, q), cut).pose)
    forces = ca.SX.sym("forces", phi.size1())

    def change(X: ca.SX, direction: ca.SX) -> ca.SX:
        return ca.jtimes(ca.vec(ca.densify(X)), q, E @ direction)

    A = ca.jacobian(phi, q) @ E
    held = ca.SX.sym("held", tree.nv)
    drift = ca.substitute(change(A @ held, held), held, v)
    closures = Closures(tree, q, exact)
    rate_by_q, second_by_q, second_by_v = closures.rate_derivatives(v, a)
    pairs = [
        (closures.A, A),
        (closures.drift(v), drift),
        (rate_by_q @ along, change(A @ v, along)),
        (second_by_q @ along, change(A @ a + drift, along)),
        (second_by_v @ along, ca.jtimes(drift, v, along)),
        (closures.stiffness(forces) @ along, change(A.T @ forces, along)),
    ]
    state = robot.integrate(robot.neutral(), rng.normal(size=tree.nv)), *rng.normal(size=(3, tree.nv))
    function = ca.Function("pairs", [q, v, a, along, forces], [each for pair in pairs for each in pair])
    found = function(*map(ca.DM, state), ca.DM(rng.normal(size=phi.size1())))
    numbers = [each.full() for each in found]
    for mine, expected in zip(numbers[::2], numbers[1::2], strict=True):
        np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-11 * max(1, np.abs(expected).max()))
