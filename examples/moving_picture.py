"""Create the animation of the README: an arm, a walking man and a parallel robot with the forces that move them.

The arm follows a path with the timing that ``motion.retime`` computed; arrows are the forces in its joints. The man
walks at 1.25 m/s, and is shown with the ground reaction forces. The platform is shown with its leg forces. A .png file
shows the walk at five instants of the stride.

python examples/moving_picture.py docs/torsor.gif            # two minutes, half of them for the first walk
python examples/moving_picture.py docs/people/walk.png
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

import torsor
from pages import platform_motion
from torsor import motion
from torsor.formats.meshes.triangles import Triangles, arrow, box
from torsor.human import Stride, walking
from torsor.motion import MotionProblem
from torsor.spatial import about_z, axis_frame, make_pose
from torsor.view.scene import Scene, timeline
from torsor.view.scene.detail import detailed

FINE = 2  # samples of a pixel along each axis
FRAMES, DELAY, STRIDES = 64, 60, 4  # pictures, milliseconds between them, strides in one round
COLOURS = 255
SUN = np.array([-0.35, -0.5, 0.8]) / np.linalg.norm([-0.35, -0.5, 0.8])
FLOOR, SHADOW = np.array([1.0, 1.0, 1.0]), np.array([0.87, 0.88, 0.90])
BLUE, GREEN, STONE = (0.10, 0.42, 0.85), (0.12, 0.74, 0.30), (0.80, 0.82, 0.84)
PLACES = -1.65, 0.05, 1.6  # m, along x of the world
INSTANTS = 0.0, 0.2, 0.4, 0.6, 0.8  # parts of the stride
SPACING, YAW = 1.25, -0.3  # m between the men of the strip, and by how much they turn to the eye, in rad
LABELS = "An arm with its joint forces", "A predicted walk with ground forces", "A parallel robot with its leg forces"
WAYPOINTS = [
    [0.0, -1.5, 1.7, -1.2, -1.4, 0.0],
    [1.1, -0.9, 1.2, -1.6, -1.2, 0.8],
    [0.2, -1.9, 1.9, -0.6, -1.6, 0.0],
    [-1.0, -1.0, 1.4, -1.5, -1.4, -0.8],
    [0.0, -1.5, 1.7, -1.2, -1.4, 0.0],
]
PEDESTAL = 0.3  # m
ROUND = 16, 16  # corners of circles
NEAR = 0.4  # m by which arrows are drawn in front of what hides them


class View(NamedTuple):
    """A picture size (pixels), and the camera: eye and target (m) in world axes, and vertical field of view (rad)."""

    width: int
    height: int
    eye: np.ndarray
    target: np.ndarray
    fov: float


TOGETHER = View(900, 400, np.array([0.0, -7.2, 1.75]), np.array([0.0, 0.0, 0.86]), 0.31)
STRIP = View(1100, 380, np.array([0.0, -28.0, 3.6]), np.array([0.0, 0.0, 0.83]), 0.078)  # from far: all men look alike


class Body(NamedTuple):
    """A surface in world axes: triangles (n, 3, 3), normals (n, 3, 3) of their corners, and one colour (3,).

    The surface is drawn in front of other surfaces that are nearer by up to ``near`` (m).
    """

    corners: np.ndarray
    normals: np.ndarray
    colour: np.ndarray
    near: float = 0.0


def body(surface: Triangles, pose: np.ndarray, colour: tuple[float, ...]) -> Body:
    """Return a surface moved by a pose (4 x 4); corners that faces share get the mean of the face normals."""
    points = surface.vertices @ pose[:3, :3].T + pose[:3, 3]
    corners = points[surface.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, surface.faces[:, k], across)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return Body(corners, normals[surface.faces], np.array(colour[:3]))


def arrows(starts: np.ndarray, vectors: np.ndarray, colour: tuple[float, ...]) -> list[Body]:
    """Return arrows (n, 3) from points (n, 3), in m; short ones and NaN are omitted."""
    made = []
    for start, vector in zip(starts, vectors, strict=True):
        length = float(np.linalg.norm(vector))
        if length > 0.03:
            shape = arrow(length, min(0.016, 0.1 * length))
            made.append(body(shape, make_pose(axis_frame(vector), start), colour)._replace(near=NEAR))
    return made


def placed(place: list[float], scale: float) -> np.ndarray:
    """Return the pose (4 x 4) of a base that is drawn larger or smaller than its actual size."""
    return make_pose(p=place) @ np.diag([scale, scale, scale, 1.0])


class Picture:
    """A picture with a depth for each sample."""

    def __init__(self, view: View) -> None:
        self.view, self.shape = view, (view.height * FINE, view.width * FINE)
        self.pixels, self.depths = np.tile(FLOOR, (self.shape[0] * self.shape[1], 1)), np.full(np.prod(self.shape), 1e9)
        forward = (view.target - view.eye) / np.linalg.norm(view.target - view.eye)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        self.axes = np.stack([right, np.cross(forward, right), forward])  # right, down, away
        self.scale = self.shape[0] / 2 / np.tan(view.fov / 2)

    def draw(self, bodies: list[Body]) -> None:
        """Draw shadows on the floor, then the bodies."""
        corners, normals = (np.concatenate([part[k] for part in bodies]) for k in range(2))
        colours = np.concatenate([np.broadcast_to(part.colour, part.corners.shape) for part in bodies])
        fallen = corners - corners[..., 2:] / SUN[2] * SUN
        near = np.concatenate([np.full(len(part.corners), part.near) for part in bodies])
        self._fill(fallen, np.broadcast_to(SHADOW, fallen.shape), np.zeros(len(near)), both=True)
        light = 0.52 + 0.5 * np.clip(normals @ SUN, 0, 1) + 0.06 * normals[..., 2]
        self._fill(corners, np.clip(light[..., None] * colours, 0, 1), near)

    def _fill(self, corners: np.ndarray, colours: np.ndarray, near: np.ndarray, both: bool = False) -> None:
        """Draw triangles (n, 3, 3) with colours (n, 3, 3) of their corners, all of similar size at once."""
        seen = (corners - self.view.eye) @ self.axes.T
        flat = self.scale * seen[..., :2] / seen[..., 2:] + np.array(self.shape[::-1]) / 2
        ab, ac = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
        area = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
        low, high = np.ceil(flat.min(axis=1)).astype(int), np.floor(flat.max(axis=1)).astype(int)
        kept = (np.abs(area) > 1e-9 if both else area < -1e-9) & (high >= low).all(axis=1)
        sizes = 2 ** np.ceil(np.log2(high - low + 1, where=high >= low, out=np.zeros(low.shape))).astype(int)
        for size in np.unique(sizes[kept], axis=0):
            n = np.flatnonzero(kept & (sizes == size).all(axis=1))
            grid = np.stack(np.meshgrid(*(np.arange(each) for each in size)), axis=-1).reshape(-1, 2)
            place = low[n, None] + grid
            x, y = np.moveaxis(place - flat[n, None, 0], -1, 0)
            v = (x * ac[n, None, 1] - y * ac[n, None, 0]) / area[n, None]
            w = (y * ab[n, None, 0] - x * ab[n, None, 1]) / area[n, None]
            within = (v >= 0) & (w >= 0) & (v + w <= 1) & ((place >= 0) & (place < self.shape[::-1])).all(axis=-1)
            which, place = n[np.nonzero(within)[0]], place[within]
            weights = np.stack([1 - v[within] - w[within], v[within], w[within]], axis=-1)
            depth = (weights * seen[which, :, 2]).sum(axis=1) - near[which]
            pixel = place[:, 1] * self.shape[1] + place[:, 0]
            nearer = depth < self.depths[pixel]
            order = np.flatnonzero(nearer)[np.argsort(-depth[nearer], kind="stable")]  # the nearest is written last
            self.depths[pixel[order]] = depth[order]
            self.pixels[pixel[order]] = np.einsum("sk,skc->sc", weights[order], colours[which[order]])

    def image(self, labels: dict[float, str], size: int) -> Image.Image:
        """Return the picture, with labels by position along the world x axis; ``size`` is the font size (pixels)."""
        values = self.pixels.reshape(self.view.height, FINE, self.view.width, FINE, 3).mean(axis=(1, 3))
        image = Image.fromarray((255 * values).astype(np.uint8))
        font = ImageFont.truetype(str(Path(get_data_path(), "fonts/ttf/DejaVuSans.ttf")), size)
        for x, label in labels.items():
            at = self.view.width / 2 - self.scale / FINE * x / self.view.eye[1], self.view.height - 0.7 * size
            ImageDraw.Draw(image).text(at, label, fill=(90, 96, 105), font=font, anchor="mm")
        return image


class Actor:
    """A motion at one place in the world: its surfaces, and the arrows of its forces, for each picture."""

    def __init__(self, result: object, place: np.ndarray) -> None:
        self.line, self.place = timeline(result), place
        self.scene = Scene.of(self.line.robot)
        self.surfaces = [(part, detailed(part, ROUND)) for part in self.scene.shown]

    def sample(self, part: float) -> int:
        """Return the sample at a fraction (0 to 1) of the motion."""
        return round(part % 1.0 * (len(self.line) - 1))

    def bodies(self, part: float) -> list[Body]:
        """Return all surfaces at a fraction (0 to 1) of the motion."""
        k = self.sample(part)
        poses = self.place @ self.scene.poses(self.line.q[k])
        return [body(surface, poses[part.link + 1], part.color) for part, surface in self.surfaces]

    def turned(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors (n, 3), given in base axes, in world axes."""
        return vectors @ self.place[:3, :3].T


