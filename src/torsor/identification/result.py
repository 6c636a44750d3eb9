"""The result of an identification: parameters, standard deviations and force residuals."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.archive import Archive, as_bytes, as_text, reading_archive, register_result
from torsor.base.arrays import Array, Flags
from torsor.base.documents import plain
from torsor.base.errors import ModelError, warn
from torsor.base.files import check_array
from torsor.base.result import Result
from torsor.base.summary import Summary
from torsor.base.summary import as_text as tables_as_text
from torsor.base.tables import Column
from torsor.identification import contents
from torsor.identification.bases import environment_forces, free_coordinates, wrenches_of
from torsor.identification.closed_robot import (
    ClosedRobot,
    MeasuredRobot,
    closed_robot,
    driven_motion,
    rubbing_joints,
    whole,
    with_friction_models,
)
from torsor.identification.drives import Drives
from torsor.identification.estimation import max_lag
from torsor.identification.measurements import Measurements, measurements_of
from torsor.identification.model import Filter, Model, stretches
from torsor.mechanism.mechanism import robot_facts, state_units
from torsor.robot.archived import archived_robot, robot_text
from torsor.robot.base_parameters import BaseParameters
from torsor.robot.parallel import ParallelRobot
from torsor.robot.parallel.workspace import parallel_fields, parallel_text
from torsor.robot.robot import Robot
from torsor.simulation import Trajectory
from torsor.simulation.timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNDETERMINED_PERCENT = 100.0  # relative standard deviation (%) above which a parameter is marked
UNEXPLAINED_PERCENT = 50.0  # residual, in % of the measured force, above which a coordinate is marked
ROUNDING_RATIO = 1e-9  # fraction of the largest force below which a residual is ignored
SI_UNITS = "SI: kg, kg m, kg m^2, N m, N m s, N, N s/m"
# Arrays in a file: the result, its base parameters and its measurements. KINDS are dtypes other than float.
RESULT_ARRAYS = ("values", "covariance", "predicted", "condition", "lag", "parameters", "held_out")
BASE_ARRAYS = ("columns", "matrix", "values", "unknown", "by_rule")
MEASUREMENT_ARRAYS = ("q", "v", "a", "tau", "weights", "times", "temperature", "external")
ARRAY_TYPES = {"base_columns": "iu", "base_unknown": "b", "base_by_rule": "b"}


@dataclass(frozen=True, eq=False)
class Identified(Result):
    """Identified base parameters: ``values`` (b,) and ``covariance`` (b, b) of the parameters ``base.names``.

    ``prior`` is the robot passed to ``identify``, and ``condition`` is the condition number of the weighted regressor.
    ``predicted`` (N, nv) are the forces of the estimate for the ``measurements``. ``parameters`` (p,) are all
    parameters of the physically consistent estimate, or None without ``physical``. ``settings`` are the arguments of
    ``identify``. ``drives`` contains forces beyond the robot parameters, if any. ``lag`` is the number of samples over
    which residuals are correlated (0 for white noise), which the covariance includes. ``held_out`` (nv,) are the
    residuals of the held-out samples in percent of their forces, and ``unseen`` is the estimate with these samples as
    measurements. With a bandwidth, ``measurements`` and ``predicted`` are filtered.

    Example:
        >>> robot = torsor.library.two_link()
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
        >>> found = torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)), physical=True)
        >>> bool(np.allclose(found.robot.mass_matrix([0, 1]), robot.mass_matrix([0, 1])))
        True
    """

    kind = "identification"
    undefined = ("measured_tau", "unseen_tau")  # NaN for joints without a force sensor
    prior: MeasuredRobot
    base: BaseParameters
    values: Array
    covariance: Array
    condition: float
    measurements: Measurements
    predicted: Array
    parameters: Array | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    drives: Drives | None = None
    lag: int = 0
    held_out: Array | None = None
    unseen: "Identified | None" = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        percents = self.relative_residuals
        worst = float(percents[~np.isnan(percents)].max(initial=0.0))
        residuals = "forces of 0" if np.isinf(worst) else f"residuals of {worst:.2g} % at most"
        return f"<Identified {self.prior.name!r}: {len(self)} base parameters, {residuals}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Expressions (b) of the base parameters in terms of the standard parameters."""
        return self.base.names

    @property
    def deviations(self) -> Array:
        """Standard deviations (b,) of the base parameters from the covariance; model errors are not included.

        Example:
            >>> robot, rng = torsor.library.planar_chain(1), np.random.default_rng(0)
            >>> q, v, a = rng.normal(size=(3, 400, 1))
            >>> tau = robot.inverse_dynamics(q, v, a) + 0.01 * rng.normal(size=(400, 1))
            >>> torsor.identify(robot, (q, v, a, tau)).deviations.round(3).tolist()
            [0.0, 0.0, 0.001, 0.001, 0.001]
        """
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def relative_deviations(self) -> Array:
        """Standard deviations (b,) in percent of the values; infinite for a value of 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100 * self.deviations / np.abs(self.values))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of parameters whose standard deviation exceeds their magnitude: they are near zero or not excited.

        Values of exactly 0, whose relative deviation is infinite, are not included. The report marks the names with
        "!".
        """
        return tuple(
            name
            for name, each in zip(self.names, self.relative_deviations, strict=True)
            if not each <= UNDETERMINED_PERCENT and np.isfinite(each)
        )

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Coordinates whose residuals exceed half of their measured force; the report marks them with "!".

        Residuals within rounding error of the largest force are ignored.
        """
        rms, largest = self.rms, float(np.abs(self._acting).max(initial=0.0))
        triples = zip(self.prior.coordinate_names, self.relative_residuals, rms, strict=True)
        return tuple(
            name
            for name, each, residual in triples
            if each > UNEXPLAINED_PERCENT and residual > ROUNDING_RATIO * largest
        )

    @property
    def intervals(self) -> Array:
        """95 % confidence intervals (b, 2) of the base parameters: values ± 1.96 standard deviations."""
        half = contents.HALF_INTERVAL * self.deviations
        return np.stack([self.values - half, self.values + half], axis=1)

    @cached_property
    def unidentified(self) -> tuple[contents.Unidentified, ...]:
        """The parameters that are not determined individually, with reasons."""
        return contents.unidentified(self)

    @cached_property
    def residuals(self) -> Array:
        """Measured minus predicted forces (N, nv), in N m and N."""
        return self.measurements.tau - self.predicted

    @cached_property
    def _counted(self) -> Flags:
        weights = self.measurements.weights
        return np.ones(self.residuals.shape, dtype=bool) if weights is None else weights > 0

    def _mean(self, values: Array) -> Array:
        """Return the mean (nv,) over samples with positive weight, or NaN without such samples."""
        count = self._counted.sum(axis=0)
        return np.asarray(np.where(count > 0, np.sum(values * self._counted, axis=0) / np.maximum(count, 1), np.nan))

    @cached_property
    def _acting(self) -> Array:
        """Total forces (N, nv) along the coordinates: measured forces plus environment forces."""
        data = self.measurements
        return np.asarray(data.tau + environment_forces(self.prior, data.q, data.external))

    @property
    def rms(self) -> Array:
        """Root mean square (nv,) of the residuals of each coordinate, in N m and N."""
        return np.sqrt(self._mean(self.residuals**2))

    @property
    def relative_residuals(self) -> Array:
        """Root mean square residuals (nv,) in percent of the root mean square forces; NaN for unmeasured forces.

        The reference is the root mean square of the measured force or, if larger, of the total force, including known
        external wrenches. For floating-base coordinates without forces, it is the largest reference of all coordinates.
        """
        acting = np.sqrt(np.maximum(self._mean(self._acting**2), self._mean(self.measurements.tau**2)))
        base = free_coordinates(self.prior)
        acting[base] = np.where(acting[base] > 0, acting[base], np.nan_to_num(acting).max(initial=0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.rms == 0, 0.0, 100 * self.rms / acting)

    @property
    def r_squared(self) -> Array:
        """Coefficient of determination (nv,): the explained fraction of the variance of the total forces."""
        tau = self._acting
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1 - self._mean(self.residuals**2) / self._mean((tau - self._mean(tau)) ** 2))

    @cached_property
    def robot(self) -> Robot | ParallelRobot:
        """The robot with the identified parameters and friction models, for an estimate with ``physical=True``.

        Other estimates raise ModelError. A warning names terms that a robot does not support: "load", temperatures, and
        motors that drive several joints. The result is a ``ParallelRobot`` if ``prior`` is one, otherwise a ``Robot``.
        """
        if self.parameters is None:
            message = "base parameters alone do not determine a robot"
            raise ModelError(
                message, where=self.prior.name, fix="use identify(..., physical=True), or predict(q, v, a)"
            )
        models = {}
        if self.drives is not None:
            able = rubbing_joints(self.prior)
            top = zip(self.prior.coordinate_names, np.abs(self.measurements.v).max(axis=0).tolist(), strict=True)
            models = self.drives.robot_models({name: speed for name, speed in top if name in able})
            if left_out := self.drives.left_out(able):
                warn(left_out, where=self.prior.name, fix="predict(q, v, a) includes them, and save() keeps them")
        return with_friction_models(self.prior.inertial.replaced(self.parameters), models)

    def predict(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        temperature: ArrayLike | None = None,
        external: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> Array:
        """Return the joint forces (..., nv) that the estimate predicts for motions q (..., nq), v, a (..., nv).

        tau = Y[:, columns] @ values, plus the forces of springs, motors, known parameters and ``drives``, minus J^T w
        of the environment wrenches ``external``, (..., L, 6) or {link or frame: (N, 6)}. If the drives depend on
        temperature, pass ``temperature`` (...) or (..., nv).

        Example:
            >>> robot = torsor.library.two_link()
            >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
            >>> found = torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
            >>> bool(np.allclose(found.predict([0, 1], [1, 1], [0, 0]), robot.inverse_dynamics([0, 1], [1, 1], [0, 0])))
            True
        """
        q, v, a = driven_motion(self.prior, *(np.asarray(array, dtype=float) for array in (q, v, a)))
        if isinstance(external, Mapping):
            external = wrenches_of(self.prior, q, external)
        loads = None if external is None else np.asarray(external, dtype=float)
        model = Model(self.prior, self.base, q, v, a, external=loads)
        if self.parameters is None:
            forces = np.asarray(model.known + model.Y @ self.values)
        else:
            forces = model.changed(self.parameters)
        if self.drives is None:
            return forces
        load = model.load(self.values)
        rate, acceleration = np.broadcast_to(model.v, load.shape), np.broadcast_to(model.a, load.shape)
        return np.asarray(forces + self.drives.forces(rate, acceleration, load, temperature, self.prior.name))

    def validate(
        self, data: Measurements | Trajectory | Sequence[Any], temperature: ArrayLike | None = None
    ) -> "Identified":
        """Return the estimate with different measurements, for residuals, reports and figures.

        For ``data`` and ``temperature``, see ``identify``. The ``bandwidth`` of the estimate also applies to the data.

        Example:
            >>> robot = torsor.library.two_link()
            >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
            >>> data = torsor.identification.Measurements(q, v, a, robot.inverse_dynamics(q, v, a))
            >>> bool(torsor.identify(robot, data).validate(data).rms.max() < 1e-12)
            True
        """
        samples = measurements_of(self.prior, data)
        temperature = samples.temperature if temperature is None else temperature
        through = Filter.of(samples, self.settings.get("bandwidth"), self.prior.name)
        predicted = through(self.predict(samples.q, samples.v, samples.a, temperature, samples.external))
        shown = through.measurements(samples)
        return replace(self, measurements=shown, predicted=predicted, held_out=None, unseen=None).checked()

    def checked(self) -> "Identified":
        """Return the estimate unchanged, and warn about coordinates whose forces it does not explain.

        Example:
            >>> robot = torsor.library.two_link()
            >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
            >>> torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a))).checked().unexplained
            ()
        """
        if self.unexplained:
            names = list(self.prior.coordinate_names)
            worst = max(map(names.index, self.unexplained), key=lambda k: float(self.relative_residuals[k]))
            name, percent = self.prior.coordinate_names[worst], self.relative_residuals[worst]
            others = f" (also of {', '.join(coordinate for coordinate in self.unexplained if coordinate != name)})"
            message = f"residuals of {name!r} are {percent:.3g} % of the force" + others * (len(self.unexplained) > 1)
            fix = "check units (N m, N, rad), signs, column order, and delays between q and tau"
            allowed = f"{UNEXPLAINED_PERCENT:g} % or less"
            if np.isinf(percent):
                silent = [coordinate for k, coordinate in enumerate(names) if np.isinf(self.relative_residuals[k])]
                message, allowed = f"the forces of {', '.join(silent)} are 0 in all samples", "measured forces"
                fix = "check the columns of tau; if there is no force sensor, omit the coordinates from `measured`"
            warn(message, where=self.prior.name, allowed=allowed, fix=fix)
        return self

    def report(self) -> str:
        """Return a text report: parameters with standard deviations, and the residual of each coordinate.

        Example:
            >>> robot = torsor.library.planar_chain(1)
            >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 1))
            >>> "link1.Jzz" in torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a))).report()
            True
        """
        tables = [contents.parameter_table(self)]
        if self.drives is not None:
            tables.append(contents.drive_table(self.drives))
        chosen = self.settings.get("friction") == "auto" and (self.drives is None or not self.drives.terms)
        measured: Flags = np.asarray(self._counted.any(axis=0))
        tables.append(contents.residual_table(self, measured))
        notes = ["no friction model beyond Coulomb and viscous was chosen"] if chosen else []
        if self.drives is not None and (others := contents.others_note(self.drives)):
            notes.append(others)
        if self.undetermined:
            text = "of the value: the parameter is zero, or the measurements do not excite it"
            notes.append(f"! deviation above {UNDETERMINED_PERCENT:g} % {text}")
        if self.unexplained:
            text = "of the force: the model does not explain it; check units and signs"
            notes.append(f"! residual above {UNEXPLAINED_PERCENT:g} % {text}")
        if not measured.all():
            left = ", ".join(self.prior.coordinate_names[k] for k in np.flatnonzero(~measured))
            notes.append(f"forces of {left} were not measured; parameters that affect only these are not identified")
        if self.lag:
            times, count = self.measurements.times, len(self.measurements)
            most = max_lag(max(part.stop - part.start for part in stretches(times, count)))
            text = "the deviations account for this"
            if self.lag == most:
                text = "the deviations account for no longer lag, so they may be too small; pass a `bandwidth`"
            notes.append(f"residuals are correlated over {self.lag} samples; {text}")
        text = tables_as_text(*tables, *notes, width=120, separator="\n" if notes else "")
        return "\n".join(line.rstrip() for line in text.splitlines())

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot measured forces, predicted forces and residuals, one panel per coordinate, and return the figure.

        With ``path``, the figure is also saved. Plotting requires matplotlib (``torsor[plot]``).

        Example:
            >>> robot = torsor.library.two_link()
            >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
            >>> len(torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a))).plot().axes)
            2
        """
        return contents.plot(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Identified":
        """Load an identification from a .npz file.

        Example:
            >>> import tempfile
            >>> robot = torsor.library.two_link()
            >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
            >>> found = torsor.identify(robot, (q, v, a, robot.inverse_dynamics(q, v, a)))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     found.save(folder + "/arm.npz")
            ...     Identified.load(folder + "/arm.npz").values.tolist() == found.values.tolist()
            True
        """
        with reading_archive(Path(path), cls.kind) as found:
            arrays, robot = found.arrays, _archived_robot(found)
            names = tuple(as_text(arrays["base_names"]).split("\n"))
            data, b, p = _measured(found, robot, "measured"), len(names), len(robot.inertial.names)
            shapes = {"values": (b,), "covariance": (b, b), "condition": (), "base_values": (b,), "base_matrix": (b, p)}
            shapes |= {"base_columns": (b,), "base_unknown": (p,), "base_by_rule": (), "predicted": data.tau.shape}
            optional = {"held_out": (robot.nv,), "parameters": (p,)}
            for name, shape in (shapes | {key: fields for key, fields in optional.items() if key in arrays}).items():
                check_array(arrays[name], shape, name, ARRAY_TYPES.get(name, "f"))
            columns = arrays["base_columns"]
            if ((columns < 0) | (columns >= p)).any():
                raise ValueError(f"base_columns are outside the range 0 to {p - 1}")
            matrix, values, unknown = (arrays[f"base_{name}"] for name in ("matrix", "values", "unknown"))
            by_rule = bool(arrays["base_by_rule"])
            base = BaseParameters(names, columns.astype(np.intp), matrix, values, unknown, by_rule)
            fields: dict[str, Any] = {name: arrays.get(name) for name in RESULT_ARRAYS}
            fields |= {"condition": float(arrays["condition"]), "lag": int(arrays.get("lag", 0))}
            if "drives" in arrays:
                fields["drives"] = Drives.from_content(json.loads(as_text(arrays["drives"])))
            if "notes" in arrays:
                data = replace(data, notes=tuple(map(str, json.loads(as_text(arrays["notes"])))))
            made = cls(robot, base, measurements=data, settings=found.settings, **fields)
            if "unseen_q" not in arrays:
                return made
            later, predicted = _measured(found, robot, "unseen"), arrays["unseen_predicted"]
            check_array(predicted, later.tau.shape, "unseen_predicted", "f")
            return replace(made, unseen=replace(made, measurements=later, predicted=predicted, held_out=None))

    @property
    def method(self) -> str:
        """Short description of the estimation method."""
        estimator = str(self.settings.get("estimator", "weighted least squares"))
        if self.settings.get("instruments"):
            estimator = "instrumental variables"
        if self.parameters is None:
            return estimator
        return "physically consistent" + f", {estimator}" * (estimator != "weighted least squares")

    def _archive(self) -> Archive:
        robot, data = self.prior, self.measurements
        arrays: dict[str, Any] = {name: getattr(self, name) for name in RESULT_ARRAYS}
        arrays |= {f"base_{name}": getattr(self.base, name) for name in BASE_ARRAYS}
        arrays["base_names"] = as_bytes("\n".join(self.base.names))
        arrays |= {f"measured_{name}": getattr(data, name) for name in MEASUREMENT_ARRAYS}
        arrays["robot"] = as_bytes(robot_text(whole(robot)))
        if isinstance(robot, ClosedRobot):
            arrays["start"] = robot.closing.start
            if isinstance(robot.given, ParallelRobot):
                arrays["parallel_robot"] = as_bytes(parallel_text(robot.given))
        if self.drives is not None:
            arrays["drives"] = as_bytes(json.dumps(self.drives.content()))
        if data.notes:
            arrays["notes"] = as_bytes(json.dumps(data.notes))
        if self.unseen is not None:
            arrays |= {f"unseen_{name}": getattr(self.unseen.measurements, name) for name in MEASUREMENT_ARRAYS}
            arrays["unseen_predicted"] = self.unseen.predicted
        arrays = {name: each for name, each in arrays.items() if each is not None}
        units = state_units(robot)
        measured = {f"measured_{name}": unit for name, unit in units.items()} | {"measured_times": "s"}
        own_units = {
            "predicted": units["tau"],
            "values": SI_UNITS,
            "base_values": SI_UNITS,
            "parameters": SI_UNITS,
            "condition": "1",
        }
        return Archive(self.kind, arrays, plain(self.settings), measured | own_units)

    def _columns(self) -> list[Column]:
        """Return the table of the .csv file: prior and identified parameters, with standard deviations."""
        values = (self.base.values, self.values, self.deviations)
        rows = zip(("as given", "identified", "deviation"), values, strict=True)
        return [Column("parameter", "", list(self.names)), *(Column(name, "SI", each) for name, each in rows)]

    def _content(self) -> dict[str, Any]:
        rows = zip(self.names, self.base.values, self.values, self.deviations, strict=True)
        residuals = zip(self.prior.coordinate_names, self.rms, self.relative_residuals, self.r_squared, strict=True)
        parameters = [dict(zip(("name", "given", "value", "deviation"), row, strict=True)) for row in rows]
        keys = ("coordinate", "rms", "percent", "r_squared")
        return {
            "units": {"parameters": SI_UNITS, "rms": "N m, N", "percent": "%"},
            "robot": robot_facts(self.prior),
            "settings": plain(self.settings),
            "method": self.method,
            "condition": plain(self.condition),
            "samples": len(self.measurements),
            "base_parameters": plain(parameters),
            "parameters": plain(self.parameters),
            "parameter_names": list(self.prior.inertial.names),
            "residuals": plain([dict(zip(keys, row, strict=True)) for row in residuals]),
            "drives": None if self.drives is None else self.drives.content(),
            "lag": self.lag,
            "held_out": plain(self.held_out),
            "unidentified": [parameter._asdict() for parameter in self.unidentified],
            "notes": list(self.measurements.notes),
        }

    def _summary(self) -> Summary:
        percents = zip(self.prior.coordinate_names, self.relative_residuals, strict=True)
        facts = {
            "method": self.method,
            "samples": str(len(self.measurements)),
            "condition number": f"{self.condition:.4g}",
            "residuals": ", ".join(
                f"{name} {percent:.3g} %" if np.isfinite(percent) else f"{name}: no force"
                for name, percent in percents
                if not np.isnan(percent)
            ),
        }
        values = zip(self.names, self.values, self.deviations, strict=True)
        rows = [(name, contents.short(value), f"{deviation:.2g}") for name, value, deviation in values]
        return Summary(f"Identified {self.prior.name}", facts, ("parameter (SI)", "value", "deviation"), rows)


register_result("identification", Identified, "identified parameters")


def _archived_robot(found: Archive) -> MeasuredRobot:
    """Return the robot of a file; raise ValueError or KeyError if the arrays are invalid."""
    tree = archived_robot(found)
    if "start" not in found.arrays:
        return tree
    robot: Robot | ParallelRobot = tree
    if "parallel_robot" in found.arrays:
        robot = ParallelRobot(**parallel_fields(as_text(found.arrays["parallel_robot"])))
    made = closed_robot(robot, np.asarray(found.arrays["start"]))
    check_array(found.arrays["start"], (made.mechanism.nq,), "start", "f")
    return made


def _measured(found: Archive, robot: MeasuredRobot, which: str) -> Measurements:
    """Return the used ("measured") or held-out ("unseen") measurements of a file."""
    arrays: dict[str, Any] = {name: found.arrays.get(f"{which}_{name}") for name in MEASUREMENT_ARRAYS}
    for name in ("q", "v", "a", "tau"):
        if arrays[name] is None:
            raise KeyError(f"{which}_{name}")
    return measurements_of(robot, Measurements(**arrays))


@timeline_of.register
def _(result: Identified) -> Timeline:
    """Return the measured motion for viewers, with the force residuals."""
    measured, robot = result.measurements, result.prior
    times = np.arange(len(measured), dtype=float) if measured.times is None else measured.times
    motion, tau, residuals = (measured.q, measured.v, measured.a), measured.tau, result.residuals
    if isinstance(robot, ClosedRobot):
        motion, tau, residuals = robot.whole(*motion), robot.spread(tau), robot.spread(residuals)
        robot = robot.mechanism
    states = (times, *motion, tau)
    return Timeline(robot, f"{robot.name}, measured", *states, robot.coordinate_names, residuals=residuals)
