"""Output of ``torsor info`` for a recorded person: markers, ground forces, joint angles, or an OpenSim model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from torsor.base.errors import printable
from torsor.base.summary import titled_table
from torsor.human.recordings import GroundForces, Markers, MotionTable, OsimModel, Recording, load, read_osim
from torsor.human.recordings.recording import runs

MAX_ROWS = 40  # of a table


def show_recording(name: str, console: Console) -> dict[str, Any]:
    """Print the content of a file and return it as plain values. Failed quality checks cause warnings."""
    if Path(name).suffix.lower() == ".osim":
        return _skeleton(read_osim(name), console)
    recording = load(name)
    content: dict[str, Any] = {"file": recording.source}
    _line(console, f"[bold]{escape(printable(recording.source))}[/bold]")
    if recording.has("markers"):
        content["markers"] = _markers(recording.markers, console)
    if recording.has("forces"):
        content["forces"] = _forces(recording.forces, console)
    if recording.has("table"):
        content["table"] = _columns(recording, console)
    content["events"] = [event._asdict() for event in recording.events]
    for event in recording.events:
        _line(console, f"{event.time:.3f} s: {escape(printable(event.name))}")
    return content


def _markers(markers: Markers, console: Console) -> dict[str, Any]:
    gaps = markers.gaps()
    place = f"in {markers.unit}, axes: {markers.axes or 'unknown'}"
    _line(console, f"{len(markers.names)} markers, {_times(markers)}, {place}")
    _line(console, "Markers: " + escape(printable(", ".join(markers.names))))
    if gaps:
        rows = [(gap.marker, f"{gap.first + 1} to {gap.last + 1}", f"{gap.duration:.3f}") for gap in gaps]
        _table(console, "Gaps", ("marker", "frames", "duration (s)"), rows)
    else:
        _line(console, "No gaps.")
    return _facts(markers) | {"unit": markers.unit, "axes": markers.axes, "gaps": [gap._asdict() for gap in gaps]}


def _forces(forces: GroundForces, console: Console) -> dict[str, Any]:
    on, rows, plates = forces.loaded(), [], []
    for k, name in enumerate(forces.names):
        contacts = [(float(forces.times[first]), float(forces.times[last])) for first, last in runs(on[:, k])]
        peak = float(forces.vertical[:, k].max())
        rows.append((name, f"{peak:.1f}", "; ".join(f"{first:.3f} to {last:.3f}" for first, last in contacts)))
        plates.append({"name": name, "peak": peak, "contacts": contacts})
    _line(console, f"{len(forces.names)} force plates or feet, {_times(forces)}, axes: {forces.axes or 'unknown'}")
    _table(console, "Ground reaction forces", ("plate or foot", "peak (N)", "loaded (s)"), rows)
    return _facts(forces) | {"axes": forces.axes, "plates": plates}


def _columns(recording: Recording, console: Console) -> dict[str, Any]:
    table = recording.table
    words = {None: "angles in an unknown unit", True: "angles in degrees", False: "angles in radians"}[table.in_degrees]
    if not recording.has("forces"):
        _line(console, f"{len(table.names)} columns, {_times(table)}, {words}")
        ends = [(np.nanmin(column, initial=np.inf), np.nanmax(column, initial=-np.inf)) for column in table.values.T]
        rows = [(name, f"{low:.6g}", f"{high:.6g}") for name, (low, high) in zip(table.names, ends, strict=True)]
        _table(console, "Columns", ("name", "minimum", "maximum"), rows)
    return _facts(table) | {"in_degrees": table.in_degrees}


def _skeleton(model: OsimModel, console: Console) -> dict[str, Any]:
    counts = f"{len(model.bodies)} bodies, {len(model.joints)} joints, {len(model.markers)} markers"
    _line(console, f"[bold]{escape(printable(model.name))}[/bold]: {model.mass:.6g} kg, {counts}")
    rows = [
        (joint.name, joint.kind, joint.parent, joint.child, ", ".join(each.name for each in joint.coordinates))
        for joint in model.joints.values()
    ]
    _table(console, "Joints", ("name", "kind", "parent", "child", "coordinates"), rows)
    return {
        "file": model.source,
        "name": model.name,
        "mass": model.mass,
        "bodies": {name: body.mass for name, body in model.bodies.items()},
        "joints": [dict(zip(("name", "kind", "parent", "child"), row, strict=False)) for row in rows],
        "coordinates": list(model.coordinates),
        "markers": {name: {"body": marker.body, "location": marker.location} for name, marker in model.markers.items()},
    }


def _facts(data: Markers | GroundForces | MotionTable) -> dict[str, Any]:
    ends = [float(data.times[0]), float(data.times[-1])]
    return {"names": list(data.names), "frames": len(data), "rate": data.rate, "times": ends}


def _times(data: Markers | GroundForces | MotionTable) -> str:
    return f"{len(data)} frames at {data.rate:g} Hz, {data.times[0]:g} to {data.times[-1]:g} s"


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _table(console: Console, title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    more = f" (the first {MAX_ROWS} of {len(rows)})" if len(rows) > MAX_ROWS else ""
    table = titled_table(f"{title}{more}", *heads, words=True)
    for row in rows[:MAX_ROWS]:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console.print(table)
