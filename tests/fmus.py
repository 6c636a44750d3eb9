"""FMUs driven through the C functions of FMI 2 and 3 by ctypes, with variables by name, on every platform."""

from __future__ import annotations

import ctypes
import platform
import shutil
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from torsor.export.fmu.variables import levels, structured

# FMI 3 names the processor and the system, FMI 2 the system and the size of a pointer.
_SYSTEM = {"linux": ("linux", "linux64", ".so"), "darwin": ("darwin", "darwin64", ".dylib")}.get(
    sys.platform, ("windows", "win64", ".dll")
)
_PROCESSOR = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
# FMI 2 logs by a function like printf. A callback of ctypes has a fixed number of arguments, which is the same call
# but on Apple's ARM processors: there the arguments behind the format lie on the stack, after eight registers.
_UNUSED = [c_void_p] * 3 if (sys.platform, _PROCESSOR) == ("darwin", "aarch64") else []
_Log2 = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int, c_char_p, c_char_p, *_UNUSED, c_char_p)
_Log3 = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)
_Allocate = ctypes.CFUNCTYPE(c_void_p, c_size_t, c_size_t)
_Free = ctypes.CFUNCTYPE(None, c_void_p)


class _Callbacks(ctypes.Structure):
    _fields_ = (
        ("logger", _Log2),
        ("allocate", _Allocate),
        ("free", _Free),
        ("finished", c_void_p),
        ("environment", c_void_p),
    )


class _EventInfo(ctypes.Structure):
    _fields_ = (
        *((name, c_int) for name in ("again", "terminate", "nominals", "states", "defined")),
        ("next", c_double),
    )


class FMIError(Exception):
    """An FMI function returned a status other than OK, or no instance."""


def binary_path(identifier: str, version: int) -> Path:
    """Return the path of this platform's library within an FMU."""
    name, name_2, suffix = _SYSTEM
    return Path("binaries", name_2 if version == 2 else f"{_PROCESSOR}-{name}", identifier + suffix)


class Description:
    """Content of ``modelDescription.xml``: token, value references by name, and dependencies of unknowns by name."""

    def __init__(self, text: str):
        root = ElementTree.fromstring(text)
        self.version = int(root.attrib["fmiVersion"][0])
        self.token = root.attrib["guid" if self.version == 2 else "instantiationToken"]
        self.identifier = root.find("CoSimulation").attrib["modelIdentifier"]  # type: ignore[union-attr]
        variables = [each.attrib for each in root.iterfind("ModelVariables/*")]
        self.references = {each["name"]: int(each["valueReference"]) for each in variables}
        structure: Any = root.find("ModelStructure")
        if self.version == 2:
            numbered = {str(k): each["name"] for k, each in enumerate(variables, 1)}
            key, unknowns = "index", [each for kind in ("Outputs", "Derivatives") for each in structure.find(kind)]
        else:
            numbered = {each["valueReference"]: each["name"] for each in variables}
            kinds = ("Output", "ContinuousStateDerivative")
            key, unknowns = "valueReference", [each for kind in kinds for each in structure.findall(kind)]
        self.dependencies = [
            (numbered[each.attrib[key]], {numbered[known] for known in each.attrib["dependencies"].split()})
            for each in unknowns
        ]