class Arm(Actor):
    """A UR5 with 3 kg on a pedestal; arrows are the forces in its joints."""

    def __init__(self) -> None:
        robot = torsor.library.ur5().with_payload("ee_link", 3.0)
        fast = motion.retime(robot, WAYPOINTS, velocity=1.6, acceleration=5.0, jerk=50.0)
        super().__init__(fast.sample(fast.duration / (8 * FRAMES)), placed([PLACES[0], 0.0, PEDESTAL], 1.4))

    def bodies(self, part: float) -> list[Body]:
        """Return the arm, its pedestal and the arrows."""
        k = self.sample(part)
        poses = self.place @ self.scene.poses(self.line.q[k])[1:]
        forces = np.einsum("nij,nj->ni", poses[:, :3, :3], self.line.reactions[k, :, 3:])
        foot = body(box([0.4, 0.4, PEDESTAL]), make_pose(p=[PLACES[0], 0, PEDESTAL / 2]), STONE)
        return [*super().bodies(part), foot, *arrows(poses[:, :3, 3], forces / 600.0, BLUE)]


class Walker(Actor):
    """A man who walks in place, as on a treadmill; arrows are the ground reaction forces.

    He walks along the world x axis, or at an angle (rad) to it.
    """

    def __init__(self, problem: MotionProblem, x: float, yaw: float = 0.0, strides: int = STRIDES) -> None:
        upright = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        super().__init__(Stride(problem.solve()), make_pose(about_z(yaw) @ upright, [x, 0.0, 0.0]))
        self.strides = strides

    def bodies(self, part: float) -> list[Body]:
        """Return the man and the arrows."""
        k = self.sample(self.strides * part)
        way = self.turned(self.line.ahead * self.line.times[k] / self.line.times[-1])
        ground = self.line.ground[k][np.isfinite(self.line.ground[k]).all(axis=-1)]
        starts, forces = self.turned(ground[:, :3]) + self.place[:3, 3] - way, self.turned(ground[:, 3:])
        made = super().bodies(self.strides * part)
        return [each._replace(corners=each.corners - way) for each in made] + arrows(starts, forces / 900.0, GREEN)


