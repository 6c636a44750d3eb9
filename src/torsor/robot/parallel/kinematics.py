"""Kinematics of a parallel robot: the legs from the pose of the platform, and the pose from the drives."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Flags
from torsor.base.checks import common_shape, vectors
from torsor.base.errors import ModelError, describe, shortened
from torsor.dynamics.loops.characteristic_scales import characteristic_scales
from torsor.robot.closed_loops.search import Closer
from torsor.robot.parallel.fitting import Look
from torsor.robot.parallel.kernels import Assembled
from torsor.robot.parallel.leg_search import LegSearch
from torsor.robot.parallel.limbs import Limb
from torsor.robot.parallel.trials import depends_on_pose, drive_units

AGREE = 1e-9  # rad or sizes: tolerance of the agreement of redundant drives


class Kinematics:
    """Inverse and forward kinematics of one robot; its searches are prepared once."""

    def __init__(self, robot: Assembled):
        self.robot, self.parts = robot, robot._parts

    # Legs

    def inverse(self, x: Array, guess: Array | None) -> Array:
        """Return positions (..., nq) of the legs at poses x, or raise an error that names a leg that does not reach."""
        self.robot._check_finite(x)
        q, reached = self.leg_positions(x, guess)
        if not reached.all():
            raise self._unreached(x, q, reached, guess is not None)
        return q

    def leg_positions(self, x: Array, guess: Array | None) -> tuple[Array, Flags]:
        """Return positions (..., nq) of the legs at poses x, and which of the legs (..., legs) reach them."""
        robot, start = self.robot, self.robot.leg_home if guess is None else guess
        batch = common_shape(robot.name, pose=x.shape[:-1], guess=start.shape[:-1])
        poses = np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1])
        near = np.broadcast_to(start, (*batch, robot.nq)).reshape(-1, robot.nq)
        q = np.array(robot._exact._kernel("closed_positions")(poses, near))
        reached = np.ones((len(q), len(robot.legs)), dtype=bool)
        for k, limb in enumerate(self.parts.limbs):
            if k not in self._searches:
                reached[:, k] = np.isfinite(q[:, limb.q]).all(axis=-1)
                continue
            search, at = self._searches[k], np.flatnonzero(reached.all(axis=-1))  # a pose needs all legs before
            if guess is None:
                q[at, limb.q], reached[at, k] = search.from_home(poses[at])
            else:
                q[at, limb.q], reached[at, k] = search.from_guess(poses[at], q[at, limb.q])
        return q.reshape(*batch, robot.nq), reached.reshape(*batch, len(robot.legs))

    @cached_property
    def _searches(self) -> dict[int, LegSearch]:
        """The searches of the legs without a closed form, by the index of the leg."""
        robot, found, leg_home = self.robot, dict[int, LegSearch](), self.robot.leg_home
        for k, (limb, strut) in enumerate(zip(self.parts.limbs, self.parts.struts, strict=True)):
            if strut is None:
                closer = Closer(robot._exact._kernel("leg_trial", leg=k), *self._units(limb))
                side = None if depends_on_pose(self.parts, k) else robot._exact._kernel("leg_side", leg=k)
                found[k] = LegSearch(limb, robot._exact.carriage, robot.home, leg_home[limb.q], closer, side)
        return found

    def _unreached(self, x: Array, q: Array, reached: Flags, guessed: bool) -> ModelError:
        """Return the error that names the leg that is farthest from reaching the first pose, with its closing error."""
        robot, index = self.robot, tuple(np.argwhere(~reached)[0][:-1])
        pose, own = np.broadcast_to(x, (*reached.shape[:-1], x.shape[-1]))[index], q[index]
        where, found = f"{robot.name}, pose {shortened(np.round(pose, 6))}", dict[str, float]()
        for leg, limb, well in zip(robot.legs, self.parts.limbs, reached[index], strict=True):
            if not well:
                look = Look(limb._replace(rows=tuple(range(limb.loop.count))), self.parts.platform, pose)
                found[leg.name] = look.space.closest(np.where(np.isfinite(own), own, robot.leg_home)[limb.q])[1]
        name, size = max(found.items(), key=lambda pair: pair[1])
        if size <= 1e-6:
            mode = "the guess" if guessed else "home"
            text = f"leg {name!r} was not found in the assembly mode of {mode}: a singular configuration is between"
            text += " them" if guessed else " home and the pose, or the pose is too far"
            return ModelError(describe(text, where=where, fix="give positions of the legs near the pose as a guess"))
        text = f"leg {name!r} does not reach the platform: error of closure {size * self.parts.length:.2g} at best"
        return ModelError(describe(text, where=where, fix="give a pose within reach"))

    # Platform

    def forward(self, q_driven: ArrayLike, guess: Array | None) -> Array:
        """Return poses (..., nq of the platform) from the positions (..., N) of the drives, near a guess or home."""
        robot, names = self.robot, self.robot.driven_names
        count, n = len(names), robot.carriage.nq
        wanted = vectors(q_driven, count, f"{robot.name}, drives {', '.join(names)}", "q_driven")
        x = robot.home if guess is None else guess
        q = self.inverse(x, None)
        batch = common_shape(robot.name, q_driven=wanted.shape[:-1], guess=x.shape[:-1])
        begin = np.concatenate([x, q, q[..., robot._driven]], axis=-1)
        begin = np.ascontiguousarray(np.broadcast_to(begin, (*batch, begin.shape[-1])).reshape(-1, begin.shape[-1]))
        flat = np.broadcast_to(wanted, (*batch, count)).reshape(-1, count)
        way = np.zeros((len(begin), robot.dof + robot.nv + count))
        way[:, -count:] = flat - begin[:, -count:]
        state, well = self._assembler.walk(begin, self._assembler.side(begin), way)
        first, last = (robot._exact._kernel("sides")(each[:, :n], each[:, n:-count]) for each in (begin, state))
        well &= (first * last > 0).all(axis=-1)  # one by one: two changes of sign cancel in a product
        if not well.all():
            text = (
                f"no pose with the driven coordinates {shortened(flat[int(np.argmin(well))].round(6))} was found from "
            )
            text += f"{'home' if guess is None else 'the guess'}: they cannot be reached, or a singular pose is between"
            fix = "give coordinates that can be reached, or a guess nearer to them"
            raise ModelError(describe(text, where=robot.name, fix=fix))
        off = np.abs((state[:, n:-count][:, robot._driven] - flat) / drive_units(self.parts)).max(axis=-1, initial=0.0)
        if (off > AGREE).any():
            text = f"driven coordinates disagree by {off.max():.2g}: {count} are given for {robot.dof} freedoms"
            raise ModelError(describe(text, where=robot.name, allowed=f"{AGREE:g}", fix="give values that agree"))
        return state[:, :n].reshape(*batch, n)

    @cached_property
    def _assembler(self) -> Closer:
        """The ``Closer`` of legs and platform for given drives, with states (pose, positions of the legs, drives)."""
        units = (np.concatenate([each, drive_units(self.parts)]) for each in self._units(*self.parts.limbs))
        return Closer(self.robot._exact._kernel("assembly_trial"), *units)

    def _units(self, *limbs: Limb) -> list[Array]:
        """Return the characteristic scales of the positions, and of the velocities, of the platform and of legs."""
        trees = self.parts.platform, *(limb.tree for limb in limbs)
        scales = (characteristic_scales(tree, self.parts.length) for tree in trees)
        return [np.concatenate(each) for each in zip(*scales, strict=True)]
