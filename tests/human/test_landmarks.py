"""Positions of landmarks from placements of joints agree with the forward kinematics of the body."""

import numpy as np
import pytest

import torsor
from torsor.human.body.postures import landmark


@pytest.mark.parametrize(("height", "mass"), [(1.741, 73.0), (1.6, 55.0)])
def test_landmarks_agree_with_poses_at_zero(height: float, mass: float) -> None:
    body = torsor.library.human(height, mass).to(device="casadi")  # nothing is compiled
    poses = body.poses(body.neutral())
    for name in [frame.name for frame in body.frames] + list(body.link_names):
        link, within = body.place(name)
        assert landmark(body, name) == pytest.approx((poses[link] @ within)[:3, 3], abs=1e-12)
    assert landmark(body, body.base.name) == pytest.approx(np.zeros(3))
