"""Writing TOML, with the fewest digits from which the same numbers are read back. See docs/compute/toml.md."""

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from torsor.base.arrays import Array
from torsor.base.decoding import Table, error
from torsor.base.errors import listing, warn
from torsor.formats.meshes.mesh_files import split_prim
from torsor.formats.toml.reading import EACH, SINGLE_DEFAULTS, VERSION, flexible_table, looks_like_degrees, parse_toml
from torsor.formats.writing import MeshCopies, write_file
from torsor.mechanism import Coupling, Mechanism, Motor, Spring, Wheel
from torsor.mechanism.parts import FRICTION
from torsor.spatial import from_rpy, to_rpy


def write_toml(mechanism: Mechanism, path: str | Path) -> None:
    """Write a mechanism as TOML. The file is replaced atomically: if writing fails, the old file is kept.

    The text is read back first: a file is written only if it gives an equal mechanism. A ``ModelWarning`` names meshes
    that cannot be read from the place of the file.
    """
    write_file(path, (".toml",), lambda: toml_content(mechanism))
    copies, links = MeshCopies(Path(path)), (mechanism.base, *mechanism.links)
    meshes = [part for link in links for parts in (link.visuals, link.shapes) for part in parts]
    files = dict.fromkeys(split_prim(Path(mesh.path))[0] for mesh in meshes if mesh.path)
    far = [file.name for file in files if file.is_file() and not copies.reads(file)]
    if far:
        message = f"the file refers to meshes outside its folder, which Torsor does not read: {listing(far)}"
        fix = "save it next to them, set TORSOR_MESHES, or save as .urdf, .sdf or .xml, which copy them"
        warn(message, where=Path(path).name, fix=fix)


def toml_content(mechanism: Mechanism) -> bytes:
    """Return the bytes of a TOML file. Raise ModelError if an equal mechanism cannot be read back from them."""
    tables = _tables(mechanism)
    blocks = (head + "".join(f"{k} = {toml_text(v)}\n" for k, v in table.items()) for head, table in tables)
    content = "\n".join(blocks).encode(errors="replace")  # a lone surrogate in a name will not read back as equal
    where = f"{mechanism.name!r} as TOML"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these warnings were issued when the mechanism was created
        plain = Mechanism(**{field.name: getattr(mechanism, field.name) for field in fields(Mechanism)})
        if parse_toml(content, where, strict=False) != plain:
            raise error(where, "it would not read back as equal", fix="check names and visuals")
    return content


