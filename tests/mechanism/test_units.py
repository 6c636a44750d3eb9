"""Units of coordinates and forces, wherever they are shown."""

from types import SimpleNamespace

import numpy as np
import pytest

import torsor
from refusals import warned
from torsor.identification import Measurements
from torsor.identification.contents import plot
from torsor.mechanism.mechanism import force_units
from torsor.simulation.trajectory import Overload, warn_of_overloads

ARM = torsor.library.stanford().with_motor("joint3", 1e-9, ratio=100.0, carrier="base", stiffness=1e4)
UNITS = {name: "N" if name.startswith("joint3") else "N m" for name in ARM.coordinate_names}  # joint3 slides


def test_forces_of_sliding_joints_and_of_their_motors_are_in_newtons() -> None:
    assert "joint3/motor" in UNITS and force_units(ARM) == UNITS


@pytest.mark.parametrize("name", UNITS)
def test_warnings_of_overloads_have_the_unit_of_the_coordinate(name: str) -> None:
    with warned(fix="limits are not enforced: use smaller gains or a"):
        warn_of_overloads(SimpleNamespace(robot=ARM), (Overload(name, 0.1, 30.0, 20.0),))  # type: ignore[arg-type]


def test_figures_of_an_identification_have_the_unit_of_the_coordinate() -> None:
    pytest.importorskip("matplotlib")
    zeros = np.zeros((4, ARM.nv))
    numbers = {"predicted": zeros, "rms": zeros[0], "relative_residuals": zeros[0], "method": "least squares"}
    data = Measurements(zeros, zeros, zeros, zeros)
    figure = plot(SimpleNamespace(prior=ARM, measurements=data, unseen=None, **numbers), None)
    shown = {axes.get_title().partition(":")[0]: axes.get_ylabel() for axes in figure.axes}
    assert shown == UNITS
