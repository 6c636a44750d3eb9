"""C3D files made for tests: markers, force plates of all types, events."""

import struct
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# A plate of 0.4 m x 0.6 m (x, y) in a laboratory with z up: its own z axis points down.
CORNERS = np.array([[400.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 600.0, 0.0], [400.0, 600.0, 0.0]])


@dataclass
class Sample:
    """The content of a file: points (K, M, 3) with NaN, analog (K n, A), and parameters by "GROUP:NAME"."""

    names: list[str]
    points: np.ndarray
    analog: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    channels: list[str] = field(default_factory=list)
    rate: float = 100.0
    per_frame: int = 10
    unit: str = "mm  "
    scale: float = -1.0
    parameters: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        import c3d

        has_analog = bool(self.analog.size)
        writer = c3d.Writer(self.rate, self.rate * self.per_frame if has_analog else 0.0, self.scale, self.unit)
        writer.set_point_labels(self.names)
        if has_analog:
            writer.set_analog_labels(self.channels)
        for name, value in self.parameters.items():
            group, _, key = name.partition(":")
            _add(writer.get_create(group), key, value)
        per = self.per_frame if has_analog else 0
        frames = []
        for k, points in enumerate(self.points):
            missing = np.isnan(points).any(axis=1)
            rows = np.zeros((len(points), 5), dtype=np.float32)
            rows[:, :3], rows[:, 3] = np.nan_to_num(points), np.where(missing, -1.0, 0.0)
            own = self.analog[k * per : (k + 1) * per].T if has_analog else np.zeros((0, 0))
            frames.append((rows, own))
        writer.add_frames(frames)
        with warnings.catch_warnings(), path.open("wb") as file:
            warnings.simplefilter("ignore")
            writer.write(file)
        return path


def _add(group: Any, key: str, value: Any) -> None:
    if isinstance(value, list) and value and isinstance(value[0], str):
        width = max(map(len, value))
        group.set_str(key, "", "".join(each.ljust(width) for each in value), width, len(value))
    elif isinstance(value, int):
        group.set(key, "", 2, "<h", value)
    else:
        array = np.asarray(value)
        kind, size = ("<f4", 4) if array.dtype.kind == "f" else ("<i2", 2)
        group.set(key, "", size, "", array.astype(kind).tobytes(), *array.shape[::-1])


def plate(kind: int, origin: tuple[float, float, float] = (0.0, 0.0, -40.0), **more: Any) -> dict[str, Any]:
    """Return the parameters of one force plate; lengths are in mm."""
    count = 8 if kind == 3 else 6
    return {
        "FORCE_PLATFORM:USED": 1,
        "FORCE_PLATFORM:TYPE": np.array([kind]),
        "FORCE_PLATFORM:CORNERS": CORNERS[None],
        "FORCE_PLATFORM:ORIGIN": np.array([origin]),
        "FORCE_PLATFORM:CHANNEL": np.arange(1, count + 1)[None],
        **{f"FORCE_PLATFORM:{name}": value for name, value in more.items()},
    }


def cut(path: Path, size: int) -> Path:
    """Truncate a file."""
    path.write_bytes(path.read_bytes()[:size])
    return path


def patched(path: Path, at: int, form: str, value: int) -> Path:
    """Change a number in the header."""
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, at, value)
    path.write_bytes(bytes(content))
    return path


def transcoded(content: bytes, processor: int) -> bytes:
    """Return a file of an Intel processor (84) as one of DEC (85) or MIPS (86): other bytes, the same numbers."""
    order = ">" if processor == 86 else "<"

    def words(data: bytes) -> bytes:
        return np.frombuffer(data, "<i2").astype(f"{order}i2").tobytes()

    def floats(data: bytes) -> bytes:
        values = np.frombuffer(data, "<f4")
        if processor == 86:
            return values.astype(">f4").tobytes()
        return (values * 4).astype("<f4").view("<u2").reshape(-1, 2)[:, ::-1].tobytes()

    def record(at: int) -> tuple[bytes, int]:
        length, group = struct.unpack_from("<bb", content, at)
        start = at + 2 + abs(length)
        (offset,) = struct.unpack_from("<h", content, start)
        head = content[at:start] + words(content[start : start + 2])
        end = start + offset
        if group < 0:
            return head + content[start + 2 : end], end
        (size, count) = struct.unpack_from("<bB", content, start + 2)
        data = start + 4 + count
        full = abs(size) * int(np.prod(list(content[start + 4 : data]), dtype=int))
        change = {2: words, 4: floats}.get(size, bytes)
        return head + content[start + 2 : data] + change(content[data : data + full]) + content[data + full : end], end

    header = content[:2] + words(content[2:12]) + floats(content[12:16]) + words(content[16:20])
    header += floats(content[20:24]) + words(content[24:512])
    parameters, at = content[512:515] + bytes([processor]), 516
    while content[at]:
        part, at = record(at)
        parameters += part
    (block,) = struct.unpack_from("<H", content, 16)
    begin = 512 * (block - 1)
    return header + parameters + content[at:begin] + floats(content[begin:])
