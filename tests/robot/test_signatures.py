"""Output of ``help``: signatures that fit on one or two lines, and robots as tables."""

import inspect

import torsor
from torsor.robot.accessors import CLASSES


def test_signatures_do_not_expand_the_types_of_arrays() -> None:
    assert len(str(inspect.signature(torsor.Robot.inverse_dynamics))) < 200
    owners = (torsor.Robot, *CLASSES.values())
    methods = {
        f"{owner.__name__}.{name}": value
        for owner in owners
        for name, value in vars(owner).items()
        if inspect.isfunction(value) and name[0] != "_"
    }
    controllers = {name: value for name, value in vars(torsor.control).items() if inspect.isfunction(value)}
    for name, method in {**methods, **controllers}.items():
        text = str(inspect.signature(method))
        assert "numpy" not in text, name
        assert len(text) < 60 * (1 + len(inspect.signature(method).parameters)), name


def test_print_shows_a_table_and_repr_one_line() -> None:
    robot = torsor.library.six_axis_arm()
    text = str(robot)
    assert "mass (kg)" in text and "range" in text and "joint6" in text and "revolute" in text
    assert "\n" not in repr(robot)
