"""Compare exported JavaScript in Node with exported C (gcc -O2) and the compiled kernels, one state per call.

    python benchmarks/javascript.py

The script prints the table of docs/deploy/javascript.md. It needs node, gcc and example-robot-data. Only the ratios
should be compared between machines.
"""

import subprocess
import tempfile
import timeit
import warnings
from importlib.metadata import files
from pathlib import Path

import casadi as ca
import numpy as np

import torsor
from torsor.robot.accessors import method_of

ROBOTS = {"UR5": "ur5_robot.urdf", "Panda": "panda.urdf", "Talos, 32 dof": "talos_reduced.urdf"}
NAMES = ["inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives"]

# Prints the least time of a call (ns), after as many calls as the engine needs to optimise all pieces.
NODE = """
const m = await import(process.argv[2]), own = m.functions[0], f = m[own.name];
const lengths = own.inputs.map((each) => each.size[0] * each.size[1]);
const [q, v, a] = lengths.map((n) => Float64Array.from({ length: n }, (_, i) => Math.sin(13 * i) * 1.5));
const out = f(q, v, a), begin = performance.now();
let count = 0, best = Infinity;
while (performance.now() - begin < 8000) { f(q, v, a, out); count++; }
for (let round = 0; round < 3000; round++) {  // short rounds: on a busy machine some of them are not interrupted
    const start = performance.now();
    for (let k = 0; k < 20; k++) f(q, v, a, out);
    best = Math.min(best, ((performance.now() - start) * 1e6) / 20);
}
console.log(best);
"""


def in_node(folder: Path, function: ca.Function) -> float:
    """Return the time (ns) of a call in Node."""
    module = torsor.compiler.export_js([function], folder)[0]
    script = folder / "measure.mjs"
    script.write_text(NODE)
    return float(subprocess.run(["node", script, module], capture_output=True, text=True, check=True).stdout)


def in_c(folder: Path, function: ca.Function) -> float:
    """Return the time (ns) of a call in C."""
    torsor.compiler.export_c([function], folder)
    sizes = [function.numel_in(k) for k in range(function.n_in())]
    sizes += [function.numel_out(k) for k in range(function.n_out())]
    arrays = "".join(f"static double x{k}[{size}];" for k, size in enumerate(sizes))
    fill = "".join(f"for (int i = 0; i < {size}; i++) x{k}[i] = sin(13.0 * i) * 1.5;" for k, size in enumerate(sizes))
    call = f"{function.name()}({', '.join(f'x{k}' for k in range(len(sizes)))});"
    clock = "struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec;"
    rounds = "for (int r = 0; r < 3000; r++) { double t = now(); for (int k = 0; k < n; k++) " + call
    rounds += "t = (now() - t) / n; if (t < best) best = t; }"
    head = '#define _POSIX_C_SOURCE 199309L\n#include "torsor_kernels.h"\n#include <math.h>\n#include <stdio.h>\n'
    head += "#include <time.h>\n"
    main = f'int main(void) {{ double best = 1e99; int n = 100; {fill} {rounds} printf("%f", best); }}'
    (folder / "main.c").write_text(f"{head}{arrays}\nstatic double now(void) {{ {clock} }}\n{main}\n")
    flags = ["-std=c99", "-O2", "-ffp-contract=off"]
    sources = [folder / "main.c", folder / "torsor_kernels.c"]
    subprocess.run(["gcc", *flags, *sources, "-o", folder / "main", "-lm"], check=True)
    return float(subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout)


def in_python(robot: torsor.Robot, name: str) -> float:
    """Return the time (ns) of a call of the compiled method from Python."""
    rng, method = np.random.default_rng(0), method_of(robot, name)
    q, v, a = rng.normal(size=(3, robot.nv))
    method(q, v, a)
    return min(timeit.repeat(lambda: method(q, v, a), number=100, repeat=300)) / 100 * 1e9


def main() -> None:
    """Print the table."""
    found = {each.name: Path(str(each.locate())) for each in files("example-robot-data") or []}
    print("| robot | function | operations | module | Node | Node / C | C | one call from Python |")
    print("|---|---|---|---|---|---|---|---|")
    for title, file in ROBOTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", torsor.ModelWarning)
            robot = torsor.load(found[file])
        for name in NAMES:
            function = robot.function(name)
            with tempfile.TemporaryDirectory() as folder:
                time = in_node(Path(folder), function)
                size = (Path(folder) / "torsor_kernels.js").stat().st_size
                c = in_c(Path(folder), function)
            count, python = sum(robot.operation_count(name)), in_python(robot, name)
            cells = [title, name.replace("_", " "), f"{count}", f"{size / 1000:.0f} kB", f"{time / 1000:.2f} us"]
            cells += [f"{time / c:.1f}", f"{c / 1000:.2f} us", f"{python / 1000:.2f} us"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
