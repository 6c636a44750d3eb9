"""The data of a page: robots with their surfaces, motions, sliders and the view."""

import base64
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.base.progress import Bar
from torsor.base.scenes import Thing
from torsor.compiler.js import export_js
from torsor.mechanism.loops import Loop
from torsor.mechanism.mechanism import FORCES, force_units, units
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.simulation.timeline import Batch, batch, floating_base
from torsor.spatial import to_quaternion
from torsor.view.pages.charts import chart_data
from torsor.view.scene import Scene, Timeline, Triangles, home, palette, timeline, upwards
from torsor.view.scene.batches import ACCURACY, arranged, extent, ground_grid
from torsor.view.scene.bodies import Beam, ellipsoid_solid
from torsor.view.scene.curves import driven_joints
from torsor.view.scene.detail import detailed, drawn, level, within
from torsor.view.scene.scene import PERSON_OPACITY
from torsor.view.scene.sliders import SLIDER_UNITS, sliders

ALIGNMENT = 4  # bytes: typed arrays of JavaScript start at multiples of the size of their numbers


class Numbers:
    """A growing block of bytes that stores equal arrays only once."""

    def __init__(self) -> None:
        self._block = bytearray()
        self._known: dict[tuple[str, bytes], int] = {}

    def add(self, values: ArrayLike, type_: str = "f4") -> dict[str, Any]:
        """Store an array as float32 ("f4") or unsigned integers ("u2", "u4"), and return the reference to it."""
        array = np.ascontiguousarray(np.asarray(values), dtype=f"<{type_}")
        key = type_, array.tobytes()
        if key not in self._known:
            self._block += bytes(-len(self._block) % ALIGNMENT)
            self._known[key] = len(self._block)
            self._block += key[1]
        return {"type": type_, "at": self._known[key], "shape": list(array.shape)}

    def base64(self) -> str:
        """Return the block as Base64 text."""
        return base64.b64encode(self._block).decode()

    def read(self, reference: dict[str, Any]) -> NDArray[Any]:
        """Return a stored array."""
        shape = reference["shape"]
        count = int(np.prod(shape))
        return np.frombuffer(self._block, f"<{reference['type']}", count, reference["at"]).reshape(shape).copy()


MAX_SAMPLES = 2000  # samples of a motion


def packed(poses: Array) -> Array:
    """Return poses (..., 4, 4) as positions and quaternions x, y, z, w (..., 7)."""
    return np.concatenate([poses[..., :3, 3], to_quaternion(poses[..., :3, :3])], axis=-1)


def motion(line: Timeline, scene: Scene, numbers: Numbers) -> dict[str, Any]:
    """Return the data of a motion; ``line`` contains the samples to store."""
    robot, tree = line.robot, scene.tree
    poses = scene.poses(line.q)[:, 1:]
    content: dict[str, Any] = {"title": line.title, "times": numbers.add(line.times)}
    content |= {"poses": numbers.add(packed(poses)), "com": numbers.add(scene.center_of_mass(line.q))}
    energies = tree.kinetic_energy(line.q, line.v), tree.potential_energy(line.q)
    content["energy"] = numbers.add(np.stack(energies, axis=-1))
    if line.ahead is not None:
        content["ahead"] = line.ahead.tolist()
    if line.stride:
        content["stride"] = line.stride
    light = robot.to(device="casadi")  # faster than compiling for few samples
    if robot.loops:
        content["closure"] = numbers.add(np.abs(light.closed.error(line.q)).max(axis=-1, initial=0.0))
    if line.tau is not None:
        drives = _drives(line, numbers)
        content |= {"drives": drives} if drives["names"] else {}
        reactions = replace(line, robot=light).reactions
        links = [k for k, link in enumerate(robot.links) if link.mass > 0]
        joints = [robot.joints[k].frame[:3, 3].round(9).tolist() for k in links]  # in the axes of their links
        content["reactionsAt"] = [{"link": k, "place": place} for k, place in zip(links, joints, strict=True)]
        content["reactions"] = numbers.add(_in_base_axes(reactions[:, links], poses[:, links], content["reactionsAt"]))
    if line.markers is not None:
        content["markers"] = numbers.add(line.markers)
    if line.ground is not None:
        content |= {"ground": numbers.add(line.ground), "person": line.is_person}
    elif line.external is not None:
        links = [k for k in range(len(robot.links)) if np.abs(line.external[:, k]).max() > 0]
        places = content["externalAt"] = [{"link": k, "place": [0.0, 0.0, 0.0]} for k in links]
        content["external"] = numbers.add(_in_base_axes(line.external[:, links], poses[:, links], places))
    return content


