"""Measure the compile time of all derivatives of large robots: tracing, code generation, LLVM.

The script prints a Markdown table. Each time is the best of the given number of runs on one core, without caches.

    python benchmarks/compile_time.py [human] [talos] [random] [--runs N]
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import torsor
from bench.measure import robot_file
from torsor.compiler.llvm.code import write_llvm
from torsor.compiler.llvm.native import MAX_OPTIMISED_MODULES, link
from torsor.compiler.llvm.target import host
from torsor.compiler.program import read_program
from torsor.dynamics import Request, trace
from torsor.spatial import axis_frame, from_pseudo_inertia, make_pose

NAMES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "joint_wrench_derivatives")

# The joints of a human skeleton: name, what carries it, and the axes of its groups of joints, which meet in a point.
LIMBS = (
    ("spine", "pelvis", ("yxz", "yxz", "yxz", "yxz")),
    ("neck", "spine", ("yxz", "yx")),
    ("left_arm", "spine", ("xz", "xyz", "yz", "xz")),
    ("right_arm", "spine", ("xz", "xyz", "yz", "xz")),
    ("left_leg", "pelvis", ("yxz", "y", "yxz")),
    ("right_leg", "pelvis", ("yxz", "y", "yxz")),
)


def human(seed: int = 0) -> torsor.Robot:
    """Return a tree like a human: 55 dof, including a free pelvis (six); links between axes that meet are massless.

    Lengths and inertias are random; axes are orthogonal at zero, as in a Denavit-Hartenberg skeleton.
    """
    rng = np.random.default_rng(seed)
    links = [torsor.Link("ground"), torsor.Link("pelvis", *_inertia(rng))]
    joints = [torsor.Joint("floating", "free", "ground", "pelvis")]
    ends = {"pelvis": "pelvis"}
    for limb, carrier, groups in LIMBS:
        parent = ends[carrier]
        at = rng.normal(size=3) * 0.2  # where the limb begins on its carrier
        before = np.eye(3)
        for g, axes in enumerate(groups):
            for k, letter in enumerate(axes):
                name, axis = f"{limb}_{g}{letter}", np.eye(3)["xyz".index(letter)]
                last = k == len(axes) - 1
                links.append(torsor.Link(name, *(_inertia(rng) if last else ())))
                # Each link's z is its joint's axis.
                frame = axis_frame(axis)
                placement = make_pose(before.T @ frame, before.T @ at if k == 0 else np.zeros(3))
                joints.append(torsor.Joint(name, "revolute", parent, name, placement))
                parent, before = name, frame
            at = np.array([0.0, 0.0, rng.uniform(0.1, 0.4)])  # the next group is at the end of the bone
        ends[limb] = parent
    return torsor.build("human", links, joints)


def _inertia(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    points, masses = rng.normal(size=(6, 3)) * 0.1 + rng.normal(size=3) * 0.1, rng.uniform(0.1, 0.6, size=6)
    homogeneous = np.column_stack([points, np.ones(6)])
    return from_pseudo_inertia(homogeneous.T * masses @ homogeneous)


def robot(name: str) -> torsor.Robot:
    """Return one of the robots that are measured."""
    if name == "human":
        return human()
    if name == "talos":
        path = robot_file("talos_reduced.urdf")
        if path is None:
            raise SystemExit("talos needs the wheel example-robot-data")
        return torsor.load(path, base="floating")
    return torsor.library.random_tree(55, seed=1)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measure(mechanism: torsor.Robot, name: str) -> tuple[int, list[float]]:
    """Return the operations of an algorithm, and the times (s) of tracing, code generation and LLVM."""
    tracing, function = seconds(lambda: trace(mechanism, Request(name)))
    reading, program = seconds(lambda: read_program(function))
    axes = tuple(1 if columns == 1 else 2 for _, columns in (*program.inputs, *program.outputs))
    writing, modules = seconds(lambda: write_llvm(program, axes, "float64", host().width("float64")))
    level = 2 if len(modules) < MAX_OPTIMISED_MODULES else 0  # as in emit, which would use several processes
    compiling, objects = seconds(lambda: [*host().objects(modules[:1]), *host().objects(modules[1:], level)])
    linking, _ = seconds(lambda: link(objects))
    return sum(torsor.compiler.count_operations(function)), [tracing, reading + writing, compiling + linking]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("robots", nargs="*", default=["human", "talos", "random"])
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", torsor.ModelWarning)
    print("| robot | dof | derivatives of | operations | trace (s) | code (s) | LLVM (s) | in all (s) |")
    print("|---|---|---|---|---|---|---|---|")
    for title in options.robots:
        mechanism = robot(title)
        total, of_all = 0, np.zeros(3)
        for name in NAMES:
            runs = [measure(mechanism, name) for _ in range(options.runs)]
            operations, best = runs[0][0], np.min([times for _, times in runs], axis=0)
            total, of_all = total + operations, of_all + best
            _print_row(title, mechanism.nv, name.removesuffix("_derivatives"), operations, best)
        _print_row(title, mechanism.nv, "all three", total, of_all)


def _print_row(title: str, dof: int, name: str, operations: int, times: np.ndarray) -> None:
    cells = [title, dof, name.replace("_", " "), operations, *(f"{each:.2f}" for each in (*times, times.sum()))]
    print("| " + " | ".join(map(str, cells)) + " |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
