"""C3D files: markers, force plates and events, by the package c3d (the extra ``mocap``)."""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.checks import one_of
from torsor.base.errors import ModelError, describe, missing, warn
from torsor.base.files import read_limited, replacing
from torsor.human.recordings.c3d_parameters import Parameters
from torsor.human.recordings.forces import GroundForces
from torsor.human.recordings.likely import likely_axes
from torsor.human.recordings.markers import UNITS, Markers
from torsor.human.recordings.plates import CHANNELS, Plate, ground_reaction, plate_axes
from torsor.human.recordings.recording import Event, Recording
from torsor.human.recordings.text import LARGEST, check_size, unique_names

KIND = "a .c3d file"
TO_METRES = {"m": 1.0, "cm": 0.01, "mm": 0.001}
BLOCK = 512  # bytes


def read_c3d(path: str | Path, *, unit: str | None = None, axes: str | None = None) -> Recording:
    """Return the markers (m), ground forces (N, m, N m) and events in a C3D file.

    ``unit`` ("m", "cm" or "mm") is used in place of POINT:UNITS. The format does not say how its axes lie for the
    person: without ``axes`` they are found from the force plates, the extent of the markers and the way that the person
    goes, or stay unknown. A marker is missing (NaN) where its residual is negative, or all its coordinates are 0.
    """
    path = Path(path)
    content = read_limited(path, LARGEST)
    found = _parameters(path, content)
    unit = _unit(path, found) if unit is None else one_of(unit, UNITS, path.name, "unit")
    points, analog = _frames(path, content, found)
    times = (found.first_frame - 1 + np.arange(len(points))) / found.rate
    markers, above = None, None
    if points.shape[1]:
        positions = points[:, :, :3] * TO_METRES[unit]
        positions[(points[:, :, 3] < 0) | (points[:, :, :3] == 0).all(axis=2) | ~np.isfinite(positions).all(axis=2)] = (
            np.nan
        )
        names, messages = unique_names(found.labels("POINT", points.shape[1], "marker"), path, "marker")
        for message in messages:
            warn(message)
        markers = Markers(names, times, positions, found.rate, "", unit, path.name)
        above = None if np.isnan(positions).all() else np.nanmean(positions, axis=(0, 1))
    plates = _plates(path, found, analog, unit)
    up = None if not plates else _upward(plates[0], path, above)
    axes = likely_axes(markers, up) if axes is None else axes
    forces = _forces(path, found, plates, above, axes)
    if markers is not None:
        markers = Markers(markers.names, times, markers.positions, found.rate, axes, unit, path.name)
    return Recording(path.name, markers, forces, None, _events(found))


def write_c3d(markers: Markers, path: str | Path, *, unit: str | None = None) -> None:
    """Write markers as a C3D file in their unit, or in ``unit``; numbers of the format have 24 bits (float32)."""
    path, package = Path(path), _package(Path(path).name)
    unit = markers.unit if unit is None else one_of(unit, UNITS, path.name, "unit")
    if not markers.rate:
        raise ModelError(describe("a single frame, without a rate", where=path.name, allowed="2 frames or more"))
    writer = package.Writer(point_rate=markers.rate, point_scale=-1.0, point_units=unit.ljust(4))
    writer.set_point_labels(list(markers.names))
    frames = np.zeros((len(markers), len(markers.names), 5), dtype=np.float32)
    frames[:, :, :3] = np.nan_to_num(markers.positions / TO_METRES[unit])
    frames[:, :, 3] = np.where(markers.seen, 0.0, -1.0)
    writer.add_frames([(points, np.zeros((0, 0))) for points in frames])
    writer.set_start_frame(1 + round(float(markers.times[0]) * markers.rate))
    with warnings.catch_warnings(), replacing(path) as part, part.open("wb") as file:
        warnings.simplefilter("ignore")  # of the package: there are no analog data
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
        raise ModelError(
            describe("its first bytes are not those of a C3D file", where=path.name, allowed=KIND, fix=fix)
        )

    # Headers that disagree with parameters are accepted, as other programs do: the parameters count.
    reader = type("Reader", (package.Reader,), {"_check_metadata": lambda self: None})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Parameters(reader(io.BytesIO(content)), path.name)
    except ModelError:
        raise
    except Exception as error:  # of a damaged file, the package raises errors of all kinds
        text = f"its parameters cannot be read ({type(error).__name__}: {str(error)[:80]})"
        raise ModelError(describe(text, where=path.name, allowed=KIND, fix="copy or export the file again")) from None


def _unit(path: Path, found: Parameters) -> str:
    words = found.words("POINT:UNITS")
    unit = words[0].lower() if words else ""
    if unit not in TO_METRES:
        fix = 'say it: torsor.human.recordings.load(path, unit="mm")'
        raise ModelError(describe(f"POINT:UNITS is {unit!r}", where=path.name, allowed=", ".join(UNITS), fix=fix))
    return unit


