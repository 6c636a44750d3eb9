"""Absurd input for people, tasks and loads is rejected at once with a message, before any search."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torsor
from refusals import refused
from torsor import human
from torsor.human import ergonomics

ENDS = ergonomics.LiftEnd(0.3, 0.5), ergonomics.LiftEnd(0.3, 1.0)
STILL = np.zeros(55)
BODY = torsor.library.human()
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "a step of 60 m": (lambda: human.walking(step=human.Step(length=60.0)), "length of the step is 60 m"),
    "a width of 5 m": (lambda: human.walking(step=human.Step(width=5.0)), "width of the step is 5 m"),
    "a walk at 100 m/s": (lambda: human.walking(step=human.Step(speed=100.0)), "the speed is 100 m/s"),
    "running steps of 50 m": (lambda: human.running(length=50.0), "length of the step is 50 m"),
    "a run of a million points": (lambda: human.running(points=10**6), "points"),
    "a body of 500 years": (lambda: torsor.library.human(age=500.0), "age (years)"),
    "a misspelt free step": (lambda: human.Step(length="fre"), "length"),
    "a handle at 9 m": (lambda: human.pushing(height=9.0), "m of the heels"),
    "a box of a ton": (lambda: human.Box(1000.0), "mass"),
    "no body": (lambda: human.leg_length(3), "library.human"),  # type: ignore[arg-type]
    "strength of no body": (lambda: human.with_strength(3), "library.human"),  # type: ignore[arg-type]
    "a load less than nothing": (lambda: human.person_of(BODY, -5.0), "carried (kg)"),
    "a negative speed": (lambda: human.froude_number(BODY, -1.0), "0 or more"),
    "passive torques of NaN": (lambda: human.passive_torques(BODY, STILL * np.nan, STILL), "finite"),
    "hand forces at NaN": (lambda: human.HandForces.constant((0, 1, 0)).at(np.nan), "finite"),
    "an unknown sex": (lambda: ergonomics.compression_tolerance(30, "x"), "sex"),
    "no deviation": (lambda: ergonomics.capable(1.0, 1.0, 0.0), "deviation"),
    "a moment of NaN": (lambda: ergonomics.capable(math.nan, 1.0, 1.0), "moment"),
    "an unknown duration": (lambda: ergonomics.frequency_multiplier(1.0, "x", 1.0), "duration"),
    "lifts of NaN": (lambda: ergonomics.frequency_multiplier(math.nan, "long", 1.0), "frequency"),
    "an end that is none": (lambda: ergonomics.lifting_index(5.0, ENDS[0], None), "destination"),  # type: ignore[arg-type]
    "a disc that is pulled": (lambda: ergonomics.cumulative_dose([0, 1], [-1, -2]), "0 or more"),
    "lumbar loads of NaN": (lambda: ergonomics.lumbar_loads(BODY, STILL * np.nan), "finite"),
    "moment arms without instants": (
        lambda: ergonomics.muscle_forces(np.eye(3), np.ones(3), np.ones(3)),
        "levers",
    ),
    "contact of nothing": (lambda: ergonomics.joint_contact(3), "motion"),  # type: ignore[arg-type]
    "torques of other postures": (
        lambda: ergonomics.capabilities(BODY, human.person_of(BODY), np.zeros((3, 55)), np.zeros((2, 55)), np.zeros(3)),
        "torques",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_absurd_input_is_named(name: str) -> None:
    call, words = CASES[name]
    with refused(words):
        call()


def test_numbers_of_numpy_are_given_numbers_and_not_free_ones() -> None:
    step = human.Step(length=np.float32(0.5), width=np.float64(0.1), speed=np.int64(1), timing="given")
    assert not step.is_free


def test_no_instants_need_no_muscles() -> None:
    forces, missing = ergonomics.muscle_forces(np.zeros((0, 3, 4)), np.zeros((0, 3)), np.ones(4))
    assert forces.shape == (0, 4)
    assert missing.shape == (0, 3)
