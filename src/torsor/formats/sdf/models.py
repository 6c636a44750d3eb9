"""SDF models: selection of a model in a file, nested and included models, and their parts with the scopes of names."""

import re
from dataclasses import dataclass, field
from math import radians
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from torsor.base.arrays import IDENTITY, Array
from torsor.base.checks import MAX_NUMBER, known_name
from torsor.base.errors import ModelError, listing, warn
from torsor.formats.meshes.mesh_files import is_inside
from torsor.formats.search_path import SEARCH_FIX, Finder
from torsor.formats.xml import FLAGS, Element, flag_of, numbers_in, parse_xml, text_of, where_is
from torsor.spatial import from_quaternion, from_rpy, inverse_pose, make_pose


def numbers_of(element: Any, count: int, owner: str, most: float = MAX_NUMBER) -> Array:
    """Return the numbers (count,) in the text of an element, at most ``most`` in magnitude."""
    text = (element.text or "").strip()
    return numbers_in(text, count, f"<{element.tag}> is {text[:80]!r}", where_is(element, owner), most)


def number_of(element: Any, tag: str, default: float, owner: str, most: float = MAX_NUMBER) -> float:
    """Return the number in a child element, or the default."""
    child = None if element is None else element.find(tag)
    return default if child is None else float(numbers_of(child, 1, owner, most)[0])


def pose_of(element: Any, owner: str) -> tuple[Array, str]:
    """Return the <pose> (4 x 4) in an element, and the name of the frame that it is relative to, or "".

    A pose is a position and roll, pitch, yaw (possibly in degrees), or a quaternion.
    """
    pose = element.find("pose")
    if pose is None:
        return IDENTITY, ""
    # Version 1.6 has the attribute ``frame``, which 1.7 renamed.
    relative_to = (pose.get("relative_to") or pose.get("frame") or "").strip()
    if not (pose.text or "").strip():
        return IDENTITY, relative_to
    kind, degrees = pose.get("rotation_format", "euler_rpy"), pose.get("degrees", "false").strip().lower()
    where = where_is(pose, owner)
    if kind not in ("euler_rpy", "quat_xyzw"):
        raise ModelError(argument="rotation_format", value=kind, where=where, allowed="euler_rpy, quat_xyzw")
    if degrees not in FLAGS or (FLAGS[degrees] and kind == "quat_xyzw"):
        raise ModelError(argument="degrees", value=degrees, where=where, allowed="true or false; false with quat_xyzw")
    values = numbers_of(pose, 6 if kind == "euler_rpy" else 7, owner)
    if not values.any():
        return IDENTITY, relative_to
    if kind == "euler_rpy":
        R = from_rpy([radians(angle) for angle in values[3:]] if FLAGS[degrees] else values[3:])
    elif not values[3:].any():
        raise ModelError("the quaternion is zero", where=where, allowed="a nonzero quaternion")
    else:
        R = from_quaternion(values[3:])
    return make_pose(R, values[:3]), relative_to


# SDF frames: models, links, joints and <frame>s have a pose in another frame, and are attached to a link.
#
# Each name is looked up in the scope of its model; ``a::b`` is b in the nested model a. Since version 1.7 a pose may be
# ``relative_to`` any frame. By default links, frames and nested models are relative to the frame of their model, joints
# to their child (as in 1.6, which has no other poses), and a model to the world or the enclosing model.

WORLD, MODEL = "world", "__model__"
_ROUNDING = 1e-15  # for products of rotations: smaller entries are 0


