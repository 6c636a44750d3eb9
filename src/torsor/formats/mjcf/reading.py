"""Reading MJCF with MuJoCo's compiler, so that defaults, includes and inferred inertias have MuJoCo's meaning.

The compiled model, with SI units, radians and body frames relative to their parents, is then converted.
"""

import hashlib
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torsor.base.arrays import Array
from torsor.base.errors import ModelError, missing, warn
from torsor.base.faults import refuse_or_warn
from torsor.base.files import replacing
from torsor.formats.meshes.mesh_files import obj_content, own_folders
from torsor.formats.meshes.triangles import Triangles
from torsor.formats.mjcf.equality import CONNECT, JOINT, WELD, read_coupling, read_loop
from torsor.formats.mjcf.notes import NAME as NOTE
from torsor.formats.mjcf.notes import Note, read_note
from torsor.formats.mjcf.pairs import Surfaces
from torsor.formats.writing import left_out_error
from torsor.formats.xml import Element, parse_xml
from torsor.mechanism import Frame, Joint, Link, Mechanism, Shape, Spring, Visual, build
from torsor.mechanism.loops import Closure
from torsor.mechanism.mechanism import DEFAULT
from torsor.mechanism.names import claim_name
from torsor.mechanism.parts import VISUAL_SIZES
from torsor.spatial import from_quaternion, inverse_pose, make_pose

# Values of mjtGeom. Signed distance functions are neither drawn nor used for collisions, and height fields not drawn.
_SHAPES = {0: "plane", 1: "height field", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 7: "mesh"}
# MuJoCo's viewer shows these groups of geoms by default; by convention the others are for collisions.
_VISIBLE_GROUPS = (0, 1, 2)
_NO_COLOR = (0.5, 0.5, 0.5, 1.0)  # of geoms with neither rgba nor a material


def pose_of(position: ArrayLike, wxyz: ArrayLike) -> Array:
    """Return the pose with a position and a quaternion in MuJoCo's order (w, x, y, z)."""
    return make_pose(from_quaternion(np.roll(wxyz, -1)), position)


# MuJoCo's compiler is used without data that a mechanism does not need: only meshes that affect a number are read.
#
# Reading meshes takes most of the time and memory of compiling. A mesh is needed if it determines an inertia or the
# size of a fitted shape. Every other mesh becomes an octahedron, so that meshes may be missing. Textures are not read.

_PARSED = (".xml", ".urdf")
_MESH = 7  # of mjtGeom
# An octahedron with the largest moment about x: MuJoCo neither moves nor turns it, so poses of geoms remain exact.
_CORNERS = np.vstack([np.diag([1.0, 2.0, 3.0]), -np.diag([1.0, 2.0, 3.0])])
_FACES = np.array([[0, 1, 2], [5, 1, 0], [2, 4, 0], [0, 4, 5], [2, 1, 3], [3, 1, 5], [3, 4, 2], [5, 4, 3]])


