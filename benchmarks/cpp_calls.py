"""Compare single calls from C++: the C code that Torsor exports and Pinocchio's algorithms, on one core.

    python benchmarks/cpp_calls.py

Both are compiled by g++ with -O3 -march=native -DNDEBUG, Pinocchio from the headers of its wheel (``pip install pin``)
and the Eigen headers of CasADi's wheel. The model in C++ has the joints and inertias that Pinocchio reads from the same
URDF file. Each time is the best of several rounds over random states; the program checks that the results agree.
"""

import subprocess
import tempfile
from pathlib import Path

import casadi
import numpy as np
import pinocchio as pin

import torsor
from bench.measure import robot_file

NAMES = {"inverse_dynamics": "rnea", "forward_dynamics": "aba"}
FLAGS = ["-O3", "-march=native", "-DNDEBUG"]
# Pinocchio's CMake targets define these.
DEFINES = ["-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12"]
DEFINES += ["-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]
STATES, ROUNDS = 64, 400
TOLERANCE = 1e-9  # largest difference between the results, relative to the largest result

PROGRAM = """
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/algorithm/aba.hpp>
extern "C" {
#include "torsor_kernels.h"
}
using namespace pinocchio;
static const int n = @N@, states = @STATES@, rounds = @ROUNDS@;
static const double numbers[states][3][n] = @NUMBERS@;
static const int order[n] = @ORDER@; // of Pinocchio's joints in Torsor's coordinates

template <class Joint> static void add(Model &model, int parent, const Joint &joint, const double (&p)[12],
                                       double mass, const double (&c)[3], const double (&I)[9])
{
    SE3::Matrix3 R;
    R << p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8];
    const SE3 place(R, SE3::Vector3(p[9], p[10], p[11]));
    const auto id = model.addJoint(parent, joint, place, std::to_string(model.njoints));
    Inertia::Matrix3 J;
    J << I[0], I[1], I[2], I[3], I[4], I[5], I[6], I[7], I[8];
    model.appendBodyToJoint(id, Inertia(mass, Inertia::Vector3(c[0], c[1], c[2]), J));
}

template <class Call> static double best(Call call)
{
    double least = 1e9;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int k = 0; k < states; ++k) call(k);
        const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
        least = std::min(least, passed.count() / states);
    }
    return least;
}

int main()
{
    Model model;
    @MODEL@
    Data data(model);
    static double out[states][n];
    std::vector<Eigen::VectorXd> q(states, Eigen::VectorXd(n)), v(q), a(q);
    for (int k = 0; k < states; ++k) {
        for (int i = 0; i < n; ++i) {
            q[k][i] = numbers[k][0][order[i]];
            v[k][i] = numbers[k][1][order[i]];
            a[k][i] = numbers[k][2][order[i]];
        }
    }
    double largest = 0, error = 0;
    const double own = best([&](int k) { @OWN@(numbers[k][0], numbers[k][1], numbers[k][2], out[k]); });
    const double other = best([&](int k) { @OTHER@(model, data, q[k], v[k], a[k]); });
    for (int k = 0; k < states; ++k) {
        const auto &result = @OTHER@(model, data, q[k], v[k], a[k]);
        for (int i = 0; i < n; ++i) {
            largest = std::max(largest, std::fabs(result[i]));
            error = std::max(error, std::fabs(result[i] - out[k][order[i]]));
        }
    }
    std::printf("%.17g %.17g %.17g\\n", own, other, error / largest);
}
"""


def braces(values: np.ndarray) -> str:
    """Return an array as a C initializer."""
    inner = (braces(value) for value in values) if values.ndim > 1 else (repr(float(value)) for value in values)
    return f"{{{', '.join(inner)}}}"


def model_code(model: pin.Model) -> str:
    """Return C++ statements that rebuild a model with revolute joints."""
    lines = []
    for k in range(1, model.njoints):
        joint, place, body = model.joints[k], model.jointPlacements[k], model.inertias[k]
        kind = joint.shortname()
        if kind == "JointModelRevoluteUnaligned":
            axis = np.array(joint.extract().axis)
            kind += f"({', '.join(map(repr, axis.tolist()))})"
        else:
            kind += "()"
        pose = np.concatenate([place.rotation.ravel(), place.translation])
        numbers = f"{braces(pose)}, {body.mass!r}, {braces(body.lever)}, {braces(np.array(body.inertia).ravel())}"
        lines.append(f"add(model, {model.parents[k]}, {kind}, {numbers});")
    return "\n    ".join(lines)


def measure(path: Path, name: str) -> tuple[float, float, float]:
    """Return the times (ns) of Torsor and Pinocchio, and the relative difference of their results."""
    robot, model = torsor.load(path).without_friction(), pin.buildModelFromUrdf(str(path))
    order = [robot.coordinate_names.index(joint) for joint in list(model.names)[1:]]
    numbers = np.random.default_rng(0).normal(size=(STATES, 3, robot.nv))
    places = {"N": str(robot.nv), "STATES": str(STATES), "ROUNDS": str(ROUNDS), "NUMBERS": braces(numbers)}
    places["ORDER"] = f"{{{', '.join(map(str, order))}}}"
    places |= {"MODEL": model_code(model), "OWN": name, "OTHER": NAMES[name]}
    program = PROGRAM
    for place, text in places.items():
        program = program.replace(f"@{place}@", text)
    prefix = Path(pin.__file__).parents[4]
    eigen = Path(casadi.__file__).parent / "include" / "eigen3"
    with tempfile.TemporaryDirectory() as name_:
        folder = Path(name_)
        torsor.export.c(robot, folder, [name])
        (folder / "main.cpp").write_text(program)
        own = ["gcc", "-std=c99", *FLAGS, "-c", "torsor_kernels.c", "-o", "kernels.o"]
        headers = ["-isystem", str(prefix / "include"), "-isystem", str(eigen)]
        whole = ["g++", "-std=c++17", "-w", *FLAGS, *DEFINES, *headers, "main.cpp", "kernels.o", "-o", "main"]
        for command in (own, whole):
            subprocess.run(command, cwd=folder, check=True)
        found = subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout.split()
    own_time, other, error = map(float, found)
    assert error < TOLERANCE, f"the results differ by {error:.1e}"
    return own_time, other, error


def main() -> None:
    """Print the table."""
    print("| one call from C++, one core | Torsor | Pinocchio | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        arm = Path(folder) / "ur5.urdf"
        torsor.library.ur5().save(arm)
        for robot, path in (("UR5", arm), ("Talos", robot_file("talos_reduced.urdf"))):
            for name, other in NAMES.items():
                own_time, other_time, _ = measure(path, name)
                text = f"{name.replace('_', ' ')}, {robot} | {own_time:.0f} ns | {other_time:.0f} ns (`{other}`)"
                print(f"| {text} | {other_time / own_time:.1f}x |", flush=True)


if __name__ == "__main__":
    main()
