"""Folds over spline nodes return the sums that CasADi's virtual machine gives, for every case by itself."""

import casadi as ca
import numpy as np
import pytest

from torsor.compiler.fold import Fold, SplineNodes, Targets
from torsor.compiler.llvm.fold import write_fold
from torsor.compiler.llvm.target import TARGETS
from torsor.compiler.program import read_program

D, P, N, K, COUNT = 2, 3, 2, 23, 7  # orders, points of a node, profiles, nodes, points
KINDS = {
    "points": "window",
    "basis": "node",
    "s": "node",
    "w": "rows",
    "new": "rows",
    "most": "largest",
    "g": "first",
    "H": "second",
}


def function() -> ca.Function:
    sizes = {"points": P * N, "basis": D * P, "s": 1, "scale": 2, "w": 3}
    points, basis, s, scale, w = symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
    table = ca.reshape(points, N, P)
    value, rate = (table @ basis[d * P : (d + 1) * P] for d in range(D))
    waves = ca.sin(scale[0] * value) + s * rate * scale[1]
    outputs = {
        "new": w * waves[0] + ca.vertcat(1.0, s, scale[1]),
        "total": ca.vertcat(ca.sumsqr(waves), ca.dot(w, w), 2.5),
        "most": ca.vertcat(waves[1], -ca.sumsqr(w)),
        "g": ca.vertcat(waves, rate * w[0], value[0], 0.0),
        "H": ca.vertcat(*(waves[k % 2] * w[k % 3] + k for k in range(12))),
    }
    return ca.Function("example", symbols, list(outputs.values()), list(sizes), list(outputs))


def nodes() -> SplineNodes:
    first = np.repeat(np.arange(COUNT - P + 1), [6, 1, 9, 4, 3])
    return SplineNodes(np.random.default_rng(1).normal(size=(D, K, P)), first, COUNT)


def inputs(cases: int) -> dict[str, np.ndarray]:
    rng, at = np.random.default_rng(2), nodes()
    wide = rng.normal(size=(cases, 2 * K * 3))
    return {
        "points": rng.normal(size=(cases, COUNT, N)),
        "basis": at.basis,
        "s": np.linspace(0, 1, K)[:, None],
        "scale": rng.normal(size=(cases, 2)),
        "w": wide[:, K * 3 :],
    }


def expected(values: dict[str, np.ndarray], targets: dict[str, Targets]) -> dict[str, np.ndarray]:
    at, of, cases = nodes(), function(), len(values["scale"])
    result = {"new": np.empty((cases, K, 3)), "total": np.zeros((cases, 3)), "most": np.full((cases, 2), -np.inf)}
    sums = {"g": np.zeros((cases, COUNT, 3)), "H": np.zeros((cases, at.spans, 3, P, P))}
    for case in range(cases):
        for k, (first, span) in enumerate(at.places[:, :2]):
            window = values["points"][case, first : first + P].ravel()
            w = values["w"][case].reshape(K, 3)[k]
            own = (entry.full()[:, 0] for entry in of(window, at.basis[k], k / (K - 1), values["scale"][case], w))
            new, total, most, g, H = own
            B = at.basis[k].reshape(D, P)
            result["new"][case, k] = new
            result["total"][case] += total
            result["most"][case] = np.maximum(result["most"][case], most)
            sums["g"][case, first : first + P] += B.T @ g.reshape(D, 3)
            sums["H"][case, span] += B.T @ H.reshape(3, D, D) @ B
    for name, values in sums.items():
        own = np.zeros((cases, targets[name].size + 1))
        np.add.at(own, (slice(None), targets[name].places), values.reshape(cases, -1))
        result[name] = own[:, :-1]
    return result | {"new": result["new"].reshape(cases, -1)}


def scattered() -> dict[str, Targets]:
    rng, spans = np.random.default_rng(3), nodes().spans
    return {"g": Targets(rng.integers(0, 11, COUNT * 3), 10), "H": Targets(rng.integers(0, 31, spans * 27), 30)}


@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("cases", [1, 8, 19])
def test_results_are_sums_of_the_virtual_machine(width, cases, monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    fold, values, targets = Fold(function(), KINDS, D, P, "key", width), inputs(cases), scattered()
    for _ in range(2):  # the second call uses the memory of the first
        results = fold(nodes(), cases, values, targets)
    for name, reference in expected(values, targets).items():
        np.testing.assert_allclose(results[name], reference, rtol=1e-11, atol=1e-12, err_msg=name)


def test_a_case_is_the_same_beside_others_and_keeps_its_nan_to_itself(monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    fold, values, targets = Fold(function(), KINDS, D, P, "key"), inputs(11), scattered()
    whole = fold(nodes(), 11, values, targets)
    some = {name: value if KINDS.get(name) == "node" else value[[9, 2]] for name, value in values.items()}
    for name, value in fold(nodes(), 2, some, targets).items():
        np.testing.assert_array_equal(value, whole[name][[9, 2]])
    values["w"] = values["w"].copy()
    values["w"][4, 30] = np.nan  # of the tenth node
    others = np.arange(11) != 4
    for name, value in fold(nodes(), 11, values, targets).items():
        np.testing.assert_array_equal(value[others], whole[name][others])
        assert np.isnan(value[4]).any()


def test_arrays_of_the_wrong_shape_are_refused(monkeypatch):
    monkeypatch.setenv("TORSOR_CACHE", "off")
    fold, values = Fold(function(), KINDS, D, P, "key"), inputs(3)
    with pytest.raises(ValueError, match="w has the shape"):
        fold(nodes(), 3, values | {"w": values["w"][:, 1:]}, scattered())


@pytest.mark.parametrize("name", TARGETS)
def test_the_code_compiles_for_every_processor(name):
    target, program = TARGETS[name], read_program(function())
    kinds = [KINDS.get(key, "case") for key in function().name_in()]
    kinds += [KINDS.get(key, "sums") for key in function().name_out()]
    modules = write_fold(program, kinds, D, P, "float64", target.width("float64"), target)
    assert all(target.objects(modules))
