"""Events: functions of the state whose sign changes are located in time."""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import several
from torsor.base.errors import ModelError
from torsor.robot.robot import Robot
from torsor.simulation.dynamics import compiled
from torsor.simulation.files import Crossings
from torsor.simulation.inputs import casadi_function, traced

Index = tuple[int, ...]
State = tuple[Array, Array]
StateAt = Callable[[float, Index], State]  # the state of one rollout at a time within a step

# Tolerance (s) for the time of an event.
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Event:
    """An event: a function of (t, q, v) and the direction of the sign changes to detect (0 for both)."""

    function: Callable[[float, Array, Array], Any]
    terminal: int  # number of sign changes that ends the simulation; 0 if the event does not end it
    direction: float


def read_events(robot: Robot, given: Any, batch: tuple[int, ...]) -> tuple[Event, ...]:
    """Return one or several events as a tuple; attributes ``terminal`` and ``direction`` are as in SciPy."""
    events = []
    for each in several(given):
        function = casadi_function(each)
        call: Callable[..., Any]
        if function is not None:
            scalar = traced(robot, function, "event", (1, 1))
            call = compiled(robot, "event", (scalar,), lambda scalar=scalar: scalar)  # type: ignore[misc]
        elif callable(each):
            call = each
        else:
            allowed = "functions event(t, q, v) -> a number"
            raise ModelError(f"events has {each!r}", value=each, where=robot.name, allowed=allowed)
        event = Event(call, int(getattr(each, "terminal", False)), float(getattr(each, "direction", 0)))
        if event.terminal and batch:
            fix = "simulate the rollouts one by one, or set terminal to 0"
            raise ModelError(f"a terminal event does not support a batch of shape {batch}", where=robot.name, fix=fix)
        events.append(event)
    return tuple(events)


class EventDetector:
    """Detector that locates events within a step, in a batch or in the single rollout with the index ``rollout``."""

    def __init__(self, events: tuple[Event, ...], robot: Robot, axes: int) -> None:
        self.events, self.robot, self.axes = events, robot, axes
        self.rollout: Index = ()
        self._found: list[list[tuple[float, Array, Array, Index]]] = [[] for _ in events]
        self._before: list[Array] = []

    def start(self, t: float, q: Array, v: Array, rollout: Index = ()) -> None:
        """Start the detection at a state."""
        self.rollout = rollout
        self._before = [self._value(event, t, q, v) for event in self.events]

    def step(self, start: float, end: float, q: Array, v: Array, state_at: StateAt) -> tuple[float, State] | None:
        """Record the events within a step that ends at (q, v); return time and state of the first terminal event."""
        stop: tuple[float, State] | None = None
        crossed: list[tuple[float, int, Index, State]] = []
        for k, event in enumerate(self.events):
            before, after = self._before[k], self._value(event, end, q, v)
            self._before[k] = after
            rising, falling = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
            hits = (rising & (event.direction >= 0)) | (falling & (event.direction <= 0))
            for index in map(tuple, np.argwhere(hits)):
                t, state = self._locate(event, start, end, bool(before[index] < 0), index, state_at)
                crossed.append((t, k, index, state))
                last = event.terminal and len(self._found[k]) + 1 >= event.terminal
                if last and (stop is None or t < stop[0]):
                    stop = t, state
        for t, k, index, (q_there, v_there) in sorted(crossed, key=lambda each: each[0]):
            if stop is None or t <= stop[0]:
                self._found[k].append((t, q_there, v_there, self.rollout or index))
        return stop

    def crossings(self) -> tuple[Crossings, ...]:
        """Return the sign changes of each event so far."""
        nq, nv = self.robot.nq, self.robot.nv
        crossings = []
        for found in self._found:
            t, q, v, index = zip(*found, strict=True) if found else ((), (), (), ())
            indices = np.array(index, dtype=np.intp).reshape(len(found), self.axes)
            crossings.append(Crossings(np.array(t), np.array(q).reshape(-1, nq), np.array(v).reshape(-1, nv), indices))
        return tuple(crossings)

    def _value(self, event: Event, t: float, q: Array, v: Array) -> Array:
        given = event.function(t, q, v)
        try:
            value = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            value = np.array(np.nan)
        batch = v.shape[:-1]
        if np.isnan(value).any():
            found = f"an event returned {reprlib.repr(given)} at t = {t:.6g} s"
            raise ModelError(found, where=self.robot.name, allowed="a number for each rollout")
        if value.shape != batch and value.size != 1:
            found = f"an event returned an array of shape {value.shape} at t = {t:.6g} s"
            raise ModelError(found, where=self.robot.name, allowed=f"{batch}: one number for each rollout")
        return value.reshape(batch) if value.size == 1 and not batch else np.broadcast_to(value, batch)

    def _locate(
        self, event: Event, start: float, end: float, rising: bool, index: Index, state_at: StateAt
    ) -> tuple[float, State]:
        """Return the time and state just after the sign change, by bisection."""
        low, high, state = start, end, state_at(end, index)
        while high - low > TOLERANCE:
            middle = (low + high) / 2
            if not low < middle < high:  # limit of floating-point resolution
                break
            here = state_at(middle, index)
            value = float(self._value(event, middle, *here))
            if value >= 0 if rising else value <= 0:
                high, state = middle, here
            else:
                low = middle
        return high, state
