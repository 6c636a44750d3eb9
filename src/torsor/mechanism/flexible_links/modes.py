"""Modes from shapes at nodes, such as those of a finite-element modal analysis."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torsor.base.arrays import Array, Maybe
from torsor.base.checks import frozen_array, instance_of, positive_vector, real_array, rows, table, whole_number
from torsor.base.decoding import check_keys, file_table
from torsor.base.errors import ModelError, shortened, warn
from torsor.base.files import LARGEST_FILE, reading_npz, write_npz
from torsor.mechanism.flexible import Modes

# Largest distance of nodes from a straight line, relative to its length.
_LINE_TOLERANCE = 1e-9
# Largest relative change of a natural frequency due to lumped masses that does not cause a warning.
_FREQUENCY = 0.01
ALLOWED_MODES = "Modes, such as torsor.mechanism.flexible_links.beam(...) returns"


def node_modes(
    positions: ArrayLike,
    masses: ArrayLike,
    shapes: ArrayLike,
    rotations: Maybe = None,
    stiffness: Maybe = None,
    frequencies: Maybe = None,
    damping: ArrayLike = 0.0,
    inertias: Maybe = None,
    source: str = "modes",
) -> Modes:
    """Return modes from shapes at nodes; ``Modes`` defines the shapes and units of the arrays.

    Pass either ``stiffness``, (n, n) or (n,), or the natural ``frequencies`` (n,) in rad/s. ``damping`` (n,) are
    damping ratios. Without ``rotations``, the nodes do not rotate. If the nodes are in order along a straight line from
    the clamped end, they get the second-order displacements of an inextensible line through them; otherwise they get
    none.

    Example:
        >>> x, shapes = np.array([[0.5, 0, 0], [1.0, 0, 0]]), np.zeros((2, 3, 1))
        >>> shapes[:, 1, 0] = [0.3, 1.0]
        >>> modes = node_modes(x, [1.0, 0.5], shapes, frequencies=[20.0])
        >>> modes.frequencies.round(9).tolist(), modes.second[-1, 0].round(9).tolist()
        ([20.0], [[-1.16]])
    """
    Phi, m = real_array(shapes, source, "shapes"), real_array(masses, source, "masses")
    if m.ndim != 1 or Phi.ndim != 3 or Phi.shape[:2] != (m.size, 3):
        message = f"have shape {m.shape}, mode shapes {Phi.shape}"
        raise ModelError(message, argument="masses", where=source, allowed="(N,) and (N, 3, n): N nodes, n modes")
    if (stiffness is None) == (frequencies is None):
        given = "neither stiffness nor" if stiffness is None else "both stiffness and"
        raise ModelError(f"{given} frequencies are given", where=source, allowed="one of them")
    n = Phi.shape[2]
    r = frozen_array(positions, (m.size, 3), source, "positions")
    ratios = positive_vector(damping, n, source, "damping", or_zero=True)
    turned = np.zeros_like(Phi) if rotations is None else rotations
    parts: dict[str, Any] = {"positions": r, "masses": m, "shapes": Phi, "rotations": turned, "source": source}
    parts |= {"second": _shortening(r, Phi), "inertias": inertias}
    M = Modes(stiffness=1.0, **parts).mass_matrix.diagonal()
    if frequencies is not None:
        stiffness = positive_vector(frequencies, n, source, "frequencies") ** 2 * M
    made = Modes(stiffness=stiffness, **parts)  # type: ignore[arg-type]  # checked above
    K = made.stiffness_matrix
    if frequencies is not None:
        natural, expected = made.frequencies, np.sort(np.sqrt(K.diagonal() / M))
        if np.abs(natural / expected - 1).max() > _FREQUENCY:
            message = f"natural frequencies are {shortened(natural)} rad/s instead of {shortened(expected)}"
            error_message = f"{message}: the shapes are not orthogonal with respect to the node masses"
            warn(error_message, where=source, fix="check masses and shapes, or pass the stiffness matrix")
    return Modes(stiffness=K, damping=2 * ratios * np.sqrt(K.diagonal() * M), **parts)


def _shortening(r: Array, Phi: Array) -> Array | None:
    """Return the second-order displacements (N, 3, n, n) of nodes along a straight line from the origin."""
    length = float(np.linalg.norm(r[-1]))
    along = r[-1] / length if length else r[-1]
    steps = np.diff(r @ along, prepend=0.0)
    off_line = np.abs(r - np.outer(r @ along, along)).max(initial=0.0)
    if not length or steps[1:].min(initial=1.0) <= 0 or steps[0] < 0 or off_line > _LINE_TOLERANCE * length:
        return None
    across = Phi - np.einsum("x,y,iyk->ixk", along, along, Phi)
    bent = np.diff(across, axis=0, prepend=0 * across[:1])
    held = np.where(steps > 0, steps, np.inf)  # a step is 0 if a node is at the clamped end
    pairs = np.cumsum(np.einsum("ixk,ixl->ikl", bent, bent) / held[:, None, None], axis=0)
    return np.asarray(-np.einsum("x,ikl->ixkl", along, pairs))


# Mode files: TOML with one table per mode, or .npz with arrays.
#
# A TOML file has ``positions`` ([[x, y, z], ...] at rest, in m from the clamped end; the last node is the tip),
# ``masses`` (kg) and a table ``[[mode]]`` for each mode, with ``frequency`` (rad/s) or ``stiffness``, ``shape`` ([[x,
# y, z], ...], the displacement of each node for a unit coordinate), and optionally ``rotation`` (rotation vectors in
# the same form, in rad) and ``damping`` (a ratio). An .npz file has the arrays of ``node_modes`` by name, such as
# shapes (N, 3, n).

_ARRAYS = ("positions", "masses", "shapes", "rotations", "stiffness", "frequencies", "damping", "inertias")
_EXACT_FIELDS = (*(name for name in _ARRAYS if name != "frequencies"), "second", "tip_second")
_MODE = ("frequency", "stiffness", "shape", "rotation", "damping")


def read_modes(path: str | Path, modes: int | None = None) -> Modes:
    """Return all modes in a TOML or .npz file, or the first ``modes`` of them.

    Example:
        >>> import tempfile, torsor
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "arm.npz")
        ...     write_modes(torsor.mechanism.flexible_links.beam(length=1.0, mass=1.0, bending=1.0, modes=(2, 0)), file)
        ...     read_modes(file, modes=1).frequencies.round(4).tolist()
        [3.516]
    """
    file = Path(path)
    if file.suffix not in (".toml", ".npz"):
        message = f"unknown file type {file.suffix!r}"
        raise ModelError(message, value=file.suffix, where=file.name, allowed=".toml, .npz")
    if file.suffix == ".npz":
        with reading_npz(file, "modes") as result:
            arrays: dict[str, Any] = {name: result[name] for name in ("positions", "masses", "shapes")}
            exact = {name: result[name] for name in (*_EXACT_FIELDS, "turns")} if "second" in result else {}
        check_keys(result, (*_ARRAYS, *exact), file.name)
        if exact:
            return _selected_exact(exact, modes, file.name)
        arrays |= {name: result[name] for name in _ARRAYS if name in result}
    else:
        arrays = _from_toml(file)
    count = _count(modes, np.asarray(arrays["shapes"]).shape[-1] if np.ndim(arrays["shapes"]) else 0, file.name)
    for name in ("shapes", "rotations", "stiffness", "frequencies", "damping"):
        if name in arrays and np.ndim(arrays[name]):
            arrays[name] = np.asarray(arrays[name])[..., :count]
    if np.ndim(arrays.get("stiffness", 0)) == 2:
        arrays["stiffness"] = arrays["stiffness"][:count]
    return node_modes(**arrays, source=file.name)


def _count(modes: int | None, held: int, where: str) -> int:
    """Return the number of modes to use from a file."""
    if modes is None:
        return held
    count = whole_number(modes, where, "modes")
    if count > held:
        message = f"{count} modes are requested from a file that has {held}"
        raise ModelError(message, where=where, allowed=f"1 to {held}")
    return count


def _selected_exact(arrays: dict[str, Any], modes: int | None, where: str) -> Modes:
    """Return the first modes from the arrays of a file written by ``write_modes``."""
    turns = arrays["turns"]
    if turns.dtype != bool or turns.ndim != 1:
        raise ModelError(f"turns is {turns!r}", value=turns, where=where, allowed="true or false for each mode")
    whole = Modes(**{name: arrays[name] for name in _EXACT_FIELDS}, turns=tuple(turns.tolist()), source=where)
    n = _count(modes, whole.count, where)
    ends: dict[str, Any] = {"shapes": np.s_[..., :n], "rotations": np.s_[..., :n]}
    ends |= dict.fromkeys(("stiffness", "damping", "second", "tip_second"), np.s_[..., :n, :n])
    parts = {name: getattr(whole, name)[ends.get(name, ...)] for name in _EXACT_FIELDS}
    return Modes(**parts, turns=whole.turns[:n], source=where)


def _from_toml(file: Path) -> dict[str, Any]:
    """Return the arrays of a TOML file."""
    content = file_table(file, LARGEST_FILE)
    check_keys(content, ("positions", "masses", "mode"), file.name)
    tables = rows(content.get("mode", []), file.name, "mode", "tables [[mode]]")
    if not tables or "positions" not in content or "masses" not in content:
        allowed = "positions, masses and at least one [[mode]]"
        raise ModelError(f"it has {', '.join(content) or 'nothing'}", where=file.name, allowed=allowed)
    N = len(rows(content["positions"], file.name, "positions"))
    kinds: dict[str, list[Any]] = {key: [] for key in _MODE}
    for k, mode in enumerate(tables):
        where = f"{file.name}: mode {k + 1}"
        mode = table(mode, where, "mode")
        check_keys(mode, _MODE, where)
        if "shape" not in mode or ("frequency" in mode) == ("stiffness" in mode):
            allowed = "shape, and either frequency or stiffness"
            raise ModelError(f"it has {', '.join(mode) or 'nothing'}", where=where, allowed=allowed)
        for name in ("shape", "rotation"):
            vectors = mode.get(name, [[0.0] * 3] * N)
            if np.shape(np.array(vectors, dtype=object)) != (N, 3):
                raise ModelError(f"is not a list of {N} vectors", argument=name, where=where, allowed="[x, y, z]")
            kinds[name].append(vectors)
        kinds["damping"].append(mode.get("damping", 0.0))
        for name in ("frequency", "stiffness"):
            kinds[name] += [mode[name]] if name in mode else []
    if kinds["frequency"] and kinds["stiffness"]:
        raise ModelError("some modes have a frequency, others a stiffness", where=file.name, allowed="one")
    arrays = {"positions": content["positions"], "masses": content["masses"], "damping": kinds["damping"]}
    arrays |= {"shapes": np.moveaxis(np.array(kinds["shape"], dtype=object), 0, -1).tolist()}
    arrays |= {"rotations": np.moveaxis(np.array(kinds["rotation"], dtype=object), 0, -1).tolist()}
    return arrays | ({"frequencies": kinds["frequency"]} if kinds["frequency"] else {"stiffness": kinds["stiffness"]})


def write_modes(modes: Modes, path: str | Path) -> None:
    """Write modes to an .npz file with full precision, from which ``read_modes`` restores equal modes.

    Example:
        >>> import tempfile, torsor
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     modes = torsor.mechanism.flexible_links.beam(length=1.0, mass=1.0, bending=1.0)
        ...     write_modes(modes, Path(folder, "arm.npz"))
        ...     read_modes(Path(folder, "arm.npz")) == modes
        True
    """
    instance_of(modes, Modes, "write_modes", "modes", allowed=ALLOWED_MODES)
    file = Path(path)
    if file.suffix != ".npz":
        raise ModelError(f"unknown file type {file.suffix!r}", value=file.suffix, where=file.name, allowed=".npz")
    write_npz(file, {name: getattr(modes, name) for name in (*_EXACT_FIELDS, "turns")})
