"""The wording of messages comes from one place, and the fields of errors survive copying and pickling."""

import pickle
import warnings

import numpy as np
import pytest

import torsor
from torsor.base.errors import Message, ModelError, ModelWarning, MotionError, SimulationError, warn


@pytest.mark.parametrize("kind", [ModelError, MotionError, SimulationError, ModelWarning, torsor.AssemblyError])
def test_a_message_says_where_what_allowed_and_fix_in_this_order(kind: type[Message]) -> None:
    made = kind("mass is negative", where="arm.toml: link 'hand'", allowed="0 or more", fix="correct the sign")
    assert str(made) == "arm.toml: link 'hand': mass is negative; allowed: 0 or more; fix: correct the sign"
    assert str(kind("mass is negative")) == "mass is negative"
    assert made.args == (str(made),)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1.0, "-1.0"),
        (np.float64(2), "2.0"),
        (np.array([1, 2]), "[1, 2]"),
        ("x" * 200, f"'{'x' * 37}...{'x' * 38}'"),
        (None, "None"),
        (np.zeros(20), f"[{', '.join(['0.0'] * 16)}, ... 20 in all]"),
    ],
)
def test_the_value_of_an_argument_is_shown(value: object, text: str) -> None:
    assert str(ModelError(argument="mass", value=value)) == f"mass is {text}"


def test_a_clause_follows_the_argument() -> None:
    error = ModelError("has shape (2,)", argument="q", value=[1.0, 2.0], where="arm", allowed="(3,)")
    assert str(error) == "arm: q has shape (2,); allowed: (3,)"
    assert (error.argument, error.value) == ("q", [1.0, 2.0])


def test_control_characters_are_escaped() -> None:
    assert str(ModelError("the name is \x1b[2J")) == "the name is \\x1b[2J"


def test_fields_survive_a_pickle() -> None:
    error = torsor.AssemblyError("the loop stays open", where="arm", fix="another guess").but(
        q=np.zeros(3), q_active=np.zeros(1), closing_error=0.1
    )
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.fix, again.closing_error) == (type(error), str(error), error.fix, 0.1)


def test_another_place_contains_the_place_of_the_error() -> None:
    inner = ModelError(argument="mass", value=-1, where="link 'hand'")
    outer = inner.inside("arm.toml")
    assert (outer.where, outer.argument, inner.where) == ("arm.toml: link 'hand'", "mass", "link 'hand'")
    assert ModelError("odd").inside("arm.toml").where == "arm.toml"


def test_a_warning_has_fields_and_belongs_to_the_line_of_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("it has no mass", where="link 'hand'")
    message = caught[0].message
    assert isinstance(message, ModelWarning) and message.where == "link 'hand'"
    assert caught[0].filename == __file__
