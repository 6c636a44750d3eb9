"""A robot some of whose numbers are inputs: masses, centres of mass, inertias, lengths, gravity, friction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import ALGORITHMS, Request
from torsor.mechanism.free import Free, Number, free_numbers, paths_of, read_number, with_numbers
from torsor.mechanism.values import frozen_array
from torsor.robot.differentiation import Differentiable, Loads

__all__ = ["Freeable", "Parametric"]

Array = NDArray[np.float64]
R = TypeVar("R", bound="Freeable")


class Freeable(Differentiable):
    """A robot whose numbers can be made inputs."""

    def parametric(self, paths: Sequence[str] | Mapping[str, Any]) -> "Parametric[Self]":
        """Return the robot with some of its numbers as inputs of its methods, with derivatives by them.

        Paths are "links.LINK.mass", ".com" (3), ".inertia" (6: xx, xy, xz, yy, yz, zz about the centre of mass);
        "joints.JOINT.origin" (3, where the child's frame is in the parent's), ".turn" (3, a rotation vector behind the
        placement's own rotation), ".point" (3, where the axis passes, in the child's axes), ".rotor_inertia",
        ".coulomb", ".viscous", ".stiffness"; and "gravity" (3). LINK and JOINT are names or indices; ".x" or ".xy"
        behind a path means one component. A link is one with all that fixed joints weld to it. A mapping gives the
        numbers names of their own, and {path: share} in place of a path is one number that moves several, as a
        Denavit-Hartenberg length does: 0 for the robot as it is.

        Example:
            >>> import torsor
            >>> robot = torsor.library.two_link()
            >>> model = robot.parametric(["links.link2.mass", "joints.joint2.origin.x"])
            >>> p, state = model.values, ([0.1, 0.2], [1.0, 0.0], [0.0, 0.0])
            >>> bool(np.allclose(model.inverse_dynamics(*state, p), robot.inverse_dynamics(*state)))
            True
            >>> model.derivatives("inverse_dynamics", *state, p).shape
            (2, 2)
        """
        return Parametric(self, free_numbers(self, paths))


class Parametric(Generic[R]):
    """A robot whose methods take numbers p (..., k) of its own as one argument more, behind the others.

    ``names`` are those of the numbers, ``values`` (k,) what they are for the robot itself. Every method of a robot that
    is an algorithm is here by its name: ``inverse_dynamics(q, v, a, p)``, ``jacobian(q, p, place="hand")``, with
    ``external``, ``external_rate``, ``fixed_in``, ``points`` and ``higher`` as there, and ``place``, ``forced`` and
    ``order`` as in ``Robot.function``. Made by ``Robot.parametric``.

    Example:
        >>> import torsor
        >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
        >>> arm.names, arm.values.tolist()
        (('links.0.mass',), [3.0])
        >>> arm.gravity_force([0.0], [[3.0], [6.0]]).round(9).tolist()
        [[29.43], [58.86]]
    """

    def __init__(self, robot: R, free: tuple[Free, ...]):
        self.robot, self._free = robot, free

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers, in the order of p."""
        return tuple(each.name for each in self._free)

    @property
    def paths(self) -> dict[str, str | dict[str, float]]:
        """What ``Robot.parametric`` makes it of: {name: path, or {path: share}}."""
        return paths_of(self.robot, self._free)

    @property
    def values(self) -> Array:
        """The numbers (k,) that make this the robot it was made from."""
        return np.array([each.value for each in self._free])

    def __repr__(self) -> str:
        return f"<Parametric {self.robot.name!r}: {len(self._free)} numbers, nq={self.robot.nq}, nv={self.robot.nv}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *ALGORITHMS]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ALGORITHMS:
            allowed = "names, paths, values, at, function, derivatives, jvp, vjp, robot, and the robot's algorithms"
            raise AttributeError(f"Parametric has no {name!r}; allowed: {allowed}")

        def method(*values: ArrayLike, **options: Any) -> Any:
            request, given = self._asked(name, values, options, "value")
            return self.robot._kernel(request)(*given)

        method.__name__ = name
        return method

    def _asked(
        self, name: str, values: Sequence[ArrayLike], options: dict[str, Any], form: str
    ) -> tuple[Request, list[Any]]:
        """Return what is asked for and all arguments, loads before p."""
        options = dict(options)
        higher = list(options.pop("higher", ()))
        if higher:
            options["order"] = 1 + len(higher)
        arrays = {each: options.pop(each, None) for each in ("external", "external_rate", "points")}
        keeps, loads = Loads(fixed_in=options.pop("fixed_in", "link"), **arrays).given(self.robot, name)
        by = ("p",) if form == "jacobian" else ()
        request = self.robot._request(name, external=keeps, **options, free=self._free, form=form, by=by)
        given = [*values[:-1], *higher, *loads, *values[-1:]]
        self.robot._counted(name, "inputs", given, self.robot._shapes_of(request)[0])
        return request, given

    def derivatives(self, name: str, *values: ArrayLike, **options: Any) -> Any:
        """Return the derivative by p of the method ``name``: its shape, and behind it an axis (k) for the numbers.

        Arguments are those of the method, p the last. Methods with several results give a tuple.

        Example:
            >>> import torsor
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> arm.derivatives("gravity_force", [0.0], [3.0]).round(9).tolist()  # g times 1 m
            [[9.81]]
        """
        request, given = self._asked(name, values, options, "jacobian")
        return self.robot._kernel(request)(*given)

    def jvp(self, name: str, inputs: Sequence[ArrayLike], tangents: Sequence[Any], **options: Any) -> Any:
        """Return what ``Robot.jvp`` does, with p the last of the inputs and its change the last tangent.

        Example:
            >>> import torsor
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> tau, change = arm.jvp("gravity_force", ([0.0], [3.0]), (None, [1.0]))
            >>> change.round(9).tolist()
            [9.81]
        """
        return self.robot.jvp(name, inputs, tangents, **options, free=self._free)

    def vjp(self, name: str, inputs: Sequence[ArrayLike], cotangents: Any, **options: Any) -> Any:
        """Return what ``Robot.vjp`` does, with p the last of the inputs and the gradient by it the last of all.

        Example:
            >>> import torsor
            >>> arm = torsor.library.planar_chain(1, length=2.0, mass=3.0).parametric(["links.0.mass"])
            >>> tau, (dq, dp) = arm.vjp("gravity_force", ([0.0], [3.0]), [1.0])
            >>> dp.round(9).tolist()
            [9.81]
        """
        return self.robot.vjp(name, inputs, cotangents, **options, free=self._free)

    def function(self, name: str, **options: Any) -> Any:
        """Return the CasADi function behind a method, p being its last input.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().parametric(["gravity"]).function("gravity_force")
            Function(gravity_force:(q[2],p[3])->(gravity_force[2]) SXFunction)
        """
        return self.robot._function(self.robot._request(name, **options, free=self._free))

    def at(self, p: ArrayLike) -> R:
        """Return the robot that has the numbers p (k,): an ordinary one, which can be saved and changed.

        Example:
            >>> import torsor
            >>> torsor.library.two_link().parametric(["links.link2.mass"]).at([2.5]).links[1].mass
            2.5
        """
        numbers = frozen_array(p, (len(self._free),), self.robot.name, "p")
        changed: dict[Number, float] = {}
        for value, each in zip(numbers.tolist(), self._free, strict=True):
            for number, share in each.shares:
                before = changed.get(number, read_number(self.robot, number))
                # A number on its own becomes the value itself, to the last bit.
                alone = share == 1 and each.value == before
                changed[number] = value if alone else before + share * (value - each.value)
        return replace(self.robot, **with_numbers(self.robot, changed))
