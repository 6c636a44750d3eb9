"""Numbers of a stride: tables for the terminal, and plain values for JSON."""

import io
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.table import Table

from torsor.human.gait.curves import StrideCurves
from torsor.human.gait.references import REFERENCES, SOURCES
from torsor.human.terms.samples import JOINTS
from torsor.motion.results.report import titled_table

MOVED = (
    *("hip_flexion", "hip_adduction", "hip_rotation", "knee_flexion", "ankle_flexion", "toe_extension"),
    *("tilt", "list", "yaw", "shoulder_flexion", "elbow_flexion"),
)
MOMENTS = ("hip_extension", "hip_abduction", "knee_extension", "ankle_plantarflexion")


def _ends(curve: Any) -> dict[str, float]:
    return {"least": float(curve.min()), "most": float(curve.max())}


def peaks(stride: StrideCurves) -> dict[str, Any]:
    """Return minima and maxima of angles (degrees), moments (N m/kg), powers (W/kg), and forces (body weights).

    The vertical force has both peaks, and the valley between them.
    """
    up, s = stride.force[:, 1], stride.s
    first, second, swing = s < 0.27, (s > 0.33) & (s < 0.65), s > 0.6
    between = slice(int(np.argmax(np.where(first, up, 0.0))), int(np.argmax(np.where(second, up, 0.0))) + 1)
    return {
        "angles": {name: _ends(stride.angle(name)) for name in MOVED},
        "moments": {name: _ends(stride.moment(name)) for name in MOMENTS},
        "powers": {name: _ends(stride.power(name)) for name in JOINTS},
        "reactions": {name: float(np.linalg.norm(stride.reaction(name), axis=1).max()) for name in JOINTS},
        "vertical": {
            "first": float(up[first].max()),
            "valley": float(up[between].min()),
            "second": float(up[second].max()),
        },
        "forward": _ends(stride.force[:, 2]),
        "medial": _ends(stride.force[:, 0]),
        "knee_in_swing": float(stride.angle("knee_flexion")[swing].max()),
    }


def plain(stride: StrideCurves) -> dict[str, Any]:
    """Return peaks, energy, likeness and curves as numbers, lists and strings."""
    step, energy = stride.step, stride.energy
    curves = {name: stride.angle(name).tolist() for name in MOVED}
    moments = {name: stride.moment(name).tolist() for name in MOMENTS}
    pressure = [[None if np.isnan(each).any() else each.tolist() for each in foot] for foot in stride.pressure]
    return {
        "side": stride.side,
        "speed": step.speed,
        "step_length": step.length,
        "step_width": step.width,
        "duration": stride.duration,
        "mass": stride.body.mass,
        "peaks": peaks(stride),
        "energy": {
            "positive": energy.positive,
            "negative": energy.negative,
            "ground": energy.ground,
            "change": energy.change,
            "residual": energy.residual,
            "distance": energy.distance,
            "cost_of_transport": energy.cost_of_transport,
            "work": {name: each._asdict() for name, each in energy.work.items()},
        },
        "likeness": {
            name: {**each._asdict(), "source": SOURCES[REFERENCES[name].source]}
            for name, each in stride.likeness().items()
        },
        "curves": {
            "share": stride.s.tolist(),  # a key of written files: it keeps its name
            "angles": curves,
            "moments": moments,
            "powers": {name: stride.power(name).tolist() for name in JOINTS},
            "forces": stride.forces.tolist(),
            "pressure": pressure,
            "reactions": {name: stride.reaction(name).tolist() for name in JOINTS},
            "kinetic": stride.kinetic.tolist(),
            "potential": stride.potential.tolist(),
        },
    }


def _peaks(stride: StrideCurves) -> Table:
    found, step = peaks(stride), stride.step
    title = (
        f"{stride.side.capitalize()} stride: {step.speed:g} m/s, steps of {step.length:g} m, {stride.body.mass:.1f} kg"
    )
    if not stride.result.is_feasible:
        title += f"; it violates its constraints: {stride.result.status}"
    table = titled_table(title, "quantity", "minimum", "maximum", "unit")
    for key, unit, digits in (("angles", "degrees", 1), ("moments", "N m/kg", 2), ("powers", "W/kg", 2)):
        for name, ends in found[key].items():
            words = name.replace("_", " ") + (" power" if key == "powers" else " moment" if key == "moments" else "")
            table.add_row(words, f"{ends['least']:.{digits}f}", f"{ends['most']:.{digits}f}", unit)
        table.add_section()
    for name in ("forward", "medial"):
        table.add_row(f"{name} force", *(f"{100 * each:.1f}" for each in found[name].values()), "% of weight")
    vertical = {name: 100 * each for name, each in found["vertical"].items()}
    peaks_ = f"{vertical['first']:.1f}, {vertical['second']:.1f}"
    table.add_row("vertical force: valley; peaks", f"{vertical['valley']:.1f}", peaks_, "% of weight")
    for name, value in found["reactions"].items():
        table.add_row(f"{name} reaction", "", f"{100 * value:.1f}", "% of weight")
    return table


def _energy(stride: StrideCurves) -> Table:
    found = stride.energy
    table = titled_table(f"Work over {found.distance:g} m (J)", "joint", "positive", "negative", "sum")
    for name, work in found.work.items():
        cells = (f"{each:.2f}" for each in (work.positive, work.negative, work.total))
        table.add_row(name.replace("_", " "), *cells)
    table.add_section()
    table.add_row("all joints", f"{found.positive:.2f}", f"{found.negative:.2f}", f"{found.joints:.2f}")
    table.add_row("ground, at slipping or rolling feet", "", "", f"{found.ground:.2f}")
    table.add_row("change of energy", "", "", f"{found.change:.2f}")
    table.add_row("residual of the balance", "", "", f"{found.residual:.1e}")
    table.add_row("positive work, J/(kg m)", "", "", f"{found.cost_of_transport:.3f}")
    return table


def _likeness(stride: StrideCurves) -> Table:
    table = titled_table("Compared with people", "curve", "correlation", "rms", "unit", "source")
    for name, each in stride.likeness().items():
        reference = REFERENCES[name]
        words = name.split(",")[0].replace("_", " ")
        what = words if reference.kind == "angle" else f"{words} {reference.kind}"
        digits = 2 if reference.kind == "moment" else 1
        table.add_row(what, f"{each.correlation:.2f}", f"{each.rms:.{digits}f}", reference.unit, reference.source)
    return table


def tables(stride: StrideCurves) -> Group:
    """Return the tables of a stride."""
    return Group(_peaks(stride), _energy(stride), _likeness(stride))


def text(stride: StrideCurves, width: int) -> str:
    """Return the tables as text."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(tables(stride))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()
