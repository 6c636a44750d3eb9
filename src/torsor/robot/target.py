"""The target of a robot's functions: dtype, device and number of threads."""

from dataclasses import dataclass
from typing import Any

from torsor.base.checks import whole_number
from torsor.base.errors import ModelError
from torsor.compiler import AUTO, DEVICES, dtype_name, require_card


@dataclass(frozen=True)
class Target:
    """The target for evaluating functions: dtype, device and number of threads."""

    dtype: str = "float64"
    device: str = "cpu"
    threads: int | str = 1

    def changed(
        self,
        where: str,
        dtype: Any = None,
        device: str | None = None,
        threads: int | str | None = None,
    ) -> "Target":
        """Return a validated copy with changes; None leaves a setting unchanged.

        The device "cuda" raises ImportError if CuPy is missing, or RuntimeError if there is no GPU.

        Example:
            >>> Target().changed("arm", dtype=np.float32)
            Target(dtype='float32', device='cpu', threads=1)
        """
        try:
            name = self.dtype if dtype is None else dtype_name(dtype)
        except ModelError as error:
            raise error.inside(where) from None
        place = self.device if device is None else device
        if place not in DEVICES:
            raise ModelError(argument="device", value=device, where=where, allowed=", ".join(DEVICES))
        if device == "cuda":
            require_card()
        count = self.threads if threads is None else threads
        if isinstance(count, str) and count != AUTO:
            allowed = f"a whole number from 1, or {AUTO!r}"
            raise ModelError(argument="threads", value=count, where=where, allowed=allowed)
        return Target(name, place, count if isinstance(count, str) else whole_number(count, where, "threads"))

    def __str__(self) -> str:
        """Return the settings that differ from the default as text.

        Example:
            >>> str(Target("float32", "casadi", 4)), str(Target())
            ('float32, casadi, 4 threads', '')
        """
        usual, threads = Target(), f"{self.threads} threads" if self.threads != AUTO else "threads by number of cores"
        words = {self.dtype: usual.dtype, self.device: usual.device, threads: f"{usual.threads} threads"}
        return ", ".join(result for result, plain in words.items() if result != plain)
