"""The work of a shift: consistent durations, and the same arguments in Python, on the command line and in sweeps."""

from pathlib import Path

import pytest

from refusals import refused
from torsor.base.errors import ModelError
from torsor.cli.predictions import NAMED
from torsor.human import Box, WorkShift, lifting
from torsor.motion import sweeps
from torsor.motion.sweeps.files import load_study

GIVEN = {"frequency": 2.0, "repetitions": 300.0, "coupling": "good"}


@pytest.mark.parametrize(
    ("given", "frequency", "duration"),
    [
        ({}, 0.2, "short"),
        ({"repetitions": 60.0, "frequency": 1.0}, 1.0, "short"),
        ({"repetitions": 61.0, "frequency": 1.0}, 1.0, "moderate"),
        ({"repetitions": 121.0, "frequency": 1.0}, 1.0, "long"),
        ({"repetitions": 960.0}, 2.0, "long"),
        ({"repetitions": 240.0, "work_duration": "moderate"}, 2.0, "moderate"),
        ({"frequency": 9.0, "work_duration": "long"}, 9.0, "long"),
    ],
)
def test_missing_frequencies_and_durations_fit_the_repetitions(
    given: dict[str, object], frequency: float, duration: str
) -> None:
    shift = WorkShift(**given)  # type: ignore[arg-type]
    assert shift.frequency_per_minute == pytest.approx(frequency, rel=1e-12) and shift.duration == duration
    assert shift.minutes * shift.frequency_per_minute == pytest.approx(shift.repetitions, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"repetitions": 0.0}, "repetitions"),
        ({"frequency": -1.0}, "frequency"),
        ({"coupling": "weak"}, "coupling"),
        ({"work_duration": "all day"}, "work_duration"),
        ({"repetitions": 481.0, "frequency": 1.0}, "481 repetitions at 1 per minute take 8.02 hours"),
        ({"repetitions": 61.0, "frequency": 1.0, "work_duration": "short"}, "take 1.02 hours"),
    ],
)
def test_work_that_does_not_fit_into_a_shift_raises(given: dict[str, object], message: str) -> None:
    with refused(message):
        WorkShift(**given)  # type: ignore[arg-type]


def test_a_lift_has_the_same_arguments_in_python_on_the_command_line_and_in_sweeps(tmp_path: Path) -> None:
    places = {"from_": (0.4, 0.45), "to": (0.9, 0.4), "duration": 1.4, "lean": 70.0}
    python = lifting(box=Box(12.0), **places, **GIVEN)  # type: ignore[arg-type]
    options = {"from": [0.4, 0.45], "to": [0.9, 0.4], "duration": 1.4, "lean": 70.0, "box": 12.0, **GIVEN}
    text = 'torsor = 1\nproblem = "lift"\ngrid.box = [12.0]\n[fixed]\nfrom_ = [0.4, 0.45]\nto = [0.9, 0.4]\n'
    text += 'duration = 1.4\nlean = 70.0\nfrequency = 2.0\nrepetitions = 300.0\ncoupling = "good"\n'
    (tmp_path / "study.toml").write_text(text)
    study = load_study(tmp_path / "study.toml")
    (case,) = study.cases
    swept = sweeps.PROBLEMS["lift"](**case, **study.options["fixed"])
    for problem in (NAMED["lift"].problem(options), swept):
        assert problem.shift == python.shift == WorkShift(300.0, 2.0, "good")
        assert problem.stages[0].duration == 1.4
        terms, expected = ({term.title: term for term in each.conditions} for each in (problem, python))
        for title in ("box at the start", "box at the end"):
            assert (terms[title].height, terms[title].ahead) == (expected[title].height, expected[title].ahead)
        assert terms["lean of the chest"].most == expected["lean of the chest"].most


def test_invalid_work_of_a_lift_is_rejected_before_the_search() -> None:
    with pytest.raises(ModelError, match="repetitions"):
        lifting(repetitions=-1.0)