def compile_mjcf(path: Path) -> tuple[Any, Any, Mapping[str, str]]:
    """Return the module ``mujoco``, the compiled model of a file, and the files of the skipped meshes by mesh name.

    Meshes that affect no number are replaced by octahedra.
    """
    try:
        import mujoco
    except ImportError:
        message = "reading MJCF needs the package mujoco, which is not installed"
        raise missing(message, "mjcf", where=path.name) from None
    file = str(path.absolute())  # MuJoCo's mesh paths begin with the folder as given
    with _warnings_of(mujoco, path):
        try:
            if not hasattr(mujoco.MjSpec, "from_file") or path.suffix.lower() not in _PARSED:
                # Old versions have no separate parser; the parser of new versions reads only these suffixes.
                return mujoco, mujoco.MjModel.from_xml_path(file), {}
            spec = mujoco.MjSpec.from_file(file)
            files = _without_meshes(mujoco, spec)
            _without_textures(mujoco, spec)
            return mujoco, spec.compile(), files
        except (ValueError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
            text, fix = " ".join(str(error).split()), ""
            if "XML Error: Error opening" in text:
                fix = "add the included file"
            elif "opening file" in text or "opening resource" in text:
                fix = "add the file, or give the body an <inertial>: a mesh is read only if an inertia depends on it"
            raise ModelError(f"MuJoCo rejects it: {text}", where=path.name, fix=fix) from None


@contextmanager
def _warnings_of(mujoco: Any, path: Path) -> Iterator[None]:
    """Issue MuJoCo's warnings as ModelWarnings. By default, MuJoCo writes them to MUJOCO_LOG.TXT in the working folder.

    Warnings that end with a time come from its simulation, such as that about a nearly singular mass matrix. These and
    warnings about flexible bodies are irrelevant here and are omitted.
    """
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        with warnings.catch_warnings(record=True) as caught:  # the compiler repeats them as warnings of Python
            warnings.simplefilter("always")
            yield
    finally:
        mujoco.set_mju_user_warning(before)
    said += [str(item.message) for item in caught]
    for message in dict.fromkeys(item for item in said if "Time =" not in item and not item.startswith("flex ")):
        warn(f"MuJoCo warns: {' '.join(message.split())}", where=path.name)


def _without_meshes(mujoco: Any, spec: Any) -> dict[str, str]:
    """Replace the meshes that affect no number, and return their files by name."""
    needed = {geom.meshname for geom in spec.geoms if geom.meshname and _needs_mesh(mujoco, spec, geom)}
    needed |= {mesh for skin in spec.skins for mesh in [getattr(skin, "meshname", "")] if mesh}
    files = {}
    for mesh in spec.meshes:
        name = mesh.name or _stem(mesh.file)
        if not mesh.file or name in needed or mesh.plugin.active:
            continue
        files[name] = _file(spec, mesh)
        scale = np.abs(np.where(np.asarray(mesh.scale) == 0, 1.0, mesh.scale))
        mesh.name, mesh.file, mesh.content_type = name, "", ""
        mesh.uservert, mesh.userface = (_CORNERS / scale).ravel().tolist(), _FACES.ravel().tolist()
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # a shell is valid even if the scale mirrors it
    return files


def _needs_mesh(mujoco: Any, spec: Any, geom: Any) -> bool:
    """Return whether an inertia, or the size of a fitted shape, depends on the mesh of a geom."""
    if int(geom.type) != _MESH:
        return True
    rules, body = getattr(geom, "compiler", None) or spec.compiler, geom.parent
    always = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE) == int(rules.inertiafromgeom)
    never = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE) == int(rules.inertiafromgeom)
    if never or (body.explicitinertial and not always) or body.name == "world":
        return False
    least, most = rules.inertiagrouprange
    light = geom.mass == 0 or (np.isnan(geom.mass) and geom.density == 0)
    return bool(least <= geom.group <= most and not light)


def _stem(file: str) -> str:
    """Return the name that MuJoCo gives to an asset without a name."""
    return PurePosixPath(file.replace("\\", "/")).stem


def _file(spec: Any, mesh: Any) -> str:
    """Return the file of a mesh as MuJoCo resolves it."""
    file, folder = mesh.file.replace("\\", "/"), getattr(getattr(mesh, "compiler", None), "meshdir", spec.meshdir)
    file = PurePosixPath(file).name if spec.strippath else file
    return os.path.normpath(PurePosixPath(spec.modelfiledir or "") / (folder or "") / file)


def _without_textures(mujoco: Any, spec: Any) -> None:
    """Replace textures with one pixel, because a mechanism stores only the colours of materials."""
    taken = {texture.name for texture in spec.textures}
    for texture in spec.textures:
        # Only a skybox may have no name; a texture of a file has the name of the file.
        texture.name = texture.name or _stem(texture.file) or claim_name("texture", taken)
        texture.file, texture.content_type, texture.width, texture.height = "", "", 1, 1
        texture.cubefiles = [""] * len(texture.cubefiles)
        texture.type = mujoco.mjtTexture.mjTEXTURE_2D
        texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT


# Numbers of mjtJoint and mjtTrn.
_FREE, _BALL, _SLIDE = 0, 1, 2  # and 3, a hinge
_ON_JOINT = (0, 1)  # transmission to a joint, in the child's or the parent's axes
_MOTOR = (0, 0, 0)  # fixed gain, no bias, no dynamics
_FIXED_GAIN, _AFFINE_BIAS = 0, 1
_ON_TENDON, _WRAPPED_JOINT = 3, 1  # transmission to a tendon; a joint in a fixed tendon, of mjtWrap
_XYZ, _WXYZ = ("x", "y", "z"), ("qw", "qx", "qy", "qz")  # names of positions, in MuJoCo's order


