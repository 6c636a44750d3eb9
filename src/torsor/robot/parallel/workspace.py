"""Workspace of parallel robots: reachable poses, and singular poses with their kinds and free motions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.archive import Archive, as_bytes, as_text, reading_archive, register_result
from torsor.base.arrays import Array, Flags
from torsor.base.checks import known_name, positive, real_array
from torsor.base.documents import plain
from torsor.base.errors import ModelError
from torsor.base.figures import label_of_title, new_figure, saved
from torsor.base.files import check_array
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.robot.archived import robot_of, robot_text
from torsor.robot.parallel.decomposition import legs, platforms
from torsor.robot.parallel.kernels import Assembled
from torsor.robot.parallel.kinematics import Kinematics
from torsor.robot.parallel.legs import Leg
from torsor.robot.robot import Robot
from torsor.spatial import quaternion_product

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ARRAY_SHAPES = {  # workspace arrays: trailing axes and dtype
    **dict.fromkeys(("reachable", "within_limits", "parallel"), ((), "b")),
    **dict.fromkeys(("condition", "determinant"), ((), "f")),
    "q": (("nq",), "f"),
    "leg_motion": (("nv",), "f"),
    "platform_motion": (("dof",), "f"),
    "serial": (("legs",), "b"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Workspace(Result):
    """Reachability, joint limits and singularities at ``poses`` (..., 7); all arrays have the same leading axes.

    - ``reachable``: all legs reach the pose, at positions ``q`` (..., nq), which are NaN elsewhere.
    - ``within_limits``: the pose is reachable and no joint is beyond its limits.
    - ``condition``: the condition number of J_p^-1, with its rotation columns divided by ``length``; NaN if not
      reachable.
    - ``determinant``: the determinant of J_p^-1 or, if drives are redundant, the square root of the determinant of
      J_p^-T J_p^-1; NaN if not reachable.
    - ``serial`` (..., legs): singular legs (first kind: the platform loses a degree of freedom, and the leg can move
      alone along ``leg_motion`` (..., nv)).
    - ``parallel``: poses with singular J_p^-1 (second kind: the platform can move along ``platform_motion`` (..., 6)
      with locked drives).
    - ``labels``: names of the pose coordinates.
    - ``robot``: the parallel robot.

    A pose is reachable if ``inverse_kinematics`` finds a path to it from home, in the home assembly modes.
    """

    kind = "workspace"
    undefined = ("q", "condition", "determinant")
    robot_class: ClassVar[type[Assembled]] = Assembled  # the module of ParallelRobot sets this to that class
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
    labels: tuple[str, ...]
    robot: Assembled
    length: float

    def __repr__(self) -> str:
        counts = f"{np.count_nonzero(self.reachable)} reachable, {np.count_nonzero(self.within_limits)} within limits"
        return f"<Workspace of {self.reachable.size} poses: {counts}>"

    def plot(self, path: str | Path | None = None, axes: tuple[int, int] | None = None) -> "Figure":
        """Return a matplotlib figure of the condition number and singular poses on a grid with two axes.

        The extra ``plot`` is required. ``axes`` are the indices of the horizontal and vertical coordinates; by default
        they are the coordinates that vary most along the grid axes. If ``path`` is given, the figure is saved there.
        Unreachable poses are white, and poses beyond joint limits are grey.

        Example:
            >>> robot, line = torsor.library.three_rrr(), np.linspace(-0.3, 0.3, 7)
            >>> figure = robot.workspace(robot.grid(x=line, y=line)).plot()
            >>> len(figure.axes)
            2
        """
        if self.reachable.ndim != 2 or min(self.reachable.shape) < 2:
            message = f"have the shape {self.reachable.shape}"
            allowed = "a grid with two axes of two or more poses"
            raise ModelError(message, argument="poses", allowed=allowed, fix="plot one slice")
        pair = self._varying() if axes is None else self._checked_axes(axes)
        figure = new_figure(6.8, 6.0)
        from matplotlib.patches import Patch

        panel = figure.subplots()
        across, up = (self.poses[..., k] for k in pair)
        shade = np.where(self.within_limits, np.log10(np.maximum(self.condition, 1.0)), np.nan)
        drawn = panel.pcolormesh(across, up, np.ma.masked_invalid(shade), shading="nearest", cmap="viridis")
        figure.colorbar(drawn, ax=panel, label="log10 of the condition number of Jₚ⁻¹")
        beyond = self.reachable & ~self.within_limits
        if beyond.any():
            grey = np.ma.masked_where(~beyond, np.full(beyond.shape, 0.8))
            panel.pcolormesh(across, up, grey, shading="nearest", cmap="gray", vmin=0.0, vmax=1.0)
        shown: list[Any] = [Patch(facecolor="0.8", label="beyond joint limits")] if beyond.any() else []
        for marks, colour, kind in ((self.parallel, "C3", "second"), (self.serial.any(axis=-1), "C1", "first")):
            if marks.any():
                label = f"singular, {kind} kind"
                shown += panel.plot(across[marks], up[marks], ".", color=colour, label=label)
        if not self.reachable.all():
            shown.append(Patch(facecolor="white", edgecolor="0.5", label="not reachable"))
        if shown:
            figure.legend(handles=shown, loc="outside lower center", ncols=2, fontsize="small")
        panel.set(xlabel=self.labels[pair[0]], ylabel=self.labels[pair[1]])
        if self.labels[pair[0]].endswith("(m)") and self.labels[pair[1]].endswith("(m)"):
            panel.set_aspect("equal")
        counts = f"{np.count_nonzero(self.reachable)} of {self.reachable.size} poses reachable"
        how = f"{counts}, {np.count_nonzero(self.within_limits)} within limits; characteristic length {self.length:g} m"
        figure.suptitle(label_of_title(f"{self.robot.name}: workspace in the assembly modes of home\n{how}"))
        return saved(figure, path)

    @classmethod
    def load(cls, path: str | Path) -> "Workspace":
        """Return the workspace, including its robot, from a .npz file.

        Example:
            >>> import tempfile
            >>> robot, line = torsor.library.three_rrr(), np.linspace(-0.3, 0.3, 3)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     robot.workspace(robot.grid(x=line, y=line)).save(folder + "/map.npz")
            ...     torsor.load_result(folder + "/map.npz").robot == robot
            True
        """
        with reading_archive(Path(path), cls.kind) as result:
            robot = cls.robot_class(**parallel_fields(as_text(result.arrays["parallel_robot"])))
            length = positive(result.settings["length"], robot.name, "length")
            return cls(**workspace_arrays(result, robot), labels=_labels(robot), robot=robot, length=length)

    def _archive(self) -> Archive:
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("poses", *ARRAY_SHAPES)}
        arrays["parallel_robot"] = as_bytes(parallel_text(self.robot))
        units = {"poses": list(self.labels), "q": "rad, m", "condition": "1"}
        return Archive(self.kind, arrays, {"length": float(self.length)}, units)

    def _columns(self) -> list[Column]:
        names = [label.removesuffix(")").partition(" (")[::2] for label in self.labels]  # (name, unit)
        poses = zip(names, self.poses.reshape(-1, len(names)).T, strict=True)
        columns = [Column(f"pose {name}", unit or "1", values) for (name, unit), values in poses]
        flags = ("reachable", "within_limits", "parallel")
        columns += [Column(name, "1", getattr(self, name).ravel().astype(int)) for name in flags]
        columns.append(Column("serial", "1", self.serial.any(axis=-1).ravel().astype(int)))
        return [*columns, *(Column(name, "1", getattr(self, name).ravel()) for name in ("condition", "determinant"))]

    def _content(self) -> dict[str, Any]:
        names = ("poses", "reachable", "within_limits", "condition", "determinant", "serial", "parallel")
        return {
            "units": {"poses": list(self.labels), "length": "m"},
            "robot": {"name": self.robot.name, "legs": [leg.name for leg in self.robot.legs]},
            "settings": {"length": float(self.length)},
            **{name: plain(getattr(self, name)) for name in names},
        }

    def _summary(self) -> Summary:
        counts = {
            "reachable": self.reachable,
            "within joint limits": self.within_limits,
            "singular, first kind": self.serial.any(axis=-1),
            "singular, second kind": self.parallel,
        }
        facts = {name: f"{np.count_nonzero(count)} of {self.reachable.size} poses" for name, count in counts.items()}
        return Summary(f"Workspace of {self.robot.name}", facts)

    def _varying(self) -> tuple[int, int]:
        """Return two different coordinates: those that vary most along the first and the second grid axis."""
        spans = [np.abs(np.diff(self.poses, axis=axis)).sum(axis=axis).max(axis=0) for axis in (0, 1)]
        first = int(np.argmax(spans[0]))
        spans[1][first] = 0.0
        if not (spans[0][first] > 0 and spans[1].max() > 0):
            message = "fewer than two coordinates vary over the poses"
            raise ModelError(message, allowed="a grid over two", fix="robot.grid(x=..., y=...)")
        return first, int(np.argmax(spans[1]))

    def _checked_axes(self, axes: Any) -> tuple[int, int]:
        count = self.poses.shape[-1]
        pair = tuple(axes) if isinstance(axes, Sequence) else ()
        if len(pair) != 2 or not all(isinstance(k, int) and 0 <= k < count for k in pair) or pair[0] == pair[1]:
            allowed = f"two of 0 to {count - 1}: {', '.join(self.labels)}"
            raise ModelError(f"are {axes!r}", value=axes, argument="axes", allowed=allowed)
        return pair[0], pair[1]


register_result("workspace", Workspace, "a workspace")


# Parallel robots and workspaces on disk: JSON in which the robots of legs and platform are TOML text.


def parallel_text(robot: Assembled) -> str:
    """Return a parallel robot as JSON text, which ``parallel_fields`` reads."""
    parts = [
        {"robot": robot_text(leg.robot), "driven": list(leg.driven)}
        | {name: getattr(leg, name) for name in ("name", "tip", "kind", "length")}
        | {name: _numbers(getattr(leg, name)) for name in ("at", "base", "home")}
        for leg in robot.legs
    ]
    platform = robot_text(robot.platform if isinstance(robot.platform, Robot) else robot.carriage)
    data = {"name": robot.name, "platform": platform, "motion": robot.motion, "legs": parts}
    text = json.dumps(data | {"home": _numbers(robot.home), "gravity": _numbers(robot.gravity)})
    again = parallel_fields(text)
    if again["platform"] != robot.platform or again["legs"] != tuple(robot.legs):
        raise ModelError("it would not read back equal", where=robot.name, fix="check names and visuals")
    return text


def parallel_fields(text: str) -> dict[str, Any]:
    """Return the fields of a parallel robot from JSON text; raise ValueError or KeyError if it is invalid."""
    data = json.loads(text)
    carriage, parts = robot_of(data["platform"]), []
    for item in data["legs"]:
        numbers: dict[str, Any] = {name: np.array(item[name], dtype=float) for name in ("at", "base", "home")}
        rest = {name: item[name] for name in ("name", "tip", "kind", "length")}
        parts.append(Leg(robot=robot_of(item["robot"]), driven=tuple(item["driven"]), **numbers, **rest))
    arrays = {name: np.array(data[name], dtype=float) for name in ("home", "gravity")}
    platform = carriage.links[-1] if data["motion"] else carriage
    motion = {"motion": data["motion"]} if data["motion"] else {}
    return {"platform": platform, "legs": tuple(parts), "name": data["name"], **arrays, **motion}


def _numbers(array: Array | None) -> Any:
    return None if array is None else array.tolist()


def workspace_arrays(archive: Archive, robot: Assembled) -> dict[str, Any]:
    """Return the checked arrays of a robot's workspace."""
    poses = archive.arrays["poses"]
    batch = poses.shape[:-1]
    sizes = {"nq": robot.nq, "nv": robot.nv, "legs": len(robot.legs)}
    sizes["dof"] = archive.arrays["platform_motion"].shape[-1]
    check_array(poses, (*batch, robot.carriage.nq), "poses")
    for name, (axes, kind) in ARRAY_SHAPES.items():
        check_array(archive.arrays[name], (*batch, *(sizes[axis] for axis in axes)), name, kind)
    return {"poses": poses} | {name: archive.arrays[name] for name in ARRAY_SHAPES}