def _tables(mechanism: Mechanism) -> Iterator[tuple[str, Table]]:
    """Yield (header, keys and values) of each table of the file, in order."""
    head: Table = {"torsor": VERSION, "name": mechanism.name, "gravity": mechanism.gravity}
    yield "", head | ({"active": mechanism.active} if mechanism.active else {})
    yield "[units]\n", {"angle": "rad", "length": "m", "mass": "kg"}
    for link in (mechanism.base, *mechanism.links):
        symmetric = np.array_equal(link.inertia, link.inertia.T)  # 6 numbers would lose bits otherwise
        inertia = link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] if symmetric else link.inertia
        known = {"unphysical": True} if link.defect else {}
        yield "[[links]]\n", {"name": link.name, **_unless(0.0, mass=link.mass, com=link.com, inertia=inertia)} | known
        for look in link.visuals:
            table: Table = {"shape": look.shape, "size": look.size} | _place(look.pose) | _unless("", name=look.name)
            yield "[[links.visuals]]\n", table | _unless(None, color=look.color, mesh=look.mesh, path=look.path)
        for shape in link.shapes:
            table = {"shape": shape.shape, **_unless((), size=shape.size), **_place(shape.pose)}
            table |= _unless("", name=shape.name, link=shape.link) | _unless(None, mesh=shape.mesh, path=shape.path)
            table |= {} if shape.heights is None else {"heights": shape.heights}
            table |= _unless(1, contype=shape.contype, conaffinity=shape.conaffinity)
            yield (
                "[[links.shapes]]\n",
                table | _unless(FRICTION, friction=shape.friction) | _unless(0, priority=shape.priority),
            )
    for joint in mechanism.joints:
        table = {key: getattr(joint, key) for key in ("name", "type", "parent", "child")} | _place(joint.placement)
        table |= _unless(joint.name, follows=joint.coordinate)
        for key, default in (SINGLE_DEFAULTS | EACH).items():
            values = getattr(joint, key)
            if np.any(values != default):  # one number for all if they are equal
                table[key] = values[0] if key in EACH and (values == values[0]).all() else values
            if looks_like_degrees(key, values, joint.kind):
                table["multi_turn"] = True
        yield "[[joints]]\n", table
        if joint.flexible is not None:
            yield "[joints.flexible]\n", flexible_table(joint.flexible)
        if joint.spring is not None:
            yield "[joints.spring]\n", _part(joint.spring, damping=0.0, rest=0.0)
        if joint.motor is not None:
            plain = {"ratio": 1.0, "axis": (0.0, 0.0, 1.0), "stiffness": None}
            yield "[joints.motor]\n", _part(joint.motor, **plain, damping=0.0, coulomb=0.0, viscous=0.0, smooth=0.0)
    for frame in mechanism.frames:
        yield "[[frames]]\n", {"name": frame.name, "link": frame.link, **_place(frame.pose)}
    for loop in mechanism.loops:
        if isinstance(loop, Coupling):
            table = {"name": loop.name, "coefficients": loop.coefficients}
            yield "[[couplings]]\n", table | _unless(0.0, offset=loop.offset)
        elif isinstance(loop, Wheel):
            table = {"name": loop.name, "frame": loop.frame, "kind": loop.kind}
            table |= _unless(0.0, radius=loop.radius, roller=loop.roller) | _unless("", ground=loop.ground)
            yield "[[wheels]]\n", table
        else:
            ends = {"name": loop.name, "a": loop.a, "b": loop.b, "kind": loop.kind}
            yield "[[loops]]\n", ends | _unless(0.0, length=loop.length)
    for name, positions in mechanism.posture_table.items():
        yield "[[postures]]\n", {"name": name, "positions": positions}
    for a, b, reason in mechanism.allowed_collisions:
        yield "[[allowed_collisions]]\n", {"a": a, "b": b, "reason": reason}


def toml_text(value: Any) -> str:
    """Return a value as TOML, with numbers in the fewest digits that are exact and matrices with one row per line.

    Example:
        >>> toml_text([1.0, 0.5, 1e-7]), toml_text({"elbow": -2.0}), toml_text(True)
        ('[1, 0.5, 1e-07]', '{ "elbow" = -2 }', 'true')
    """
    if isinstance(value, (str, bool)):  # as in JSON, except that TOML also requires the character 7F to be escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_text(key)} = {toml_text(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, (list, tuple)) or np.ndim(value):  # rows may differ in length
        if any(isinstance(entry, (list, tuple, np.ndarray)) for entry in value):
            return "[\n" + "".join(f"  {toml_text(row)},\n" for row in value) + "]"
        return f"[{', '.join(map(toml_text, value))}]"
    return repr(float(value)).removesuffix(".0")


def _part(part: Spring | Motor, **defaults: Any) -> Table:
    """Return the fields of a part that differ from their defaults."""
    values = {field.name: getattr(part, field.name) for field in fields(part) if field.compare}
    return {key: value for key, value in values.items() if key not in defaults or np.any(value != defaults[key])}


def _unless(default: Any, **values: Any) -> Table:
    """Return the values that differ from a default."""
    return {key: value for key, value in values.items() if np.any(value != default)}


def _place(T: Array) -> Table:
    """Return a pose as position and rpy, or as position and rotation matrix if no angles give the same matrix."""
    R, place = T[:3, :3], _unless(0.0, position=T[:3, 3])
    for digits in (6, 10, 14, 15, 30):  # an angle that was 0.3 in a file comes back as 0.30000000000000004
        rpy = np.array([round(float(angle), digits) + 0.0 for angle in to_rpy(R)])
        if np.array_equal(from_rpy(rpy), R):
            return place | _unless(0.0, rpy=rpy)
    return place | {"rotation": R}