def read_mjcf(
    path: Path, base: str = "fixed", strict: bool = False, root: Element | None = None, snap: float = 0.0
) -> Mechanism:
    """Return the mechanism of an MJCF file; the extra ``mjcf`` is required. ``root`` is the parsed root element.

    | MJCF | mechanism |
    |---|---|
    | bodies | links with MuJoCo's body frames; the base is ``world``, or the body that ``write_mjcf`` recorded |
    | several joints of a body | a massless link ``body/joint`` after each but the last |
    | ``qpos`` of hinges and slides | positions; quaternions are (x, y, z, w) here and (w, x, y, z) in MuJoCo |
    | sites, keyframes, qpos0 | frames, postures, the posture "default" unless it is neutral |
    | geoms that can collide, <exclude> | shapes, allowed collisions |
    | <pair> | unused bits of the masks of its shapes, and friction of a shape |
    | active equality constraints | exact loops (``connect`` spherical, ``weld`` weld) and couplings (``joint``) |

    Actuators are not part of a mechanism, but their force limits, position and velocity gains (``kp``, ``kd``),
    armature and damping are added to the joints. If there are loops, the joints with actuators (directly or through
    fixed tendons) are the active coordinates. Meshes are read only if an inertia depends on them. ``base="floating"``
    adds a free joint to the only body that is welded to the world. A ``ModelWarning`` names omitted properties that act
    in MuJoCo; ``strict`` makes it an error.
    """
    # Before MuJoCo reads the file, its size is checked, and document type and entity declarations are rejected.
    root = parse_xml(path, strict) if root is None else root
    if root.tag != "mujoco":
        raise ModelError(f"the root element is <{root.tag}>", where=path.name, allowed="<mujoco>")
    if any(not element.get("anchor", "0").strip() for element in root.iter("connect")):
        # MuJoCo 4.0 may hang afterwards when it reads another file.
        raise ModelError("<connect>: anchor is empty", where=path.name, allowed="three numbers")
    try:
        mujoco, model, unread = compile_mjcf(path)
        reader = _Reader(path, strict, base == "floating", mujoco, model, unread)
    except ModelError:
        if root.flaw:  # MuJoCo cannot read it either
            raise root.flaw from None
        raise
    if root.flaw:
        refuse_or_warn(root.flaw, strict=False, effect="read by MuJoCo's own parser")
    return reader.mechanism(root.get("model") or path.stem, base, snap)


