"""Environments: the motions of rollouts, episodes, gradients, and adapters for Gymnasium and PyTorch."""

import sys
from typing import Any

import casadi as ca
import numpy as np
import pytest

import torsor
from gpu_on_cpu import ProcessorDevice, StrictDevice
from refusals import refused
from torsor.compiler.cuda import kernel as cuda_kernel
from torsor.control import drives
from torsor.simulation import Contact, Environments, rollout

ARM = torsor.library.two_link()
COUNT = 5
RNG = np.random.default_rng(0)
STARTS = {"q": RNG.normal(size=(COUNT, 2)), "v": RNG.normal(size=(COUNT, 2)), "goal": RNG.normal(size=(COUNT, 2))}
SIZES = {"t": 1, "q": 2, "v": 2, "action": 2, "previous_action": 2, "goal": 2}
SHORT: dict[str, Any] = {"step": 5e-3, "period": 0.01, "duration": 0.05}


def named(name: str, call: Any, names: str, **sizes: int) -> ca.Function:
    """Return the function ``call`` of named inputs."""
    symbols = {each: ca.SX.sym(each, *np.atleast_1d((SIZES | sizes)[each])) for each in names.split()}
    return ca.Function(name, list(symbols.values()), [call(*symbols.values())], list(symbols), [name])


OBSERVATION = named("observation", lambda *x: ca.vertcat(*x, ca.cos(x[1])), "t q v action previous_action goal")
REWARD = named(
    "reward",
    lambda t, q, v, a, b, goal: ca.sin(t) - ca.sumsqr(q - goal) - 0.1 * ca.sumsqr(v) - ca.sumsqr(a - b),
    "t q v action previous_action goal",
)
STOP = named("stop", lambda q: 3.0 - q[0], "q")
TORQUE = named("torque", lambda t, q, v, action: 5 * action * ca.cos(t) - 0.1 * v + 0.2 * q, "t q v action")
DRIVES = drives(ARM, [0.1, -0.2], kp=[300.0, 200.0], kd=[2.0, 1.0])


def arms(robot: torsor.Robot = ARM, count: int = COUNT, controller: Any = DRIVES, **changed: Any) -> Environments:
    settings: dict[str, Any] = {"observation": OBSERVATION, "reward": REWARD, "starts": STARTS} | SHORT | changed
    return Environments(robot, count, controller, **settings)


def actions(steps: int, count: int = COUNT) -> np.ndarray:
    return np.random.default_rng(1).normal(scale=0.5, size=(steps, count, 2))


@pytest.fixture(params=["cpu", "cuda"])
def robot(request: Any, monkeypatch: pytest.MonkeyPatch) -> torsor.Robot:
    device = ProcessorDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: device)
    return ARM.to(device=request.param)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_step_with_drives_is_a_rollout_bit_for_bit(robot: torsor.Robot, dtype: str) -> None:
    robot = robot.to(dtype=dtype)
    own, (action,) = arms(robot), actions(1)
    q, v = np.array(own.q), np.array(own.v)
    own.step(action)
    reference = (np.array([0.1, -0.2], dtype) + action.astype(dtype)).astype(float)
    law = drives(ARM, reference, kp=[300.0, 200.0], kd=[2.0, 1.0])
    run = rollout(robot, q, v, SHORT["period"], controller=law, step=SHORT["step"])
    np.testing.assert_array_equal(own.q, run.q[:, -1])
    np.testing.assert_array_equal(own.v, run.v[:, -1])


def test_steps_with_a_law_of_time_and_action_are_rollouts(robot: torsor.Robot) -> None:
    own, both = arms(robot, controller=TORQUE), actions(2)
    q, v = np.array(own.q), np.array(own.v)
    for k, action in enumerate(both):
        own.step(action)
        for i in range(COUNT):
            t, x, y = (ca.SX.sym("x", n) for n in (1, 2, 2))
            law = ca.Function("law", [t, x, y], [TORQUE(t + k * SHORT["period"], x, y, ca.DM(action[i]))])
            run = rollout(ARM, q[i], v[i], SHORT["period"], controller=law, step=SHORT["step"])
            np.testing.assert_allclose(own.q[i], run.q[-1], rtol=0, atol=1e-14)
            np.testing.assert_allclose(own.v[i], run.v[-1], rtol=0, atol=1e-13)
        q, v = np.array(own.q), np.array(own.v)
    np.testing.assert_allclose(own.t, 2 * SHORT["period"], rtol=1e-15)


