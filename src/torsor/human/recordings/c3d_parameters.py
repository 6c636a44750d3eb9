"""The parameters of a C3D file, taken from the reader of the package c3d and checked."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe

MOST_RATE = 1e6  # Hz


class Parameters:
    """What a C3D file says of its data; ``reader`` has read header and parameters, ``source`` names the file."""

    def __init__(self, reader: Any, source: str) -> None:
        self.reader, self.source = reader, source
        self.points, self.channels = int(reader.point_used), int(reader.analog_used)
        self.scale, self.rate = float(reader.point_scale), float(reader.point_rate)
        self.is_float = self.scale < 0
        self.data_block = int(reader.header.data_block)
        self.first_frame = max(1, int(reader.header.first_frame))
        self.frames = self._frames()
        for value, what in ((self.rate, "POINT:RATE"), (abs(self.scale), "POINT:SCALE")):
            if not 0 < value < MOST_RATE:
                raise ModelError(
                    describe(f"{what} is {value:g}", where=source, allowed=f"above 0, below {MOST_RATE:g}")
                )
        self.samples_per_frame = self._samples_per_frame() if self.channels else 0
        self.unsigned = bool(reader.analog_format_unsigned)

    def _frames(self) -> int:
        header = self.reader.header
        if int(header.last_frame) < 65535:
            return max(0, int(header.last_frame) - self.first_frame + 1)
        # More frames than 16 bits can count are in the parameters.
        end = self.floats("TRIAL:ACTUAL_END_FIELD").astype(np.int64) & 0xFFFF
        begin = self.floats("TRIAL:ACTUAL_START_FIELD").astype(np.int64) & 0xFFFF
        if len(end) == len(begin) == 2:
            return max(0, int(end[0] - begin[0] + 65536 * (end[1] - begin[1]) + 1))
        long = self.floats("POINT:LONG_FRAMES")
        return max(0, int(long[0])) if len(long) else 65535 - self.first_frame + 1

    def _samples_per_frame(self) -> int:
        ratio = float(self.reader.analog_rate) / self.rate
        if not 1 <= round(ratio) < 1000 or abs(ratio - round(ratio)) > 0.01:
            text = f"ANALOG:RATE is {ratio:g} times POINT:RATE"
            fix = "export the analog data at a multiple of the rate of the markers"
            raise ModelError(describe(text, where=self.source, allowed="1, 2, 3, ... times it", fix=fix))
        return round(ratio)

    def floats(self, name: str) -> Array:
        """Return the numbers of a parameter (n,), none where it is absent or damaged."""
        found = self.reader.get(name)
        if found is None or found.bytes_per_element not in (1, 2, 4):
            return np.zeros(0)
        data = bytes(found.bytes)[: 4 * (len(found.bytes) // 4)] if found.bytes_per_element == 4 else bytes(found.bytes)
        if found.bytes_per_element == 4:
            numbers = self._floats(data)
        elif found.bytes_per_element == 2:
            numbers = np.frombuffer(data[: 2 * (len(data) // 2)], dtype=f"{self._order}i2")
        else:
            numbers = np.frombuffer(data, dtype=np.int8)
        return np.array(numbers, dtype=float)

    def words(self, name: str) -> list[str]:
        """Return the words of a parameter, none where it is absent."""
        found = self.reader.get(name)
        if found is None or found.bytes_per_element != -1 or not found.dimensions or not found.dimensions[0]:
            return []
        data, length = bytes(found.bytes), int(found.dimensions[0])
        pieces = [data[k : k + length] for k in range(0, len(data), length)]
        return [piece.decode("utf-8", errors="replace").strip(" \0") for piece in pieces]

    def dimension(self, name: str) -> int:
        """Return the first dimension of a parameter, 0 where it has none."""
        found = self.reader.get(name)
        return int(found.dimensions[0]) if found is not None and found.dimensions else 0

    def labels(self, group: str, count: int, what: str) -> list[str]:
        """Return as many names as there are markers or channels; LABELS2 and so on go on after 255."""
        names = self.words(f"{group}:LABELS")
        for k in range(2, 2 + count // 255):
            names += self.words(f"{group}:LABELS{k}")
        return [name or f"{what} {k + 1}" for k, name in enumerate((names + [""] * count)[:count])]

    @cached_property
    def offsets(self) -> Array:
        """The offsets (A,) of the analog channels, before they are scaled."""
        found = self.floats("ANALOG:OFFSET")
        return self._for_channels(found % 65536 if self.unsigned else found, 0.0)

    @cached_property
    def scales(self) -> Array:
        """The scales (A,) of the analog channels, in their units."""
        general = self.floats("ANALOG:GEN_SCALE")
        return self._for_channels(self.floats("ANALOG:SCALE"), 1.0) * (general[0] if len(general) else 1.0)

    def numbers(self, data: bytes) -> NDArray[Any]:
        """Return the numbers of the data section: float32, or int16."""
        return self._floats(data) if self.is_float else np.frombuffer(data, dtype=f"{self._order}i2")

    def _floats(self, data: bytes) -> NDArray[Any]:
        if self.reader.proc_type != "DEC":
            return np.frombuffer(data, dtype=f"{self._order}f4")
        # A number of DEC has its two 16-bit words in the other order, and four times the value of IEEE's.
        words = np.frombuffer(data, dtype="<u2").reshape(-1, 2)[:, ::-1]
        swapped = np.ascontiguousarray(words).view("<f4").ravel()
        return np.asarray(swapped / 4)

    @property
    def _order(self) -> str:
        return ">" if self.reader.proc_type == "MIPS" else "<"

    def _for_channels(self, values: Array, missing: float) -> Array:
        found = np.full(self.channels, missing)
        found[: len(values)] = values[: self.channels]
        return found