MAX_NUMBERS = 6_500_000  # positions of a batch: 13 MB
LEVELS = 2**16 - 1  # of positions of two bytes


def batch_motion(motions: Batch, scene: Scene, numbers: Numbers, offsets: Array) -> dict[str, Any]:
    """Return the data of a batch; ``motions`` contains the samples to store, and ``offsets`` (N, 3) where they are.

    Positions are rounded to steps of 1/65535 of the range of a coordinate in a motion: ``q`` (T, N, nq) contains the
    numbers of steps above ``low`` (N, nq). The signs of quaternions, which begin at ``turns``, are made continuous.
    """
    q, robot = motions.q.copy(), scene.robot
    pairs = zip(robot.joints, robot.coordinates, strict=True)
    turns = [slot.q.stop - 4 for joint, slot in pairs if joint.nq != joint.nv and not joint.follows]
    for k in turns:
        flips = (q[:, 1:, k : k + 4] * q[:, :-1, k : k + 4]).sum(axis=-1) < 0
        q[:, 1:, k : k + 4] *= np.cumprod(np.where(flips, -1.0, 1.0), axis=1)[..., None]
    low, high = (ends.astype("f4").astype(float) for ends in (q.min(axis=1), q.max(axis=1)))
    step = ((high - low) / LEVELS).astype("f4").astype(float)
    codes = np.clip(((q - low[:, None]) / np.where(step > 0, step, 1.0)[:, None]).round(), 0, LEVELS)
    com = scene.center_of_mass(motions.q).mean(axis=0)
    return {
        "title": motions.title,
        "times": numbers.add(motions.times),
        "q": numbers.add(codes.transpose(1, 0, 2), "u2"),
        "low": numbers.add(low),
        "step": numbers.add(step),
        "turns": turns,
        "offsets": numbers.add(offsets),
        "com": numbers.add(com),
    }


def _drives(line: Timeline, numbers: Numbers) -> dict[str, Any]:
    units, (scale, per) = force_units(line.robot), line.force_scale
    tau, limits = scale * np.asarray(line.known_tau), scale * line.limits
    driven, joints = line.drives.tolist(), driven_joints(line.robot)
    drives: dict[str, Any] = {
        "names": [line.driven[k] for k in driven],
        "charted": [joints.get(line.driven[k], line.driven[k]) for k in driven],
        "units": [units[line.driven[k]] + per for k in driven],
        "limits": [float(limits[k]) if np.isfinite(limits[k]) else None for k in driven],
        "tau": numbers.add(tau[:, driven]),
        "peak": float(np.abs(np.where(np.isfinite(tau), tau, 0.0)[:, driven]).max(initial=0.0)),
    }
    if line.gaps:
        drives["gaps"] = line.gaps
    return drives


def _in_base_axes(wrenches: Array, poses: Array, places: list[dict[str, Any]]) -> Array:
    """Return wrenches (T, n, 6) from link frames as moments about ``places`` and forces, in base axes."""
    arms = np.array([place["place"] for place in places]).reshape(-1, 3)
    force = wrenches[..., 3:]
    both = np.stack([wrenches[..., :3] - np.cross(arms, force), force], axis=-2)
    return np.asarray(np.einsum("tnij,tnkj->tnki", poses[..., :3, :3], both).reshape(*wrenches.shape[:-1], 6))


