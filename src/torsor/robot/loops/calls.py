"""How functions of closed loops are called: the equations that close them, positions checked, shares of drives."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.dynamics import ALGORITHMS, Request
from torsor.errors import ModelError, describe
from torsor.robot.differentiation import Loads
from torsor.robot.loops.multipliers import Multiplied

__all__ = ["Called"]

Array = NDArray[np.float64]

CONTRADICTION = 1e-6  # what rates of too many active coordinates may be apart by, of the largest


class Called(Multiplied):
    """A robot whose functions of closed loops can be called."""

    def _new_request(
        self, name: str, place: str | int | None, external: bool | str, forced: Sequence[str] | None, **options: Any
    ) -> Request:
        if name in ALGORITHMS and ALGORITHMS[name].closed and "closing" not in options:
            options["closing"] = self._kept if ALGORITHMS[name].held else self._closing
        return super()._new_request(name, place, external, forced, **options)

    def _closed(self, name: str, *values: ArrayLike, loads: Loads = Loads(), **options: Any) -> Any:  # noqa: B008
        self._check_closed(values[0])  # of an open loop all that follows would be wrong numbers
        if len(self._active) > len(self._closing.independent):
            self._check_rates(ALGORITHMS[name].inputs, values)
        keeps, given = loads.given(self, name)
        return self._kernel(self._request(name, external=keeps, **options))(*values, *given)

    def _check_rates(self, inputs: tuple[str, ...], values: tuple[ArrayLike, ...]) -> None:
        """Refuse rates of the active coordinates that contradict each other, where these are more than are needed."""
        given = dict(zip(inputs, values, strict=True))
        q, v = given["q"], given["v_active"]
        a = given.get("a_active", np.zeros(len(self._active)))
        found = self._kernel(self._request("constrained_accelerations"))(q, v, a)
        for name, rates in zip(("v_active", "a_active"), found, strict=True):
            if name in given:
                wrong = np.abs(rates[..., self._active] - given[name]).max(initial=0.0)
                size = max(1.0, float(np.abs(given[name]).max(initial=0.0)))
                if not wrong <= CONTRADICTION * size:
                    text = f"{name}: rates of the active coordinates contradict each other by {wrong:.2g}"
                    fix = "name as active no more coordinates than move it, or give rates that agree"
                    raise ModelError(describe(text, where=self.name, fix=fix))

    def _check_inputs(self, name: str, inputs: Sequence[ArrayLike]) -> None:
        if name in ALGORITHMS and ALGORITHMS[name].closed and len(inputs):
            self._check_open(inputs[0])

    def _driven(self, name: str, values: tuple[ArrayLike, ...], share: ArrayLike | None, loads: Loads) -> Any:
        """Return what a function of (q, v_active, a_active) and of the drives' shares gives."""
        shares = np.ones(len(self._active)) if share is None else self._checked_share(share, values)
        if len(self._active) == len(self._closing.independent):  # nothing is left to share
            return self._closed(name, *values, np.ones(len(self._active)), loads=loads)
        options = {"closing": self._closing._replace(coupled=True)} if self._is_matrix(shares) else {}
        return self._closed(name, *values, shares, loads=loads, **options)

    def _is_matrix(self, share: Array) -> bool:
        return share.ndim > 1 and share.shape[-2:] == 2 * (len(self._active),)

    def _checked_share(self, share: ArrayLike, values: tuple[ArrayLike, ...]) -> Array:
        """Return shares (..., N), or matrices (..., N, N), that are positive; or refuse."""
        count = len(self._active)
        try:
            given = np.asarray(share, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(describe("share is no array of numbers", where=self.name)) from None
        if given.ndim == 0 or given.shape[-1] != count:
            allowed = f"(..., {count}) or (..., {count}, {count})"
            raise ModelError(describe(f"share has shape {given.shape}", where=self.name, allowed=allowed))
        if not self._is_matrix(given):
            if not (np.isfinite(given) & (given > 0)).all():
                raise ModelError(describe("share is not positive", where=self.name, allowed="numbers above 0"))
            return given
        batch = np.broadcast_shapes(*(np.shape(value)[:-1] for value in values))
        if given.ndim == 2 and batch and batch[-1] == count:
            found = f"share {given.shape} of {count} states may be one matrix or a row for each"
            fix = "share[None] is one matrix, share[:, None] * np.eye(N) has a row for each"
            raise ModelError(describe(found, where=self.name, fix=fix))
        turned = given.swapaxes(-1, -2)
        if not np.isfinite(given).all() or np.abs(given - turned).max(initial=0.0) > 1e-12 * np.abs(given).max(
            initial=0.0
        ):
            raise ModelError(describe("share is not symmetric", where=self.name, allowed="symmetric matrices"))
        if np.linalg.eigvalsh(given).min(initial=1.0) <= 0:
            raise ModelError(describe("share is not positive definite", where=self.name, allowed="eigenvalues above 0"))
        return given
