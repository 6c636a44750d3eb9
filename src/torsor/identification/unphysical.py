"""Why no physical parameters were found: mistakes that the data show, each with its evidence and its fix."""

from collections.abc import Callable

import numpy as np

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, warn
from torsor.identification.bases import environment_forces
from torsor.identification.closed_robot import bodies_of
from torsor.identification.logs.force_model import ForceModel, Motion
from torsor.identification.logs.hypotheses import column_findings
from torsor.identification.logs.model_checks import scale_findings, sign_findings
from torsor.identification.measurements import Measurements
from torsor.identification.physical import FOUND, UnphysicalError
from torsor.robot.robot import Robot

MOST = 3  # findings that are named
MORE, LEAST = 3.0, 5.0  # times the residual of least squares, and percent of a force, from which on a warning is given
FIX = (
    "look at the log (torsor identify --check, or first_look), raise regularisation, or give a robot closer to the "
    "measured one"
)


def explained(robot: Robot, data: Measurements, mass: float | None, without: Callable[[], Array]) -> ModelError:
    """Return the error of an estimate near which no parameters are physical, with the causes that the data show.

    ``mass`` (kg) is the total that was given, and ``without`` returns the parameters (p,) without it. Then each force
    is fitted on its own, as in a first look: orders, signs, zeros and units that no robot has are named.
    """
    where = robot.name
    if mass is not None:
        try:
            total = float(without()[: 10 * bodies_of(robot) : 10].sum())
        except UnphysicalError:
            pass
        else:
            found = f"{FOUND} of the total mass {mass:.4g} kg, but some of {total:.4g} kg"
            fix = "correct mass (kg, of all moving links) or leave it out; or check the units of tau"
            return ModelError(describe(found, where=where, fix=fix))
    model = ForceModel(robot)
    tau = data.tau + environment_forces(robot, data.q, data.external)
    findings, corrected = column_findings(model, Motion(data.q, data.v, data.a, tau), where)
    findings += [*sign_findings(model, corrected, where), *scale_findings(model, corrected, where)]
    if not findings:
        return ModelError(describe(FOUND, where=where, fix=FIX))
    likely = ", and ".join(f"{each.place.removeprefix(f'{where}: ')}: {each.found}" for each in findings[:MOST])
    more = f", and {len(findings) - MOST} more" * (len(findings) > MOST)
    fixes = "; ".join(dict.fromkeys(each.fix for each in findings[:MOST]))
    return ModelError(
        describe(
            f"{FOUND}. Likely causes: {likely}{more}",
            where=where,
            fix=f"{fixes} (in the map of the log, or in the arrays)",
        )
    )


def check_distance(robot: Robot, tau: Array, free: Array, physical: Array, mass: float | None) -> None:
    """Warn where physical parameters leave far more of the forces tau (N, n) than those without constraints.

    ``free`` and ``physical`` (N, n) are the residuals of both, 0 where a force is not used.

    Example:
        >>> arm, ones = torsor.library.planar_chain(1), np.ones((9, 1))
        >>> check_distance(arm, ones, 0.01 * ones, 0.02 * ones, None)
    """
    sizes = (np.sqrt(np.mean(each**2, axis=0)) for each in (tau, free, physical))
    size, before, after = (np.maximum(each, 1e-300) for each in sizes)
    percents = np.where(after > MORE * before, 100 * after / size, 0.0)
    k = int(np.argmax(percents))
    if percents[k] > LEAST:
        found = f"physical parameters leave {percents[k]:.3g} % of the force of {robot.coordinate_names[k]!r}, "
        found += f"and {100 * before[k] / size[k]:.3g} % is left without constraints"
        fix = "check signs, units and order of the columns: torsor identify --check, or first_look"
        if mass is not None:
            fix = f"correct or leave out mass, {mass:.4g} kg; or {fix}"
        warn(describe(found, where=robot.name, fix=fix))
