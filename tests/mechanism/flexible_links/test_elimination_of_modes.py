"""Short cuts of forward dynamics with flexible links: they change no acceleration, and take fewer operations."""

import numpy as np
import pytest

import torsor
from mechanism.flexible_links.tracing import GROUND, Traced
from torsor.compiler.program import count_operations
from torsor.dynamics.recursions import elimination
from torsor.dynamics.trees.lean import lean
from torsor.dynamics.trees.tree import Tree
from torsor.mechanism import flexible_links


def _robots() -> dict[str, torsor.Robot]:
    """Return beams that carry nothing, loads, beams and links, on a fixed, a turning and a moving base."""
    chain = torsor.library.random_tree(2, 7, ("helical", "prismatic"), extras=True)
    thin = flexible_links.beam(0.6, 0.5, (3.0, 5.0), modes=(1, 2, 1), torsion=2.0, axial_inertia=1e-3, damping=0.01)
    round_tip = flexible_links.beam(0.8, 0.5, 4.0, modes=(2, 2), tip_mass=0.1, tip_inertia=0.01, coordinates="tip")
    plane = flexible_links.beam(0.5, 0.3, 2.0, modes=(3, 0), coordinates="tip")
    two = flexible_links.with_beam(flexible_links.with_beam(chain, "link1", thin, "a"), "link1", round_tip, "b")
    carried = torsor.library.random_tree(1, 3, ("revolute",), extras=False)
    on_base = flexible_links.with_beam(GROUND, "ground", round_tip, "a").attach(carried, "a/tip", prefix="tool/")
    swinging = flexible_links.with_rod(torsor.library.planar_chain(1), "link1", 0.5, 0.2, 1.0, modes=2, sections=2)
    return {
        "two beams on one link": two.with_payload("b/tip", 0.3, [0.1, 0.0, 0.2]),
        "a tree on a beam on the base": flexible_links.with_beam(on_base, on_base.link_names[-1], thin, "b"),
        "a beam on a rod": flexible_links.with_beam(swinging, "rod/tip", plane),
        "a planar arm": torsor.library.flexible_arm((2, 0)),
        "a spatial arm": torsor.library.flexible_arm((2, 2)),
    }


ROBOTS = _robots()


@pytest.mark.parametrize("name", ROBOTS)
def test_accelerations_solve_the_equations_of_motion(name: str) -> None:
    robot, rng = ROBOTS[name], np.random.default_rng(1)
    traced, n = Traced(robot), robot.nv
    q, v, a = rng.normal(size=(3, n)) * 0.1
    M, tau = traced.value("mass_matrix", q).reshape(n, n), traced.value("inverse_dynamics", q, v, a)
    assert M @ a + traced.value("bias_force", q, v) == pytest.approx(tau, rel=1e-12, abs=1e-12)
    assert traced.value("forward_dynamics", q, v, tau) == pytest.approx(a, abs=1e-10)
    forced = rng.random(n) < 0.5
    given = np.where(forced, 0, a), np.where(forced, tau, 0)
    found = traced.values("hybrid_dynamics", q, v, *given, forced=frozenset(np.flatnonzero(forced).tolist()))
    assert found[0].ravel() == pytest.approx(a, abs=1e-10)
    assert found[1].ravel() == pytest.approx(tau, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", ROBOTS)
def test_substituted_motions_change_no_acceleration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, rng = ROBOTS[name], np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, robot.nv)) * 0.1
    expected = Traced(robot).value("forward_dynamics", q, v, tau)
    monkeypatch.setattr(elimination, "FEW", -1)
    general = np.array(robot.to(device="casadi").function("forward_dynamics")(q, v, tau)).ravel()
    assert general == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("modes", "spatial", "times"), [((2, 0), False, 4.0), ((2, 2), True, 4.9)])
def test_an_arm_of_beams_takes_fewer_operations_than_a_chain(
    modes: tuple[int, int], spatial: bool, times: float
) -> None:
    arms = torsor.library.flexible_arm(modes), torsor.library.segmented_arm(10, spatial=spatial)
    counts = [count_operations(Traced(arm).function("forward_dynamics")) for arm in arms]
    bent, chain = (each.multiplications + each.additions + each.other for each in counts)
    assert chain > times * bent


def test_terms_that_cancel_are_exact_zeros() -> None:
    """A round beam that carries nothing does not resist a rotation about its axis: its modes take that motion."""
    modal = lean(Tree.of(torsor.library.flexible_arm((2, 2)))).bodies[3].modal[0]
    assert modal.condensed.linear[0].all()
    assert not modal.condensed.first[0].any()