@dataclass(eq=False)
class SdfFrame:
    """A frame with its ``pose`` in the frame that ``relative_to`` names in ``scope``, or in ``default``.

    ``kind`` is world, model, link, joint or frame, and ``name`` is the full name. ``attached_to`` names the frame with
    which it moves, unless it is a link. ``placement`` is the frame inside a model to which the model's pose refers.
    """

    kind: str
    name: str
    scope: "Scope | None" = None
    pose: Array = field(default_factory=lambda: IDENTITY)
    relative_to: str = ""
    default: "SdfFrame | str | None" = None
    attached_to: str = ""
    inside: "Scope | None" = None
    placement: str = ""
    where: str = ""
    _base: "SdfFrame | None" = None
    _world: Array | None = None

    @property
    def base(self) -> "SdfFrame":
        """The frame in which the pose is given."""
        if self._base is None:
            assert self.scope is not None and self.default is not None
            name = self.relative_to or (self.default if isinstance(self.default, str) else "")
            self._base = self.scope.find(name, self.where) if name else self.default  # type: ignore[assignment]
            if self.placement:
                assert self.inside is not None and self._base is not None
                placed = self.inside.find(self.placement, self.where)
                # The pose belongs to another frame of the model; compute the pose of the model from it.
                self.pose = self.pose @ inverse_pose(_pose_below(placed, self))
        assert self._base is not None
        return self._base

    def in_world(self) -> Array:
        """Return the pose (4 x 4) of the frame in the world."""
        way, at = dict[int, SdfFrame](), self
        while at._world is None and at.kind != WORLD:
            if id(at) in way:
                raise ModelError(f"the pose of {at.name!r} is relative to itself", value=at.name, where=at.where)
            way[id(at)] = at
            at = at.base
        pose = IDENTITY if at._world is None else at._world
        for item in reversed(way.values()):
            pose = item._world = _product(pose, item.pose)
        return pose

    def carrier(self) -> "SdfFrame":
        """Return the link (or the world) to which the frame is attached."""
        at, seen = self, set[int]()
        while at.kind not in ("link", WORLD):
            if id(at) in seen:
                raise ModelError(f"{at.name!r} is attached to itself", value=at.name, where=at.where)
            seen.add(id(at))
            assert at.scope is not None
            model = at.inside
            at = at.scope.find(at.attached_to or MODEL, at.where) if model is None else model.canonical(at)
        return at


@dataclass(eq=False)
class Scope:
    """The names of a model: frames, nested models, and the frame of the model itself."""

    frame: SdfFrame
    version: tuple[int, int]
    prefix: str = ""
    canonical_link: str = ""
    names: dict[str, SdfFrame] = field(default_factory=dict)
    nested: dict[str, "Scope"] = field(default_factory=dict)

    def add(self, frame: SdfFrame, name: str, element: Any) -> None:
        """Add a frame by its name in this scope. Before version 1.7, a joint may have the name of a link."""
        other = self.names.get(name)
        if other is not None and (self.version >= (1, 7) or other.kind == frame.kind):
            message = f"a {frame.kind} and a {other.kind} are both named {name!r}"
            raise ModelError(message, value=name, where=where_is(element), allowed="names that differ")
        if other is None or frame.kind == "link":
            self.names[name] = frame

    def find(self, name: str, where: str) -> SdfFrame:
        """Return the frame with a name, where ``a::b`` is b in the nested model a."""
        scope, rest = self, name
        while True:
            if rest == MODEL:
                return scope.frame
            if rest in scope.names:
                return scope.names[rest]
            head, colons, rest = rest.partition("::")
            if not colons or head not in scope.nested:
                break
            scope = scope.nested[head]
        if name == WORLD:
            return THE_WORLD
        raise ModelError(f"no frame {name!r}", value=name, where=where, allowed=listing(self.names, most=8, like=name))

    def canonical(self, model: SdfFrame) -> SdfFrame:
        """Return the link of the model frame: the named one, or the first of the model or else of its nested models."""
        if self.canonical_link:
            return self.find(self.canonical_link, model.where)
        waiting = [self]
        while waiting:
            scope = waiting.pop()
            first = next((name for name in scope.names.values() if name.kind == "link"), None)
            if first is not None:
                return first
            waiting.extend(reversed(scope.nested.values()))
        raise ModelError(f"model {model.name!r} has no link", value=model.name, where=model.where)


THE_WORLD = SdfFrame(WORLD, WORLD)


