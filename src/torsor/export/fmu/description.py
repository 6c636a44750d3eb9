"""The files that say what is in an FMU: modelDescription.xml, buildDescription.xml (FMI 3) and a page for people."""

import html
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from torsor._version import __version__
from torsor.compiler.source import About
from torsor.export.fmu.interface import CLOSING, STEP
from torsor.export.fmu.model import Model
from torsor.export.fmu.units import used
from torsor.export.fmu.variables import Variable, is_structured

TOOL = "Torsor"
"""The program that writes descriptions, as they name it."""

_LOG = "logStatusError"


def model_description(model: Model, identifier: str, token: str, fmi: int, sources: Sequence[str]) -> str:
    """Return modelDescription.xml for FMI 2 or 3; ``sources`` are the C files, which FMI 2 lists here."""
    dynamics = "inverse dynamics" if model.settings.inverse else "forward dynamics"
    plain = all(is_structured(each.name) for each in model.variables)
    root = ET.Element(
        "fmiModelDescription",
        {
            "fmiVersion": f"{fmi}.0",
            "modelName": _text(model.robot.name),
            {2: "guid", 3: "instantiationToken"}[fmi]: token,
            "description": _text(f"{dynamics} of {model.robot.name}; SI units, radians"),
            "generationTool": f"{TOOL} {__version__}",
            "variableNamingConvention": "structured" if plain else "flat",
        },
    )
    if fmi == 2:
        root.set("numberOfEventIndicators", "0")
    for kind, attributes in _interfaces(fmi).items():
        interface = ET.SubElement(root, kind, {"modelIdentifier": identifier} | attributes)
        if fmi == 2:
            files = ET.SubElement(interface, "SourceFiles")
            for name in sources:
                ET.SubElement(files, "File", name=name)
    units = ET.SubElement(root, "UnitDefinitions")
    for name, exponents in used(each.unit for each in model.variables).items():
        unit = ET.SubElement(units, "Unit", name=name)
        ET.SubElement(unit, "BaseUnit", {base: str(power) for base, power in exponents.items()})
    categories = ET.SubElement(root, "LogCategories")
    ET.SubElement(categories, "Category", name=_LOG, description="why a function failed")
    ET.SubElement(root, "DefaultExperiment", startTime="0.0", stopTime="1.0", stepSize=repr(model.settings.step))
    variables = ET.SubElement(root, "ModelVariables")
    for reference, each in enumerate(model.variables):
        _add_variable(variables, each, reference, fmi)
    _add_structure(ET.SubElement(root, "ModelStructure"), model, fmi)
    return _document(root)


def _interfaces(fmi: int) -> dict[str, dict[str, str]]:
    """Return the attributes of both interfaces: what an importer may ask for."""
    if fmi == 2:
        able = ["canGetAndSetFMUstate", "canSerializeFMUstate", "providesDirectionalDerivative"]
        exchange = ["completedIntegratorStepNotNeeded"]
    else:
        able = ["canGetAndSetFMUState", "canSerializeFMUState", "providesDirectionalDerivatives"]
        able, exchange = [*able, "providesAdjointDerivatives"], []
    names = {"ModelExchange": able + exchange, "CoSimulation": [*able, "canHandleVariableCommunicationStepSize"]}
    return {kind: dict.fromkeys(own, "true") for kind, own in names.items()}


def _add_variable(parent: ET.Element, each: Variable, reference: int, fmi: int) -> None:
    about = {"name": each.name, "valueReference": str(reference), "causality": each.causality}
    about |= {"variability": each.variability}
    about |= {"initial": each.initial} if each.initial is not None else {}
    about |= {"description": _text(each.description)} if each.description else {}
    numbers = {"unit": each.unit} if each.unit else {}
    if each.state is not None:  # FMI 2 counts variables from 1
        numbers["derivative"] = str(each.state + (fmi == 2))
    numbers |= {"min": repr(each.least)} if each.least is not None else {}
    numbers |= {"start": repr(each.start)} if each.start is not None else {}
    if fmi == 2:
        ET.SubElement(ET.SubElement(parent, "ScalarVariable", about), "Real", numbers)
    else:
        ET.SubElement(parent, "Float64", about | numbers)


def _add_structure(parent: ET.Element, model: Model, fmi: int) -> None:
    """Add the outputs, the rates of states and the unknowns at the start, each with what it depends on."""
    variables, z, one = model.variables, model.z, int(fmi == 2)  # FMI 2 counts variables from 1
    own = {k: [k] for k, each in enumerate(variables) if each.kind == "state"}
    depends = dict(enumerate(model.pattern, start=z)) | own
    at_work = {k: [d for d in each if variables[d].kind != "parameter"] for k, each in depends.items()}
    outputs = [k for k, each in enumerate(variables) if each.causality == "output"]
    rates = [k for k, each in enumerate(variables) if each.kind == "rate"]
    for name, group, unknowns, knowns in (
        ("Output", "Outputs", outputs, at_work),
        ("ContinuousStateDerivative", "Derivatives", rates, at_work),
        ("InitialUnknown", "InitialUnknowns", range(z, len(variables)), depends),
    ):
        place = ET.SubElement(parent, group) if one and unknowns else parent
        for k in unknowns:
            about = {"index" if one else "valueReference": str(k + one)}
            about["dependencies"] = " ".join(str(each + one) for each in knowns[k])
            ET.SubElement(place, "Unknown" if one else name, about)


def build_description(identifier: str, sources: Iterable[str]) -> str:
    """Return sources/buildDescription.xml of FMI 3: how the C files become a library."""
    root = ET.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = ET.SubElement(root, "BuildConfiguration", modelIdentifier=identifier)
    files = ET.SubElement(configuration, "SourceFileSet", language="C99")
    for name in sources:
        ET.SubElement(files, "SourceFile", name=name)
    ET.SubElement(configuration, "Library", name="m", external="true", description="the C library of mathematics")
    return _document(root)


def page(model: Model, about: About) -> str:
    """Return documentation/index.html: what the variables are."""
    rows = "\n".join(
        f"<tr><td>{html.escape(each.name)}</td><td>{each.causality}</td><td>{each.unit}</td>"
        f"<td>{html.escape(_text(each.description))}</td></tr>"
        for each in model.variables
    )
    lines = "\n".join(f"<p>{html.escape(_text(line))}</p>" for line in about.lines)
    step = "" if model.settings.inverse else _STEP + _LOOPS * (model.loops is not None)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(_text(model.robot.name))}'
        f"</title></head>\n<body>\n{lines}\n{step}<table>\n"
        f"<tr><th>variable</th><th>causality</th><th>unit</th><th>meaning</th></tr>\n{rows}\n</table>\n"
        "</body>\n</html>\n"
    )


_STEP = f"""<p>Co-simulation integrates by the classical Runge-Kutta method with equal steps, none longer than the
parameter {STEP}; inputs are constant during a communication step. Limits of joints and drives are not enforced.</p>
"""
_LOOPS = f"""<p>Loops are closed after each step of co-simulation; in model exchange, errors of closure decrease at the
rate {CLOSING}. Start values have to close the loops.</p>
"""


def _text(text: str) -> str:
    """Return a text with a question mark for each character that XML does not allow."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _document(root: ET.Element) -> str:
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'
