"""Maps over poses: where a parallel robot reaches, and where it is singular, of which kind and along what."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.errors import ModelError, describe
from torsor.loops.assembly import CLOSED

if TYPE_CHECKING:
    from torsor.parallel.robot import ParallelRobot

__all__ = ["Workspace", "explore", "grid"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SINGULAR = 1e-5  # smallest share of the largest singular value, below which a matrix is singular


@dataclass(frozen=True, eq=False)
class Workspace:
    """What a parallel robot can do at poses (..., 7); other arrays have the same leading axes.

    ``reachable``: all legs can be put together, ``q`` (..., nq) are then their positions (NaN elsewhere);
    ``within_limits``: and no joint is beyond its limits. ``condition`` is that of J_p^-1 (its columns of turns divided
    by ``length``), ``determinant`` its determinant (of J^T J's root with more drives than freedoms); NaN where not
    reachable. ``serial`` (..., legs) marks legs that are singular (first kind: the platform loses a motion, a leg moves
    by itself along ``leg_motion`` (..., nv)). ``parallel`` marks poses with singular J_p^-1 (second kind: the platform
    moves along ``platform_motion`` (..., 6) while all drives are held).
    """

    poses: Array
    reachable: Flags
    within_limits: Flags
    q: Array
    condition: Array
    determinant: Array
    serial: Flags
    leg_motion: Array
    parallel: Flags
    platform_motion: Array

    def plot(self, path: str | Path | None = None, axes: tuple[int, int] = (0, 1)) -> Any:
        """Return a figure (matplotlib, the extra ``plot``) of a grid with two axes: condition, reach, singular poses.

        ``axes`` are the coordinates of the pose that are drawn. ``path`` saves the figure.

        Example:
            >>> import torsor
            >>> robot, line = torsor.library.three_rrr(), np.linspace(-0.3, 0.3, 7)
            >>> figure = robot.workspace(robot.grid(x=line, y=line)).plot()
            >>> len(figure.axes)
            2
        """
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("figures need matplotlib; fix: pip install torsor[plot]") from None
        if self.reachable.ndim != 2:
            found = f"poses have {self.reachable.ndim} axes"
            raise ModelError(describe(found, allowed="a grid with two axes", fix="plot one slice of it"))
        figure = Figure(figsize=(6.4, 5.2), layout="constrained")
        panel = figure.subplots()
        across, up = (self.poses[..., k] for k in axes)
        shade = np.where(self.within_limits, np.log10(np.maximum(self.condition, 1.0)), np.nan)
        drawn = panel.pcolormesh(across, up, np.ma.masked_invalid(shade), shading="nearest", cmap="viridis")
        figure.colorbar(drawn, ax=panel, label="log10 of the condition of $J_p^{-1}$")
        beyond = self.reachable & ~self.within_limits
        for marks, colour, label in (
            (beyond, "0.8", "beyond limits of joints"),
            (self.parallel, "C3", "singular, second kind"),
            (self.serial.any(axis=-1), "C1", "singular, first kind"),
        ):
            if marks.any():
                panel.plot(across[marks], up[marks], ".", color=colour, label=label)
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize="small")
        panel.set(xlabel=f"coordinate {axes[0]}", ylabel=f"coordinate {axes[1]}", aspect="equal")
        if path is not None:
            figure.savefig(path, dpi=130)
        return figure


def grid(robot: "ParallelRobot", ranges: Mapping[str, ArrayLike]) -> Array:
    """Return poses about home over ranges of coordinates, one axis each, and turns of a free platform."""
    places = {name.rpartition("/")[2]: k for k, name in enumerate(robot.carriage.position_names)}
    turns = {f"turn_{axis}": k for k, axis in enumerate("xyz")} if robot.motion == "free" else {}
    allowed = [name for name in places if not (turns and name.startswith("q"))] + list(turns)
    for name in ranges:
        if name not in allowed:
            raise ModelError(describe(f"no range {name!r}", where=robot.name, allowed=", ".join(allowed)))
    values = np.meshgrid(*(np.asarray(each, dtype=float) for each in ranges.values()), indexing="ij")
    poses = np.broadcast_to(robot.home, (*(values[0].shape if values else ()), robot.home.size)).copy()
    for name, value in zip(ranges, values, strict=True):
        if name in turns:
            half = np.zeros((*value.shape, 4))
            half[..., turns[name]], half[..., 3] = np.sin(value / 2), np.cos(value / 2)
            poses[..., 3:] = _product(half, poses[..., 3:])
        else:
            poses[..., places[name]] = value
    return poses


def _product(a: Array, b: Array) -> Array:
    """Return products (..., 4) of quaternions x y z w."""
    u, s, v, t = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return np.concatenate([s * v + t * u + np.cross(u, v), s * t - (u * v).sum(axis=-1, keepdims=True)], axis=-1)


def explore(robot: "ParallelRobot", poses: Array, length: float) -> Workspace:
    """Return the map of a robot over poses (..., nq of the platform)."""
    if not length > 0:
        raise ModelError(describe(f"length is {length}", where=robot.name, allowed="a length above 0"))
    q, size = robot._placed(poses, None)
    reachable: Flags = np.asarray(size <= CLOSED)
    q = np.where(reachable[..., None], q, np.nan)
    lower, upper = (np.concatenate([getattr(leg.robot, name) for leg in robot.legs]) for name in ("lower", "upper"))
    within = reachable & ((q >= lower) & (q <= upper)).all(axis=-1)
    safe = np.where(reachable[..., None], q, robot.leg_home)
    there = np.where(reachable[..., None], poses, robot.home)
    serial, leg_motion = _legs(robot, there, safe)
    K = robot.inverse_jacobian(there, q=safe)
    turns = np.array([turn for joint in robot.carriage.joints for turn in joint.kind.turns])
    scaled = np.where(turns, K / length, K)
    sound = np.isfinite(scaled).all(axis=(-2, -1)) & reachable
    tame = np.where(sound[..., None, None], scaled, np.eye(*scaled.shape[-2:]))
    _, values, V = np.linalg.svd(tame)
    stuck: Flags = np.asarray(serial.any(axis=-1))
    parallel = sound & ~stuck & (values[..., -1] < SINGULAR * values[..., 0])
    with np.errstate(divide="ignore"):
        condition = np.where(sound, values[..., 0] / values[..., -1], np.where(reachable, np.inf, np.nan))
    gram = K if K.shape[-1] == K.shape[-2] else np.swapaxes(K, -1, -2) @ K
    determinant = np.linalg.det(np.where(sound[..., None, None], gram, np.eye(gram.shape[-1])))
    determinant = determinant if K.shape[-1] == K.shape[-2] else np.sqrt(np.maximum(determinant, 0.0))
    motion = np.where(turns, V[..., -1, :] / length, V[..., -1, :])
    motion = motion / np.linalg.norm(motion, axis=-1, keepdims=True)
    return Workspace(
        poses,
        reachable,
        within,
        q,
        condition,
        np.where(sound, determinant, np.nan),
        np.asarray(serial & reachable[..., None]),
        np.where(stuck[..., None] & reachable[..., None], leg_motion, 0.0),
        parallel,
        np.where(parallel[..., None], motion, 0.0),
    )


def _legs(robot: "ParallelRobot", poses: Array, q: Array) -> tuple[Flags, Array]:
    """Return which legs are singular (..., legs), and along what the worst of them moves by itself (..., nv)."""
    flat = robot._kernel("leg_matrices")(poses, q)
    batch = flat.shape[:-1]
    serial, motion = np.zeros((*batch, len(robot.legs)), dtype=bool), np.zeros((*batch, robot.nv))
    first = 0
    for k, limb in enumerate(robot._parts.limbs):
        n = limb.tree.nv
        A = flat[..., first : first + n * n].reshape(*batch, n, n)
        first += n * n
        _, values, V = np.linalg.svd(np.where(np.isfinite(A), A, 0.0))
        serial[..., k] = values[..., -1] < SINGULAR * np.maximum(values[..., 0], 1e-300)
        motion[..., limb.v] = np.where(serial[..., k, None], V[..., -1, :], 0.0)
    return serial, motion