def relative_pose(a: SdfFrame, b: SdfFrame) -> Array:
    """Return the pose (4 x 4) of frame b in frame a, exactly as written if b is relative to a."""
    if a is b:
        return IDENTITY
    if b.kind != WORLD and b.base is a:
        return b.pose
    if a.kind != WORLD and a.base is b:
        return np.asarray(inverse_pose(a.pose))
    if a.kind != WORLD and b.kind != WORLD and a.base is b.base:
        return _product(inverse_pose(a.pose), b.pose)
    return _product(inverse_pose(a.in_world()), b.in_world())


def _pose_below(frame: SdfFrame, model: SdfFrame) -> Array:
    """Return the pose of a frame in its model, without the pose of the model itself."""
    pose, at, seen = IDENTITY, frame, set[int]()
    while at is not model:
        if id(at) in seen or at.kind == WORLD:
            message = f"the placement frame {frame.name!r} has no pose in its model"
            raise ModelError(message, value=frame.name, where=model.where, allowed="a frame inside the model")
        seen.add(id(at))
        pose, at = _product(at.pose, pose), at.base
    return pose


def _product(A: Array, B: Array) -> Array:
    """Return A B, with entries of the rotation that are rounding errors set to 0."""
    T = A @ B
    R = T[:3, :3]
    R[np.abs(R) < _ROUNDING] = 0.0
    return T


MIN_VERSION = (1, 2)
MAX_PARTS = 20_000  # links, joints and frames, counting included files each time
MAX_INCLUDES = 1000
MAX_DEPTH = 40  # nested and included models
_GRAVITY = np.array([0.0, 0.0, -9.8])  # SDF's default for a world
_EARTH = np.array([0.0, 0.0, -9.81])


class Part(NamedTuple):
    """A link, joint or frame of a model: its element, its frame, the scope that resolves its names, the file finder."""

    element: Any
    frame: SdfFrame
    scope: Scope
    finder: Finder

    @property
    def owner(self) -> str:
        """Kind and name, for messages."""
        return f"{self.frame.kind} {self.frame.name!r}"


@dataclass
class Model:
    """The selected model: its parts in the order of the file, and properties of the world around it."""

    name: str
    scope: Scope
    gravity: Array
    static: bool
    links: list[Part] = field(default_factory=list)
    joints: list[Part] = field(default_factory=list)
    frames: list[Part] = field(default_factory=list)
    resting: list[Any] = field(default_factory=list)  # nested models that are static
    # Elements that may contain others that are not read: models, the world, the file.
    roots: list[Any] = field(default_factory=list)


def read_model(path: Path, root: Element, wanted: str = "") -> Model:
    """Return the parts of the ``wanted`` model, or of the first one that is not static, and warn about the others.

    ``wanted`` may be a nested model, ``a/b`` or ``a::b``. Then only this model is read, at its place in the world.
    """
    version = _version(root)
    above = [None, *root.findall(WORLD)]
    candidates = [(world, entry) for world in above for entry in (root if world is None else world)]
    candidates = [(world, entry) for world, entry in candidates if entry.tag in ("model", "include")]
    names = []
    for _, item in candidates:  # for an <include> without a name, the last part of its address
        named = item.get("name") if item.tag == "model" else text_of(item, "name")
        names.append((named or text_of(item, "uri").rstrip("/").rpartition("/")[2]).strip())
    if not candidates:
        raise ModelError("it has no model", where=path.name, allowed="<model> in <sdf> or in <world>")
    wanted, *below = [wanted] if wanted in names else re.split("/|::", wanted)
    if wanted:
        known_name(wanted, names, path.name, "model")
    collector = _Collector(path, version)
    # A world has ground, walls and lights besides robots.
    moving = (k for k, (_, entry) in enumerate(candidates) if collector.may_move(entry))
    chosen = names.index(wanted) if wanted else next(moving, 0)
    if len(candidates) > 1 and not wanted:
        others = [repr(name) for k, name in enumerate(names) if k != chosen]
        message = f"it has {len(names)} models; {names[chosen]!r} is read, not {listing(others, most=6)}"
        warn(message, where=path.name, fix=f"name one: {path.name}#{names[chosen]}")
    model = collector.read(*candidates[chosen], root)
    if not below:
        return model
    name, (world, _) = known_name("::".join(below), collector.nested, path.name, "nested model"), candidates[chosen]
    element, finder, frame = collector.nested[name]
    assert frame.scope is not None
    inner = _Collector(path, frame.scope.version).read(world, element, root, finder, frame.in_world())
    inner.static = inner.static or model.static
    return inner


