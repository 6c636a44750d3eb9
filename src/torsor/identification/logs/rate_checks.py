"""Checks of measured velocities and accelerations against the derivatives of positions: unit, sign, order, delay."""

from collections.abc import Iterator

import numpy as np

from torsor.base.arrays import Array
from torsor.identification.logs.findings import LogFinding
from torsor.robot.robot import Robot

LIKE = 0.9  # correlation from which one signal is the derivative of another
UNLIKE = 0.8  # of the correlation with another coordinate: less with its own means another order
KNOWN = {
    57.29578: "degrees",
    0.01745329: "radians, and the positions in degrees",
    9.549297: "revolutions per minute",
    0.1591549: "revolutions",
    1000.0: "millimetres",
}
NEAR = 0.15  # relative deviation from a known factor
SCALE = 0.1  # relative deviation from 1 that is named
LATE = 1.5  # steps: a delay that is named
SHIFTS = 40  # steps of the largest delay that is looked for


def rate_findings(
    robot: Robot, source: str, what: str, measured: Array, derived: Array, step: float
) -> Iterator[LogFinding]:
    """Yield what is suspicious in ``measured`` velocities or accelerations (T, n); ``derived`` are those of positions.

    ``what`` is "v" or "a", ``step`` the sampling period in s.

    Example:
        >>> arm, t = torsor.library.two_link(), np.arange(500) * 1e-2
        >>> v = np.column_stack([np.cos(t), -2 * np.sin(2 * t)])
        >>> [each.kind for each in rate_findings(arm, "log", "v", np.degrees(v), v, 1e-2)]
        ['rate', 'rate']
    """
    x, y = measured - measured.mean(axis=0), derived - derived.mean(axis=0)
    sizes = np.outer(np.linalg.norm(x, axis=0), np.linalg.norm(y, axis=0))
    alike = (x.T @ y) / np.where(sizes > 0, sizes, 1.0)  # of measured column i with derived coordinate j
    rate = {"v": "velocities", "a": "accelerations"}[what]
    for j, name in enumerate(robot.coordinate_names):
        place, own = f"{source}: {what} of {name!r}", float(alike[j, j])
        other = int(np.argmax(np.abs(alike[j])))
        if not sizes[j, j] > 0:
            continue
        if abs(own) < UNLIKE * abs(alike[j, other]) and abs(alike[j, other]) > LIKE:
            text = (
                f"its correlation with the derivative of {robot.coordinate_names[other]!r} is {alike[j, other]:.3f}, "
            )
            text += f"with its own {own:.3f}"
            yield LogFinding(
                "swapped", place, text, f"correct the order of the columns of {what}", float(alike[j, other])
            )
            continue
        late, best = _delay(x[:, j], y[:, j])
        if abs(best) < LIKE:
            text = f"its correlation with the derivative of the positions is {own:.3f}"
            fix = f"check the column; without columns of {what}, {rate} come from the positions"
            yield LogFinding("rate", place, text, fix, own)
            continue
        if best < 0:
            text = f"its correlation with the derivative of the positions is {best:.3f}"
            yield LogFinding("sign", place, text, f"write scale = {{{what} = ...}} with -1 for it in the map", best)
            continue
        factor = float(x[:, j] @ x[:, j]) ** 0.5 / float(y[:, j] @ y[:, j]) ** 0.5
        if abs(factor - 1) > SCALE:
            unit = next((word for value, word in KNOWN.items() if abs(factor / value - 1) < NEAR), "")
            guess = f": are the {rate} in {unit}?" if unit else ""
            text = f"it is {factor:.4g} times the derivative of the positions{guess}"
            yield LogFinding("rate", place, text, f"give units = {{{what} = ...}} in the map, or a scale", factor)
        elif abs(late) >= LATE:
            text = f"it is {1e3 * late * step:.3g} ms later than the derivative of the positions: a filter of the drive"
            fix = f"leave out the columns of {what}: {rate} then come from the positions"
            yield LogFinding("delay", place, text, fix, late * step)


def _delay(x: Array, y: Array) -> tuple[float, float]:
    """Return by how many steps x (T,) is later than y (T,), and the correlation (largest in size) at this shift."""
    count = min(SHIFTS, len(x) // 10)
    inside = slice(count, len(x) - count)
    kept = x[inside]
    found = []
    for shift in range(-count, count + 1):
        other = y[inside.start - shift : inside.stop - shift]
        found.append(float(kept @ other) / max(float(np.linalg.norm(kept) * np.linalg.norm(other)), 1e-300))
    sizes = np.abs(found)
    k = int(np.argmax(sizes))
    part = 0.0
    if 0 < k < len(sizes) - 1:
        bend = sizes[k - 1] - 2 * sizes[k] + sizes[k + 1]
        part = 0.5 * float(sizes[k - 1] - sizes[k + 1]) / float(bend) if bend < 0 else 0.0
    return k + part - count, found[k]
