"""Inverse dynamics takes no more operations than the recursion of the literature, customised to the same robot."""

import json
from pathlib import Path

import numpy as np
import pytest

import torsor

COUNTS = json.loads((Path(__file__).parents[2] / "data" / "targets.json").read_text())["rnea_operation_counts"]
QUARTER = np.pi / 2


def lengths(n, joints):
    """Nonzero lengths at the joints given, counted from 1."""
    values = np.zeros(n)
    values[np.array(joints, int) - 1] = 0.1 + 0.05 * np.arange(len(joints))
    return values


def right_angled(signs, d, r):
    """Modified Denavit-Hartenberg alpha, d, r of a robot whose axes are parallel or at right angles."""
    return QUARTER * np.array(signs), lengths(len(signs), d), lengths(len(signs), r)


def general(n):
    """Every parameter nonzero, but for those of joint 1, which stands on the base with its axis upright."""
    rng = np.random.default_rng(n)
    alpha, d, r = rng.uniform(0.3, 1.2, (3, n))
    alpha[0] = d[0] = 0.0
    return alpha, d, r


ROBOTS = {
    "6R general": general(6),
    "7R general": general(7),
    "6R Puma-like": right_angled((0, -1, 0, -1, 1, -1), d=(3, 4), r=(3, 4, 6)),
    "7R iiwa-like": right_angled((0, -1, 1, 1, -1, -1, 1), d=(), r=(1, 3, 5, 7)),
    "7R Panda-like": right_angled((0, -1, 1, 1, -1, 1, 1), d=(4, 5, 7), r=(1, 3, 5)),
}
INERTIAS = ("full", "diagonal")


def robot(name, kind):
    """The robot with a general centre of mass in every link, and gravity along z of the base.

    A diagonal inertia is one about the origin of the link's frame, the J of the customised recursion.
    """
    rng = np.random.default_rng(1)
    links = []
    for j, (alpha, d, r) in enumerate(zip(*ROBOTS[name], strict=True)):
        m, c = rng.uniform(1, 3), rng.uniform(0.02, 0.1, 3)
        inertia = np.diag(rng.uniform(0.3, 0.35, 3))
        inertia -= m * (c @ c * np.eye(3) - np.outer(c, c))
        if kind == "full":
            inertia += 0.01 * (np.ones((3, 3)) - np.eye(3))
        links.append(torsor.MDHLink(j - 1, alpha=alpha, d=d, r=r, mass=m, com=c, inertia=inertia))
    return torsor.from_mdh(links, gravity=(0, 0, -9.81))


def published(name, kind):
    """The count of the literature; the table names the iiwa-like robot in two ways, both with these words."""
    joints, like = name.split()
    (found,) = (count for key, count in COUNTS.items() if joints in key and like in key and f"{kind} inertia" in key)
    return found


@pytest.mark.parametrize("kind", INERTIAS)
@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics_takes_no_more_operations_than_published(name, kind):
    count, limit = robot(name, kind).operation_count("inverse_dynamics"), published(name, kind)
    assert count.multiplications <= limit["mul"]
    assert count.additions <= limit["add"]
    assert count.trigonometric <= limit["sincos"]
    assert count.other == 0