def _frames(path: Path, content: bytes, found: Parameters) -> tuple[Array, Array]:
    """Return points (K, M, 4) in the unit of the file, with the residual, and analog data (K n, A), scaled."""
    points, channels, each = found.points, found.channels, found.samples_per_frame
    width, size = 4 * points + channels * each, 4 if found.is_float else 2
    if not width:
        raise ModelError(describe("it has neither markers nor analog channels", where=path.name, allowed=KIND))
    start = (found.data_block - 1) * BLOCK
    available = max(0, len(content) - start) // (width * size)
    frames = min(found.frames, available)
    if frames < found.frames:
        text = f"the header says {found.frames} frames, the file ends after {frames}, which are used"
        if not frames:
            raise ModelError(describe(text.removesuffix(", which are used"), where=path.name, fix="copy it again"))
        warn(describe(text, where=path.name, fix="copy or export the file again"))
    check_size(frames, width, path.name)
    raw = content[start : start + frames * width * size]
    numbers = found.numbers(raw).reshape(frames, width)
    places = numbers[:, : 4 * points].reshape(frames, points, 4).astype(float)
    if not found.is_float:
        places[:, :, :3] *= abs(found.scale)
    measured = numbers[:, 4 * points :]
    if found.unsigned and not found.is_float:
        measured = measured.astype(np.int16).view(np.uint16)
    analog = (measured.reshape(frames * each, channels).astype(float) - found.offsets) * found.scales
    return places, analog


def _plates(path: Path, found: Parameters, analog: Array, unit: str) -> list[Plate]:
    """Return the force plates; one of a type that is not known, or without corners, is left out with a warning."""
    count = min(int(next(iter(found.floats("FORCE_PLATFORM:USED")), 0)), len(found.floats("FORCE_PLATFORM:TYPE")))
    corners, origins = found.floats("FORCE_PLATFORM:CORNERS"), found.floats("FORCE_PLATFORM:ORIGIN")
    numbers, per_plate = found.floats("FORCE_PLATFORM:CHANNEL"), found.dimension("FORCE_PLATFORM:CHANNEL")
    plates = list[Plate]()
    for k in range(count):
        name, kind = f"plate {k + 1}", int(found.floats("FORCE_PLATFORM:TYPE")[k])
        own = numbers[k * per_plate : (k + 1) * per_plate]
        if kind not in CHANNELS:
            warn(describe(f"{name} is of type {kind}; it is left out", where=path.name, allowed="types 1 to 4"))
            continue
        own = own[: CHANNELS[kind]]
        if len(own) < CHANNELS[kind] or len(corners) < 12 * (k + 1) or len(origins) < 3 * (k + 1):
            text, fix = f"{name} has no full CHANNEL, CORNERS or ORIGIN; it is left out", "complete FORCE_PLATFORM"
            warn(describe(text, where=path.name, fix=fix))
            continue
        if not all(1 <= each <= analog.shape[1] for each in own):
            text = f"{name} uses the channels {[int(each) for each in own]}"
            raise ModelError(describe(text, where=path.name, allowed=f"1 to {analog.shape[1]}, as there are channels"))
        at = [int(each) - 1 for each in own]
        data = _in_si(analog[:, at], at, kind, found, unit, k)
        own_corners = corners[12 * k : 12 * (k + 1)].reshape(4, 3) * TO_METRES[unit]
        plate = Plate(name, kind, own_corners, origins[3 * k : 3 * k + 3] * TO_METRES[unit], data)
        try:
            plate_axes(plate, path.name)
        except ModelError as error:
            warn(f"{error}; it is left out")
            continue
        plates.append(plate)
    return plates


def _in_si(data: Array, at: list[int], kind: int, found: Parameters, unit: str, index: int) -> Array:
    """Return the channels of a plate in N, N m and m, by ANALOG:UNITS, or by POINT:UNITS where that says nothing."""
    if kind == 4:
        matrix = found.floats("FORCE_PLATFORM:CAL_MATRIX")[36 * index : 36 * (index + 1)]
        if len(matrix) < 36:
            text, fix = f"plate {index + 1}, of type 4, has no calibration matrix", "add FORCE_PLATFORM:CAL_MATRIX"
            raise ModelError(describe(text, where=found.source, fix=fix))
        data = data @ matrix.reshape(6, 6)  # stored by columns: this is C times the channels
    if kind == 3:
        return data
    units = found.words("ANALOG:UNITS")
    words = [units[k].lower() if k < len(units) and kind != 4 else "" for k in at]
    factors = [1.0] * 3 + [_length(word, unit) for word in words[3:]]
    return data * factors


def _length(word: str, unit: str) -> float:
    """Return the metres in the unit of length of a moment (Nmm, N.m, ...) or a place."""
    own = word.lstrip("n*.· ").removesuffix(".")
    return TO_METRES.get(own, TO_METRES[unit])


def _upward(plate: Plate, path: Path, above: Array | None) -> Array:
    normal = plate_axes(plate, path.name)[:, 2]
    if above is None:
        return -normal
    up: Array = normal * np.sign((above - plate.corners.mean(axis=0)) @ normal)
    return up


def _forces(path: Path, found: Parameters, plates: list[Plate], above: Array | None, axes: str) -> GroundForces | None:
    if not plates:
        return None
    reactions = [ground_reaction(plate, path.name, above) for plate in plates]
    forces, centers, moments = (np.stack(each, axis=1) for each in zip(*reactions, strict=True))
    rate = found.rate * found.samples_per_frame
    times = (found.first_frame - 1) / found.rate + np.arange(len(forces)) / rate
    corners = np.stack([plate.corners for plate in plates])
    names = tuple(plate.name for plate in plates)
    return GroundForces(names, times, forces, centers, moments, rate, axes, corners, path.name)


def _events(found: Parameters) -> tuple[Event, ...]:
    labels, contexts = found.words("EVENT:LABELS"), found.words("EVENT:CONTEXTS")
    times = found.floats("EVENT:TIMES")
    times = times[: 2 * (len(times) // 2)].reshape(-1, 2)  # minutes, seconds
    events = [
        Event(float(60 * minutes + seconds), f"{contexts[k] if k < len(contexts) else ''} {label}".strip())
        for k, (label, (minutes, seconds)) in enumerate(zip(labels, times, strict=False))
    ]
    return tuple(sorted(events))