class Unit:
    """An instance of an FMU, initialised with values of variables; the messages of its log are in ``said``.

    ``path`` is a file, or the folder of one that is extracted: instances from one folder share the library.
    """

    def __init__(
        self,
        path: Path,
        start: Mapping[str, float] = {},
        cosimulation: bool = True,
        token: str = "",
        stop: float | None = None,
    ):
        self.folder = path
        if not path.is_dir():
            self.folder = Path(tempfile.mkdtemp())
            weakref.finalize(self, shutil.rmtree, self.folder, True)
            with zipfile.ZipFile(path) as archive:
                archive.extractall(self.folder)
        self.description = Description((self.folder / "modelDescription.xml").read_text(encoding="utf-8"))
        self.three = self.description.version == 3
        self.said: list[str] = []
        library = self.folder / binary_path(self.description.identifier, self.description.version)
        self.library = ctypes.CDLL(str(library.resolve()))
        self.instance = self._instantiate(cosimulation, (token or self.description.token).encode())
        if not self.three:
            self.call("SetupExperiment", *self._experiment(stop))
        self.set(start)
        self.enter_initialisation(stop)
        self.call("ExitInitializationMode")

    def _flag(self, value: bool) -> Any:
        return c_bool(value) if self.three else c_int(value)

    def _experiment(self, stop: float | None) -> list[Any]:
        zero = c_double(0.0)  # the tolerance, which is not defined, and the start
        return [self._flag(False), zero, zero, self._flag(stop is not None), c_double(stop or 0.0)]

    def enter_initialisation(self, stop: float | None = None) -> None:
        self.call("EnterInitializationMode", *(self._experiment(stop) if self.three else ()))

    def _instantiate(self, cosimulation: bool, token: bytes) -> c_void_p:
        no, resources = self._flag(False), (self.folder / "resources").as_uri().encode()
        if self.three:
            self._log = _Log3(lambda environment, status, category, message: self.said.append(message.decode()))
            name = "InstantiateCoSimulation" if cosimulation else "InstantiateModelExchange"
            events = [no, no, None, c_size_t(0)] if cosimulation else []  # no event mode, early return, variables
            update = [None] if cosimulation else []
            arguments = [b"unit", token, resources, no, no, *events, None, self._log, *update]
        else:
            libc = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
            self._callbacks = _Callbacks(_Log2(self._log_2), _Allocate(("calloc", libc)), _Free(("free", libc)))
            name, kind = "Instantiate", c_int(cosimulation)
            arguments = [b"unit", kind, token, resources, byref(self._callbacks), no, no]
        function = self.library[f"fmi{self.description.version}{name}"]
        function.restype = c_void_p
        if not (instance := function(*arguments)):
            raise FMIError(f"fmi{self.description.version}{name} returned no instance: {self.said}")
        return c_void_p(instance)

    def _log_2(self, environment: Any, name: bytes, status: int, category: bytes, form: bytes, *rest: Any) -> None:
        self.said.append(rest[-1].decode() if form == b"%s" else f"a format that the driver does not know: {form!r}")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of FMI, named without its prefix, and raise FMIError if its status is not OK."""
        full = f"fmi{self.description.version}{name}"
        if status := self.library[full](self.instance, *arguments):
            raise FMIError(f"{full} returned status {status}: {self.said[-1:]}")

    def close(self) -> None:
        function = self.library[f"fmi{self.description.version}FreeInstance"]
        function.restype = None
        function(self.instance)

    def _refer(self, names: Iterable[str]) -> tuple[Any, c_size_t]:
        references = [self.description.references[name] for name in names]
        return (c_uint32 * len(references))(*references), c_size_t(len(references))

    def _reals(self, name: str, names: Sequence[str], values: Any) -> None:
        count = [c_size_t(len(values))] if self.three else []  # arrays have more values than references
        self.call(name + ("Float64" if self.three else "Real"), *self._refer(names), values, *count)

    def set(self, values: Mapping[str, float]) -> None:
        if values:
            self._reals("Set", list(values), (c_double * len(values))(*values.values()))

    def get(self, names: Iterable[str]) -> np.ndarray:
        listed = list(names)
        values = (c_double * len(listed))()
        self._reals("Get", listed, values)
        return np.array(values)

    def step(self, start: float, length: float) -> None:
        """Take a step of co-simulation."""
        # Event, termination, early return and the time that is reached.
        outputs: tuple[Any, ...] = (c_bool(), c_bool(), c_bool(), c_double()) if self.three else ()
        self.call("DoStep", c_double(start), c_double(length), self._flag(True), *map(byref, outputs))
        assert not self.three or (not any(each.value for each in outputs[:3]) and outputs[3].value == start + length)

    def _sensitivity(self, name: str, unknowns: Any, knowns: Any, seed: Sequence[float], count: int) -> np.ndarray:
        given, found = (c_double * len(seed))(*seed), (c_double * count)()
        sized = [given, c_size_t(len(seed)), found, c_size_t(count)] if self.three else [given, found]
        self.call(name, *self._refer(unknowns), *self._refer(knowns), *sized)
        return np.array(found)

    def derivative(self, unknowns: Sequence[str], knowns: Sequence[str], seed: Sequence[float]) -> np.ndarray:
        return self._sensitivity("GetDirectionalDerivative", unknowns, knowns, seed, len(unknowns))

    def adjoint(self, unknowns: Sequence[str], knowns: Sequence[str], seed: Sequence[float]) -> np.ndarray:
        return self._sensitivity("GetAdjointDerivative", unknowns, knowns, seed, len(knowns))

    def jacobian(self, unknowns: Sequence[str], knowns: Sequence[str]) -> np.ndarray:
        return np.stack([self.derivative(unknowns, [known], [1.0]) for known in knowns], axis=1)

    def _state(self, name: str) -> str:
        return name if self.three else name.replace("State", "state").replace("Des", "DeS")

    def save(self) -> c_void_p:
        self.call(self._state("GetFMUState"), byref(state := c_void_p()))
        return state

    def restore(self, state: c_void_p) -> None:
        self.call(self._state("SetFMUState"), state)

    def free_state(self, state: c_void_p) -> None:
        self.call(self._state("FreeFMUState"), byref(state))
        assert not state

    def serialise(self, state: c_void_p) -> bytes:
        self.call(self._state("SerializedFMUStateSize"), state, byref(size := c_size_t()))
        self.call(self._state("SerializeFMUState"), state, data := (ctypes.c_ubyte * size.value)(), size)
        return bytes(data)

    def deserialise(self, data: bytes) -> c_void_p:
        self.call(self._state("DeserializeFMUState"), data, c_size_t(len(data)), byref(state := c_void_p()))
        return state

    def enter_continuous_time(self) -> None:
        """Handle the event at the start of model exchange, which changes no state, and leave event mode."""
        if self.three:
            flags, later = [c_bool(True) for _ in range(5)], c_double()
            self.call("UpdateDiscreteStates", *map(byref, flags), byref(later))
            assert not any(each.value for each in flags)
        else:
            self.call("NewDiscreteStates", byref(info := _EventInfo(1, 1, 1, 1, 1)))
            assert not any((info.again, info.terminate, info.nominals, info.states, info.defined))
        self.call("EnterContinuousTimeMode")

    def states(self, count: int) -> np.ndarray:
        values = (c_double * count)()
        self.call("GetContinuousStates", values, c_size_t(count))
        return np.array(values)

    def rates(self, states: Sequence[float] | np.ndarray) -> np.ndarray:
        """The rates of states, in continuous time."""
        count = len(states)
        given, found = (c_double * count)(*states), (c_double * count)()
        self.call("SetContinuousStates", given, c_size_t(count))
        self.call("GetContinuousStateDerivatives" if self.three else "GetDerivatives", found, c_size_t(count))
        return np.array(found)

    def exchange(self, count: int, stop: float, steps: int) -> np.ndarray:
        """Integrate the states of model exchange from 0 to ``stop`` by Runge-Kutta steps of order 4; return the last.

        Ends with the mode of events and terminates the instance.
        """
        self.enter_continuous_time()
        x, h = self.states(count), stop / steps
        event, terminate = self._flag(True), self._flag(True)
        for k in range(steps):
            slopes = [self.rates(x)]
            for part in (0.5, 0.5, 1.0):
                self.call("SetTime", c_double((k + part) * h))
                slopes.append(self.rates(x + part * h * slopes[-1]))
            x = x + h / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
            self.call("SetContinuousStates", (c_double * count)(*x), c_size_t(count))
            self.call("CompletedIntegratorStep", self._flag(True), byref(event), byref(terminate))
            assert not event.value and not terminate.value
        self.call("EnterEventMode")
        x = self.states(count)
        self.call("Terminate")
        return x


def coordinates(letter: str, names: Sequence[str], values: Iterable[float]) -> dict[str, float]:
    """Values of variables "q.NAME"."""
    return {structured(letter, *levels(name)): float(value) for name, value in zip(names, values, strict=True)}