def _version(root: Element) -> tuple[int, int]:
    source = root.source
    if root.tag != "sdf":
        raise ModelError(f"the root element is <{root.tag}>", where=source, allowed="<sdf>")
    text = root.get("version", "")
    numbers = text.strip().split(".")
    if len(numbers) != 2 or not all(number.isascii() and number.isdigit() and len(number) < 5 for number in numbers):
        raise ModelError(f"<sdf version={text[:40]!r}>", where=source, allowed="a version such as 1.9")
    version = int(numbers[0]), int(numbers[1])
    if version < MIN_VERSION or version[0] > 1:
        raise ModelError(f"the SDF version is {text}", where=source, allowed="1.2 and later, below 2")
    return version


class _Collector:
    """Collector of the parts of a model, with the parts read so far and the parsed files."""

    def __init__(self, path: Path, version: tuple[int, int]):
        self.path, self.version, self.includes = path, version, 0
        self.parsed: dict[Path, Element] = {}
        self.nested: dict[str, tuple[Any, Finder, SdfFrame]] = {}  # by full name, with the finder of the file around it
        self.model: Model

    def may_move(self, element: Any) -> bool:
        """Return whether a model of a world can move. An unreadable <include>, such as model://sun, cannot."""
        model = element
        if element.tag == "include":
            try:
                model = self._included(element, Finder(self.path))[0]
            except ModelError:
                return False
        return not any(FLAGS.get(text_of(item, "static").lower(), False) for item in (element, model))

    def read(
        self, world: Any, element: Any, root: Element, finder: Finder | None = None, pose: Array | None = None
    ) -> Model:
        """Return a model. ``pose`` in the world, if it is given, replaces the one in the file."""
        outside, gravity = Scope(THE_WORLD, self.version), _EARTH
        if world is not None:
            result = world.find("gravity")
            gravity = _GRAVITY if result is None else numbers_of(result, 3, "world")
            for item in world.findall("frame"):
                self._added(item, outside)
        self.model = Model("", outside, gravity, static=False)
        self.model.roots = [root] if world is None else [root, world]
        self._nested(element, outside, finder or Finder(self.path), 0, pose)
        ((self.model.name, self.model.scope),) = outside.nested.items()
        return self.model

    def _nested(self, element: Any, around: Scope, finder: Finder, depth: int, given: Array | None = None) -> None:
        """Collect a <model> or an <include> inside the scope ``around``."""
        if depth > MAX_DEPTH:
            raise ModelError("models are nested too deeply", where=where_is(element), allowed=f"{MAX_DEPTH} or fewer")
        model, version, merged, outer = element, around.version, False, finder
        if element.tag == "include":
            model, version, finder = self._included(element, finder)
            merged = element.get("merge", "false").strip().lower() in ("true", "1")
        if any(flag_of(item, "static", "model") for item in (element, model)):
            self.model.resting += [element] if depth else []
            self.model.static = self.model.static or not depth
        name = (text_of(element, "name") if element.tag == "include" else "") or _name(model)
        where = where_is(element, f"model {name!r}")
        pose, relative_to = pose_of(element if element.find("pose") is not None else model, name)
        placement = text_of(element, "placement_frame") or model.get("placement_frame", "")
        if given is not None:
            pose, relative_to, placement = given, "", ""
        at = SdfFrame("model", f"{around.prefix}{name}", around, pose, relative_to, around.frame, where=where)
        top = around.frame.kind == WORLD
        prefix = around.prefix if merged else "" if top else f"{around.prefix}{name}::"
        scope = Scope(at, version, prefix, model.get("canonical_link", ""))
        at.inside, at.placement = scope, placement
        if merged:
            scope.names, scope.nested = around.names, around.nested
        else:
            self.nested[at.name] = element, outer, at
            around.add(at, name, element)
            around.nested[name] = scope
        self.model.roots.append(model)
        self._parts(model, scope, finder, depth)

    def _parts(self, element: Any, scope: Scope, finder: Finder, depth: int) -> None:
        m = self.model
        kinds = {"link": m.links, "joint": m.joints, "frame": m.frames}
        for item in element:
            if item.tag in ("model", "include"):
                self._nested(item, scope, finder, depth + 1)
            elif item.tag in kinds:
                kinds[item.tag].append(Part(item, self._added(item, scope), scope, finder))
                if sum(map(len, kinds.values())) > MAX_PARTS:
                    allowed = f"{MAX_PARTS} links, joints and frames"
                    raise ModelError("it has too many parts", where=self.path.name, allowed=allowed)

    def _added(self, element: Any, scope: Scope) -> SdfFrame:
        """Return the frame of a link (relative to its model), of a joint (to its child) or of a <frame>."""
        name, attached_to = _name(element), ""
        if element.tag == "joint":
            attached_to = text_of(element, "child")
        elif element.tag == "frame":
            attached_to = (element.get("attached_to") or "").strip()
        owner, default = f"{element.tag} {name!r}", attached_to or scope.frame
        placed = *pose_of(element, owner), default, attached_to
        full = scope.prefix + name
        if full == WORLD:  # in pybullet's files; SDF reserves the name
            full = f"{WORLD}_{element.tag}"
            warn(f"the name {WORLD!r} is reserved; it is read as {full!r}", where=where_is(element, owner))
        frame = SdfFrame(element.tag, full, scope, *placed, where=where_is(element, owner))
        scope.add(frame, name, element)
        return frame

    def _included(self, element: Any, finder: Finder) -> tuple[Any, tuple[int, int], Finder]:
        """Return the model that an <include> names, the version of its file, and the finder of that file."""
        uri, where = text_of(element, "uri"), where_is(element)
        self.includes += 1
        if self.includes > MAX_INCLUDES:
            raise ModelError("it has too many <include> elements", where=where, allowed=f"{MAX_INCLUDES} in all")
        if "://" in uri and not uri.startswith(("model://", "package://", "file://")):
            raise ModelError(f"<include> of {uri[:200]!r}", where=where, allowed="files on this machine")
        result = finder.find(uri) if uri else None
        if result is None:
            raise ModelError(f"<include> of {uri[:200]!r}, which was not found", where=where, fix=SEARCH_FIX)
        file = _model_file(result, where) if result.is_dir() else result
        if not is_inside(file, finder.folders):
            raise ModelError(f"<include> of {uri[:200]!r}, which is outside its folders", where=where, fix=SEARCH_FIX)
        file = file.resolve()
        if file not in self.parsed:
            self.parsed[file] = parse_xml(file)
        version, model = _version(self.parsed[file]), self.parsed[file].find("model")
        if model is None:
            raise ModelError(f"{file.name} has no model", where=where, allowed="<sdf> with a <model>")
        return model, version, Finder(file)


def _name(element: Any) -> str:
    name = (element.get("name") or "").strip()
    if not name or (element.tag == "link" and name == MODEL):
        message = f"<{element.tag} name={name!r}>"
        raise ModelError(message, value=name, where=where_is(element), allowed="a unique name")
    return name


def _model_file(folder: Path, where: str) -> Path:
    """Return the file of the latest version of a Gazebo model, from the model.config in its folder."""
    config = folder / "model.config"
    if not config.is_file():
        raise ModelError(f"{folder.name} is a folder without model.config", where=where)
    listed = [element for element in parse_xml(config).iter("sdf") if (element.text or "").strip()]
    if not listed:
        raise ModelError(f"model.config of {folder.name} names no <sdf>", where=where)
    versions = [tuple(map(int, re.findall("[0-9]{1,4}", item.get("version", "")))) for item in listed]
    best = max(range(len(listed)), key=lambda k: versions[k])
    file = folder / (listed[best].text or "").strip()
    if not file.is_file():
        raise ModelError(f"{file.name}, which model.config of {folder.name} names, is missing", where=where)
    return file
