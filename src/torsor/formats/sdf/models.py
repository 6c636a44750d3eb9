"""Models of SDF: which one of a file is read, its nested and included models, and all their parts with their scopes."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, describe, listing, warn
from torsor.formats.meshes.mesh_folders import is_inside
from torsor.formats.sdf.frames import MODEL, THE_WORLD, WORLD, Scope, SdfFrame
from torsor.formats.sdf.values import flag_of, numbers_of, pose_of, text_of, where_of
from torsor.formats.search_path import SEARCH_FIX, Finder
from torsor.formats.xml import FLAGS, Element, parse_xml

OLDEST = (1, 4)
MOST_PARTS = 20_000  # links, joints and frames, those of included files counted each time
MOST_INCLUDES = 1000
DEEPEST = 40  # nested and included models
_GRAVITY = (0.0, 0.0, -9.8)  # SDF's default for a world
_EARTH = (0.0, 0.0, -9.81)


class Part(NamedTuple):
    """A link, joint or frame of a model: its element, its frame, the scope of its names and the finder of its file."""

    element: Any
    frame: SdfFrame
    scope: Scope
    finder: Finder


@dataclass
class Model:
    """The model that is read: its parts in the order of the file, and what the world around it says."""

    name: str
    scope: Scope
    gravity: Array | tuple[float, ...]
    static: bool
    links: list[Part] = field(default_factory=list)
    joints: list[Part] = field(default_factory=list)
    frames: list[Part] = field(default_factory=list)
    resting: list[Any] = field(default_factory=list)  # nested models that are static
    # Elements that may have others that are not read: models, the world, the file.
    roots: list[Any] = field(default_factory=list)


def read_model(path: Path, root: Element, wanted: str = "") -> Model:
    """Return the parts of the ``wanted`` model, or of the first that is not static, with a warning of the others."""
    version = _version(root, path.name)
    candidates: list[tuple[Any, Any]] = [(None, each) for each in root if each.tag in ("model", "include")]
    candidates += [(world, each) for world in root.findall(WORLD) for each in world if each.tag in ("model", "include")]
    names = [_called(each) for _, each in candidates]
    if not candidates:
        raise ModelError(describe("no model", where=path.name, allowed="<model> in <sdf> or in <world>"))
    if wanted and wanted not in names:
        raise ModelError(describe(f"no model {wanted!r}", where=path.name, allowed=listing(names, like=wanted)))
    collector = _Collector(path, version)
    # A world has ground, walls and lights besides robots.
    moving = (k for k, (_, each) in enumerate(candidates) if collector.may_move(each))
    chosen = names.index(wanted) if wanted else next(moving, 0)
    if len(candidates) > 1 and not wanted:
        others = [repr(name) for k, name in enumerate(names) if k != chosen]
        found = f"{len(names)} models; {names[chosen]!r} is read, not {listing(others, most=6)}"
        warn(describe(found, where=path.name, fix=f"name one: {path.name}#{names[chosen]}"))
    return collector.read(*candidates[chosen], root)


def _called(element: Any) -> str:
    """Return the name of a <model> or <include>: of the latter without a name, the last part of its address."""
    named = element.get("name") if element.tag == "model" else text_of(element, "name")
    return (named or text_of(element, "uri").rstrip("/").rpartition("/")[2]).strip()


def _version(root: Element, source: str) -> tuple[int, int]:
    if root.tag != "sdf":
        raise ModelError(describe(f"root element <{root.tag}>", where=source, allowed="<sdf>"))
    text = root.get("version", "")
    numbers = text.strip().split(".")
    if len(numbers) != 2 or not all(each.isascii() and each.isdigit() and len(each) < 5 for each in numbers):
        raise ModelError(describe(f"<sdf version={text[:40]!r}>", where=source, allowed="a version such as 1.9"))
    version = int(numbers[0]), int(numbers[1])
    if version < OLDEST or version[0] > 1:
        raise ModelError(describe(f"SDF of version {text}", where=source, allowed="1.4 and later, below 2"))
    return version


class _Collector:
    """The state of collecting the parts of a model: what is read so far, and the files that are parsed."""

    def __init__(self, path: Path, version: tuple[int, int]):
        self.path, self.version, self.includes = path, version, 0
        self.parsed: dict[Path, Element] = {}
        self.model: Model

    def may_move(self, element: Any) -> bool:
        """Whether a model of a world is not static; an <include> that cannot be read, such as model://sun, is none."""
        given = element
        if element.tag == "include":
            try:
                given = self._included(element, Scope(THE_WORLD, self.version, self.path.name), Finder(self.path))[0]
            except ModelError:
                return False
        return not any(FLAGS.get(text_of(each, "static").lower(), False) for each in (element, given))

    def read(self, world: Any, element: Any, root: Element) -> Model:
        outside = Scope(THE_WORLD, self.version, self.path.name)
        finder = Finder(self.path)
        gravity: Array | tuple[float, ...] = _EARTH
        if world is not None:
            found = world.find("gravity")
            gravity = _GRAVITY if found is None else numbers_of(found, 3, self.path.name, "world")
            for each in world.findall("frame"):
                self._frame(each, outside)
        self.model = Model("", outside, gravity, static=False)
        self.model.roots = [root] if world is None else [root, world]
        self._nested(element, outside, finder, 0)
        ((self.model.name, self.model.scope),) = outside.nested.items()
        return self.model

    def _nested(self, element: Any, around: Scope, finder: Finder, depth: int) -> None:
        """Collect a <model> or an <include> inside of the scope ``around``."""
        if depth > DEEPEST:
            where = where_of(element, finder.path.name)
            raise ModelError(describe("models in models, too deep", where=where, allowed=f"{DEEPEST} or fewer"))
        given, version, merged = element, around.version, False
        if element.tag == "include":
            given, version, finder = self._included(element, around, finder)
            merged = element.get("merge", "false").strip().lower() in ("true", "1")
        if any(flag_of(each, "static", finder.path.name, "model") for each in (element, given)):
            self.model.resting += [element] if depth else []
            self.model.static = self.model.static or not depth
        name = text_of(element, "name") if element.tag == "include" else ""
        name = name or self._name(given, finder.path.name)
        where = where_of(element, finder.path.name, f"model {name!r}")
        placed = element if element.find("pose") is not None else given
        pose, relative_to = self._pose(placed, around.source if placed is element else finder.path.name, name)
        placement = text_of(element, "placement_frame") or given.get("placement_frame", "")
        at = SdfFrame("model", f"{around.prefix}{name}", around, pose, relative_to, around.frame, where=where)
        top = around.frame.kind == WORLD
        prefix = around.prefix if merged else "" if top else f"{around.prefix}{name}::"
        scope = Scope(at, version, finder.path.name, prefix, given.get("canonical_link", ""))
        at.inside, at.placement = scope, placement
        if merged:
            scope.names, scope.nested = around.names, around.nested
        else:
            around.add(at, name, element)
            around.nested[name] = scope
        self.model.roots.append(given)
        self._parts(given, scope, finder, depth)

    def _parts(self, element: Any, scope: Scope, finder: Finder, depth: int) -> None:
        m = self.model
        kinds = {"link": m.links, "joint": m.joints, "frame": m.frames}
        for each in element:
            if each.tag in ("model", "include"):
                self._nested(each, scope, finder, depth + 1)
            elif each.tag in kinds:
                at = getattr(self, f"_{each.tag}")(each, scope)
                kinds[each.tag].append(Part(each, at, scope, finder))
                if sum(map(len, kinds.values())) > MOST_PARTS:
                    allowed = f"{MOST_PARTS} links, joints and frames"
                    raise ModelError(describe("too many parts", where=self.path.name, allowed=allowed))

    def _name(self, element: Any, source: str) -> str:
        name = (element.get("name") or "").strip()
        if not name or (element.tag == "link" and name in (WORLD, MODEL)):
            found = f"<{element.tag} name={name!r}>"
            raise ModelError(describe(found, where=where_of(element, source), allowed="a name of its own"))
        return name

    def _pose(self, element: Any, source: str, owner: str) -> tuple[Array, str]:
        pose = element.find("pose")
        # Version 1.6 has the attribute ``frame``, which 1.7 renamed.
        relative_to = "" if pose is None else pose.get("relative_to") or pose.get("frame") or ""
        return pose_of(pose, source, owner), relative_to.strip()

    def _link(self, element: Any, scope: Scope) -> SdfFrame:
        return self._added(element, scope, default=scope.frame)

    def _joint(self, element: Any, scope: Scope) -> SdfFrame:
        child = text_of(element, "child")
        return self._added(element, scope, default=child or scope.frame, attached_to=child)

    def _frame(self, element: Any, scope: Scope) -> SdfFrame:
        to = (element.get("attached_to") or "").strip()
        return self._added(element, scope, default=to or scope.frame, attached_to=to)

    def _added(self, element: Any, scope: Scope, **settings: Any) -> SdfFrame:
        name = self._name(element, scope.source)
        where = where_of(element, scope.source, f"{element.tag} {name!r}")
        pose, relative_to = self._pose(element, scope.source, f"{element.tag} {name!r}")
        frame = SdfFrame(element.tag, scope.prefix + name, scope, pose, relative_to, where=where, **settings)
        scope.add(frame, name, element)
        return frame

    def _included(self, element: Any, around: Scope, finder: Finder) -> tuple[Any, tuple[int, int], Finder]:
        """Return the model that an <include> names, the version of its file, and the finder of that file."""
        uri, where = text_of(element, "uri"), where_of(element, around.source)
        self.includes += 1
        if self.includes > MOST_INCLUDES:
            raise ModelError(describe("too many <include>", where=where, allowed=f"{MOST_INCLUDES} in all"))
        if "://" in uri and not uri.startswith(("model://", "package://", "file://")):
            raise ModelError(describe(f"<include> of {uri[:200]!r}", where=where, allowed="files of this machine"))
        found = finder.find(uri) if uri else None
        if found is None:
            raise ModelError(describe(f"<include> of {uri[:200]!r}, which is not found", where=where, fix=SEARCH_FIX))
        file = _model_file(found, where) if found.is_dir() else found
        if not is_inside(file, finder.folders):
            raise ModelError(
                describe(f"<include> of {uri[:200]!r}, outside of its folders", where=where, fix=SEARCH_FIX)
            )
        file = file.resolve()
        root = self.parsed.get(file)
        if root is None:
            root = self.parsed[file] = parse_xml(file)
        version = _version(root, file.name)
        model = root.find("model")
        if model is None:
            raise ModelError(describe(f"{file.name} has no model", where=where, allowed="<sdf> with a <model>"))
        return model, version, Finder(file)


def _model_file(folder: Path, where: str) -> Path:
    """Return the file of a model of Gazebo, which model.config in its folder names: that of the latest version."""
    config = folder / "model.config"
    if not config.is_file():
        raise ModelError(describe(f"{folder.name} is a folder without model.config", where=where))
    listed = [each for each in parse_xml(config).iter("sdf") if (each.text or "").strip()]
    if not listed:
        raise ModelError(describe(f"model.config of {folder.name} names no <sdf>", where=where))
    versions = [tuple(map(int, re.findall("[0-9]{1,4}", each.get("version", "")))) for each in listed]
    best = max(range(len(listed)), key=lambda k: versions[k])
    file = folder / (listed[best].text or "").strip()
    if not file.is_file():
        raise ModelError(describe(f"{file.name}, which model.config of {folder.name} names, is missing", where=where))
    return file
