"""An identification as a table, as a document for other programs, and as the short table of notebooks.

``found`` is an ``Identified``, whose file imports this one.
"""

from typing import Any

from torsor.base.documents import plain, robot_facts
from torsor.base.summary import Summary
from torsor.base.tables import Column
from torsor.identification.tables import short


def columns(found: Any) -> list[Column]:
    """Return the table of the .csv file: parameters, as given and identified, with deviations."""
    values = (found.base.values, found.values, found.deviations)
    rows = zip(("as given", "identified", "deviation"), values, strict=True)
    return [Column("parameter", "", list(found.names)), *(Column(name, "SI", each) for name, each in rows)]


def document(found: Any) -> dict[str, Any]:
    """Return the plain values of the document, without its header."""
    rows = zip(found.names, found.base.values, found.values, found.deviations, strict=True)
    residuals = zip(found.prior.coordinate_names, found.rms, found.relative_residuals, found.r_squared, strict=True)
    keys = ("coordinate", "rms", "percent", "r_squared")
    return {
        "units": {"parameters": "SI: kg, kg m, kg m^2, N m, N m s, N, N s/m", "rms": "N m, N", "percent": "%"},
        "robot": robot_facts(found.prior),
        "settings": plain(found.settings),
        "method": found.method,
        "condition": plain(found.condition),
        "samples": len(found.measurements),
        "base_parameters": plain(
            [dict(zip(("name", "given", "value", "deviation"), row, strict=True)) for row in rows]
        ),
        "parameters": None if found.parameters is None else plain(found.parameters),
        "parameter_names": list(found.prior.parameter_names),
        "residuals": plain([dict(zip(keys, row, strict=True)) for row in residuals]),
        "drives": None if found.drives is None else found.drives.content(),
        "lag": found.lag,
        "held_out": None if found.held_out is None else plain(found.held_out),
        "unidentified": [each._asdict() for each in found.unidentified],
        "notes": list(found.measurements.notes),
    }


def summary(found: Any) -> Summary:
    """Return the short table of notebooks."""
    percents = [
        (name, each)
        for name, each in zip(found.prior.coordinate_names, found.relative_residuals, strict=True)
        if each == each  # NaN: it was not measured
    ]
    facts = {
        "method": found.method,
        "samples": str(len(found.measurements)),
        "condition number": f"{found.condition:.4g}",
        "residuals": ", ".join(f"{name} {each:.3g} %" for name, each in percents),
    }
    rows = [
        (name, short(value), f"{deviation:.2g}")
        for name, value, deviation in zip(found.names, found.values, found.deviations, strict=True)
    ]
    return Summary(f"Identified {found.prior.name}", facts, ("parameter (SI)", "value", "deviation"), rows)