def grid(robot: Assembled, ranges: Mapping[str, ArrayLike]) -> Array:
    """Return a grid of poses around home; see ``ParallelRobot.grid``."""
    names, places = robot.carriage.position_names, dict[str, int]()
    short = [_short(name) for name in names]
    for k, name in enumerate(names):  # the full name if its last part is not unique
        places[short[k] if short.count(short[k]) == 1 else name] = k
    turns = {f"turn_{axis}": k for k, axis in enumerate("xyz")} if robot.motion == "free" else {}
    allowed = [name for name in places if not (turns and name.startswith("q"))] + list(turns)
    for name in ranges:
        known_name(name, allowed, robot.name, "range")
    lines = [real_array(item, robot.name, f"range {name!r}") for name, item in ranges.items()]
    for name, line in zip(ranges, lines, strict=True):
        if line.ndim > 1 or not np.isfinite(line).all():
            message = f"range {name!r} has shape {line.shape}, or is not finite"
            raise ModelError(message, value=name, where=robot.name, allowed="a row of numbers")
    values = np.meshgrid(*lines, indexing="ij")
    poses = np.broadcast_to(robot.home, (*(values[0].shape if values else ()), robot.home.size)).copy()
    for name, value in zip(ranges, values, strict=True):
        if name in turns:
            half = np.zeros((*value.shape, 4))
            half[..., turns[name]], half[..., 3] = np.sin(value / 2), np.cos(value / 2)
            poses[..., 3:] = quaternion_product(half, poses[..., 3:])
        else:
            poses[..., places[name]] = value
    return poses


