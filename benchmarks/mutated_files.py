"""Mutate files of every format, load them, and count crashes, hangs and foreign tracebacks.

    python benchmarks/mutated_files.py [--count 10000] [--seed 0] [--seconds 600] [--kinds urdf,mjcf,...]

A file may load, or raise a ``ModelError`` (or ``MotionError``, ``SimulationError``). A hang is a file that
takes more than 5 s. Each kind runs in a process of its own, so that a crash is counted and the run
continues with the next file. The seeds of all failures are printed: ``--seed S --count 1 --kinds K`` repeats one.
"""

import argparse
import io
import math
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import torsor
from torsor.base.errors import ModelError
from torsor.motion import PROBLEMS, MotionError, MotionResult, load_problem
from torsor.simulation import SimulationError

LIMIT = 5.0  # seconds
FAMILY = (ModelError, MotionError, SimulationError)

INERTIA = '<mass value="2"/><inertia ixx="0.3" iyy="0.2" izz="0.4"/>'
BODY = f'<inertial><origin xyz="0.1 0 0.2" rpy="0 0.3 0"/>{INERTIA}</inertial>'
URDF = f"""<?xml version="1.0"?>
<robot name="arm" xmlns:drake="http://drake.mit.edu"><!-- a comment -->
<material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
<link name="base">{BODY}</link>
<link name="upper">{BODY}<visual><geometry><mesh filename="package://a/b.stl" scale="1 1 1"/></geometry></visual></link>
<link name="lower">{BODY}<visual><geometry><box size="1 2 3"/></geometry><material name="grey"/></visual></link>
<link name="finger">{BODY}</link><link name="tool"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1" rpy="0 1.5708 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="10" velocity="3"/>
<dynamics damping="0.1" friction="0.2"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="1 0 0"/></joint>
<joint name="grip" type="prismatic"><parent link="lower"/><child link="finger"/>
<mimic joint="elbow" multiplier="2" offset="1"/>
</joint><joint name="weld" type="fixed"><parent link="finger"/><child link="tool"/></joint>
<transmission name="t"><joint name="shoulder"/><actuator name="m"><drake:rotor_inertia value="1e-4"/>
<drake:gear_ratio value="100"/><mechanicalReduction>1</mechanicalReduction></actuator></transmission>
<frame name="f" link="lower" xyz="0 0 1"/>
<loop_joint name="l"><link1 link="base" xyz="0 0 1"/><link2 link="lower"/><axis xyz="0 1 0"/></loop_joint>
</robot>
"""
MJCF = """<mujoco model="arm"><compiler angle="degree"/><option gravity="0 0 -9.81"/><!-- a comment -->
<default><joint damping="0.1" armature="0.01"/></default>
<worldbody><body name="a" pos="0 0 1" quat="0.7071 0.7071 0 0">
<joint name="j1" type="hinge" axis="0 1 0" range="-90 90"/>
<geom type="capsule" size="0.1 0.5" mass="1"/><site name="s" pos="0 0 1"/>
<body name="b" pos="1 0 0"><joint name="j2" type="slide" stiffness="3" springref="1"/><geom size="0.1" density="100"/>
<body name="c"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="j3" type="ball"/></body></body></body>
<body name="d"><freejoint/><geom type="box" size="1 1 1"/></body></worldbody>
<equality><joint joint1="j1" joint2="j2" polycoef="0 1 0 0 0"/><connect body1="c" body2="d" anchor="0 0 1"/></equality>
<actuator><motor joint="j1" gear="100" forcerange="-1 1"/></actuator>
<keyframe><key qpos="0 0 1 0 0 0 0 0 0 1 0 0 0"/></keyframe></mujoco>
"""
SOLID = "<pose>0.1 0 0.2 0 0.3 0</pose><mass>2</mass><inertia><ixx>0.3</ixx><iyy>0.2</iyy><izz>0.4</izz></inertia>"
SDF = f"""<?xml version="1.0"?>
<sdf version="1.11"><world name="w"><gravity>0 0 -1.62</gravity><model name="arm" canonical_link="base">
<pose>0 0 1 0 0 0</pose><link name="base"><inertial>{SOLID}</inertial></link><!-- a comment -->
<link name="upper"><pose relative_to="shoulder">0 0 0 0 0 0</pose><inertial>{SOLID}</inertial><collision name="c">
<pose relative_to="tool">0 0 1 0 0 0</pose><geometry><mesh><uri>model://a/b.stl</uri><scale>1 1 1</scale></mesh>
</geometry><surface><contact><collide_bitmask>0x3</collide_bitmask></contact></surface></collision></link>
<frame name="tool" attached_to="upper"><pose degrees="true">0 0 1 90 0 0</pose></frame>
<joint name="shoulder" type="revolute"><parent>base</parent><child>upper</child>
<pose relative_to="base" rotation_format="quat_xyzw">0 0 1 0 0 0 1</pose><axis><xyz expressed_in="__model__">0 1 0</xyz>
<limit><lower>-2</lower><upper>2</upper><effort>10</effort></limit><dynamics><damping>0.1</damping></dynamics></axis></joint>
<model name="hand" placement_frame="palm"><pose relative_to="tool">0 0 1 0 0 0</pose><link name="palm"/>
<link name="finger"><pose>1 0 0 0 0 0</pose></link><joint name="grip" type="universal"><parent>palm</parent>
<child>finger</child><axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint></model>
<joint name="wrist" type="screw"><parent>upper</parent><child>hand::palm</child><thread_pitch>10</thread_pitch><axis>
<mimic joint="shoulder" axis="axis"><multiplier>2</multiplier><offset>1</offset><reference>0</reference></mimic></axis>
</joint>
<joint name="close" type="ball"><parent>base</parent><child>hand::finger</child></joint>
</model></world></sdf>
"""
ODD = "nan inf -inf 0 -0 -1 1e-320 1e308 1e400 1e200 1e9999 9999999999999999999999 0x10 1_000 ١ true"
ODD += " '' \" < > & ]]> -- . , ; # = [ ] { }"
ODD_WORDS = [
    *ODD.split(),
    "\0",
    "\x1b[2J",
    "\u202e",
    "é",
    "\ud800",
    " " * 99,
    "a" * 5000,
    "a." * 300,
    "[" * 300,
    "<a>" * 300,
]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return content with one or two changes: of bytes, of slices, of numbers, of words and of lines."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        if not content:
            return content
        kind, at = rng.randrange(8), rng.randrange(len(content))
        end = min(len(content), at + rng.choice((1, 2, 8, 64, 512)))
        if kind == 0:
            content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + content[end:]
        elif kind == 2:
            content = content[:end] + content[at:end] * rng.choice((1, 2, 20)) + content[end:]
        elif kind == 3:
            content = content[:at]
        else:
            found = list(
                re.finditer((rb"-?\d+\.?\d*", rb"\w+", rb"[\"'][^\"'\n]*[\"']", rb"[^\n]*\n")[kind - 4], content)
            )
            if found:
                one, other = rng.choice(found), rng.choice(found)
                new = rng.choice(ODD_WORDS).encode("utf-8", "surrogatepass") if rng.random() < 0.6 else other[0]
                content = content[: one.start()] + new + content[one.end() :]
    return content


