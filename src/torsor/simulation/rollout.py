"""Batches of motions with fixed steps whose states stay on the device: nothing is copied from the GPU."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from torsor.base.archive import Archive, as_bytes, reading_archive, register_result
from torsor.base.arrays import Array
from torsor.base.checks import common_shape, one_of, positive, whole_number
from torsor.base.documents import plain
from torsor.base.errors import ModelError, warn
from torsor.base.figures import checked_what
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.base.time_series import Instants, SampledInstants, Series
from torsor.compiler import on_host
from torsor.mechanism.mechanism import robot_facts, state_units
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.derivatives import check_numbers
from torsor.robot.parametric import Parametric
from torsor.robot.robot import Robot
from torsor.simulation.contact import Contact, check_start
from torsor.simulation.dynamics import parameters as parameters_of
from torsor.simulation.dynamics import windows
from torsor.simulation.files import Samples, check, columns
from torsor.simulation.fixed_step import PULLED, FixedStep, closed_start, with_inputs
from torsor.simulation.inputs import Source, casadi_function, is_sampled, traced, words
from torsor.simulation.methods import STEPS
from torsor.simulation.setup import WHOLE, check_rollouts, method_of
from torsor.simulation.trajectory import batch_indices, plot, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The result of ``rollout``: samples on the device, gradients through them, and files that need no GPU.

DRAWN = ("q", "v")


@dataclass(frozen=True, eq=False, repr=False)
class Rollout(Result):
    """Motions of a ``robot``: ``q`` (..., T, nq) and ``v`` (..., T, nv) at ``times`` (T,), in s.

    ``q`` and ``v`` are CuPy arrays if the robot computes on the GPU; in files and pickles they are NumPy arrays.
    A motion diverges if a state is not finite or a speed exceeds that of light (3e8); its velocities are NaN from that
    step on, and ``diverged`` is true. ``settings`` contains the method and the steps.

    Example:
        >>> from torsor.simulation import rollout
        >>> rollout(torsor.library.two_link(), np.zeros((100, 2)), np.ones(2), 0.01)
        <Rollout of 'two_link': 100 x 11 samples, 0.01 s>
    """

    times: Array
    q: Any
    v: Any
    _pull: Callable[[Any, Any], tuple[Any, ...]] | None
    robot: Robot
    settings: Mapping[str, Any] = field(default_factory=dict)

    kind = "rollout"

    @property
    def diverged(self) -> Any:
        """Whether each motion has diverged (...), on the device of ``q``; ``rollout`` warns of such motions.

        Example:
            >>> from torsor.simulation import rollout
            >>> rollout(torsor.library.two_link(), np.zeros((3, 2)), np.ones(2), 0.01).diverged
            array([False, False, False])
        """
        finite = (np.isfinite(each[..., -1, :]).all(axis=-1) for each in (self.q, self.v))
        return ~(next(finite) & next(finite))

    def vjp(self, q_bar: Any = None, v_bar: Any = None) -> tuple[Any, ...]:
        """Return the gradients of a cost with respect to q0 (..., nq), v0 (..., nv), and constant forces or wrenches.

        The gradients of the ``gains`` of drives (``control.drives``) and of parameters p follow, if there are any.

        ``q_bar`` (..., T, nq) and ``v_bar`` (..., T, nv) are the derivatives of the cost with respect to all samples,
        zero if they are not given. Gradients of positions are with respect to their components. Each rollout has its
        own gradients; sum them if rollouts share an initial state or a force. The rollout must have recorded each step
        (``record=1``), and a rollout from a file has no gradients.

        Example:
            >>> from torsor.simulation import rollout
            >>> arm = torsor.library.two_link()
            >>> run = rollout(arm, np.zeros(2), np.array([1.0, 0.0]), 0.01)
            >>> at_end = np.zeros_like(run.q)
            >>> at_end[-1, 0] = 1.0  # the first angle at the end
            >>> dq, dv = run.vjp(at_end)
            >>> round(float(dv[0]), 3)  # about the duration
            0.01
        """
        if self._pull is None:
            found = "a rollout from a file, a pickle or another rollout has no gradients"
            fix = "compute it again with simulation.rollout"
            raise ModelError(found, where=self.robot.name, fix=fix)
        return self._pull(q_bar, v_bar)

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, index: Any) -> "Rollout":
        """Return selected motions, without gradients: ``run[3]`` is the fourth, and ``run[:10]`` are the first ten."""
        indices = batch_indices(self.q, index, "rollout", self.robot.name)
        return replace(self, q=self.q[indices], v=self.v[indices], _pull=None)

    def at(self, t: ArrayLike) -> Instants:
        """Return q and v (..., n) at times t (...), as NumPy arrays; the batch axes come before the axes of t.

        Positions are the cubics through the samples and their velocities, and velocities are linear between samples.

        Example:
            >>> from torsor.simulation import rollout
            >>> rollout(torsor.library.two_link(), np.zeros((100, 2)), np.ones(2), 0.01).at([0.0025, 0.005]).q.shape
            (100, 2, 2)
        """
        return SampledInstants(self._series, t)

    @cached_property
    def _series(self) -> Series:
        robot = processor_robot(self.robot)
        group = None if robot.nq == robot.nv else robot
        return Series.of(robot.name, self.times, on_host(self.q), on_host(self.v), group=group)

    def __repr__(self) -> str:
        batch = "".join(f"{n} x " for n in self.q.shape[:-2])
        lost = int(self.diverged.sum())
        ending = f", {lost} diverged" * bool(lost)
        return f"<Rollout of {self.robot.name!r}: {batch}{len(self)} samples, {self.times[-1]:.6g} s{ending}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state: NumPy arrays, without compiled gradients."""
        state = {name: value for name, value in vars(self).items() if name != "_series"}
        return state | {"q": on_host(self.q), "v": on_host(self.v), "_pull": None}

    @classmethod
    def load(cls, path: str | Path, robot: Robot | None = None) -> "Rollout":
        """Return the rollout in a .npz file, for the given robot or the robot that the file contains."""
        with reading_archive(Path(path), cls.kind) as found:
            own = archived_robot(found) if robot is None else robot
            times, q, v = (found.arrays[name] for name in ("times", "q", "v"))
            check(Samples(own, times, q, v, v, v))  # v stands for the missing a and tau
            if not len(times):
                raise ValueError("no samples")
            return cls(times, q, v, None, own, found.settings)

    def plot(self, path: str | Path | None = None, what: Sequence[str] = DRAWN) -> "Figure":
        """Draw positions (q) and velocities (v) over time and return the figure; with ``path``, save it too.

        Plotting requires matplotlib (``torsor[plot]``).
        """
        samples = self._samples()
        return plot(samples, lambda name: getattr(samples, name), checked_what(what, DRAWN), path)

    def _samples(self) -> Samples:
        q, v = (on_host(each) for each in (self.q, self.v))
        none = np.zeros_like(v)
        return Samples(self.robot, self.times, q, v, none, none, settings=self.settings)

    def _archive(self) -> Archive:
        robot = as_bytes(robot_text(self.robot))
        arrays: dict[str, Any] = {"times": self.times, "q": on_host(self.q), "v": on_host(self.v), "robot": robot}
        known = state_units(self.robot)
        return Archive(self.kind, arrays, plain(self.settings), {"times": "s", "q": known["q"], "v": known["v"]})

    def _columns(self) -> list[Column]:
        return columns(self._samples(), "save a .npz file")[: 1 + self.robot.nq + self.robot.nv]  # time, q and v

    def _content(self) -> dict[str, Any]:
        return {
            "units": {"times": "s"},
            "robot": robot_facts(self.robot),
            "settings": plain(self.settings),
            **{name: plain(on_host(getattr(self, name))) for name in ("times", "q", "v")},
        }

    def _summary(self) -> Summary:
        found = summary(self._samples())
        rows = [row[:2] for row in found.rows]  # a rollout has no forces
        facts = {name: text for name, text in found.facts.items() if name != "status"}
        facts["diverged"] = f"{int(self.diverged.sum())} of {self.diverged.size}"
        return Summary(f"Rollout of {self.robot.name}", facts, found.head[:2], rows)