def read_live_mujoco(model: Any, base: str = "fixed", strict: bool = False, snap: float = 0.0) -> Mechanism:
    """Return the mechanism of a ``mujoco.MjModel``, or of a ``mujoco.MjSpec``, of which a copy is compiled.

    The result is that of ``read_mjcf``. Meshes whose files are not found are saved from the model in a folder that is
    removed when the process ends.
    """
    import mujoco

    if isinstance(model, mujoco.MjSpec):
        with _warnings_of(mujoco, Path(model.modelname)):
            try:
                model = model.copy().compile()
            except (ValueError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
                raise ModelError(f"MuJoCo rejects it: {' '.join(str(error).split())}", where="MjSpec") from None
    name = bytes(model.names).split(b"\0", 1)[0].decode(errors="replace") or "MjModel"
    return _Reader(Path(name), strict, base == "floating", mujoco, model, None).mechanism(name, base, snap)


@cache
def _saved_meshes() -> "TemporaryDirectory[str]":
    """Return the folder of meshes of models without files, which is removed when the process ends."""
    return TemporaryDirectory(prefix="torsor-meshes-")


def _single(kinds: Array) -> Any:
    """Return a mask of the joints with one degree of freedom."""
    return (kinds != _FREE) & (kinds != _BALL)


class _Reader:
    """Converter of one compiled model, with its arrays and the names of its parts.

    ``unread`` are the files, by name, of meshes that the model replaces by octahedra; None for a model without a file.
    """

    def __init__(
        self, path: Path, strict: bool, floating: bool, mujoco: Any, model: Any, unread: Mapping[str, str] | None
    ):
        self.path, self.strict, self.floating = path, strict, floating
        self.mujoco, self.model, self.unread = mujoco, model, unread
        self.bodies = self._names("body", self.model.nbody)
        m, texts = self.model, self._names("text", self.model.ntext)
        self.note = Note()
        self.root = dict[str, float]()  # the initial positions of a floating base
        if NOTE in texts:  # data in the file for Torsor only
            start, count = (int(numbers[texts.index(NOTE)]) for numbers in (m.text_adr, m.text_size))
            text = bytes(m.text_data)[start : start + count].rstrip(b"\0").decode(errors="replace")
            self.note = read_note(text, path)
        self.surfaces = Surfaces(m, self._names("pair", m.npair))
        self.base = 0 if floating else self._noted_base(self.note.base)
        self.bodies[0] = self.bodies[self.base]
        self.joints = self._names("joint", self.model.njnt)
        self.armature, self.damping = self._per_dof("armature"), self._per_dof("damping")
        self.gravity = np.zeros(3) if self._is_disabled("GRAVITY") else np.array(self.model.opt.gravity)

    def mechanism(self, name: str, base: str, snap: float) -> Mechanism:
        """Return the mechanism, and issue the warnings about the model."""
        links, joints = self.parts()
        frames = self.frames({link.name for link in links})
        ends, loops, unread = self.equalities({link.name for link in links}, [frame.name for frame in frames])
        for fault in filter(None, [*(link.defect for link in links if not self.strict), self.omissions(unread)]):
            refuse_or_warn(fault, self.strict)
        base, active = "fixed" if self.floating else base, self.actuated_joints() if loops else ()
        parts = links, joints, [*frames, *ends], self.gravity
        return build(name, *parts, self.path.name, base, loops, active, self.postures(), snap, self.excluded())

    def _names(self, what: str, count: int) -> list[str]:
        """Return the names of all objects of a kind. Unnamed objects are numbered."""
        raw_names = [self._name(what, i) for i in range(count)]
        taken = {name for name in raw_names if name}
        return [name or claim_name(f"{what}{i}", taken) for i, name in enumerate(raw_names)]

    def _name(self, what: str, index: int) -> str:
        """Return the name of an object, or "" if it has none."""
        kind = getattr(self.mujoco.mjtObj, f"mjOBJ_{what.upper()}")
        try:
            return self.mujoco.mj_id2name(self.model, kind, index) or ""
        except UnicodeDecodeError as error:
            message = f"the name of a {what} cannot be read ({error})"
            raise ModelError(message, where=self.path.name, fix="save it as UTF-8") from None

    def _noted_base(self, name: str) -> int:
        """Return the body noted as the base, or 0, the world, if there is none or more than one."""
        m, body = self.model, self.bodies.index(name) if name in self.bodies else 0
        alone = not m.body_geomnum[0] and not np.any(m.site_bodyid == 0)
        still = m.body_parentid[body] == 0 and not m.body_jntnum[body] and m.body_mocapid[body] < 0
        at_origin = np.array_equal(pose_of(m.body_pos[body], m.body_quat[body]), np.eye(4))
        return body if alone and still and at_origin else 0

    def _is_disabled(self, *features: str) -> bool:
        """Return whether <flag> disables one of these features. Not every MuJoCo version has all of them."""
        bits = (int(getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{feature}", 0)) for feature in features)
        return any(bit & self.model.opt.disableflags for bit in bits)

    def _gears(self, joint: int) -> list[tuple[int, float]]:
        """Return (actuator, gear ratio) of each actuator of a joint."""
        m = self.model
        of_joint = np.isin(m.actuator_trntype, _ON_JOINT) & (m.actuator_trnid[:, 0] == joint)
        # Since MuJoCo 4, an actuator can have several forces, each with its own row of gears.
        rows = getattr(m, "actuator_outadr", np.arange(len(of_joint)))
        return [(int(a), float(m.actuator_gear[rows[a], 0])) for a in np.flatnonzero(of_joint)]

    def _per_dof(self, name: str) -> Array:
        """Return armature or damping (nv,), including the contribution of actuators, reflected by their gears."""
        m, total = self.model, np.array(getattr(self.model, f"dof_{name}"))
        actuator_values = getattr(m, f"actuator_{name}", np.zeros(m.nu))  # older versions of MuJoCo have none
        for dof, joint in enumerate(m.dof_jntid):
            total[dof] += sum(gear * (gear * float(actuator_values[a])) for a, gear in self._gears(joint))
        return total

    def _gains(self, joint: int) -> dict[str, float]:
        """Return the sums of the position and velocity gains of the servos of a joint with one degree of freedom."""
        gains = np.maximum(-self.model.actuator_biasprm[:, 1:3], 0.0) * self._servos()[:, None]
        kp, kd = sum((gear * (gear * gains[a]) for a, gear in self._gears(joint)), np.zeros(2)).tolist()
        return {"kp": kp, "kd": kd}

    def _servos(self) -> Any:
        """Return a mask of the actuators with fixed gains and a force that is affine in position and velocity."""
        m = self.model
        kinds = (m.actuator_gaintype == _FIXED_GAIN) & (m.actuator_biastype == _AFFINE_BIAS)
        return kinds & (m.actuator_gainprm[:, 0] != 0)

    def _effort_limit(self, joint: int) -> float:
        """Return the largest absolute force of the actuators of a joint with one degree of freedom."""
        m, gears = self.model, self._gears(joint)
        limits = [np.abs(m.jnt_actfrcrange[joint]).max()] if m.jnt_actfrclimited[joint] else [np.inf]
        if gears:
            limits.append(sum(abs(gear) * self._force_limit(a) for a, gear in gears if gear))
        return float(min(limits))

    def _force_limit(self, a: int) -> float:
        """Return the largest absolute force of an actuator. The force of a motor is proportional to its control."""
        m = self.model
        limits = [np.abs(m.actuator_forcerange[a]).max()] if m.actuator_forcelimited[a] else [np.inf]
        is_motor = (m.actuator_gaintype[a], m.actuator_biastype[a], m.actuator_dyntype[a]) == _MOTOR
        if is_motor and m.actuator_ctrllimited[a] and not self._is_disabled("CLAMPCTRL"):
            limits.append(abs(m.actuator_gainprm[a, 0]) * np.abs(m.actuator_ctrlrange[a]).max())
        return float(min(limits))

    def equalities(self, taken: set[str], sites: list[str]) -> tuple[list[Frame], list[Closure], NDArray[np.bool_]]:
        """Return equality constraints as loops and couplings with newly named frames, and a mask of omitted ones."""
        m, names, taken = self.model, self._names("equality", self.model.neq), taken | set(sites)
        frames, loops, unsupported = list[Frame](), list[Closure](), np.zeros(m.neq, dtype=bool)
        on = (m.eq_active0 != 0) & (not self._is_disabled("EQUALITY", "CONSTRAINT"))
        for e in np.flatnonzero(on).tolist():
            if m.eq_type[e] == JOINT:
                loops.append(read_coupling(m, e, names[e], self.joints))
            elif m.eq_type[e] in (CONNECT, WELD):
                made, loop = read_loop(m, e, names[e], self.bodies, sites, taken)
                frames += made
                loops.append(loop)
            else:
                unsupported[e] = True
        return frames, loops, unsupported

    def actuated_joints(self) -> list[str]:
        """Return the names of joints with one degree of freedom that have an actuator, directly or by fixed tendon."""
        m, pulled = self.model, set[int]()
        for tendon in m.actuator_trnid[m.actuator_trntype == _ON_TENDON, 0]:
            parts = slice(start := int(m.tendon_adr[tendon]), start + int(m.tendon_num[tendon]))
            pulled |= set(m.wrap_objid[parts][m.wrap_type[parts] == _WRAPPED_JOINT].tolist())
        single = np.flatnonzero(_single(m.jnt_type))
        return [self.joints[joint] for joint in single if joint in pulled or self._gears(int(joint))]

    def postures(self) -> dict[str, dict[str, float]]:
        """Return the positions of each keyframe, by name, and qpos0 as "default" unless it is neutral."""
        m = self.model
        keys = zip(self._names("key", m.nkey), m.key_qpos, strict=True)
        result = {name: self._positions(qpos) for name, qpos in keys}
        start = self._positions(m.qpos0) | self.root
        if any(value != key.endswith("/qw") for key, value in start.items()):
            result.setdefault(DEFAULT, start)
        return result

    def _positions(self, qpos: Array) -> dict[str, float]:
        """Return positions by name, with quaternions converted from MuJoCo's order (w, x, y, z)."""
        m, result = self.model, dict[str, float]()
        for joint, kind, start in zip(self.joints, m.jnt_type, m.jnt_qposadr, strict=True):
            many = {_FREE: (7, _XYZ + _WXYZ), _BALL: (4, _WXYZ)}.get(int(kind))
            count, suffixes = many or (1, ("",))
            keys = (f"{joint}/{suffix}" if suffix else joint for suffix in suffixes)
            result |= dict(zip(keys, qpos[start : start + count].tolist(), strict=True))
        return result

    def omissions(self, equalities: NDArray[np.bool_]) -> ModelError | None:
        """Return an error that names properties that act on bodies in MuJoCo but not here, or None."""
        m, nonzero = self.model, self._nonzero
        springs, limits = not self._is_disabled("SPRING", "PASSIVE"), not self._is_disabled("LIMIT", "CONSTRAINT")
        resisted, nonlinear = (self.armature != 0) | (m.dof_frictionloss != 0), nonzero("dof_dampingpoly")
        resisted, nonlinear = (np.isin(np.arange(m.njnt), m.dof_jntid[dofs]) for dofs in (resisted, nonlinear))
        tendons = nonzero(*(f"tendon_{name}" for name in ("stiffness", "damping", "frictionloss", "armature")))
        negative = self._servos() & (m.actuator_biasprm[:, 1:3] > 0).any(axis=1)
        indirect = nonzero("actuator_armature", "actuator_damping") & ~np.isin(m.actuator_trntype, _ON_JOINT)
        result = {
            "equality constraints of tendons, flexible bodies and geoms": ("equality", equalities),
            "tendons": ("tendon", tendons | nonzero("tendon_stiffnesspoly", "tendon_dampingpoly", "tendon_limited")),
            "nonlinear springs": ("joint", nonzero("jnt_stiffnesspoly") & springs),
            "springs of free and ball joints": ("joint", nonzero("jnt_stiffness") & springs & ~_single(m.jnt_type)),
            "nonlinear damping": ("joint", nonlinear),
            "armature and frictionloss of free joints": ("joint", resisted & (m.jnt_type == _FREE)),
            "limits of ball joints": ("joint", (m.jnt_type == _BALL) & (m.jnt_limited != 0) & limits),
            "armature and damping of actuators": ("actuator", indirect | nonzero("actuator_dampingpoly")),
            "negative gains of actuators": ("actuator", negative),
            "gravity compensation": ("body", nonzero("body_gravcomp")),
            "the motion of mocap bodies, which are fixed here": ("body", m.body_mocapid >= 0),
            "flexible bodies": ("flex", np.ones(m.nflex, dtype=bool)),
            "skins": ("skin", np.ones(m.nskin, dtype=bool)),
            "plugins of bodies": ("body", m.body_plugin >= 0),
        }
        lines: dict[str, list[str]] = {}
        for what, (kind, mask) in result.items():
            if mask.any():
                lines[what] = [name for name, named in zip(self._names(kind, len(mask)), mask, strict=True) if named]
        lines |= self.surfaces.omitted
        lines |= {"fluid forces": []} if m.opt.density or m.opt.viscosity else {}
        return left_out_error(lines, self.path.name, self.strict) if lines else None

    def _nonzero(self, *names: str) -> Any:
        """Return a mask of the rows of these arrays that are not all zero. Not every MuJoCo version has all arrays."""
        masks = [np.asarray(getattr(self.model, name)) != 0 for name in names if hasattr(self.model, name)]
        return np.any([mask if mask.ndim == 1 else mask.any(axis=1) for mask in masks], axis=0)

    def parts(self) -> tuple[list[Link], list[Joint]]:
        """Return the links and joints. A floating base has a free joint to the only body welded to the world."""
        m, joint_names, link_names = self.model, set(self.joints), set(self.bodies)
        floating_body = self._floating_body() if self.floating else -1
        links, joints = [self._link(self.base)], []
        for body in range(1, m.nbody):
            if body == self.base:
                continue
            parent, name = self.bodies[m.body_parentid[body]], self.bodies[body]
            rest = pose_of(m.body_pos[body], m.body_quat[body])
            joints_of_body = range(start := int(m.body_jntadr[body]), start + int(m.body_jntnum[body]))
            if not joints_of_body:
                welded = f"{name}/fixed", "fixed", rest
                joint_name, kind, placement = ("root", "free", np.eye(4)) if body == floating_body else welded
                joint_name = claim_name(joint_name, joint_names)
                if kind == "free":
                    at_rest = (*m.body_pos[body].tolist(), *m.body_quat[body].tolist())
                    self.root = {f"{joint_name}/{key}": x for key, x in zip(_XYZ + _WXYZ, at_rest, strict=True)}
                joints.append(Joint(joint_name, kind, parent, name, placement))
            for j in joints_of_body:  # the joints of a body act in sequence
                joint_name, at = self.note.links.get(self.joints[j], (f"{name}/{self.joints[j]}", np.eye(4)))
                child, at = (name, np.eye(4)) if j == joints_of_body[-1] else (claim_name(joint_name, link_names), at)
                links += [Link(child)] if child != name else []
                joint, R = self._joint(j, parent, child, rest), at[:3, :3]
                if not np.array_equal(at, np.eye(4)):  # the frame of the child is at this pose
                    axis, point = R.T @ joint.axis, R.T @ (joint.point - at[:3, 3])
                    joint = replace(joint, placement=joint.placement @ at, axis=axis, point=point)
                joints.append(joint)
                parent, rest = child, inverse_pose(at)
            links.append(self._link(body))
        return links, joints

    def _floating_body(self) -> int:
        """Return the body that gets the free joint of ``base="floating"``."""
        m = self.model
        on_world = [body for body in range(1, m.nbody) if m.body_parentid[body] == 0]
        if len(on_world) == 1 and not m.body_jntnum[on_world[0]]:
            return on_world[0]
        bodies = ", ".join(f"{self.bodies[body]!r} ({m.body_jntnum[body]} joints)" for body in on_world) or "nothing"
        message = f"the base cannot float, because the bodies on the world are {bodies}"
        allowed, fix = "one body without joints", "use `base='fixed'`, which keeps free joints"
        raise ModelError(message, where=self.path.name, allowed=allowed, fix=fix)

    def _link(self, body: int) -> Link:
        """Return a body as a link in MuJoCo's body frame. MuJoCo gives the inertia in principal axes."""
        m = self.model
        R = from_quaternion(np.roll(m.body_iquat[body], -1))
        inertia = (R * m.body_inertia[body]) @ R.T
        solid = m.body_mass[body], m.body_ipos[body], 0.5 * (inertia + inertia.T)
        name, visuals, shapes = self.bodies[body], list[Visual](), list[Shape]()
        for g in np.flatnonzero(m.geom_bodyid == body).tolist():
            self._geom(g, visuals, shapes)
        visuals += [visual for owner, visual in self.note.visuals if owner == name]
        shapes += [shape for owner, shape in self.note.shapes if owner == name]
        return Link(name, *solid, tuple(visuals), self.strict, self.path.name, tuple(shapes))

    def _geom(self, g: int, visuals: list[Visual], shapes: list[Shape]) -> None:
        """Add a geom to the visuals if it is visible, and to the shapes if it can collide."""
        m, shape = self.model, _SHAPES.get(int(self.model.geom_type[g]))
        material, masks = m.geom_matid[g], self.surfaces.masks[g].tolist()
        rgba = tuple(float(str(item)) for item in (m.geom_rgba[g] if material < 0 else m.mat_rgba[material]))
        collides = any(masks) or g in self.surfaces.paired
        # A transparent geom that cannot collide is still a visual; otherwise it would be lost.
        visible = shape in VISUAL_SIZES and m.geom_group[g] in _VISIBLE_GROUPS and (rgba[3] != 0 or not collides)
        if shape is None or not (visible or collides):
            return
        pose, (a, b, c) = pose_of(m.geom_pos[g], m.geom_quat[g]), m.geom_size[g].tolist()
        sizes = {"sphere": (a,), "box": (2 * a, 2 * b, 2 * c), "ellipsoid": (a, b, c), "plane": ()}
        result: dict[str, Any] = {"shape": shape, "size": sizes.get(shape, (a, 2 * b)), "pose": pose}
        if shape == "mesh":
            result |= self._mesh(int(m.geom_dataid[g]), pose)
        elif shape == "height field":
            field = int(m.geom_dataid[g])
            rows, columns, first = (int(each[field]) for each in (m.hfield_nrow, m.hfield_ncol, m.hfield_adr))
            a, b, top, _ = m.hfield_size[field].tolist()
            data = m.hfield_data[first : first + rows * columns].astype(float)
            result |= {"size": (2 * a, 2 * b), "heights": top * data.reshape(rows, columns)}
        result["name"] = self._name("geom", g)
        if visible:
            uncolored = material < 0 and rgba == _NO_COLOR
            visuals.append(Visual(**result, color=None if uncolored else rgba))
        if collides:
            result |= {"friction": float(self.surfaces.friction[g]), "priority": int(self.surfaces.priority[g])}
            shapes.append(Shape(**result, contype=masks[0], conaffinity=masks[1]))

    def _mesh(self, mesh: int, pose: Array) -> dict[str, Any]:
        """Return file, pose and scale of a mesh whose principal axes are at ``pose``."""
        m, start = self.model, int(self.model.mesh_pathadr[mesh])
        file = "" if start < 0 else m.paths[start:].split(b"\0", 1)[0].decode(errors="replace")
        file = (self.unread or {}).get(self._name("mesh", mesh), file)
        path, folders = self.path.parent / file, own_folders(self.path) if file else None
        found = bool(file) and path.is_file()
        if self.unread is None:  # a live model, whose files may be in any folder
            folders = None
            if not found:
                saved = self._saved(mesh)
                return {"pose": pose, "size": (1.0, 1.0, 1.0), "mesh": file or saved.name, "path": str(saved)}
        moved, size = pose_of(m.mesh_pos[mesh], m.mesh_quat[mesh]), tuple(m.mesh_scale[mesh].tolist())
        where = {"mesh": file or None, "path": str(path) if found else None, "folders": folders}
        return {"pose": pose @ inverse_pose(moved), "size": size} | where

    def _saved(self, mesh: int) -> Path:
        """Save a mesh of the model, in its principal axes, and return its file."""
        m = self.model
        first, start = int(m.mesh_vertadr[mesh]), int(m.mesh_faceadr[mesh])
        vertices = m.mesh_vert[first : first + int(m.mesh_vertnum[mesh])]
        faces = m.mesh_face[start : start + int(m.mesh_facenum[mesh])]
        content = obj_content(Triangles(vertices.astype(float), faces.astype(np.int64)))
        path = Path(_saved_meshes().name) / f"{hashlib.sha256(content).hexdigest()[:16]}.obj"
        if not path.exists():
            with replacing(path) as part:
                part.write_bytes(content)
        return path

    def excluded(self) -> list[tuple[str, str, str]]:
        """Return the pairs of bodies in <exclude>, whose signature contains the first body in the high bits."""
        numbers = (divmod(int(item), 2**16) for item in self.model.exclude_signature)
        return [(self.bodies[a], self.bodies[b], "excluded") for a, b in numbers if a != b]

    def frames(self, taken: set[str]) -> list[Frame]:
        """Return the sites as frames. In MuJoCo, bodies and sites may share a name; links and frames may not."""
        m, names = self.model, self._names("site", self.model.nsite)
        reserved = taken | set(names)
        names = [claim_name(f"{name}/site", reserved) if name in taken else name for name in names]
        sites = zip(names, m.site_bodyid, m.site_pos, m.site_quat, strict=True)
        return [Frame(name, self.bodies[body], pose_of(position, wxyz)) for name, body, position, wxyz in sites]

    def _joint(self, joint: int, parent: str, child: str, rest: Array) -> Joint:
        """Return a joint whose child is at the pose ``rest`` in its parent if the joint is at zero."""
        m, kind, name = self.model, int(self.model.jnt_type[joint]), self.joints[joint]
        dofs = m.dof_jntid == joint
        viscous = self.damping[dofs] * (not self._is_disabled("DAMPER", "PASSIVE"))
        if kind == _FREE:
            # Its position is the pose in the world, without a placement. MuJoCo stores linear damping first.
            return Joint(name, "free", parent, child, viscous=np.roll(viscous, 3), source=self.path.name)
        settings: dict[str, Any] = {"viscous": viscous, "rotor_inertia": self.armature[dofs], "source": self.path.name}
        settings["coulomb"] = m.dof_frictionloss[dofs] * (not self._is_disabled("FRICTIONLOSS", "CONSTRAINT"))
        if kind == _BALL:
            return Joint(name, "spherical", parent, child, rest, point=m.jnt_pos[joint], **settings)
        settings |= {"offset": -m.qpos0[m.jnt_qposadr[joint]], "effort_limit": self._effort_limit(joint)}
        settings |= self._gains(joint)
        if m.jnt_stiffness[joint] and not self._is_disabled("SPRING", "PASSIVE"):
            # Springs act on the joint's position, which is zero at qpos0.
            rest_position = m.qpos_spring[m.jnt_qposadr[joint]] - m.qpos0[m.jnt_qposadr[joint]]
            settings["spring"] = Spring(float(m.jnt_stiffness[joint].flat[0]), rest=float(rest_position))
        limited = m.jnt_limited[joint] and not self._is_disabled("LIMIT", "CONSTRAINT")
        if limited:
            settings |= {"lower": float(m.jnt_range[joint, 0]), "upper": float(m.jnt_range[joint, 1])}
        moves = "prismatic" if kind == _SLIDE else "revolute" if limited else "continuous"
        return Joint(name, moves, parent, child, rest, m.jnt_axis[joint], m.jnt_pos[joint], **settings)