def test_no_array_leaves_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    device = StrictDevice()
    monkeypatch.setattr(cuda_kernel, "current", lambda: device)
    own, truth = arms(ARM.to(device="cuda"), controller=TORQUE, seed=1), arms(controller=TORQUE, seed=1)
    for action in actions(6):
        found, expected = own.step(action), truth.step(action)
    own.reset([1]), truth.reset([1])
    for array, wanted in zip((*found[:-1], own.observation), (*expected[:-1], truth.observation), strict=True):
        np.testing.assert_allclose(array.get(), wanted, rtol=0, atol=1e-12)
    gradients = zip(found.vjp(reward=np.ones(COUNT)), expected.vjp(reward=np.ones(COUNT)), strict=True)
    assert all(np.allclose(array.get(), wanted, rtol=0, atol=1e-12) for array, wanted in gradients)


@pytest.mark.parametrize("rebounds", [(0.0, 0.0), (0.2, 0.7)])
def test_a_legged_robot_with_pushes_its_own_ground_and_payloads_steps_as_in_rollouts(
    rebounds: tuple[float, float],
) -> None:
    dog, home = torsor.library.quadruped(), torsor.library.quadruped().postures["home"]
    frictions, start = np.array([0.8, 0.1]), home + 0.005 * np.eye(19)[2] * (rebounds[0] > 0)
    contact = Contact(kind="hard", friction=0.8, stiffness=4e4, restitution=rebounds[0])
    law = drives(dog, home, kp=40.0, kd=1.0).saturated()
    push, payload = np.zeros((2, len(dog.links), 6)), np.array([[0.5], [3.0]])
    push[1, 0, 3:5] = 30.0, 60.0
    loaded = dog.parametric({"payload": {"links.trunk.mass": 1.0}})
    starts = {"q": start[None], "friction": frictions, "external": push, "p": payload}
    if rebounds[0]:
        starts["restitution"] = np.array(rebounds)
    sizes: dict[str, Any] = {"q": 19, "v": 18}
    height = named("height", lambda q: q[2], "q", **sizes)
    own = Environments(
        loaded, 2, law, observation=named("observation", ca.vertcat, "q v", **sizes), reward=height,
        starts=starts, contact=contact, step=2e-3, period=0.02,
    )  # fmt: skip
    gain = own.data["kp"].copy()
    gain[1] = 20.0
    own.data["kp"][...] = gain
    for _ in range(3):
        own.step(np.zeros((2, 12)))
    for i in range(2):
        alone = drives(dog, home, kp=(40.0, 20.0)[i], kd=1.0).saturated()
        ground = Contact(kind="hard", friction=float(frictions[i]), stiffness=4e4, restitution=rebounds[i])
        settings: dict[str, Any] = {"controller": alone, "external": push[i], "contact": ground, "step": 2e-3}
        run = rollout(loaded, start, np.zeros(18), 0.06, payload[i], **settings)
        np.testing.assert_array_equal(own.q[i], run.q[-1])
    assert abs(own.q[1] - own.q[0]).max() > 0.01


def test_a_robot_with_loops_steps_as_in_rollouts() -> None:
    robot = torsor.library.four_bar()
    start = robot.closed.assemble([0.5], guess=[0.5, 1.0, 1.5])
    torque = named("torque", lambda action: ca.vertcat(action, 0, 0), "action", action=1)
    angles, first = (named("f", lambda q, n=n: q[:n], "q", q=robot.nq) for n in (3, 1))
    own = Environments(robot, 2, torque, observation=angles, reward=first, starts={"q": start[None]})
    own.step([[1.0], [2.0]])
    tau = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    run = rollout(robot, np.tile(start, (2, 1)), np.zeros(3), 0.02, controller=tau, step=2e-3)
    np.testing.assert_array_equal(own.q, run.q[:, -1])
    assert abs(robot.closed.error(own.q)).max() < 1e-12