def mutated_member(content: bytes, rng: random.Random) -> bytes:
    """Return a .npz file with one of its arrays mutated, and correct checksums, so that the array itself is read."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, mutated(data[:256], rng) + data[256:] if name == chosen else data)
    return made.getvalue()


def mutated_rows(rng: random.Random) -> list[Any]:
    """Return a Denavit-Hartenberg table with a few values replaced by odd ones."""
    odd = [
        math.nan,
        math.inf,
        -1,
        0,
        1e308,
        10**400,
        "1",
        "",
        None,
        True,
        [],
        [1],
        (1, 2, 3),
        {},
        np.eye(3),
        np.zeros(0),
        b"x",
        7,
    ]
    odd += [
        1j,
        np.float32(2),
        np.array(None),
        "fixed",
        "spherical",
        "rod",
        2,
        lambda x: x,
        np.ma.masked,
        torsor.Spring(3.0),
    ]
    kind = rng.choice((torsor.DHLink, torsor.MDHLink))
    rows: list[Any] = []
    for index in range(rng.randrange(1, 5)):
        values: dict[str, Any] = {"d": 0.3, "alpha": 0.5, "mass": 1.0, "com": (0.1, 0, 0), "inertia": np.eye(3) * 0.1}
        if kind is torsor.MDHLink:
            values["parent"] = index - 1
        for _ in range(rng.choice((0, 1, 1, 3))):
            values[rng.choice(list(kind.__dataclass_fields__))] = rng.choice(odd)
        rows.append(rng.choice(odd) if rng.random() < 0.02 else kind(**values))
    return rows


def _file(suffix: str, content: bytes, load: Callable[[Path], Any]) -> Callable[[random.Random, Path], None]:
    def run(rng: random.Random, folder: Path) -> None:
        path = folder / f"mutated{suffix}"
        inside = suffix == ".npz" and rng.random() < 0.8
        path.write_bytes((mutated_member if inside else mutated)(content, rng))
        load(path)

    return run


def _table(rng: random.Random, folder: Path) -> None:
    rows = mutated_rows(rng)
    gravity: Any = rng.choice([5, "x", None]) if rng.random() < 0.1 else (0, 0, -9.81)
    (torsor.from_dh if rng.random() < 0.5 else torsor.from_mdh)(rows, gravity)


def tries(kinds: list[str]) -> dict[str, Callable[[random.Random, Path], None]]:
    """Return, by kind of file, the function that mutates one and loads it."""
    arm = torsor.library.two_link()
    made: dict[str, Callable[[random.Random, Path], None]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torsor.library.gough_stewart().as_robot().save(folder / "a.toml")
        torsor.library.four_bar().save(folder / "b.toml")
        both = (folder / "b.toml").read_bytes()
        swing = torsor.simulate(arm, duration=0.02)
        swing.save(folder / "a.npz")
        swing.save(folder / "a.csv")
        options = {
            "urdf": lambda: _file(".urdf", URDF.encode(), torsor.load),
            "sdf": lambda: _file(".sdf", SDF.encode(), torsor.load),
            "mjcf": lambda: _file(".xml", MJCF.encode(), torsor.load),
            "toml": lambda: _file(".toml", both, torsor.load),
            "table": lambda: _table,
            "trajectory": lambda: _file(".npz", (folder / "a.npz").read_bytes(), torsor.Trajectory.load),
            "log": lambda: _file(
                ".csv", (folder / "a.csv").read_bytes(), lambda path: torsor.Trajectory.load(path, robot=arm)
            ),
            "problem": lambda: _problem(folder),
            "result": lambda: _result(folder),
        }
        for kind in kinds:
            made[kind] = options[kind]()
    return made


def _problem(folder: Path) -> Callable[[random.Random, Path], None]:
    PROBLEMS["slide-link"]().save(folder / "p.toml")
    content, robot = (folder / "p.toml").read_bytes(), (folder / "p.robot.toml").read_bytes()

    def load(path: Path) -> None:
        (path.parent / "p.robot.toml").write_bytes(robot)
        load_problem(path)

    return _file(".toml", content, load)


def _result(folder: Path) -> Callable[[random.Random, Path], None]:
    problem = PROBLEMS["slide-link"]()
    problem.solve().save(folder / "r.npz")
    return _file(".npz", (folder / "r.npz").read_bytes(), lambda path: MotionResult.load(path, problem))


class Hang(BaseException):
    """A file takes longer than the limit."""


def _alarm(*_: object) -> None:
    raise Hang


def work(kind: str, seeds: range, until: float, at: Any, outcome: Any) -> None:
    """Load mutated files of one kind; the seed of the file that is loaded is in ``at``."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    run = tries([kind])[kind]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)  # MuJoCo writes its log where the process is
        for seed in seeds:
            if time.monotonic() > until:
                break
            at.value = seed
            signal.setitimer(signal.ITIMER_REAL, LIMIT)
            try:
                run(random.Random(f"{kind} {seed}"), Path(name))
                counts["loaded"] += 1
            except FAMILY:
                counts["refused"] += 1
            except Hang:
                counts["hang"] += 1
                outcome.put((kind, seed, "hang", ""))
            except Exception as error:
                counts["foreign"] += 1
                lines = traceback.extract_tb(error.__traceback__)
                place = next(
                    (
                        f"{Path(each.filename).name}:{each.lineno}"
                        for each in reversed(lines)
                        if "torsor" in each.filename
                    ),
                    "",
                )
                outcome.put((kind, seed, "foreign", f"{type(error).__name__} at {place}: {str(error)[:100]}"))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir("/")
    at.value = -1
    outcome.put((kind, 0, "counts", dict(counts)))


