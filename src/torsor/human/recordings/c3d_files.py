"""C3D files with markers, force plates and events, read with the package c3d (extra ``mocap``)."""

import io
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torsor.base.arrays import Array
from torsor.base.checks import one_of
from torsor.base.errors import ModelError, missing, warn
from torsor.base.files import read_limited, replacing
from torsor.base.number_tables import check_size
from torsor.human.recordings.guesses import likely_axes
from torsor.human.recordings.recording import MAX_BYTES, UNITS, Event, GroundForces, Markers, Recording, unique_names

MAX_RATE = 1e6  # Hz


class Parameters:
    """The metadata of a C3D file; ``reader`` contains the header and parameters, and ``source`` is the file name."""

    def __init__(self, reader: Any, source: str) -> None:
        self.reader, self.source = reader, source
        self.points, self.channels = int(reader.point_used), int(reader.analog_used)
        self.scale, self.rate = float(reader.point_scale), float(reader.point_rate)
        self.is_float = self.scale < 0
        self.data_block = int(reader.header.data_block)
        self.first_frame = max(1, int(reader.header.first_frame))
        self.frames = self._frames()
        for value, what in ((self.rate, "POINT:RATE"), (abs(self.scale), "POINT:SCALE")):
            if not 0 < value < MAX_RATE:
                allowed = f"above 0, below {MAX_RATE:g}"
                raise ModelError(f"is {value:g}", argument=what, value=value, where=source, allowed=allowed)
        self.samples_per_frame = self._samples_per_frame() if self.channels else 0
        self.unsigned = bool(reader.analog_format_unsigned)

    def _frames(self) -> int:
        header = self.reader.header
        if int(header.last_frame) < 65535:
            return max(0, int(header.last_frame) - self.first_frame + 1)
        # Frame counts of more than 16 bits are stored in the parameters.
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
            fix = "export the analog data at a multiple of the marker rate"
            raise ModelError(text, where=self.source, allowed="an integer multiple", fix=fix)
        return round(ratio)

    def floats(self, name: str) -> Array:
        """Return the numbers (n,) of a parameter; empty if it is absent or damaged."""
        parameter = self.reader.get(name)
        size = 0 if parameter is None else parameter.bytes_per_element
        if size not in (1, 2, 4):
            return np.zeros(0)
        data = bytes(parameter.bytes)[: size * (len(parameter.bytes) // size)]
        return np.array(self.numbers(data, size), dtype=float)

    def words(self, name: str) -> list[str]:
        """Return the strings of a parameter; empty if it is absent."""
        parameter = self.reader.get(name)
        if (
            parameter is None
            or parameter.bytes_per_element != -1
            or not parameter.dimensions
            or not parameter.dimensions[0]
        ):
            return []
        data, length = bytes(parameter.bytes), int(parameter.dimensions[0])
        pieces = [data[k : k + length] for k in range(0, len(data), length)]
        return [piece.decode("utf-8", errors="replace").strip(" \0") for piece in pieces]

    def labels(self, group: str, count: int, what: str) -> list[str]:
        """Return one name for each of ``count`` markers or channels; those without a name are "``what`` number".

        After 255 names, they continue in LABELS2 and so on.
        """
        names = self.words(f"{group}:LABELS")
        for k in range(2, 2 + count // 255):
            names += self.words(f"{group}:LABELS{k}")
        return [name or f"{what} {k + 1}" for k, name in enumerate((names + [""] * count)[:count])]

    @property
    def calibration(self) -> tuple[Array, Array]:
        """Offsets (A,) of the analog channels before scaling, and their scales (A,)."""
        offset, general = self.floats("ANALOG:OFFSET"), self.floats("ANALOG:GEN_SCALE")
        offsets, scales = np.zeros(self.channels), np.ones(self.channels)
        pairs = (offsets, offset % 65536 if self.unsigned else offset), (scales, self.floats("ANALOG:SCALE"))
        for target, values in pairs:
            target[: len(values)] = values[: self.channels]
        return offsets, scales * (general[0] if len(general) else 1.0)

    def numbers(self, data: bytes, size: int) -> NDArray[Any]:
        """Return 4-byte floats, or 1-byte or 2-byte integers."""
        if size < 4:
            return np.frombuffer(data, dtype=f"{self._order}i{size}")
        if self.reader.proc_type != "DEC":
            return np.frombuffer(data, dtype=f"{self._order}f4")
        # DEC floats have two swapped 16-bit words, and four times the IEEE value.
        words = np.frombuffer(data, dtype="<u2").reshape(-1, 2)[:, ::-1]
        swapped = np.ascontiguousarray(words).view("<f4").ravel()
        return np.asarray(swapped / 4)

    @property
    def _order(self) -> str:
        return ">" if self.reader.proc_type == "MIPS" else "<"


# Force plates: forces, centres of pressure and free moments in laboratory axes, from the plate channels.
#
# Types 1 to 4 are those of the C3D format. The plate axes are x from corner 2 to corner 1, y from corner 4 to corner 1,
# and z = x × y, which points down into the plate. Forces of type 3 (plates with four piezoelectric sensors) are
# combined by the manufacturer's equations (Kistler).

CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}  # number of channels by type


class Plate(NamedTuple):
    """A force plate: its name, C3D ``type`` (1 to 4), geometry and channels.

    ``corners`` (4, 3) are in laboratory axes (m). ``origin`` (3,) is the offset between the sensor origin and the
    centre of the surface, in plate axes (m). For type 3, it contains the distances a, b and depth of the sensors.
    ``channels`` (K samples, 6 or 8) are in N, N m and m; those of type 4 have been multiplied by the calibration
    matrix.
    """

    name: str
    type: int
    corners: Array
    origin: Array
    channels: Array


def plate_axes(plate: Plate, where: str) -> Array:
    """Return the plate axes as columns of R (3, 3), with x_laboratory = R x_plate.

    ModelError is raised if the corners enclose no area.
    """
    first, second, _, fourth = plate.corners
    x, y = first - second, first - fourth
    z = np.cross(x, y)
    if not np.isfinite(z).all() or np.linalg.norm(z) < 1e-4:  # m²; smaller than any plate
        what, fix = f"{plate.name}: the corners enclose no area", "correct FORCE_PLATFORM:CORNERS in the file"
        raise ModelError(what, where=where, fix=fix)
    y = np.cross(z, x)
    R: Array = np.stack([axis / np.linalg.norm(axis) for axis in (x, y, z)], axis=1) + 0.0
    return R


def upward(plate: Plate, where: str, above: Array | None) -> Array:
    """Return the normal (3,) of a plate towards a point ``above`` it; without such a point, opposite to its z axis."""
    normal = plate_axes(plate, where)[:, 2]
    side = -1.0 if above is None else np.sign((above - plate.corners.mean(axis=0)) @ normal)
    return np.asarray(normal * side)


def ground_reaction(plate: Plate, where: str, above: Array | None = None) -> tuple[Array, Array, Array]:
    """Return the force on the person, the centre of pressure and the free moment, each (K, 3), in laboratory axes.

    ``above`` (3,) is a point on the side of the plate where the person is, such as the mean of the markers. By default,
    the person is on the side opposite to the z axis of the plate. Files contain either the force on the plate or the
    force on the person; the sign is chosen so that the ground pushes the person. If the plate is unloaded, the centre
    of pressure is NaN.

    Example:
        >>> corners = np.array([[0.4, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.6, 0.0], [0.4, 0.6, 0.0]])
        >>> plate = Plate("plate 1", 2, corners, np.array([0.0, 0.0, -0.04]), np.array([[0.0, 0, 700, 70, 0, 0]]))
        >>> [each.round(9).tolist() for each in ground_reaction(plate, "walk.c3d")[:2]]
        [[[0.0, 0.0, 700.0]], [[0.2, 0.2, 0.0]]]
    """
    R, (force, pressed, free) = plate_axes(plate, where), _in_plate_axes(plate)
    pushed = force @ R.T @ upward(plate, where, above)
    sign = 1.0 if pushed[np.argmax(np.abs(pushed))] >= 0 else -1.0
    return sign * force @ R.T + 0.0, plate.corners.mean(axis=0) + pressed @ R.T, sign * free @ R.T + 0.0


def _in_plate_axes(plate: Plate) -> tuple[Array, Array, Array]:
    """Return force, centre of pressure relative to the surface centre, and free moment, each (K, 3), in plate axes."""
    data, zeros = plate.channels, np.zeros(len(plate.channels))
    if plate.type == 1:  # type 1 provides the centre of pressure
        pressed = np.stack([data[:, 3], data[:, 4], zeros], axis=1)
        return data[:, :3], pressed, np.stack([zeros, zeros, data[:, 5]], axis=1)
    # Vector from the origin of the plate axes, below the surface, upwards (opposite to z) to the middle of the surface.
    a, b, depth = plate.origin
    if plate.type == 3:
        fx12, fx34, fy14, fy23, fz1, fz2, fz3, fz4 = data.T
        force = np.stack([fx12 + fx34, fy14 + fy23, fz1 + fz2 + fz3 + fz4], axis=1)
        turn = b * (fx34 - fx12) + a * (fy14 - fy23)
        moment = np.stack([b * (fz1 + fz2 - fz3 - fz4), a * (fz2 + fz3 - fz1 - fz4), turn], axis=1)
        surface = np.array([0.0, 0.0, -abs(depth)])
    else:
        force, moment = data[:, :3], data[:, 3:]
        surface = plate.origin if depth <= 0 else -plate.origin  # many files contain the opposite vector
    moment = moment - np.cross(surface, force)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        pressed = np.stack([-moment[:, 1] / force[:, 2], moment[:, 0] / force[:, 2], zeros], axis=1)
    pressed[~np.isfinite(pressed).all(axis=1)] = np.nan
    about = np.nan_to_num(pressed[:, 0] * force[:, 1] - pressed[:, 1] * force[:, 0])
    free = np.where(np.isnan(pressed[:, 0]), 0.0, moment[:, 2] - about)
    return force, pressed, np.stack([zeros, zeros, free], axis=1)


KIND = "a .c3d file"
TO_METRES = {"m": 1.0, "cm": 0.01, "mm": 0.001}
BLOCK = 512  # bytes
# Parameters that list results of Plug-in Gait and other programs that are stored as points.
COMPUTED = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS")


def read_c3d(path: str | Path, *, unit: str | None = None, axes: str | None = None) -> Recording:
    """Return the markers (m), ground forces (N, m, N m) and events in a C3D file.

    ``unit`` ("m", "cm" or "mm") replaces POINT:UNITS. The format does not define the orientation of its axes relative
    to the person. Without ``axes``, they are estimated from the force plates, the extent of the markers and the walking
    direction, or remain unknown. A marker is missing (NaN) if its residual is negative, or if all its coordinates are
    0. Points that are angles, forces, moments, powers or scalars are omitted.
    """
    path = Path(path)
    content = read_limited(path, MAX_BYTES)
    parameters = _parameters(path, content)
    unit = _unit(path, parameters) if unit is None else one_of(unit, UNITS, path.name, "unit")
    points, analog = _frames(path, content, parameters)
    times = (parameters.first_frame - 1 + np.arange(len(points))) / parameters.rate
    markers, above = None, None
    labels = parameters.labels("POINT", points.shape[1], "marker")
    computed = {label for kind in COMPUTED for label in parameters.words(f"POINT:{kind}")}
    kept = [k for k, label in enumerate(labels) if label not in computed]
    labels, points = [labels[k] for k in kept], points[:, kept]
    if kept:
        positions = points[:, :, :3] * TO_METRES[unit]
        absent = (points[:, :, 3] < 0) | (positions == 0).all(axis=2) | ~np.isfinite(positions).all(axis=2)
        positions[absent] = np.nan
        names = unique_names(labels, path, "marker")
        markers = Markers(names, times, positions, parameters.rate, "", unit, path.name)
        above = None if np.isnan(positions).all() else np.nanmean(positions, axis=(0, 1))
    plates = _plates(path, parameters, analog, unit)
    if axes is None:
        axes = likely_axes(markers, upward(plates[0], path.name, above) if plates else None)
    forces = _forces(path, parameters, plates, above, axes)
    markers = None if markers is None else replace(markers, axes=axes)
    return Recording(path.name, markers, forces, None, _events(parameters))


def write_c3d(markers: Markers, path: str | Path, *, unit: str | None = None) -> None:
    """Write markers as a C3D file in their unit, or in ``unit``; the format stores single precision (float32)."""
    path, package = Path(path), _package(Path(path).name)
    unit = markers.unit if unit is None else one_of(unit, UNITS, path.name, "unit")
    if not markers.rate:
        raise ModelError("there is a single frame without a rate", where=path.name, allowed="2 frames or more")
    writer = package.Writer(point_rate=markers.rate, point_scale=-1.0, point_units=unit.ljust(4))
    writer.set_point_labels(list(markers.names))
    frames = np.zeros((len(markers), len(markers.names), 5), dtype=np.float32)
    frames[:, :, :3] = np.nan_to_num(markers.positions / TO_METRES[unit])
    frames[:, :, 3] = np.where(markers.seen, 0.0, -1.0)
    writer.add_frames([(points, np.zeros((0, 0))) for points in frames])
    writer.set_start_frame(1 + round(float(markers.times[0]) * markers.rate))
    with warnings.catch_warnings(), replacing(path) as part, part.open("wb") as file:
        warnings.simplefilter("ignore")  # c3d warns about missing analog data
        writer.write(file)


def _package(name: str) -> Any:
    try:
        import c3d
    except ImportError:
        raise missing("C3D files need the package c3d", "mocap", where=name) from None
    return c3d


def _parameters(path: Path, content: bytes) -> Parameters:
    package = _package(path.name)
    if content[1:2] != b"\x50":
        fix = "check that it is one; text files of markers end with .trc"
        raise ModelError("the first bytes are not those of a C3D file", where=path.name, allowed=KIND, fix=fix)

    # If the header contradicts the parameters, the parameters are used, as in other programs.
    reader = type("Reader", (package.Reader,), {"_check_metadata": lambda self: None})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Parameters(reader(io.BytesIO(content)), path.name)
    except ModelError:
        raise
    except Exception as error:  # for damaged files, c3d raises errors of various types
        what = f"the parameters cannot be read ({type(error).__name__}: {str(error)[:80]})"
        raise ModelError(what, where=path.name, allowed=KIND, fix="copy or export the file again") from None


def _unit(path: Path, parameters: Parameters) -> str:
    words = parameters.words("POINT:UNITS")
    unit = words[0].lower() if words else ""
    if unit not in TO_METRES:
        fix = 'pass the unit: torsor.human.recordings.load(path, unit="mm")'
        raise ModelError(f"POINT:UNITS is {unit!r}", value=unit, where=path.name, allowed=", ".join(UNITS), fix=fix)
    return unit


def _frames(path: Path, content: bytes, parameters: Parameters) -> tuple[Array, Array]:
    """Return points with residuals (K, M, 4) in the unit of the file, and scaled analog data (K n, A)."""
    points, channels, samples = parameters.points, parameters.channels, parameters.samples_per_frame
    width, size = 4 * points + channels * samples, 4 if parameters.is_float else 2
    if not width:
        raise ModelError("the file has neither markers nor analog channels", where=path.name, allowed=KIND)
    start = (parameters.data_block - 1) * BLOCK
    available = max(0, len(content) - start) // (width * size)
    frames = min(parameters.frames, available)
    if frames < parameters.frames:
        what = f"the header declares {parameters.frames} frames, but the file ends after {frames}, which are used"
        if not frames:
            raise ModelError(what.removesuffix(", which are used"), where=path.name, fix="copy the file again")
        warn(what, where=path.name, fix="copy or export the file again")
    check_size(frames, width, path.name)
    numbers = parameters.numbers(content[start : start + frames * width * size], size).reshape(frames, width)
    places = numbers[:, : 4 * points].reshape(frames, points, 4).astype(float)
    if not parameters.is_float:
        places[:, :, :3] *= abs(parameters.scale)
    measured = numbers[:, 4 * points :]
    if parameters.unsigned and not parameters.is_float:
        measured = measured.astype(np.int16).view(np.uint16)
    offsets, scales = parameters.calibration
    return places, (measured.reshape(frames * samples, channels).astype(float) - offsets) * scales


def _plates(path: Path, parameters: Parameters, analog: Array, unit: str) -> list[Plate]:
    """Return the force plates; plates of unknown type or without corners are omitted with a warning."""
    count = min(
        int(next(iter(parameters.floats("FORCE_PLATFORM:USED")), 0)), len(parameters.floats("FORCE_PLATFORM:TYPE"))
    )
    corners, origins = parameters.floats("FORCE_PLATFORM:CORNERS"), parameters.floats("FORCE_PLATFORM:ORIGIN")
    numbers, channel = parameters.floats("FORCE_PLATFORM:CHANNEL"), parameters.reader.get("FORCE_PLATFORM:CHANNEL")
    per_plate = int(channel.dimensions[0]) if channel is not None and channel.dimensions else 0
    plates = list[Plate]()
    for k in range(count):
        name, kind = f"plate {k + 1}", int(parameters.floats("FORCE_PLATFORM:TYPE")[k])
        plate_channels = numbers[k * per_plate : (k + 1) * per_plate]
        if kind not in CHANNELS:
            warn(f"is of type {kind} and is omitted", argument=name, where=path.name, allowed="types 1 to 4")
            continue
        plate_channels = plate_channels[: CHANNELS[kind]]
        if len(plate_channels) < CHANNELS[kind] or len(corners) < 12 * (k + 1) or len(origins) < 3 * (k + 1):
            what, fix = f"{name} has incomplete CHANNEL, CORNERS or ORIGIN and is omitted", "complete FORCE_PLATFORM"
            warn(what, where=path.name, fix=fix)
            continue
        if not all(1 <= number <= analog.shape[1] for number in plate_channels):
            what = f"{name} uses the channels {[int(number) for number in plate_channels]}"
            raise ModelError(what, where=path.name, allowed=f"1 to {analog.shape[1]}, the number of channels")
        at = [int(number) - 1 for number in plate_channels]
        data = _in_si(analog[:, at], at, kind, parameters, unit, k)
        own_corners = corners[12 * k : 12 * (k + 1)].reshape(4, 3) * TO_METRES[unit]
        plate = Plate(name, kind, own_corners, origins[3 * k : 3 * k + 3] * TO_METRES[unit], data)
        try:
            plate_axes(plate, path.name)
        except ModelError as error:
            warn(f"{error}; the plate is omitted")
            continue
        plates.append(plate)
    return plates


def _in_si(data: Array, at: list[int], kind: int, parameters: Parameters, unit: str, index: int) -> Array:
    """Return the channels of a plate in N, N m and m, from ANALOG:UNITS or POINT:UNITS."""
    if kind == 4:
        matrix = parameters.floats("FORCE_PLATFORM:CAL_MATRIX")[36 * index : 36 * (index + 1)]
        if len(matrix) < 36:
            what, fix = f"plate {index + 1}, of type 4, has no calibration matrix", "add FORCE_PLATFORM:CAL_MATRIX"
            raise ModelError(what, where=parameters.source, fix=fix)
        data = data @ matrix.reshape(6, 6)  # stored by columns, so this is C times the channels
    if kind == 3:
        return data
    units = parameters.words("ANALOG:UNITS")
    words = [units[k].lower() if k < len(units) and kind != 4 else "" for k in at]
    factors = [1.0] * 3 + [_length(word, unit) for word in words[3:]]
    return data * factors


def _length(word: str, unit: str) -> float:
    """Return the length unit of a moment (Nmm, N.m, ...) or a position, in metres."""
    return TO_METRES.get(word.lstrip("n*.· ").removesuffix("."), TO_METRES[unit])


def _forces(
    path: Path, parameters: Parameters, plates: list[Plate], above: Array | None, axes: str
) -> GroundForces | None:
    if not plates:
        return None
    reactions = [ground_reaction(plate, path.name, above) for plate in plates]
    forces, centers, moments = (np.stack(values, axis=1) for values in zip(*reactions, strict=True))
    rate = parameters.rate * parameters.samples_per_frame
    times = (parameters.first_frame - 1) / parameters.rate + np.arange(len(forces)) / rate
    corners = np.stack([plate.corners for plate in plates])
    names = tuple(plate.name for plate in plates)
    return GroundForces(names, times, forces, centers, moments, rate, axes, corners, path.name)


def _events(parameters: Parameters) -> tuple[Event, ...]:
    labels, contexts = parameters.words("EVENT:LABELS"), parameters.words("EVENT:CONTEXTS")
    labels = labels[: int(next(iter(parameters.floats("EVENT:USED")), len(labels)))]
    times = parameters.floats("EVENT:TIMES")
    times = times[: 2 * (len(times) // 2)].reshape(-1, 2)  # minutes, seconds
    events = [
        Event(float(60 * minutes + seconds), f"{contexts[k] if k < len(contexts) else ''} {label}".strip())
        for k, (label, (minutes, seconds)) in enumerate(zip(labels, times, strict=False))
    ]
    return tuple(sorted(events))
