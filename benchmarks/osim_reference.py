"""Compute OpenSim references for .osim files: mass, poses, mass matrix, inverse and forward dynamics.

    python benchmarks/osim_reference.py FOLDER REFERENCES.json [--states 3]

The script needs opensim and NumPy, but not torsor, because opensim contains its own CasADi (run ``pip install opensim``
in a separate environment). ``benchmarks/osim.py`` compares torsor with the results.

Forces other than gravity are removed. The free coordinates, their rates and their accelerations are random, within the
ranges of the coordinates; locks and couplers determine the others. OpenSim's mass matrix and inverse dynamics ignore
locks and couplers, and are projected with the slopes of its own coupling functions. Its forward dynamics enforces them,
and loops, by its own constraints. The rates of ball and free joints, whose speeds u are angular velocities, follow from
q' = N(q) u.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import opensim

Array = np.ndarray
REACH = 1.5  # rad or m, for coordinates of larger ranges
STEP = 1e-4  # of differences


class Coupler(NamedTuple):
    """A coordinate that follows another."""

    dependent: str
    leader: str
    function: Any
    scale: float

    def __call__(self, at: float, order: int = 0) -> float:
        """Return the value, or a derivative."""
        x = opensim.Vector(1, float(at))
        if not order:
            return self.scale * self.function.calcValue(x)
        indices = opensim.StdVectorInt()
        for _ in range(order):
            indices.push_back(0)
        return self.scale * self.function.calcDerivative(indices, x)


class Reference:
    """An OpenSim model at states of its free coordinates ``names``."""

    def __init__(self, path: Path):
        self.model = opensim.Model(str(path))
        for parts in (self.model.updProbeSet(), self.model.updForceSet(), self.model.updControllerSet()):
            parts.clearAndDestroy()
        self.state = self.model.initSystem()
        self.matter = self.model.getMatterSubsystem()
        coordinates = self.model.getCoordinateSet()
        self.coordinates = {coordinates.get(k).getName(): coordinates.get(k) for k in range(coordinates.getSize())}
        constraints = self.model.getConstraintSet()
        found = [_coupler(constraints.get(k)) for k in range(constraints.getSize())]
        self.couplers = [each for each in found if each is not None]
        held = {each.dependent for each in self.couplers}
        held |= {name for name, each in self.coordinates.items() if each.getLocked(self.state)}
        self.names = [name for name in self.coordinates if name not in held]
        self.all_names = [*self.names, *sorted(held)]
        self.rows, self.columns = ([self._place(name, which) for name in self.all_names] for which in "qu")

    def _place(self, name: str, which: str) -> int:
        """Return the place of a coordinate in the vector q or u of OpenSim's state."""
        found = []
        for value in (0.1, 0.2):
            state = opensim.State(self.state)
            coordinate = self.coordinates[name]
            coordinate.setLocked(state, False)
            coordinate.setValue(state, value, False)
            coordinate.setSpeedValue(state, value)
            found.append(_array(state.getQ() if which == "q" else state.getU()))
        (place,) = np.flatnonzero(found[1] - found[0])
        return int(place)

    def drawn(self, rng: np.random.Generator) -> Array:
        """Return random values of the free coordinates within their ranges."""
        ranges = [(self.coordinates[name].getRangeMin(), self.coordinates[name].getRangeMax()) for name in self.names]
        return np.array([rng.uniform(max(low, -REACH), min(high, REACH)) for low, high in ranges])

    def go_to(self, q: Array, v: Array) -> None:
        """Set the state of the free coordinates; the others follow."""
        values = {name: each.getDefaultValue() for name, each in self.coordinates.items()}
        values |= dict(zip(self.names, q, strict=True))
        self.slopes, self.bends = np.eye(len(self.all_names), len(q)), np.zeros(len(self.all_names))
        for coupler in self.couplers:
            values[coupler.dependent] = coupler(values[coupler.leader])
            if coupler.leader in self.names:
                k, m = self.all_names.index(coupler.dependent), self.names.index(coupler.leader)
                self.slopes[k, m] = coupler(values[coupler.leader], 1)
                self.bends[k] = coupler(values[coupler.leader], 2) * v[m] ** 2
        full = _array(self.state.getQ())
        full[self.rows] = [values[name] for name in self.all_names]
        self.state.setQ(_vector(full))
        self.model.realizePosition(self.state)
        self.N = self._matrix(lambda u, out: self.matter.multiplyByN(self.state, False, u, out))
        self.J = np.linalg.solve(self.N, self.slopes)
        self.state.setU(self._spread(self.J @ v))
        self.model.realizeVelocity(self.state)
        drift = opensim.Vector()
        self.matter.multiplyByNDot(self.state, False, self.state.getU(), drift)
        self.drift = _array(drift)[self.rows]
        self.model.realizeDynamics(self.state)

    def _matrix(self, product: Callable[[Any, Any], None]) -> Array:
        found = []
        for k in range(len(self.columns)):
            out = opensim.Vector()
            product(self._spread(np.eye(len(self.columns))[k]), out)
            found.append(_array(out)[self.rows])
        return np.array(found).T

    def _spread(self, u: Array) -> Any:
        full = np.zeros(self.state.getNU())
        full[self.columns] = u
        return _vector(full)

    def mass_matrix(self) -> Array:
        """Return the mass matrix (n, n) of the free coordinates."""
        M = opensim.Matrix()
        self.matter.calcM(self.state, M)
        return self.J.T @ np.array(M.to_numpy())[np.ix_(self.columns, self.columns)] @ self.J

    def inverse_dynamics(self, a: Array) -> Array:
        """Return the forces (n,) of the free coordinates."""
        rates = np.linalg.solve(self.N, self.slopes @ a + self.bends - self.drift)
        forces = opensim.InverseDynamicsSolver(self.model).solve(self.state, self._spread(rates))
        return self.J.T @ _array(forces)[self.columns]

    def lagrange_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Return the forces (n,) by Lagrange's equations: tau = M a + M' v - 1/2 d(v M v)/dq + gravity.

        The derivatives are fourth-order differences of the mass matrix at nearby states.
        """
        slopes = []
        for unit in STEP * np.eye(len(q)):
            M = [self._mass_matrix_at(q + k * unit) for k in (-2, -1, 1, 2)]
            slopes.append((M[0] - 8 * M[1] + 8 * M[2] - M[3]) / (12 * STEP))
        self.go_to(q, 0 * v)
        velocity_forces = np.einsum("kij,k,j->i", slopes, v, v) - 0.5 * np.einsum("kij,i,j->k", slopes, v, v)
        return self.inverse_dynamics(a) + velocity_forces

    def _mass_matrix_at(self, q: Array) -> Array:
        self.go_to(q, 0 * q)
        return self.mass_matrix()

    def forward_dynamics(self) -> Array:
        """Return the accelerations (n,) of the free coordinates under gravity alone, with all constraints."""
        self.model.realizeAcceleration(self.state)
        return _array(self.state.getQDotDot())[self.rows][: len(self.names)]

    def poses(self) -> dict[str, list[list[float]]]:
        """Return the pose (4, 4) of each body in the ground."""
        found, bodies = {}, self.model.getBodySet()
        for body in (bodies.get(k) for k in range(bodies.getSize())):
            placed, T = body.getTransformInGround(self.state), np.eye(4)
            R = placed.R().asMat33()
            T[:3, :3] = [[R.get(i, j) for j in range(3)] for i in range(3)]
            T[:3, 3] = [placed.p().get(k) for k in range(3)]
            found[body.getName()] = T.tolist()
        return found


def _array(vector: Any) -> Array:
    return np.array(vector.to_numpy(), dtype=float)


def _vector(numbers: Array) -> Any:
    return opensim.Vector.createFromMat(np.asarray(numbers, dtype=float))


def _coupler(constraint: Any) -> Coupler | None:
    coupler = opensim.CoordinateCouplerConstraint.safeDownCast(constraint)
    if coupler is None or not coupler.get_isEnforced():
        return None
    scale = opensim.PropertyHelper.getValueDouble(coupler.getPropertyByName("scale_factor"))
    leaders = coupler.getIndependentCoordinateNames()
    return Coupler(coupler.getDependentCoordinateName(), leaders.get(0), coupler.getFunction(), scale)


def numbers_of(path: Path, states: int) -> dict[str, Any]:
    """Return the results for a file as plain values for JSON."""
    model, rng, found = Reference(path), np.random.default_rng(1), []
    for _ in range(states):
        q = model.drawn(rng)
        v, a = rng.normal(size=(2, len(q)))
        model.go_to(q, v)
        numbers = {"q": q, "v": v, "a": a, "mass_matrix": model.mass_matrix()}
        poses = model.poses()
        numbers |= {"inverse_dynamics": model.inverse_dynamics(a), "forward_dynamics": model.forward_dynamics()}
        numbers["lagrange"] = model.lagrange_forces(q, v, a)
        found.append({key: value.tolist() for key, value in numbers.items()} | {"poses": poses})
    mass = model.model.getTotalMass(model.state)
    return {"coordinates": model.names, "mass": mass, "states": found}


def main() -> None:
    """Write the results for all files below a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("references", type=Path)
    parser.add_argument("--states", type=int, default=3)
    arguments = parser.parse_args()
    opensim.Logger.setLevelString("off")
    paths = sorted(arguments.folder.rglob("*.osim"))
    found = {str(path.relative_to(arguments.folder)): numbers_of(path, arguments.states) for path in paths}
    arguments.references.write_text(json.dumps({"opensim": opensim.GetVersion(), "files": found}) + "\n")


if __name__ == "__main__":
    main()