class Platform(Actor):
    """A Gough-Stewart platform; arrows are the forces of its legs on the platform."""

    def __init__(self) -> None:
        super().__init__(platform_motion(), placed([PLACES[2], 0.0, 0.055], 0.85))

    def bodies(self, part: float) -> list[Body]:
        """Return the platform and the arrows."""
        k, names = self.sample(part), self.line.robot.link_names
        rods = [names.index(f"leg{leg}/rod") for leg in range(1, 7)]
        poses = self.place @ self.scene.poses(self.line.q[k])[1:][rods]
        forces = self.line.tau[k, [self.line.driven.index(f"leg{leg}/stretch") for leg in range(1, 7)]]
        return super().bodies(part) + arrows(poses[:, :3, 3], forces[:, None] / 110.0 * poses[:, :3, 2], BLUE)


def drawn() -> list[Image.Image]:
    """Return the pictures of one cycle."""
    actors, pictures = [Arm(), Walker(walking(), PLACES[1]), Platform()], []
    for k in range(FRAMES):
        picture = Picture(TOGETHER)
        picture.draw([part for actor in actors for part in actor.bodies(k / FRAMES)])
        pictures.append(picture.image(dict(zip(PLACES, LABELS, strict=True)), 13))
    return pictures


def strip() -> Image.Image:
    """Return the walk at several instants of the stride, side by side."""
    walker, picture, labels, shown = Walker(walking(), 0.0, YAW, 1), Picture(STRIP), dict[float, str](), list[Body]()
    for k, part in enumerate(INSTANTS):
        x, bodies = SPACING * (k - (len(INSTANTS) - 1) / 2), walker.bodies(part)
        ends = [each.corners[..., 0] for each in bodies if not each.near]
        middle = (max(each.max() for each in ends) + min(each.min() for each in ends)) / 2
        shown += [each._replace(corners=each.corners + np.array([x - middle, 0.0, 0.0])) for each in bodies]
        labels[x] = f"{100 * part:.0f} %"
    picture.draw(shown)
    return picture.image(labels, 15)


def palette(pictures: list[Image.Image]) -> Image.Image:
    """Return a picture whose palette has the main colours of several pictures, and pure white."""
    stack = Image.new("RGB", (TOGETHER.width, TOGETHER.height * len(pictures)))
    for k, picture in enumerate(pictures):
        stack.paste(picture, (0, TOGETHER.height * k))
    reduced = stack.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colours = np.array(reduced.getpalette()).reshape(-1, 3)[:COLOURS]
    colours[colours.sum(axis=1).argmax()] = 255
    result = Image.new("P", (1, 1))
    result.putpalette(colours.ravel().tolist())
    return result


def save(pictures: list[Image.Image], path: Path) -> None:
    """Write the pictures as an animation."""
    shared = palette(pictures[:: FRAMES // 4])
    few = [picture.quantize(palette=shared, dither=Image.Dither.NONE) for picture in pictures]
    few[0].save(path, save_all=True, append_images=few[1:], duration=DELAY, loop=0, optimize=False)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "torsor.gif")
    if path.suffix == ".png":
        strip().save(path, optimize=True)
    else:
        save(drawn(), path)
