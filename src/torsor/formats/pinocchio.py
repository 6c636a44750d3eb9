"""Reading a ``pinocchio.Model`` by its attributes, without importing Pinocchio."""

import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.errors import ModelError
from torsor.base.faults import refuse_or_warn
from torsor.formats.writing import left_out_error
from torsor.mechanism import Frame, Joint, Link, Mechanism, build
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import link_of

_X, _Y, _Z = np.eye(3)
# Joints that are chains of joints with one degree of freedom.
_CHAINS = {
    "SphericalZYX": (("revolute", _Z), ("revolute", _Y), ("revolute", _X)),
    "Translation": (("prismatic", _X), ("prismatic", _Y), ("prismatic", _Z)),
}
_WHOLE = {"FreeFlyer": "free", "Spherical": "spherical", "Planar": "planar"}
_PLACES = {"free": 3, "planar": 2}  # numbers of positions with limits, for joints with several velocities
_NO_LIMIT = sys.float_info.max


class _Piece(NamedTuple):
    """A joint, or a part of one: type, axis and pitch, and the pose of its rest frame in the frame before it."""

    kind: str
    axis: Array = _Z
    pitch: float = 0.0
    placement: Array = IDENTITY


def read_live_pinocchio(model: Any, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of a ``pinocchio.Model``.

    | Pinocchio | mechanism |
    |---|---|
    | joints | joints with the same names and order, or chains of joints NAME/1, NAME/2, ... |
    | unbounded joints, with (cos, sin) | continuous joints, with angles (``Convention`` converts) |
    | the first BODY frame at the origin of a joint | name of its link; other links have the name of their joint |
    | other frames | frames |
    | ``armature``, ``damping``, ``friction`` | ``rotor_inertia``, viscous and Coulomb friction |
    | reference configurations | postures |

    Shapes and visuals are not part of a model, but of a ``GeometryModel``. Other joint types raise ``ModelError``. A
    ``ModelWarning`` names omitted properties; ``strict`` makes it an error.
    """
    return _Reader(model, strict).mechanism(base, snap)


class _Reader:
    """Converter of one model, with the places of its joints in the configurations of the model."""

    def __init__(self, model: Any, strict: bool):
        self.model, self.strict = model, strict
        self.source = str(model.name) or "pinocchio.Model"
        self.names = [str(name) for name in model.names]
        self.omitted: dict[str, list[str]] = defaultdict(list)
        self.places = list[tuple[Joint, int]]()
        origins = {int(frame.parentJoint): str(frame.name) for frame in reversed(self._bodies())}
        self.taken = set(origins.values())
        self.links = [origins.get(k) or claim_name(name, self.taken) for k, name in enumerate(self.names)]

    def mechanism(self, base: str, snap: float) -> Mechanism:
        """Return the mechanism, and issue the warnings about the model."""
        m, joints, links = self.model, list[Joint](), list[Link]()
        for k, name in enumerate(self.links):
            if k:
                chain = list(self._joints(k))
                links += [Link(joint.child) for joint in chain[:-1]]
                joints += chain
            inertia = np.array(m.inertias[k].inertia)
            solid = float(m.inertias[k].mass), np.array(m.inertias[k].lever), 0.5 * (inertia + inertia.T)
            links.append(link_of(name, solid, (), (), self.strict, self.source))
        if self.omitted:
            refuse_or_warn(left_out_error(self.omitted, self.source, self.strict), self.strict)
        gravity, frames, postures = np.array(m.gravity.linear), self._frames(), self._postures()
        name = str(m.name) or "robot"
        return build(name, links, joints, frames, gravity, self.source, base, posture_table=postures, snap=snap)

    def _bodies(self) -> list[Any]:
        """Return the BODY frames at the origins of joints."""
        bodies = (frame for frame in self.model.frames if str(frame.type) == "BODY")
        return [frame for frame in bodies if np.array_equal(frame.placement.homogeneous, IDENTITY)]

    def _joints(self, k: int) -> Iterator[Joint]:
        """Yield joint k, or the chain of joints that is equal to it."""
        m, name, parent = self.model, self.names[k], self.links[int(self.model.parents[k])]
        joint, at = m.joints[k], np.array(m.jointPlacements[k].homogeneous)
        q, v, pieces = int(joint.idx_q), int(joint.idx_v), self._pieces(joint, name)
        for number, piece in enumerate(pieces, start=1):
            last, own = number == len(pieces), name if len(pieces) == 1 else f"{name}/{number}"
            child = self.links[k] if last else claim_name(f"{self.links[k]}/{number}", self.taken)
            moved = at @ piece.placement if number == 1 else piece.placement
            follows = _kind(joint) == "Mimic"
            settings = self._leader(k) if follows else self._settings(piece.kind, own, q, v)
            made = Joint(own, piece.kind, parent, child, moved, piece.axis, pitch=piece.pitch, **settings)
            yield made
            if not follows:
                self.places.append((made, q))
                q, v = q + made.nq + (made.type in ("continuous", "planar")), v + made.nv
            parent = child

    def _pieces(self, joint: Any, name: str) -> list[_Piece]:
        """Return the joints with types of a mechanism that a joint consists of."""
        kind = _kind(joint)
        if kind in _WHOLE:
            return [_Piece(_WHOLE[kind])]
        if kind in _CHAINS:
            return [_Piece(*item) for item in _CHAINS[kind]]
        inside = joint.extract() if hasattr(joint, "extract") else joint
        if kind == "Universal":
            return [_Piece("revolute", np.array(axis)) for axis in (inside.axis1, inside.axis2)]
        if kind == "Composite":
            result = list[_Piece]()
            for part, placement in zip(inside.joints, inside.jointPlacements, strict=True):
                first, *others = self._pieces(part, name)
                at = np.array(placement.homogeneous)
                result += [first._replace(placement=at @ first.placement), *others]
            return result
        S = self._subspace(joint)
        if S.shape[1] != 1:
            what = f"joint {name!r} has the type {kind}, which mechanisms do not support"
            allowed = f"joints with one degree of freedom, {', '.join((*_WHOLE, *_CHAINS))}, Universal, Composite"
            raise ModelError(what, value=kind, where=self.source, allowed=allowed)
        linear, angular = np.split(S[:, 0] / (inside.scaling if kind == "Mimic" else 1.0), 2)
        if not angular.any():
            return [_Piece("prismatic", linear)]
        unbounded = joint.nq == 2
        pitch = float(linear @ angular)
        return [_Piece("continuous" if unbounded else "helical" if pitch else "revolute", angular, pitch)]

    def _subspace(self, joint: Any) -> Array:
        """Return the motion subspace (6, nv) of a joint, linear rows first."""
        data, q = joint.createData(), np.zeros(self.model.nq)
        if joint.nq == 2:
            q[joint.idx_q] = 1.0  # the cosine
        joint.calc(data, q)
        return np.array(data.S).reshape(6, -1)

    def _leader(self, k: int) -> dict[str, Any]:
        """Return the coordinate that a mimic joint follows."""
        m, joint = self.model, self.model.joints[k].extract()
        leader = dict(zip(m.mimicking_joints, m.mimicked_joints, strict=True))[k]
        return {"coordinate": self.names[leader], "ratio": float(joint.scaling), "offset": float(joint.offset)}

    def _settings(self, kind: str, name: str, q: int, v: int) -> dict[str, Any]:
        """Return limits, friction and rotor inertia of the joint whose positions and velocities start at q and v."""
        m = self.model
        rates = {"free": 6, "spherical": 3, "planar": 3}.get(kind, 1)
        place = np.r_[v + 3 : v + 6, v : v + 3] if kind == "free" else np.arange(v, v + rates)
        result: dict[str, Any] = {"source": self.source}
        for key, what in (("velocity_limit", "Velocity"), ("effort_limit", "Effort")):
            ends = (self._first(f"{end}{what}Limit", f"{what.lower()}Limit")[place] for end in ("lower", "upper"))
            # Programs differ in the sign of lower limits, and some set only the upper ones.
            lower, upper = (_limits(np.abs(end)) for end in ends)
            lower = np.where(np.isinf(lower), upper, lower)
            if (lower != upper).any():
                text = f"{what.lower()} limits that depend on the direction, of which the larger is used"
                self.omitted[text].append(name)
            result[key] = np.maximum(lower, upper)
        result["coulomb"] = self._first("upperDryFrictionLimit", "friction")[place]
        result["viscous"], result["rotor_inertia"] = np.array(m.damping)[place], np.array(m.armature)[place]
        if (np.array(m.rotorInertia)[place].astype(bool) & (result["rotor_inertia"] == 0)).any():
            self.omitted["rotor inertias without armature, which the dynamics of Pinocchio also omit"].append(name)
        if kind == "planar" and result["rotor_inertia"][:2].any():
            self.omitted["armature in the moved axes of planar joints"].append(name)
            result["rotor_inertia"][:2] = 0.0
        count = _PLACES.get(kind, int(rates == 1 and kind != "continuous"))
        if count:
            total = {"free": 7, "planar": 3}.get(kind, 1)
            for key, limit, none in (("lower", m.lowerPositionLimit, -np.inf), ("upper", m.upperPositionLimit, np.inf)):
                result[key] = np.r_[_limits(np.array(limit)[q : q + count]), np.full(total - count, none)]
        return result

    def _first(self, *names: str) -> Array:
        """Return the first of these arrays that the model has: their names depend on the version of Pinocchio."""
        return np.array(next(getattr(self.model, name) for name in names if hasattr(self.model, name)), dtype=float)

    def _frames(self) -> list[Frame]:
        """Return all frames but joints, bodies that are links, and fixed joints of bodies."""
        all_frames, result = list(self.model.frames), list[Frame]()
        kinds, links = [str(frame.type) for frame in all_frames], set(self.links)
        held = {int(f.parentFrame) for f, kind in zip(all_frames, kinds, strict=True) if kind == "BODY"}
        for k, (frame, kind) in enumerate(zip(all_frames, kinds, strict=True)):
            name, joint, at = str(frame.name), int(frame.parentJoint), np.array(frame.placement.homogeneous)
            is_link = kind == "BODY" and name == self.links[joint] and np.array_equal(at, IDENTITY)
            if k == 0 or kind == "JOINT" or is_link or (kind == "FIXED_JOINT" and k in held):
                links.discard(name if is_link else "")
                continue
            before = int(frame.parentFrame)
            fixed = str(all_frames[before].name) if kind == "BODY" and before and kinds[before] == "FIXED_JOINT" else ""
            result.append(Frame(claim_name(name, self.taken), self.links[joint], at, fixed))
        return result

    def _postures(self) -> dict[str, dict[str, float]]:
        """Return the positions of each reference configuration, by name."""
        return {str(entry.key()): self._positions(entry.data()) for entry in self.model.referenceConfigurations}

    def _positions(self, q: Array) -> dict[str, float]:
        """Return positions by name, with angles instead of (cos, sin)."""
        result = dict[str, float]()
        for joint, start in self.places:
            values = [float(x) for x in q[start : start + joint.nq]]
            if joint.type in ("continuous", "planar"):
                cosine = start + joint.nq - 1
                values[-1] = math.atan2(q[cosine + 1], q[cosine])
            result |= dict(zip(joint.position_names, values, strict=True))
        return result


def _kind(joint: Any) -> str:
    """Return the type of a joint, such as RX or RevoluteUnaligned."""
    return str(joint.shortname()).removeprefix("JointModel")


def _limits(values: Array) -> Array:
    """Return limits, with infinity for the largest number, which Pinocchio uses for no limit."""
    return np.where(np.abs(values) >= _NO_LIMIT, np.copysign(np.inf, values), values)
