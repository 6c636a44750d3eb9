"""A check of documents against the few words of JSON Schema that the schemas of the package use."""

from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
KNOWN = {
    *("$schema", "title", "description", "type", "properties", "required", "additionalProperties", "items"),
    *("minimum", "minItems", "const", "enum", "anyOf"),
}


def faults(value: Any, schema: Any, where: str = "document") -> list[str]:
    """Return all faults of a value; an unknown schema keyword also counts as a fault."""
    found = [f"{where}: unknown word {word}" for word in schema.keys() - KNOWN]
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        fits = any(
            isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name != "boolean") for name in names
        )
        if not fits:
            return [*found, f"{where}: {value!r:.60} is not {schema['type']}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "anyOf" in schema and all(faults(value, each, where) for each in schema["anyOf"]):
        found.append(f"{where}: {value!r:.60} fits none of {schema['anyOf']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where}: {value!r} is below {schema['minimum']}")
    if isinstance(value, dict):
        own = schema.get("properties", {})
        found += [f"{where}: no {name}" for name in schema.get("required", ()) if name not in value]
        other = schema.get("additionalProperties", {})
        for name, each in value.items():
            deeper = own.get(name, other if isinstance(other, dict) else {})
            found += faults(each, deeper, f"{where}.{name}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{where}: only {len(value)} items")
        for k, each in enumerate(value):
            found += faults(each, schema.get("items", {}), f"{where}[{k}]")
    return found
