"""What parts of the human refuse, and bodies that are not the usual one."""

from dataclasses import replace

import numpy as np
import pytest

import torsor
from torsor import human
from torsor.errors import ModelError
from torsor.human.body.fatigue import JointLoads
from torsor.human.body.kernels import shared_model

BODY = torsor.library.human()


@pytest.mark.parametrize(
    "change",
    [("right_knee_flexion", {"offset": 0.3}), ("tilt", {"lower": -1.0})],
)
def test_shared_functions_have_the_dynamics_of_any_body(change):
    name, more = change
    body = replace(BODY, joints=tuple(replace(each, **more) if each.name == name else each for each in BODY.joints))
    model, numbers = shared_model(body)
    made = model.at([numbers[each].lower for each in model.names])
    rng = np.random.default_rng(0)
    state = [0.3 * rng.normal(size=55) for _ in range(3)]
    np.testing.assert_allclose(made.inverse_dynamics(*state), body.inverse_dynamics(*state), rtol=0, atol=1e-9)
    assert (model is shared_model(BODY).model) == (more == {"lower": -1.0})


@pytest.mark.parametrize("task", [human.walking, human.lifting, human.standing_up, human.reaching])
def test_tasks_refuse_what_is_no_human_on_the_ground(task):
    with pytest.raises(ModelError, match=r"body is 3; allowed: a torsor.library.human\(\)"):
        task(3)
    with pytest.raises(ModelError, match="robot 'two_link'; allowed: a body with the coordinates"):
        task(torsor.library.two_link())
    with pytest.raises(ModelError, match="gravity is 0"):
        task(BODY.with_gravity([0.0, 0.0, 0.0]))


def test_segments_are_links_of_their_names():
    with pytest.raises(ModelError, match="segment 'left_hand' is 3; allowed: a Link of that name"):
        torsor.library.human(segments={"left_hand": 3})
    with pytest.raises(ModelError, match="allowed: a Link of that name"):
        torsor.library.human(segments={"left_hand": BODY.links[BODY.link_names.index("right_hand")]})
    with pytest.raises(ModelError, match="segments is 3"):
        torsor.library.human(segments=3)


def test_strength_at_what_is_no_number_is_refused():
    for q, v in ((np.nan, 0.0), (0.0, np.inf), ("a", 0.0), ([0.0, 1.0], [0.0, 1.0, 2.0])):
        with pytest.raises(ModelError, match="right_knee_flexion: "):
            human.joint_strength(BODY, "right_knee_flexion", q, v)


def test_laws_of_fatigue_are_of_coordinates_with_loads():
    loads = JointLoads(1.0, {"right_knee_flexion": np.array([-0.6, 0.2])})
    for laws in ({"right_knee": human.Fatigue()}, {"right_knee_flexion": 3}):
        with pytest.raises(ModelError, match="allowed: a Fatigue of one of right_knee_flexion"):
            human.fatigued(loads, 2, laws=laws)
    with pytest.raises(ModelError, match="loads is 3; allowed: a result of a walk, or JointLoads"):
        human.fatigued(3, 2)


def test_free_fall_has_no_zero_moment_point():
    still = np.zeros(55)
    ground = human.ground_reaction(BODY, still, still, np.r_[0.0, -9.81, np.zeros(53)])
    assert abs(ground.force).max() < 1e-9
    with pytest.raises(ValueError, match=r"v has shape \(54,\)"):
        human.ground_reaction(BODY, still, np.zeros(54), still)