def processor_robot(robot: Robot) -> Robot:
    """Return a robot that computes on the CPU, which is the given one unless it computes on the GPU."""
    return robot.to(device="cpu") if robot.target.device == "cuda" else robot


register_result("rollout", Rollout, "a rollout")


def rollout(
    robot: Robot | Parametric[Robot],
    q0: Any,
    v0: Any,
    duration: float,
    p: Any = None,
    *,
    controller: Any = None,
    external: Any = None,
    stop: ca.Function | None = None,
    contact: Contact | None = None,
    method: str = "rk4",
    step: float = 1e-3,
    record: int = 1,
) -> Rollout:
    """Return motions of ``duration`` (s) with fixed steps, from ``q0`` (..., nq) and ``v0`` (..., nv), which broadcast.

    Unlike ``simulate``, this function does not copy its results: on the GPU (``robot.to(device="cuda")``), all states
    stay there, and no step waits for the previous one. ``controller`` defines the generalised forces (nv), and
    ``external`` defines the wrenches (L, 6). Each is a constant array with the leading axes of the initial state,
    samples (times, values), or a ``casadi.Function`` of (t, q, v), which is compiled into the step. ``controller`` may
    also be ``control.drives``, whose gains may have leading axes too. ``p`` (..., k), with leading axes too, contains
    masses and other parameters of a parametric robot (``robot.parametric``), by default their original values. They
    must not move joints of a robot with loops or contact. ``contact`` (see ``simulate``) is part of the gradients of
    ``Rollout.vjp``. Shapes that overlap at the start raise ModelError, except on the GPU. ``stop`` is a
    ``casadi.Function`` of (t, q, v) that returns one number: a rollout stops once that number is negative. ``method``
    is a method of ``simulate`` except "adaptive"; "implicit" and "sdirk" do not support ``p``. Steps are no longer than
    ``step`` (s). Every ``record``-th state and the last state are returned. A warning states how many motions diverged.
    The closure equations of robots with loops are those that are independent in the first motion.

    Example:
        >>> arm = torsor.library.two_link()
        >>> run = rollout(arm, np.zeros((100, 2)), np.ones(2), 0.1, record=50)
        >>> run.q.shape, run.times.round(3).tolist()
        ((100, 3, 2), [0.0, 0.05, 0.1])
        >>> masses = np.array([[2.0], [3.0]])
        >>> rollout(arm.parametric(["links.link2.mass"]), np.zeros((2, 2)), np.zeros(2), 0.1, masses).q.shape
        (2, 101, 2)
    """
    robot, free = with_inputs(robot)
    where = robot.name
    if free and p is None:
        p = [each.value for each in free]
    if p is not None:
        if not free:
            found, fix = "is given, but the robot has no parameters", "use `robot.parametric(paths)`"
            raise ModelError(found, argument="p", where=where, fix=fix)
        check_numbers(robot, free, [p])
    one_of(method, tuple(STEPS), where, "method")
    duration, step = positive(duration, where, "duration"), positive(step, where, "step")
    record = whole_number(record, where, "record")
    count = max(1, math.ceil(duration / step - WHOLE))
    law, tau = _source(robot, controller, "controller", (robot.nv,), duration, duration / count)
    wrenches, loads = _source(robot, external, "external", (len(robot.links), 6), duration, duration / count)
    halt = None if stop is None else traced(robot, stop, "stop", (1, 1))
    q0, v0, choice = closed_start(robot, q0, v0)
    compiled_step = FixedStep.of(
        robot, method_of(robot, method, len(law.parameters) > 0, contact), law, wrenches, contact, choice, halt, free
    )
    kernel, sources = compiled_step.kernel, compiled_step.sources
    xp, dtype = getattr(kernel, "xp", np), robot.target.dtype
    instants = np.arange(count + 1) * (duration / count)
    t, h = xp.asarray(instants.astype(dtype)), xp.asarray(np.array(duration / count, dtype))
    held = [xp.asarray(each, dtype) for each in (tau, loads) if each is not None]
    q, v = xp.asarray(q0, dtype), xp.asarray(v0, dtype)
    for name, array, size in (("q0", q, robot.nq), ("v0", v, robot.nv)):
        if array.shape[-1:] != (size,):
            raise ModelError(f"has shape {array.shape}", argument=name, where=where, allowed=f"(..., {size})")
    if contact is not None and xp is np:
        check_start(robot, contact, np.asarray(q, dtype=float), None)
    cores = [1, 1, *([1] if tau is not None else []), *([2] if loads is not None else [])]
    given = parameters_of(*sources) | ({"p": p} if free else {})
    numbers = {name: xp.asarray(each, dtype) for name, each in given.items()}
    leading = {"q0": q, "v0": v} | ({"p": numbers["p"]} if free else {})
    batch = common_shape(where, **{name: tuple(each.shape[:-1]) for name, each in leading.items()})
    for name, array, axes in (("controller", tau, 1), ("external", loads, 2)):
        if array is not None:
            check_rollouts(robot, name, tuple(array.shape), axes, batch)
    if "gains" in numbers:
        check_rollouts(robot, "controller", tuple(numbers["gains"].shape), 1, batch)
    parts = [xp.asarray(each, dtype) for each in windows(sources, instants[:-1], instants[1:])]
    samples = [k for k in range(count + 1) if k % record == 0 or k == count]
    states = [xp.empty((len(samples), *batch, size), dtype) for size in (robot.nq, robot.nv)]
    for whole, start in zip(states, (q, v), strict=True):
        whole[0] = start
    spare = [[xp.empty_like(whole[0]) for whole in states] for _ in range(2)]
    here, at = [whole[0] for whole in states], {k: j for j, k in enumerate(samples)}
    for k in range(count):
        there = [whole[at[k + 1]] for whole in states] if k + 1 in at else spare[k % 2]
        kernel(t[k], *here, *held, *(part[k] for part in parts), *numbers.values(), h, out=tuple(there))
        here = there

    def pull(q_bar: Any, v_bar: Any) -> tuple[Any, ...]:
        if record != 1:
            raise ModelError(f"gradients are not supported with `record={record}`", where=where, allowed="`record=1`")
        back = compiled_step.pull
        given = [  # sample by sample; zero if none are given
            xp.zeros_like(whole) if each is None else xp.moveaxis(xp.asarray(each, dtype), -2, 0)
            for each, whole in zip((q_bar, v_bar), states, strict=True)
        ]
        bars = [each[-1] for each in given]
        own = [each.shape[each.ndim - core :] for each, core in zip(held, cores[2:], strict=True)]
        own += [each.shape[-1:] for name, each in numbers.items() if name in PULLED]
        total = [xp.zeros((*batch, *shape), dtype) for shape in own]
        for k in reversed(range(count)):
            inputs = *(whole[k] for whole in states), *held, *(part[k] for part in parts), *numbers.values()
            found = back(t[k], *inputs, h, *bars)
            bars = [each + bar[k] for each, bar in zip(found[:2], given, strict=True)]
            total = [each + more for each, more in zip(total, found[2:], strict=True)]
        return (*bars, *total)

    times: Array = np.array(instants[samples], dtype=float)
    q, v = (xp.moveaxis(whole, 0, -2) for whole in states)
    own_method = "hard" if compiled_step.is_hard else compiled_step.method
    settings = {"method": own_method, "step": step, "duration": duration, "record": record}
    settings["controller"] = words(controller, "controller", "force")
    settings["external"] = words(external, "wrenches", "wrenches")
    settings |= {"p": [each.name for each in free]} if free else {}
    if contact is not None:
        settings["contact"] = contact.about | {"floor": contact.floor(robot)}
    run = Rollout(times, q, v, pull, robot, settings)
    lost = int(run.diverged.sum())
    if lost:
        fix = "use a smaller step, or control.drives for stiff drives; `diverged` marks these motions"
        warn(f"{lost} of {max(1, math.prod(batch))} motions diverged", where=where, fix=fix)
    return run


def _source(
    robot: Robot, given: Any, what: str, core: tuple[int, ...], duration: float, step: float
) -> tuple[Source, Any]:
    """Return a source, and the array if it is one; the source of an array is a placeholder."""
    if given is None:
        return Source(), None
    if casadi_function(given) is not None or is_sampled(given, core):
        return Source.of(robot, given, what, core, duration, step), None
    if callable(given):
        allowed = "an array, samples (times, values), or a casadi.Function of (t, q, v)"
        fix = "torsor.simulate supports Python functions"
        raise ModelError("is a Python function", argument=what, where=robot.name, allowed=allowed, fix=fix)
    array = given if hasattr(given, "shape") else np.asarray(given, dtype=float)
    if tuple(array.shape[array.ndim - len(core) :]) != core:
        allowed = f"(..., {', '.join(map(str, core))})"
        raise ModelError(f"has shape {tuple(array.shape)}", argument=what, where=robot.name, allowed=allowed)
    return Source(array=np.zeros(core)), array
