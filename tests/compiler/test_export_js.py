"""The exported JavaScript agrees with CasADi's virtual machine, to the bit where ECMAScript promises it."""

import itertools
import json
import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import torsor
from node import called, needs_node, node, shown
from refusals import refused
from torsor.cli.main import main
from torsor.compiler import VirtualMachine, source
from torsor.compiler.js import JS_RULES, JsScalar, export_js
from torsor.compiler.program import every_operation, uncovered

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 0.3, -0.7, 0.7, 0.95, 1.0, -1.0, 2.5, -3.0, 17.25, 1e5, 5e-324, -1e-310, 1e-40, 1e300, 1.7e308]
SPECIAL += [0.5, -2.0, INF, -INF, NAN]

# What ECMAScript leaves to the engine, and how many units in the last place the engine may be off.
APPROXIMATE = "acos acosh asin asinh atan atan2 atanh cos cosh erf exp expm1 hypot log log1p pow constpow sin sinh"
ULPS = {f"op_{name}": 4 for name in f"{APPROXIMATE} tan tanh".split()} | {"op_erfinv": 32}


def virtual(function: ca.Function, *values: np.ndarray) -> list[np.ndarray]:
    """Return the outputs of the virtual machine, each (rows, entries)."""
    found = VirtualMachine(function)(*values)
    return [np.reshape(each, (len(values[0]), -1)) for each in (found if isinstance(found, tuple) else (found,))]


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays have the same numbers, zeros with the same sign, or both no number."""
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


def ulps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(same(a, b), 0, np.abs(a - b) / np.spacing(np.abs(b)))


def points() -> np.ndarray:
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(200, 2)) * 10.0 ** rng.integers(-6, 3, (200, 2))
    return np.concatenate([[*itertools.product(SPECIAL, SPECIAL)], spread, rng.uniform(-1, 1, (200, 2))])


def test_the_table_of_javascript_covers_every_operation() -> None:
    assert uncovered(JS_RULES) == []
    assert JS_RULES[ca.OP_ASSIGN](None, "w1") == JS_RULES[ca.OP_LIFT](None, "w1", "w2") == "w1"


@needs_node
def test_copysign_takes_the_sign_of_a_nan_as_the_virtual_machine_does(tmp_path: Path) -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    function = ca.Function("signed", [x, y], [ca.copysign(x, y)])
    values = np.array([*itertools.product([1.5, -0.0, INF], [NAN, -NAN, 0.0, -0.0, -2.0])]).T
    assert np.signbit(values[1]).sum() == 9
    for dtype in ("float64", "float32"):
        (tmp_path / dtype).mkdir()
        (found,) = called(export_js([function], tmp_path / dtype, dtype)[0], "signed", function, *values, dtype=dtype)
        assert np.array_equal(found.ravel(), np.copysign(*values))
        assert np.array_equal(np.signbit(found.ravel()), np.signbit(values[1]))
        assert np.array_equal(torsor.compile(function, dtype=dtype)(*values), found.ravel())


@needs_node
def test_every_operation_gives_the_bits_of_the_virtual_machine_or_is_within_ulps(tmp_path: Path) -> None:
    every, (x, y) = every_operation(), points().T
    module = export_js([every], tmp_path)[0]
    for name, ours, theirs in zip(
        every.name_out(), called(module, "every", every, x, y), virtual(every, x, y), strict=True
    ):
        off = ulps(ours, theirs)
        if name in ("op_fmin", "op_fmax"):  # of 0 and -0 they may give either
            off[(x == 0) & (y == 0)] = 0
        worst = int(np.argmax(np.where(np.isnan(off), INF, off).max(axis=1)))
        assert np.all(off <= ULPS.get(name, 0)), (name, x[worst], y[worst], ours[worst], theirs[worst])


@needs_node
def test_single_precision_rounds_every_operation(tmp_path: Path) -> None:
    every, values = every_operation(), points()
    values = values[(np.abs(values) < 1e10).all(axis=1) & ((np.abs(values) > 1e-30) | (values == 0)).all(axis=1)]
    x, y = values.astype(np.float32).T
    module = export_js([every], tmp_path, dtype="float32")[0]
    with np.errstate(over="ignore"):
        wanted = [each.astype(np.float32) for each in virtual(every, x, y)]
    for name, ours, theirs in zip(
        every.name_out(), called(module, "every", every, x, y, dtype="float32"), wanted, strict=True
    ):
        off = ulps(ours, theirs)
        off[(x == 0) & (y == 0)] *= name not in ("op_fmin", "op_fmax")
        assert np.all(off <= (1 if name in ULPS else 0)), (name, off.max())


@needs_node
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_are_read_back_to_the_last_bit(dtype: str) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=300) * 10.0 ** rng.integers(-320, 300, 300)
    numbers = np.concatenate(
        [numbers, [0.0, -0.0, INF, -INF, NAN, 5e-324, 2.2250738585072014e-308, 1e22, -1.5, 2.0**60]]
    )
    texts = ", ".join(JsScalar(dtype).literal(float(number)) for number in numbers)
    script = f"console.log(Buffer.from(new Float64Array([{texts}]).buffer).toString('hex'))"
    found = np.frombuffer(bytes.fromhex(node(script)))
    with np.errstate(over="ignore"):
        assert np.all(same(found, numbers.astype(dtype).astype(float)))


@needs_node
@pytest.mark.parametrize(
    "name", ["stanford", *(pytest.param(n, marks=pytest.mark.slow) for n in ("six_axis_arm", "random_tree"))]
)
def test_robots(name: str, tmp_path: Path) -> None:
    robot = torsor.library.random_tree(9, seed=5) if name == "random_tree" else getattr(torsor.library, name)()
    last, rng = robot.link_names[-1], np.random.default_rng(3)
    names = ["forward_dynamics", "joint_wrenches", "inverse_dynamics_derivatives"]
    module = torsor.export.js(robot, tmp_path, [*names, f"jacobian:{last}"])[0]
    functions = {each: robot.function(each) for each in names} | {f"jacobian_{last}": robot.function("jacobian", last)}
    for title, function in functions.items():
        values = [rng.normal(size=(3, function.numel_in(k))) for k in range(function.n_in())]
        for ours, theirs in zip(called(module, title, function, *values), virtual(function, *values), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * max(1, np.abs(theirs).max()))


@needs_node
def test_a_platform_without_angles_has_the_bits_of_the_virtual_machine(tmp_path: Path) -> None:
    robot, rng = torsor.library.gough_stewart(), np.random.default_rng(4)
    function = robot.function("inverse_dynamics")
    assert robot.operation_count("inverse_dynamics").trigonometric == 0
    values = [rng.normal(size=(4, function.numel_in(k))) for k in range(function.n_in())]
    values[0] = robot.home + 0.02 * values[0]
    wanted = virtual(function, *values)[0]
    (double,) = called(torsor.export.js(robot, tmp_path)[0], "inverse_dynamics", function, *values)
    np.testing.assert_array_equal(double, wanted)
    module = torsor.export.js(robot, tmp_path, dtype="float32")[0]
    (single,) = called(module, "inverse_dynamics", function, *values, dtype="float32")
    np.testing.assert_allclose(single, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


@needs_node
@pytest.mark.parametrize("piece", [7, pytest.param(50, marks=pytest.mark.slow)])
def test_a_function_in_pieces_gives_the_same_bits(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = torsor.library.random_tree(5, seed=2).function("inverse_dynamics")
    values = [np.linspace(-1, 1, 2 * function.numel_in(k)).reshape(2, -1) for k in range(3)]
    whole = called(export_js([function], tmp_path / "whole")[0], "inverse_dynamics", function, *values)
    monkeypatch.setattr(source, "PIECE", piece)
    cut = export_js([function], tmp_path / "cut")[0]
    assert "inverseDynamics$piece3(" in cut.read_text()
    np.testing.assert_array_equal(called(cut, "inverse_dynamics", function, *values)[0], whole[0])


TITLES = [
    "while",
    "2 */ x",
    "a-b",
    "a_b",
    "a b",
    "a_b_rows",
    "_q",
    "",
    "größe",
    "w0",
    "then",
    "robot",
    "s",
    "__proto__",
    "\u2028*/</script>",
]


@needs_node
def test_shapes_and_names(tmp_path: Path) -> None:
    a, b, c = ca.SX.sym("a", ca.Sparsity.upper(3)), ca.SX.sym("b", 0), ca.SX.sym("c", 2, 3)
    results = [a @ c.T, ca.SX(5, 5), ca.SX.zeros(0, 2), ca.vertcat(a[0, 0], 3.5, a[0, 0]), ca.SX(2, 1) + c[0, :2].T]
    names = ["out", "b", "Math", "w0"], ["s", "new", "I", "constructor", "int_"]
    function = ca.Function("int_", [a, b, c, ca.SX.sym("d")], results, *names)
    module = export_js(dict.fromkeys(TITLES, function), tmp_path)[0]
    rng = np.random.default_rng(0)
    values = [
        np.triu(rng.normal(size=(3, 3)))[None],
        np.zeros((1, 0)),
        rng.normal(size=(1, 2, 3)),
        np.full((1, 1), 4.0),
    ]
    wanted = virtual(function, *values)
    for title in (TITLES[0], TITLES[-1]):
        for ours, theirs in zip(called(module, title, function, *values), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    found = shown(module, "m.functions.map((each) => [each.title, each.name, typeof m[each.name]])")
    assert [title for title, _, _ in found] == TITLES
    assert {kind for *_, kind in found} == {"function"} and len({name for _, name, _ in found}) == len(TITLES)


@needs_node
def test_functions_of_nothing_and_of_mx(tmp_path: Path) -> None:
    x = ca.MX.sym("x", 2)
    matrix = ca.Function("matrix", [x], [ca.sin(x) * 2, x.T], ["x"], ["sine", "row"])
    functions = [ca.Function("nothing", [], []), ca.Function("number", [], [ca.SX(1.5)]), matrix]
    module = export_js(functions, tmp_path)[0]
    found = shown(module, "[m.nothing(), [...m.number()], [...m.matrix([0, 3]).row], [...m.matrix([0, 3]).sine]]")
    assert found == [{}, [1.5], [0, 3], [0, pytest.approx(2 * np.sin(3.0))]]


CALLS = {
    "m.inverseDynamics([1], [1, 2], [1, 2])": "RangeError: inverseDynamics: q has 1 numbers; allowed: 2",
    "m.inverseDynamics([1, 2], [1, 2])": "TypeError: inverseDynamics: a is of type undefined; allowed: Float64Array",
    "m.inverseDynamics([1, '2'], [1, 2], [1, 2])": "TypeError: inverseDynamics: q[1] is of type string; allowed: a num",
    "m.inverseDynamics('12', [1, 2], [1, 2])": "TypeError: inverseDynamics: q is of type string; allowed: Float64Array",
    "m.inverseDynamics([1, 2], [1, 2], null)": "TypeError: inverseDynamics: a is of type null; allowed: Float64Array",
    "m.inverseDynamicsRows(x, x, x, x)": "RangeError: inverseDynamicsRows: out and q share memory; allowed: arrays",
    "m.inverseDynamicsRows(new Float64Array(4), x, x, z.subarray(1, 5))": "nothing",
    "m.inverseDynamicsRows(z.subarray(0, 4), x, x, z.subarray(2, 6))": "inverseDynamicsRows: out and q share memory",
    "m.inverseDynamics(x, x, x, [0, 0])": "TypeError: inverseDynamics: out is of type object; allowed: Float64Array",
    "m.inverseDynamics(x, x, x, new Float64Array(3))": "RangeError: inverseDynamics: out has 3 numbers; allowed: 2",
    "m.inverseDynamicsRows([1, 2, 3], x, x)": "RangeError: inverseDynamicsRows: q has 3 numbers; allowed: 2 for each",
    "m.inverseDynamicsRows(new Float64Array(4), new Float64Array(6), x)": "inputs have 2, 3, 1 states; allowed: one",
    "m.inverseDynamicsDerivatives(x, x, x, {})": "TypeError: inverseDynamicsDerivatives: out.dq is of type undefined; ",
    "m.inverseDynamicsDerivatives(x, x, x, 3)": "TypeError: inverseDynamicsDerivatives: out is number; allowed: an obj",
    "m.inverseDynamicsDerivatives(x, x, x, { dq: y, dv: y, da: y })": "two outputs of out are one array",
}


@pytest.fixture(scope="module")
def two_link(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ["inverse_dynamics", "inverse_dynamics_derivatives"]
    return torsor.export.js(torsor.library.two_link(), tmp_path_factory.mktemp("js"), names)[0]


@needs_node
def test_wrong_arguments_are_errors_that_say_what_is_allowed(two_link: Path) -> None:
    tries = ", ".join(f"() => {call}" for call in CALLS)
    script = f"const m = await import({json.dumps(str(two_link))}), x = new Float64Array(2), y = new Float64Array(4);"
    script += "const z = new Float64Array(8);"
    script += f"for (const f of [{tries}]) try {{ f(); console.log('nothing') }} catch (e) {{ console.log(String(e)) }}"
    for found, wanted in zip(node(script).splitlines(), CALLS.values(), strict=True):
        assert wanted in found


@needs_node
def test_given_outputs_are_used_and_cleared(two_link: Path, tmp_path: Path) -> None:
    texts = [
        "(() => { const out = new Float64Array(2); return m.inverseDynamics([1, 2], [1, 2], [1, 2], out) === out })()",
        "[...m.inverseDynamicsRows([1, 2, 1, 2], [1, 2], [1, 2])]",
        "[[1, 2], new Float32Array([1, 2])].flatMap((v) => [...m.inverseDynamics([1, 2], v, [1, 2])])",
        "m.inverseDynamicsRows([], [1, 2], [1, 2]).length",
        "(() => { const q = new Float64Array([1, 2]); return [...m.inverseDynamics(q, [1, 2], [1, 2], q)] })()",
    ]
    kept, rows, twice, empty, over = shown(two_link, f"[{', '.join(texts)}]")
    assert kept is True and rows == twice == [*over, *over] and empty == 0
    robot = torsor.library.random_tree(5, seed=1)
    module = torsor.export.js(robot, tmp_path, ["inverse_dynamics_derivatives"])[0]
    assert "da.fill(0, da$, da$ + 49);" in module.read_text()
    script = (
        "const n = m.robot.neutral, z = new Array(m.robot.coordinates.length).fill(1), f = (k) => new Float64Array(k);"
    )
    script += "const fresh = m.inverseDynamicsDerivatives(n, z, z), out = {};"
    script += "for (const k in fresh) out[k] = f(fresh[k].length).fill(7);"
    script += "m.inverseDynamicsDerivatives(n, z, z, out);"
    script += "return Object.keys(fresh).map((k) => fresh[k].every((x, i) => x === out[k][i]))"
    assert shown(module, f"(() => {{ {script} }})()") == [True, True, True]


HOSTILE = "*/ </script><!-- \\ \" ' ` ${x} \u2028 \u2029 größe \U0001f916"


@needs_node
def test_names_cannot_break_out_of_strings_and_comments(tmp_path: Path) -> None:
    link = torsor.Link(HOSTILE, mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    joint = torsor.Joint(HOSTILE, "revolute", "base", HOSTILE)
    robot = torsor.build(HOSTILE, [torsor.Link("base"), link], [joint])
    files = torsor.export.js(robot, tmp_path, ["inverse_dynamics", f"jacobian:{HOSTILE}"])
    for file in files:
        text = file.read_text()
        assert text.isascii() and "</script" not in text and "<!--" not in text
        assert file.suffix != ".ts" or not re.search(r"\*/[^\n]", text)
    assert shown(files[0], "[m.robot.name, m.robot.coordinates[0], m.robot.links[0]]") == [
        robot.name,
        robot.coordinate_names[0],
        robot.link_names[0],
    ]
    tau, jacobian = shown(files[0], "[[...m.inverseDynamics(0, 0, 0)], m[m.functions[1].name](0).length]")
    assert np.isclose(tau[0], robot.inverse_dynamics([0.0], [0.0], [0.0])[0]) and jacobian == 6


@needs_node
def test_the_module_says_what_it_computes(tmp_path: Path) -> None:
    robot = torsor.library.stanford()
    module, types, package = torsor.export.js(robot, tmp_path, ["inverse_dynamics"], name="arm")
    assert (module.name, types.name, package.name) == ("arm.js", "arm.d.ts", "package.json")
    text = module.read_text()
    assert text.startswith("/* Written by Torsor") and f"by Torsor {torsor.__version__} (licence Apache-2.0)" in text
    assert " * Generalised forces (nv) of a motion, in N m and N. Operations: " in text
    assert "@param {ArrayLike<number>} v - 6 numbers: velocities, rad/s and m/s" in text
    assert "import" not in text and "require" not in text
    about = shown(module, "m.robot")
    assert about["coordinates"] == list(robot.coordinate_names) and about["positionUnits"][2] == "m"
    assert about["forceUnits"][2] == "N" and about["gravity"] == robot.gravity.tolist()
    assert about["neutral"] == robot.neutral().tolist()
    assert json.loads(package.read_text())["type"] == "module"
    declared = types.read_text()
    assert "inverseDynamics(q: Numbers, v: Numbers, a: Numbers, out?: Float64Array): Float64Array;" in declared
    assert 'readonly "coordinates": readonly string[]' in declared


@needs_node
def test_numbers_of_a_parametric_robot_are_the_last_input(tmp_path: Path) -> None:
    model = torsor.library.two_link().parametric(["links.link2.mass", "gravity.y"])
    module = torsor.export.js(model, tmp_path, ["inverse_dynamics"])[0]
    q, v, a, p = [0.3, -1.2], [1.1, -0.7], [2.0, 3.5], [0.9, -9.81]
    tau, names, values = shown(module, f"[[...m.inverseDynamics({q}, {v}, {a}, {p})], m.robot.numbers, m.robot.values]")
    assert names == list(model.names) and values == model.values.tolist()
    np.testing.assert_allclose(tau, model.at(p).to(device="casadi").inverse_dynamics(q, v, a), rtol=1e-13)


@pytest.mark.slow
@needs_node
def test_closed_and_parallel_mechanisms_export_their_own_dynamics(tmp_path: Path) -> None:
    robot = torsor.library.four_bar()
    q = robot.closed.assemble([0.7])
    assert main(["export", "four_bar", str(tmp_path / "bar"), "--to", "js", "--name", "bar", "--prefix", "my_"]) == 0
    given = f"{q.tolist()}, [1.1], [0.4], [1]"
    tau = shown(tmp_path / "bar" / "bar.js", f"[...m.myConstrainedInverseDynamics({given})]")
    np.testing.assert_allclose(tau, robot.closed.inverse_dynamics(q, [1.1], [0.4]), rtol=1e-12)
    with refused(what="mass_matrix would cut"):
        torsor.export.js(robot, tmp_path / "tree", ["mass_matrix"])
    parallel = torsor.library.three_rrr()
    assert main(["export", "three_rrr", str(tmp_path / "rrr"), "--to", "js", "--names", "mass_matrix"]) == 0
    pose = parallel.home + np.array([0.02, -0.01, 0.1])
    at = f"{pose.tolist()}, {parallel.inverse_kinematics(pose).tolist()}"
    found, drives = shown(tmp_path / "rrr" / "torsor_kernels.js", f"[[...m.massMatrix({at})], m.robot.drives]")
    np.testing.assert_allclose(np.reshape(found, (3, 3)), parallel.mass_matrix(pose), rtol=1e-9)
    assert drives == list(parallel.driven_names)


def test_the_output_is_deterministic_and_the_command_writes_c_by_default(tmp_path: Path) -> None:
    first = {file.name: file.read_bytes() for file in export_js([every_operation()], tmp_path / "a")}
    assert first == {file.name: file.read_bytes() for file in export_js([every_operation()], tmp_path / "b")}
    assert sorted(each.name for each in (tmp_path / "b").iterdir()) == sorted(first)
    assert main(["export", "two_link", str(tmp_path / "c")]) == 0
    assert sorted(each.name for each in (tmp_path / "c").iterdir()) == [
        "CMakeLists.txt",
        "torsor_kernels.c",
        "torsor_kernels.h",
    ]
    header = (tmp_path / "c" / "torsor_kernels.h").read_text()
    assert "Positions q: joint1 (rad), joint2 (rad)." in header and "in: velocities, rad/s and m/s" in header


def test_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = ca.Function("f", [], [ca.SX.sym("p")], {"allow_free": True})
    with refused(allowed="none"):
        export_js([function], tmp_path / "folder")
    with refused(argument="dtype", allowed="float64, float32"):
        export_js([every_operation()], tmp_path / "folder", dtype="float16")
    with refused(argument="name", allowed="letters"):
        export_js([every_operation()], tmp_path / "folder", name="a/b")
    assert not (tmp_path / "folder").exists()
    assert main(["export", "two_link", str(tmp_path), "--to", "js", "--name", "a b"]) == 1
    assert "--name is 'a b'; allowed: letters" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", "two_link", str(tmp_path), "--to", "cobol"])
    assert "invalid choice: 'cobol'" in capsys.readouterr().err
    (tmp_path / "package.json").write_text("{}")
    with refused(where="package.json", allowed="files written by Torsor"):
        torsor.export.js(torsor.library.two_link(), tmp_path)