SHAPE_TOLERANCE = 1e-6  # largest distance between a surface and the mapped shape, in sizes of it
INERTIA_COLOR: tuple[float, float, float, float] = (0.86, 0.55, 0.2, 0.5)  # of inertia ellipsoids
MAX_SOLID_TRIANGLES = 8000  # without a GPU a browser draws some 300,000 triangles per second
MAX_TRIANGLES = 1_500_000  # of all copies of a robot
MAX_SHORT_VERTICES = 2**16  # largest number of vertices with indices of two bytes


class Shapes:
    """Shapes with vertices and faces. An affine image of a shape is stored as the affine map."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.listed: list[dict[str, Any]] = []
        self._alike: dict[bytes, list[tuple[int, Array]]] = {}

    def add(self, surface: Triangles) -> dict[str, Any]:
        """Return the index of the shape of a surface and, unless it is the shape itself, the map (12 numbers)."""
        alike = self._alike.setdefault(surface.faces.astype("<i8").tobytes(), [])
        for number, source in alike:
            map_ = _affine(source, surface.vertices)
            if map_ is not None:
                return {"shape": number, "map": [float(f"{value:.9g}") for value in map_.T.ravel()]}
        alike.append((len(self.listed), np.column_stack([surface.vertices, np.ones(len(surface.vertices))])))
        kind = "u2" if len(surface.vertices) <= MAX_SHORT_VERTICES else "u4"
        vertices, faces = self.numbers.add(surface.vertices), self.numbers.add(surface.faces.ravel(), kind)
        self.listed.append({"vertices": vertices, "faces": faces})
        return {"shape": len(self.listed) - 1}


def _affine(source: Array, vertices: Array) -> Array | None:
    """Return the affine map (4 x 3) from homogeneous vertices (n, 4) to others (n, 3), or None."""
    if len(source) != len(vertices):
        return None
    map_ = np.linalg.lstsq(source, vertices, rcond=None)[0]
    size = float(np.ptp(vertices, axis=0).max())
    return np.asarray(map_) if np.abs(source @ map_ - vertices).max() <= SHAPE_TOLERANCE * size else None


def surfaces(
    scene: Scene, numbers: Numbers, triangles: int, opacity: float = 1.0, copies: int = 1
) -> tuple[dict[str, Any], str]:
    """Return the shapes and surfaces of a robot, and a note if its meshes were simplified.

    Meshes have at most about ``triangles`` triangles in total, and fewer if there are many ``copies`` of the robot.
    ``opacity`` applies to the shapes of links.
    """
    triangles, solids = (min(limit, MAX_TRIANGLES // copies) for limit in (triangles, MAX_SOLID_TRIANGLES))
    visuals = [part for part in scene.shown if not part.solids]
    before = sum(len(part.surface.faces) for part in visuals)
    reduced = within([part.surface for part in visuals], triangles)
    after = sum(len(surface.faces) for surface in reduced)
    new = {id(part): surface for part, surface in zip(visuals, reduced, strict=True)}
    shapes, shown = Shapes(numbers), []
    corners = level(scene, solids)
    for part in scene.shown:
        surface = detailed(part, corners) if part.solids else new[id(part)]
        if len(surface.faces):
            fades = part.kind == "visual" and part.link < len(scene.robot.links)
            *color, alpha = (round(value, 4) for value in part.color)
            color.append(opacity * alpha if fades else alpha)
            middle = (surface.vertices.min(axis=0) + surface.vertices.max(axis=0)) / 2
            place = {"link": part.link, "kind": part.kind, "color": color, "middle": middle.round(5).tolist()}
            shown.append(place | {"name": part.name} | shapes.add(surface))
    for index, link in enumerate(scene.robot.links):
        body = ellipsoid_solid(link)
        if body is not None:
            place = {"link": index, "kind": "inertia", "color": list(INERTIA_COLOR), "name": link.name}
            shown.append(place | {"middle": link.com.round(5).tolist()} | shapes.add(drawn(body, corners[0])))
    note = f"Meshes of {scene.robot.name} are simplified from {before:,} to {after:,} triangles."
    return {"shapes": shapes.listed, "shown": shown}, note if after < before else ""


def beam_data(scene: Scene, numbers: Numbers) -> list[dict[str, Any]]:
    """Return the data of flexible links: points, mode shapes, and the index of the first rod."""
    data, place = [], len(scene.robot.links)
    for beam in scene.movers:
        if isinstance(beam, Beam):
            parts = {name: numbers.add(getattr(beam, name).ravel()) for name in ("points", "shapes", "second")}
            at = list(range(beam.at.start, beam.at.stop))
            data.append({"link": beam.link, "place": place, "at": at, "pairs": beam.pairs.ravel().tolist()} | parts)
        place += beam.count
    return data


TREE_FUNCTIONS = ("poses", "center_of_mass", "potential_energy")
LOOP_FUNCTIONS = ("integrate", "closure_error", "closure_jacobian")
NO_DRIVES_NOTE = (
    "The robot has closed loops and no active coordinates, so it is shown in one posture. "
    'Use robot.with_active(["..."]) to get sliders.'
)


def controls(robot: Robot, start: Array, size: float) -> tuple[dict[str, Any], str]:
    """Return the sliders of a robot and the JavaScript module with its kinematics.

    ``start`` (nq,) closes the loops of the robot. With closed loops, the active coordinates have sliders, which store
    the index of the coordinate in v, and the other coordinates (``passive``) follow. Drives hold the other robots; a
    floating ``base`` is held by no drive.
    """
    names, rates = robot.coordinate_names, units(robot)[1]
    motors = {slot.v.start for slot in robot.motor_coordinates.values()}
    listed = []
    for slide in sliders(robot, start, size):
        unit, factor = SLIDER_UNITS[slide.unit]
        index = names.index(slide.name) if robot.loops else None
        listed.append(asdict(slide) | {"unit": unit, "factor": factor, "index": index})
    content: dict[str, Any] = {
        "sliders": listed,
        "start": start.tolist(),
        "postures": [{"name": name, "q": q.tolist()} for name, q in robot.postures.items()] if not robot.loops else [],
        "note": NO_DRIVES_NOTE if robot.loops and not listed else "",
    }
    if robot.loops:
        moved = {slider["index"] for slider in listed}
        content["passive"] = [k for k in range(robot.nv) if k not in moved | motors]
        content["scales"] = [1.0 if unit == "rad" else size for unit in rates]
    else:
        pairs = list(zip(robot.joints, robot.coordinates, strict=True))
        bends = {k for joint, slot in pairs if joint.flexible is not None for k in range(slot.v.start, slot.v.stop)}
        base = floating_base(robot)
        held = [k for k in range(len(base), robot.nv) if k not in motors and k not in bends]
        strength = robot.effort_limit.copy()
        for joint, slot in pairs:
            if joint.name in robot.motor_coordinates:  # the motor of an elastic joint carries its link
                strength[slot.v] = robot.effort_limit[robot.motor_coordinates[joint.name].v]
        limits = [float(limit) if np.isfinite(limit) else None for limit in strength[held]]
        forces = [FORCES[rates[k]] for k in held]
        drives = {"names": [names[k] for k in held], "units": forces, "limits": limits, "at": held}
        content |= {"drives": drives | {"base": bool(base)}} if held else {}
    functions = [*TREE_FUNCTIONS, *(LOOP_FUNCTIONS if robot.loops else ["gravity_force"])]
    return content, _module(robot, functions) if listed else ""


def _module(robot: Robot, names: Sequence[str]) -> str:
    """Return the robot functions as an ES module."""
    with tempfile.TemporaryDirectory() as folder:
        functions = {name: robot.function(name, loops="open" if robot.loops else None) for name in names}
        return export_js(functions, folder)[0].read_text(encoding="utf-8")


ALLOWED = "robots, trajectories, rollouts, motions, strides, measured gaits, identifications; a list or dict of these"
MAX_TRAILS = 8  # trails that are drawn by default
BOX_POSTURES = 24  # postures from which the size of the picture is computed
GROUND_TOLERANCE = 0.015  # largest depth below the origin, in sizes, with the ground at the origin
LEVEL_TOLERANCE = 1e-9  # of the cosine of the angle between a floor and the horizontal
FOLLOW_DISTANCE = 0.3  # distance of the centre of mass, in sizes, from which on the camera follows it
HEIGHT_RATIO = 0.48  # least size of the picture, in heights of what is shown
ARROW_QUANTILE = 0.95  # quantile of forces that has the arrow length below
BATCH_SIZE, BATCH_ELEVATION = 0.75, 0.45  # size of the picture of a batch, relative to others; its camera angle (rad)
NEARLY_LEVEL = 0.25  # range of heights of a terrain, in sizes, up to which shadows fall on a plane at their median
MAX_ARROW = 0.4  # length of a long arrow, in sizes


class Content(NamedTuple):
    """Page data: a dict for JSON, the numbers it refers to, and the robot modules by actor."""

    data: dict[str, Any]
    numbers: Numbers
    modules: dict[int, str]


def content(
    what: Any,
    q: ArrayLike | None,
    rate: float,
    triangles: int,
    trails: Sequence[str] | None,
    meshes: bool,
    bar: Bar,
    reference: Any = None,
    spacing: float | None = None,
) -> Content:
    """Return the data of a page. ``torsor.view.page`` describes the arguments, and ``bar`` shows the progress."""
    numbers, modules, notes = Numbers(), dict[int, str](), list[str]()
    robots, actors = list[dict[str, Any]](), list[dict[str, Any]]()
    scenes = dict[tuple[int, tuple[Thing, ...], int], int]()
    kept, boxes, start_time = list[tuple[Robot, Scene]](), list[tuple[Array, Array]](), 0.0
    floor: Array | None = None
    terrain: ca.Function | None = None
    lines = list[tuple[int, Timeline]]()
    subjects = _listed(what)
    for count, (title, subject) in enumerate([*subjects, *([] if reference is None else [("reference", reference)])]):
        is_reference = count == len(subjects)
        played: Timeline | Batch | None = None
        if not isinstance(subject, Robot | ParallelRobot):
            played = batch(subject, title) or timeline(subject, title)
            if isinstance(played, Timeline):
                lines.append((count, played))  # with all samples
            wanted = np.ceil((played.times[-1] - played.times[0]) * rate) + 1
            most = MAX_SAMPLES if isinstance(played, Timeline) else max(2, MAX_NUMBERS // played.q[:, 0].size)
            if isinstance(played, Batch) and most < min(wanted, len(played.times)):
                notes.append(f"The page contains {most} of {len(played.times):,} samples of each motion.")
            played = played.every(int(np.clip(wanted, 2, min(most, MAX_SAMPLES))))
        source = subject if played is None else played.robot
        things = played.things if isinstance(played, Timeline) else ()
        copies = len(played.q) if isinstance(played, Batch) else 1
        key = id(source), things, copies
        if key not in scenes:
            measured = isinstance(played, Timeline) and played.markers is not None

            def progress(part: float, start: int = count) -> None:  # while the surfaces are read
                bar.at(start + 0.5 * part)

            scene = Scene.of(source, meshes, things, progress, skeleton=measured)
            bar.at(count + 0.5)
            opacity = PERSON_OPACITY if measured else 1.0
            surface, note = surfaces(scene, numbers, triangles, opacity, copies)
            scenes[key] = len(robots)
            about = _robot(scene, () if isinstance(played, Batch) else trails)
            robots.append(about | surface | {"beams": beam_data(scene, numbers)})
            notes += [note] if note else []
            kept.append((source, scene))
        number = scenes[key]
        scene = kept[number][1]
        bar.at(count + 0.75)
        if played is None:
            start = home(subject, q)
            actor, module = controls(scene.robot, start, scene.size)
            com, potential = scene.center_of_mass(start), float(scene.tree.potential_energy(start))
            actor |= {"title": title or scene.robot.name, "com": com.tolist(), "potential": potential}
            actor["poses"] = numbers.add(packed(scene.poses(start)[1:]))
            if module:
                modules[len(actors)] = module
            boxes.append(scene.corners(start))
        elif isinstance(played, Batch):
            played, offsets = arranged(played, scene, spacing)
            notes += played.notes
            actor = batch_motion(played, scene, numbers, offsets)
            modules[len(actors)] = _module(scene.robot, ["poses"])
            boxes.append(extent(played, scene, offsets))
        else:
            actor = motion(played, scene, numbers)
            boxes.append(scene.corners(played.every(BOX_POSTURES).q))
            start_time = max(start_time, played.start)
        if played is not None:
            floor = played.floor if floor is None else floor
            terrain = played.terrain if terrain is None else terrain
        actors.append(actor | {"robot": number} | ({"reference": True} if is_reference else {}))
    view = _view([scene for _, scene in kept], boxes, actors, numbers)
    if floor is not None and floor[:3] @ view["up"] > 1 - LEVEL_TOLERANCE:  # slopes are not drawn
        view["ground"] = float(floor[3])
    if any("low" in actor for actor in actors):
        view |= {"size": BATCH_SIZE * view["size"], "elevation": BATCH_ELEVATION}
    if terrain is not None:
        view |= _terrain(terrain, boxes, kept[0][1].size, numbers)
    data = {"robots": robots, "actors": actors, "charts": chart_data(lines, actors, numbers.add), "notes": notes}
    return Content({**data, "start": start_time, **view}, numbers, modules)


def _terrain(
    height: ca.Function, boxes: Sequence[tuple[Array, Array]], size: float, numbers: Numbers
) -> dict[str, Any]:
    """Return the lines and heights of a terrain around boxes, and a level for its shadows, if it is nearly level."""
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    grid = ground_grid(height, low - size, high + size, ACCURACY * size)
    lines = {name: numbers.add(values) for name, values in zip("xyz", grid, strict=True)}
    level, shadows = float(np.median(grid[2])), bool(np.ptp(grid[2]) < NEARLY_LEVEL * size)
    return {"terrain": lines, "ground": level, "shadows": shadows}


def _listed(what: Any) -> list[tuple[str, Any]]:
    if isinstance(what, Mapping):
        subjects = [(str(title), subject) for title, subject in what.items()]
    elif isinstance(what, list | tuple) and not isinstance(what, Timeline):
        subjects = [("", subject) for subject in what]
    else:
        subjects = [("", what)]
    if not subjects:
        raise ModelError("there is nothing to show", where="page", allowed=ALLOWED)
    return subjects


def _robot(scene: Scene, trails: Sequence[str] | None) -> dict[str, Any]:
    robot = scene.robot
    ends = [(frame, robot.place(frame.link).link) for frame in robot.frames]
    frames = [{"name": frame.name, "link": link, "pose": packed(frame.pose).tolist()} for frame, link in ends]
    named = [(k, link) for k, link in enumerate(robot.links) if link.mass > 0] or list(enumerate(robot.links))
    labels = [{"link": k, "place": link.com.round(6).tolist(), "name": link.name} for k, link in named]
    places = _ends(robot) if trails is None else [_place(robot, name) for name in trails]
    for place in places:
        place["color"] = [round(value, 4) for value in palette(robot, place["link"])[:3]]
    about = {"name": robot.name, "size": scene.size, "mass": robot.mass, "links": list(robot.link_names)}
    return about | {"places": scene.places, "frames": frames, "labels": labels, "trails": places}


def _place(robot: Robot, name: str) -> dict[str, Any]:
    at = robot.place(name)
    return {"name": name, "link": at.link, "place": at.pose[:3, 3].round(9).tolist()}


def _ends(robot: Robot) -> list[dict[str, Any]]:
    """Return the ends of a tree: a frame of each terminal link, or its far end."""
    ends = [robot.place(end).link for loop in robot.loops if isinstance(loop, Loop) for end in (loop.a, loop.b)]
    leaves = [k for k in range(len(robot.links)) if k not in robot.parents and robot.joints[k].type != "fixed"]
    if ends and leaves:  # with closed loops, the free ends or the platform, where most loops meet
        free = [k for k in leaves if k not in ends]
        leaves = free or [max(leaves, key=ends.count)]
    places = []
    for k in leaves[:MAX_TRAILS]:
        link = robot.links[k]
        frame = next((frame.name for frame in robot.frames if frame.link == link.name), None)
        if frame is not None or link.visuals:
            places.append(_place(robot, frame or link.name))
        else:
            start = robot.joints[k].frame[:3, 3]
            places.append({"name": link.name, "link": k, "place": (2 * link.com - start).round(9).tolist()})
    return places


def _view(
    scenes: Sequence[Scene], boxes: Sequence[tuple[Array, Array]], actors: list[dict[str, Any]], numbers: Numbers
) -> dict[str, Any]:
    """Return the view: upward direction, ground, centre, size, arrow scales, and visible layers."""
    up, size = upwards(scenes[0].robot), max(scene.size for scene in scenes)
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    ends = np.array(np.meshgrid(*np.stack([low, high], axis=1))).reshape(3, -1)
    bottom = float((up @ ends).min())
    way = _way(actors, numbers, scenes, up)
    travels = float(np.linalg.norm(way, axis=1).max(initial=0.0)) > FOLLOW_DISTANCE * size
    if travels:  # the picture is as large as the robot, not as its path
        low, high = low - way.min(axis=0), high - way.max(axis=0)
    same = len({scene.robot.link_names for scene in scenes}) == 1  # also true for one robot with two loads
    width = float(np.linalg.norm(high - low)) / 2 or size
    kinds = [(actor, kind) for actor in actors for kind in ("reactions", "external", "ground") if kind in actor]
    forces = [numbers.read(actor[kind])[..., 3:] for actor, kind in kinds]
    moments = [numbers.read(actor[kind])[..., :3] for actor, kind in kinds if kind != "ground"]
    return {
        "up": up.tolist(),
        "ground": 0.0 if bottom > -GROUND_TOLERANCE * size else bottom,
        "middle": ((low + high) / 2).tolist(),
        "size": max(width * 0.8, float(np.abs(up) @ (high - low)) * HEIGHT_RATIO),
        "unit": width * 1.2,
        "apart": 0.0 if same else 1.0,
        "follow": travels,
        "forceScale": MAX_ARROW * size / _largest(forces),
        "momentScale": MAX_ARROW * size / _largest(moments),
        "layers": {"com": False, "trails": len(actors) > 1},
    }


def _largest(vectors: Sequence[Array]) -> float:
    """Return a length that only short peaks of the vectors (..., 3) exceed, or 1 if there are no vectors."""
    lengths = [np.linalg.norm(values.astype(float), axis=-1) for values in vectors]
    finite = [length[np.isfinite(length)] for length in lengths]
    return float(max((np.quantile(length, ARROW_QUANTILE) for length in finite if length.size), default=0.0)) or 1.0


def _way(actors: Sequence[dict[str, Any]], numbers: Numbers, scenes: Sequence[Scene], up: Array) -> Array:
    """Return the horizontal path (T, 3) of the first motion's centre of mass, if all bodies follow it."""
    played = next((actor for actor in actors if "times" in actor and "poses" in actor), None)
    if played is None:
        return np.zeros((0, 3))
    com, links = (numbers.read(played[name])[..., :3].astype(float) for name in ("com", "poses"))
    along = np.eye(3) - np.outer(up, up)
    bodies = [k for k, link in enumerate(scenes[played["robot"]].robot.links) if link.mass > 0]
    stays = np.linalg.norm((links - links[0])[:, bodies] @ along, axis=-1).max(axis=0).min(initial=np.inf)
    way = np.asarray((com - com[0]) @ along)
    return way if stays > np.linalg.norm(way, axis=1).max() / 2 else np.zeros((0, 3))