def test_a_batch_is_the_environments_alone_bit_for_bit() -> None:
    together = arms(stop=STOP)
    results = [together.step(action) for action in 40 * actions(8)]
    assert any(each.terminated.any() for each in results) and any(each.truncated.any() for each in results)
    for i in range(COUNT):
        order = {name: np.roll(array, -i, axis=0) for name, array in STARTS.items()}
        alone = arms(count=1, stop=STOP, starts=order)
        for result, action in zip(results, 40 * actions(8), strict=True):
            single = alone.step(action[i : i + 1])
            for whole, part in zip(result[:-1], single[:-1], strict=True):
                np.testing.assert_array_equal(whole[i], part[0])


def test_observations_and_rewards_are_those_of_the_functions(robot: torsor.Robot) -> None:
    own, before = arms(robot), np.zeros((COUNT, 2))
    for k, action in enumerate(actions(3)):
        result = own.step(action)
        for i in range(COUNT):
            values = (k + 1) * SHORT["period"], own.q[i], own.v[i], action[i], before[i], STARTS["goal"][i]
            np.testing.assert_allclose(result.observation[i], OBSERVATION(*values).full()[:, 0], rtol=0, atol=1e-13)
            np.testing.assert_allclose(result.reward[i], float(REWARD(*values)), rtol=1e-12, atol=1e-13)
        before = action
    np.testing.assert_array_equal(own.observation, result.final_observation)


def test_episodes_are_truncated_at_their_duration_and_start_from_other_rows(robot: torsor.Robot) -> None:
    own, first = arms(robot), arms(robot).observation
    for k, action in enumerate(actions(5)):
        result = own.step(action)
        assert not result.terminated.any() and (result.truncated == (k == 4)).all()
    assert (own.t == 0).all() and not np.array_equal(result.final_observation, result.observation)
    rows = [int(np.flatnonzero((STARTS["q"] == each).all(axis=1))[0]) for each in own.q]
    assert sorted(rows) == [*range(COUNT)] and rows != [*range(COUNT)]
    np.testing.assert_array_equal(own.data["goal"], STARTS["goal"][rows])
    np.testing.assert_array_equal(own.reset(), first)


def test_an_episode_terminates_when_stop_is_negative(robot: torsor.Robot) -> None:
    own = arms(robot, stop=named("stop", lambda q, goal: goal[0] - q[0], "q goal"))
    q, goal = np.array(own.q), np.array(own.data["goal"])
    result = own.step(np.zeros((COUNT, 2)))
    assert 0 < result.terminated.sum() < COUNT
    end = result.final_observation[:, 1]
    np.testing.assert_array_equal(result.terminated, goal[:, 0] - end < 0)
    np.testing.assert_array_equal(result.observation[~result.terminated, 1], end[~result.terminated])
    assert abs(end - q[:, 0]).max() < 0.2


def test_a_reset_of_some_environments_touches_no_others(robot: torsor.Robot) -> None:
    own = arms(robot)
    own.step(actions(1)[0])
    before = {"q": np.array(own.q), "v": np.array(own.v), "t": np.array(own.t), "o": np.array(own.observation)}
    for which in ([1, 3], np.array([False, True, False, True, False])):
        observation = own.reset(which)
        after = {"q": own.q, "v": own.v, "t": own.t, "o": observation}
        for name, array in before.items():
            np.testing.assert_array_equal(after[name][[0, 2, 4]], array[[0, 2, 4]])
            assert (after[name][[1, 3]] != array[[1, 3]]).any(axis=-1).all()
    assert (own.action[[1, 3]] == 0).all() and own.action[[0, 2, 4]].all()
    for none in ([], np.zeros(COUNT, dtype=bool)):
        np.testing.assert_array_equal(own.reset(none), observation)