KINDS = ("urdf", "sdf", "mjcf", "toml", "table", "trajectory", "log", "problem", "result")


def main() -> int:
    """Run, print a table, and return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="files of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0, help="limit for each kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    total: dict[str, Counter[str]] = {kind: Counter() for kind in arguments.kinds.split(",")}
    examples: dict[str, list[int]] = {}
    context = multiprocessing.get_context("spawn")
    for kind in total:
        start, end, until = arguments.seed, arguments.seed + arguments.count, time.monotonic() + arguments.seconds
        while start < end:
            at, outcome = context.Value("q", -2), context.Queue()
            process = context.Process(target=work, args=(kind, range(start, end), until, at, outcome))
            process.start()
            seen, since, stuck = -2, time.monotonic(), False
            while process.is_alive() or not outcome.empty():
                if at.value != seen:
                    seen, since = at.value, time.monotonic()
                elif seen >= 0 and time.monotonic() - since > 3 * LIMIT:  # in machine code, which no signal interrupts
                    process.kill()
                    stuck = True
                try:
                    _, seed, what, more = outcome.get(timeout=0.5)
                except Exception:  # nothing yet
                    continue
                if what == "counts":
                    total[kind].update(more)
                else:
                    examples.setdefault(f"{kind}: {what} {more}", []).append(seed)
            process.join()
            if at.value == -1:
                break
            if at.value == -2:
                sys.exit(f"{kind}: it could not begin")
            total[kind]["hang" if stuck else "crash"] += 1
            total[kind]["loaded or refused before it"] += at.value - start
            what = "hang in machine code" if stuck else f"crash, exit code {process.exitcode}"
            examples.setdefault(f"{kind}: {what}", []).append(at.value)
            start = at.value + 1
    print("| kind | files | loaded | refused | foreign | hang | crash |\n|---|---|---|---|---|---|---|")
    for kind, counts in total.items():
        cells = [str(counts[key]) for key in ("loaded", "refused", "foreign", "hang", "crash")]
        print(f"| {kind} | {sum(counts.values())} | {' | '.join(cells)} |")
    for text, seeds in sorted(examples.items(), key=lambda each: -len(each[1])):
        print(f"{len(seeds):6d}  {text}  (seeds {', '.join(map(str, seeds[:3]))})")
    return 1 if examples else 0


if __name__ == "__main__":
    sys.exit(main())