def explore(kinematics: Kinematics, poses: Array, length: float) -> Workspace:
    """Return the workspace of a robot at poses (..., nq of the platform)."""
    robot = kinematics.robot
    positive(length, robot.name, "length")
    robot._check_finite(poses)
    q, reached = kinematics.leg_positions(poses, None)
    reachable: Flags = np.asarray(reached.all(axis=-1))
    q = np.where(reachable[..., None], q, np.nan)
    lower, upper = (np.concatenate([getattr(leg.robot, name) for leg in robot.legs]) for name in ("lower", "upper"))
    within = reachable & ((q >= lower) & (q <= upper)).all(axis=-1)
    safe = np.where(reachable[..., None], q, robot.leg_home)
    there = np.where(reachable[..., None], poses, robot.home)
    serial, leg_motion = legs(robot._parts, robot._exact._kernel("leg_matrices")(there, safe))
    K = robot._exact._kernel("inverse_jacobian")(there, safe)
    sound = np.isfinite(K).all(axis=(-2, -1)) & reachable
    held = platforms(robot._parts, K, length)
    parallel = held.singular & sound & ~serial.any(axis=-1)
    square = K.shape[-1] == K.shape[-2]
    gram = np.where(sound[..., None, None], K if square else np.swapaxes(K, -1, -2) @ K, np.eye(K.shape[-1]))
    determinant = np.linalg.det(gram) if square else np.sqrt(np.maximum(np.linalg.det(gram), 0.0))
    condition = np.where(reachable, held.condition, np.nan)
    determinant = np.where(sound, determinant, np.nan)
    serial = np.asarray(serial & reachable[..., None])
    leg_motion = np.where(reachable[..., None], leg_motion, 0.0)
    motion = np.where(parallel[..., None], held.motion, 0.0)
    legwise = condition, determinant, serial, leg_motion
    return Workspace(poses, reachable, within, q, *legwise, parallel, motion, _labels(robot), robot, length)


def _labels(robot: Assembled) -> tuple[str, ...]:
    """Return the names of the platform's positions, with their units."""
    result = list[str]()
    for joint, at in zip(robot.carriage.joints, robot.carriage.coordinates, strict=True):
        names, turns = robot.carriage.position_names[at.q], joint.kind.turns
        if len(names) == len(turns):
            result += [f"{_short(name)} ({'rad' if turn else 'm'})" for name, turn in zip(names, turns, strict=True)]
        else:  # a point and a quaternion, or a quaternion alone
            result += [f"{_short(name)} (m)" for name in names[:-4]] + [_short(name) for name in names[-4:]]
    return (*result, *robot.carriage.position_names[len(result) :])


def _short(name: str) -> str:
    return name.rpartition("/")[2]