def test_a_motion_that_diverges_terminates_and_touches_no_other(robot: torsor.Robot) -> None:
    own, other, (action,) = arms(robot), arms(robot), actions(1)
    expected = other.step(action)
    own.v[2] = np.nan
    result = own.step(action)
    assert result.terminated.tolist() == [False, False, True, False, False] and own.diverged == 1
    others = [0, 1, 3, 4]
    for given, wanted in zip(result[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(given[others], wanted[others])
    assert np.isfinite(own.q).all() and np.isfinite(own.v).all() and np.isfinite(result.observation).all()
    gradients = result.vjp(reward=np.ones(COUNT))
    for given, wanted in zip(gradients, expected.vjp(reward=np.ones(COUNT)), strict=True):
        np.testing.assert_array_equal(given[others], wanted[others])
        assert (given[2] == 0).all()


def test_starts_with_a_seed_are_repeatable() -> None:
    first, second, other = (arms(seed=seed).q for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(arms().q, STARTS["q"])


@pytest.mark.parametrize("controller", [DRIVES, TORQUE], ids=["drives", "torque"])
def test_gradients_are_those_of_differences(robot: torsor.Robot, controller: Any) -> None:
    rng, changed = np.random.default_rng(2), {"duration": 0.03, "stop": named("stop", lambda q: 2 - q[0], "q")}
    own, reference = arms(robot, controller=controller, **changed), arms(controller=controller, **changed)
    both = actions(2)
    own.step(both[0])
    start = [np.array(each) for each in (own.q, own.v, own.action)]
    result = own.step(both[1])
    weights = {"reward": rng.normal(size=COUNT)}
    weights |= {name: rng.normal(size=own.observation.shape) for name in ("observation", "final_observation")}
    weights |= {name: rng.normal(size=(COUNT, 2)) for name in ("q", "v", "action")}

    def cost(q: Any, v: Any, previous: Any, action: Any) -> Any:
        reference.reset()
        reference.step(both[0])
        reference.q[...], reference.v[...], reference.action[...] = q, v, previous
        result = reference.step(action)
        values = {name: getattr(result, name) for name in ("reward", "observation", "final_observation")}
        values |= {"q": reference.q, "v": reference.v, "action": reference.action}
        return sum((values[name] * weight).reshape(COUNT, -1).sum(axis=1) for name, weight in weights.items())

    for k, gradient in enumerate(result.vjp(**weights)):
        for j in range(2):
            changes = [np.zeros((COUNT, 2)) for _ in range(4)]
            changes[k][:, j] = 1e-6
            above, below = (
                cost(*(x + s * c for x, c in zip((*start, both[1]), changes, strict=True))) for s in (1, -1)
            )
            np.testing.assert_allclose(gradient[:, j], (above - below) / 2e-6, rtol=1e-6, atol=1e-6)


def test_gradients_are_those_of_the_given_actions_if_their_array_is_used_again() -> None:
    own, action = arms(), actions(1)[0]
    result = own.step(action)
    expected = result.vjp(reward=np.ones(COUNT))
    action[...] = 9.0
    for given, wanted in zip(result.vjp(reward=np.ones(COUNT)), expected, strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_wrong_input_is_refused() -> None:
    with refused(argument="controller", what="'u'", allowed="action"):
        arms(controller=named("torque", lambda u: u, "u", u=2))
    with refused(argument="controller", what="no input 'action'"):
        arms(controller=named("torque", lambda q: q, "q"))
    with refused(argument="controller", allowed="(2, 1)"):
        arms(controller=named("torque", lambda action: action, "action", action=3))
    with refused(argument="controller", allowed="constant reference"):
        arms(controller=drives(ARM, lambda t: [t, t], kp=1.0, kd=1.0))
    with refused(argument="reward", what="(2, 1)", allowed="(1, 1)"):
        arms(reward=named("reward", lambda q: q, "q"))
    with refused(argument="reward", what="size (3, 1)", allowed="(2, 1)"):
        arms(reward=named("reward", lambda q: q[0], "q", q=3))
    with refused(argument="stop", allowed="casadi.Function"):
        arms(stop=lambda q: q[0])
    with refused(argument="starts", value="kp", fix="drives"):
        arms(controller=TORQUE, starts=STARTS | {"kp": np.ones((1, 2))})
    with refused(argument="starts", value="t", fix="another name"):
        arms(starts=STARTS | {"t": np.ones(1)})
    with refused(argument="starts['q']", what="(5, 3)", allowed="(rows, 2)"):
        arms(starts=STARTS | {"q": np.zeros((5, 3))})
    with refused(argument="starts", allowed="same number of rows"):
        arms(starts=STARTS | {"v": np.zeros((3, 2))})
    with refused(argument="actions", what="(2,)", allowed="(5, 2)"):
        arms().step(np.zeros(2))
    for which in ([0.0, 1.0], [True, False]):
        with refused(argument="which", allowed="flags (5,)"):
            arms().reset(which)
    with refused(argument="seed", value=-1):
        arms(seed=-1)
    with refused(argument="count", value=0):
        arms(count=0)
    with refused(what="no result 'speed'", allowed="reward"):
        arms().step(np.zeros((COUNT, 2))).vjp(speed=1.0)
    with refused(argument="controller", fix="make drives for this robot"):
        arms(controller=drives(torsor.library.planar_chain(3), np.zeros(3), kp=1.0, kd=1.0))


@pytest.mark.parametrize("friction", [None, 0.0])
def test_data_that_no_step_reads_are_refused(friction: float | None) -> None:
    dog = torsor.library.quadruped()
    height = named("height", lambda q: q[2], "q", q=19)
    law, contact = drives(dog, dog.postures["home"], kp=1.0, kd=1.0), Contact(kind="hard", friction=friction)
    with refused(argument="starts", value="friction", fix="Contact(friction=...)"):
        Environments(dog, 1, law, observation=height, reward=height, starts={"friction": np.ones(1)}, contact=contact)
    with refused(argument="starts", value="restitution", fix="Contact(restitution=...)"):
        starts = {"restitution": np.ones(1)}
        Environments(dog, 1, law, observation=height, reward=height, starts=starts, contact=contact)
    own = Environments(dog, 1, law, observation=height, reward=height, contact=contact)
    assert "stiffness" in own.data and not {"friction", "restitution"} & set(own.data)


@pytest.mark.parametrize(("name", "extra"), [("gymnasium", "gym"), ("torch", "torch")])
def test_without_the_framework_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf'pip install "torsor\[{extra}\]"'):
        getattr(arms(), name)()


def test_the_checker_of_gymnasium_accepts_an_environment() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed (extra: gym)")
    from gymnasium.utils.env_checker import check_env

    vector = arms(count=1, starts={name: STARTS[name] for name in STARTS}).gymnasium()

    class Single(gymnasium.Env):
        """The only environment of a vector environment, since the checker takes no vectors."""

        observation_space, action_space = vector.single_observation_space, vector.single_action_space

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            observation, info = vector.reset(seed=seed)
            return observation[0], info

        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, info = vector.step(action[None])
            return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    with pytest.warns(UserWarning):  # of infinite bounds
        check_env(Single(), skip_render_check=True)


def test_a_vector_environment_of_gymnasium_has_the_steps_of_the_environments() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed (extra: gym)")
    own, vector = arms(), gymnasium.wrappers.vector.RecordEpisodeStatistics(arms().gymnasium())
    observation, _ = vector.reset()
    np.testing.assert_array_equal(observation, own.observation)
    assert vector.observation_space.contains(observation)
    for k, action in enumerate(actions(5)):
        expected, found = own.step(action), vector.step(action)
        for given, wanted in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(given, wanted)
        assert ("final_obs" in found[4]) == (k == 4)
    np.testing.assert_array_equal(found[4]["final_obs"], expected.final_observation)
    assert found[4]["episode"]["l"].tolist() == COUNT * [5]


def test_tensors_share_the_memory_of_arrays_and_have_gradients_through_several_steps() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    own = arms(duration=0.03)
    tensors = own.torch()
    given = actions(4)
    assert tensors.observation.data_ptr() == own.observation.ctypes.data
    results = [tensors.step(torch.as_tensor(action)) for action in given]
    expected = arms(duration=0.03)
    for result, action in zip(results, given, strict=True):
        for tensor, array in zip(result[:-1], expected.step(action)[:-1], strict=True):
            np.testing.assert_array_equal(tensor.numpy(), array)

    def total(given: Any) -> Any:
        """Return the sum of rewards over a short horizon, with new episodes after the third step."""
        steps = arms(duration=0.03).torch(differentiable=True)
        results = [steps.step(action) for action in given]
        return sum(each.reward.sum() + each.final_observation.square().sum() for each in results)

    inputs = torch.as_tensor(given, dtype=torch.float64).requires_grad_()
    total(inputs).backward()
    rng = np.random.default_rng(0)
    direction = torch.as_tensor(rng.normal(size=given.shape))
    with torch.no_grad():
        slope = (total(inputs + 1e-6 * direction) - total(inputs - 1e-6 * direction)) / 2e-6
    assert abs(float((inputs.grad * direction).sum() - slope)) < 1e-6 * abs(float(slope))
