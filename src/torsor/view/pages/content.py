"""What a page shows, as data: robots with their surfaces, motions, robots with sliders, and the view of all of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array
from torsor.base.errors import ModelError
from torsor.base.scenes import Thing
from torsor.mechanism.loops import Loop
from torsor.robot.parallel import ParallelRobot
from torsor.robot.robot import Robot
from torsor.view.pages.motions import motion, packed, shown_samples
from torsor.view.pages.numbers import Numbers
from torsor.view.pages.shapes import beam_data, surfaces
from torsor.view.pages.sliders import controls
from torsor.view.scene import Scene, Timeline, home, palette, timeline, upwards

ALLOWED = "robots, trajectories, motions, strides and identifications; one, a list of them, or a dict with their titles"
LEAVES = 8  # ends of a tree whose trails are drawn
ENOUGH = 24  # postures that the size of the picture is computed from
SUNK = 0.05  # how far a robot may reach below the origin, in sizes, before the ground is drawn lower
TRAVELS = 0.3  # from this way of the centre of mass on, in sizes, the camera follows it
TALL = 0.48  # size of the picture of a thin robot that stands, in heights: seen from above, its upper end is near
USUAL = 0.95  # fraction of all arrows that are no longer than the length below
ARROW = 0.4  # length of the longest arrow, in sizes


class Content(NamedTuple):
    """The data of a page: a dict for JSON, the numbers that it refers to, and the modules of robots by actor."""

    data: dict[str, Any]
    numbers: Numbers
    modules: dict[int, str]


def content(
    what: Any, q: ArrayLike | None, rate: float, triangles: int, trails: Sequence[str] | None, meshes: bool
) -> Content:
    """Return the data of a page; see ``torsor.view.page`` for the arguments."""
    numbers, modules, notes = Numbers(), dict[int, str](), list[str]()
    scenes, robots, actors = dict[tuple[int, tuple[Thing, ...]], int](), list[dict[str, Any]](), list[dict[str, Any]]()
    kept, boxes = list[tuple[Robot, Scene]](), list[tuple[Array, Array]]()
    for title, each in _listed(what):
        played = None if isinstance(each, Robot | ParallelRobot) else shown_samples(timeline(each, title), rate)
        source, things = (each, ()) if played is None else (played.robot, played.things)
        if (id(source), things) not in scenes:
            scene = Scene.of(source, meshes, things)
            surface, note = surfaces(scene, numbers, triangles)
            scenes[id(source), things] = len(robots)
            robots.append(_robot(scene, trails) | surface | {"beams": beam_data(scene, numbers)})
            notes += [note] if note else []
            kept.append((source, scene))
        number = scenes[id(source), things]
        scene = kept[number][1]
        if played is None:
            start = home(each, q)
            actor, module = controls(scene.robot, start, scene.size)
            com, potential = scene.center_of_mass(start), float(scene.tree.potential_energy(start))
            actor |= {"title": title or scene.robot.name, "com": com.tolist(), "potential": potential}
            actor["poses"] = numbers.add(packed(scene.poses(start)[1:]))
            if module:
                modules[len(actors)] = module
            boxes.append(scene.corners(start))
        else:
            actor = motion(played, scene, numbers)
            boxes.append(scene.corners(played.every(ENOUGH).q))
        actors.append(actor | {"robot": number})
    view = _view([scene for _, scene in kept], boxes, actors, numbers)
    return Content({"robots": robots, "actors": actors, "notes": notes, **view}, numbers, modules)


def _listed(what: Any) -> list[tuple[str, Any]]:
    if isinstance(what, Mapping):
        found = [(str(title), each) for title, each in what.items()]
    elif isinstance(what, list | tuple) and not isinstance(what, Timeline):
        found = [("", each) for each in what]
    else:
        found = [("", what)]
    if not found:
        raise ModelError("nothing to show", where="page", allowed=ALLOWED)
    return found


def _robot(scene: Scene, trails: Sequence[str] | None) -> dict[str, Any]:
    robot = scene.robot
    frames = [
        {"name": each.name, "link": robot.place(each.link).link, "pose": packed(each.pose).tolist()}
        for each in robot.frames
    ]
    named = [(k, link) for k, link in enumerate(robot.links) if link.mass > 0] or list(enumerate(robot.links))
    labels = [{"link": k, "place": link.com.round(6).tolist(), "name": link.name} for k, link in named]
    places = _ends(robot) if trails is None else [_place(robot, each) for each in trails]
    for place in places:
        place["color"] = [round(value, 4) for value in palette(robot, place["link"])[:3]]
    return {
        "name": robot.name,
        "size": scene.size,
        "mass": robot.mass,
        "links": list(robot.link_names),
        "places": scene.places,
        "frames": frames,
        "labels": labels,
        "trails": places,
    }


def _place(robot: Robot, name: str) -> dict[str, Any]:
    at = robot.place(name)
    return {"name": name, "link": at.link, "place": at.pose[:3, 3].round(9).tolist()}


def _ends(robot: Robot) -> list[dict[str, Any]]:
    """Return the ends of a tree: a frame of each link that carries no other, or else its far end."""
    ends = [robot.place(end).link for loop in robot.loops if isinstance(loop, Loop) for end in (loop.a, loop.b)]
    leaves = [k for k in range(len(robot.links)) if k not in robot.parents and robot.joints[k].type != "fixed"]
    if ends and leaves:  # of closed loops the free ends, or the link that most loops meet at: the platform
        free = [k for k in leaves if k not in ends]
        leaves = free or [max(leaves, key=ends.count)]
    found = []
    for k in leaves[:LEAVES]:
        link = robot.links[k]
        frame = next((each.name for each in robot.frames if each.link == link.name), None)
        if frame is not None or link.visuals:
            found.append(_place(robot, frame or link.name))
        else:
            start = robot.joints[k].frame[:3, 3]
            found.append({"name": link.name, "link": k, "place": (2 * link.com - start).round(9).tolist()})
    return found


def _view(
    scenes: Sequence[Scene], boxes: Sequence[tuple[Array, Array]], actors: list[dict[str, Any]], numbers: Numbers
) -> dict[str, Any]:
    """Return what the picture shows: direction up, ground, middle and size, scales of arrows, what is on at first."""
    up, size = upwards(scenes[0].robot), max(scene.size for scene in scenes)
    low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
    ends = np.array(np.meshgrid(*np.stack([low, high], axis=1))).reshape(3, -1)
    bottom = float((up @ ends).min())
    way = _way(actors, numbers, scenes, up)
    travels = float(np.linalg.norm(way, axis=1).max(initial=0.0)) > TRAVELS * size
    if travels:  # the picture is as large as the robot, not as its way
        low, high = low - way.min(axis=0), high - way.max(axis=0)
    same = len({scene.robot.link_names for scene in scenes}) == 1  # also one robot with two loads
    width = float(np.linalg.norm(high - low)) / 2 or size
    forces = [
        numbers.read(each[kind])[..., 3:]
        for each in actors
        for kind in ("reactions", "external", "ground")
        if kind in each
    ]
    moments = [
        numbers.read(each[kind])[..., :3] for each in actors for kind in ("reactions", "external") if kind in each
    ]
    return {
        "up": up.tolist(),
        "ground": 0.0 if bottom > -SUNK * size else bottom,
        "middle": ((low + high) / 2).tolist(),
        "size": max(width * 0.8, float(np.abs(up) @ (high - low)) * TALL),
        "unit": width * 1.2,
        "apart": 0.0 if same else 1.0,
        "follow": travels,
        "forceScale": ARROW * size / _largest(forces),
        "momentScale": ARROW * size / _largest(moments),
        "layers": {"com": False, "trails": len(actors) > 1},
    }


def _largest(vectors: Sequence[Array]) -> float:
    """Return a large length of vectors (..., 3), exceeded by some short peaks only, or 1 where there is none."""
    lengths = [np.linalg.norm(each.astype(float), axis=-1) for each in vectors]
    finite = [each[np.isfinite(each)] for each in lengths]
    return float(max((np.quantile(each, USUAL) for each in finite if each.size), default=0.0)) or 1.0


def _way(actors: Sequence[dict[str, Any]], numbers: Numbers, scenes: Sequence[Scene], up: Array) -> Array:
    """Return the way (T, 3) of the first motion's centre of mass along the ground, if all bodies take part."""
    played = next((each for each in actors if "times" in each), None)
    if played is None:
        return np.zeros((0, 3))
    com, links = (numbers.read(played[name])[..., :3].astype(float) for name in ("com", "poses"))
    along = np.eye(3) - np.outer(up, up)
    bodies = [k for k, link in enumerate(scenes[played["robot"]].robot.links) if link.mass > 0]
    stays = np.linalg.norm((links - links[0])[:, bodies] @ along, axis=-1).max(axis=0).min(initial=np.inf)
    way = np.asarray((com - com[0]) @ along)
    return way if stays > np.linalg.norm(way, axis=1).max() / 2 else np.zeros((0, 3))
