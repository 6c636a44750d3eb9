"""Running exported JavaScript in Node: numbers go to it and come back as bytes, so that no bit is lost."""

import json
import shutil
import subprocess
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")

# Calls a function for each row, and for all rows at once; both must give the same bits.
CALLER = """
import { readFileSync, writeFileSync } from "node:fs";
const [path, title, folder, kind, count] = process.argv.slice(2);
const module = await import(path), Numbers = globalThis[kind];
const own = module.functions.find((each) => each.title === title), length = (each) => each.size[0] * each.size[1];
const bytes = new Uint8Array(readFileSync(`${folder}/inputs`)), all = new Numbers(bytes.buffer);
let start = 0;
const inputs = own.inputs.map((each) => all.subarray(start, (start += count * length(each))));
const listed = (found) => (own.outputs.length === 1 ? [found] : own.outputs.map((each) => found[each.name]));
const outputs = own.outputs.map((each) => new Numbers(count * length(each)));
for (let k = 0; k < count; k++) {
    const at = inputs.map((each, i) => each.slice(k * length(own.inputs[i]), (k + 1) * length(own.inputs[i])));
    listed(module[own.name](...at)).forEach((each, i) => outputs[i].set(each, k * length(own.outputs[i])));
}
const raw = (arrays) => Buffer.concat(arrays.map((each) => Buffer.from(each.buffer, each.byteOffset, each.byteLength)));
const rows = module[`${own.name}Rows`];
if (rows && !raw(listed(rows(...inputs))).equals(raw(outputs))) throw new Error("rows give other bits than states");
writeFileSync(`${folder}/outputs`, raw(outputs));
"""


def node(script: str, *arguments: str) -> str:
    """Return what a module prints."""
    command = ["node", "--input-type=module", "-e", script, "--", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def called(module: Path, title: str, function: ca.Function, *values: np.ndarray, dtype: str = "float64") -> list:
    """Return the outputs, each (rows, entries), of a function in a module, for rows of inputs."""
    given = [np.ascontiguousarray(np.reshape(each, (len(each), -1)), dtype) for each in values]
    folder, count = module.parent, max(len(each) for each in given)
    (folder / "inputs").write_bytes(b"".join(each.tobytes() for each in given))
    kind = "Float64Array" if dtype == "float64" else "Float32Array"
    caller = folder / "caller.mjs"
    caller.write_text(CALLER)
    command = ["node", caller, module, title, folder, kind, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.frombuffer((folder / "outputs").read_bytes(), dtype)
    sizes = [function.numel_out(k) * count for k in range(function.n_out())]
    parts = np.split(found, np.cumsum(sizes)[:-1])
    return [part.reshape(count, -1) for part in parts]


def shown(module: Path, expression: str) -> object:
    """Return the value of an expression of the module ``m``, by JSON."""
    script = f"const m = await import({json.dumps(str(module))}); console.log(JSON.stringify({expression}))"
    return json.loads(node(script))
