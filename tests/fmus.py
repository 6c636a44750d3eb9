"""Instances of FMUs through FMPy, with variables by name, for FMI 2 and 3 alike."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from ctypes import c_double
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torsor.export.fmu.variables import levels, structured

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed: pip install fmpy")
from fmpy import fmi2, fmi3  # noqa: E402


class Unit:
    """An instance, with values of variables set before the initialisation; errors of its log are in ``said``."""

    def __init__(
        self,
        path: Path,
        start: Mapping[str, float] = {},
        cosimulation: bool = True,
        token: str = "",
        stop: float | None = None,
    ):
        self.description = fmpy.read_model_description(str(path))
        self.three = self.description.fmiVersion.startswith("3")
        self.references = {each.name: each.valueReference for each in self.description.modelVariables}
        self.folder = fmpy.extract(str(path), tempfile.mkdtemp())
        self.said: list[str] = []
        kinds = (fmi3.FMU3Slave, fmi3.FMU3Model) if self.three else (fmi2.FMU2Slave, fmi2.FMU2Model)
        interface = self.description.coSimulation
        self.fmu: Any = kinds[not cosimulation](
            guid=token or self.description.guid or self.description.instantiationToken,
            unzipDirectory=self.folder,
            modelIdentifier=interface.modelIdentifier,
            instanceName="unit",
        )
        if self.three:
            self.fmu.instantiate(logMessage=lambda environment, status, category, message: self._log(message))
        else:
            self._callbacks = fmi2.fmi2CallbackFunctions()
            self._callbacks.logger = fmi2.fmi2CallbackLoggerTYPE(self._log_2)
            self._callbacks.allocateMemory = fmi2.fmi2CallbackAllocateMemoryTYPE(fmpy.calloc)
            self._callbacks.freeMemory = fmi2.fmi2CallbackFreeMemoryTYPE(fmpy.free)
            fmi2.addLoggerProxy(fmi2.byref(self._callbacks))  # fills in the arguments behind the format
            self.fmu.instantiate(callbacks=self._callbacks)
            self.fmu.setupExperiment(stopTime=stop)
        self.set(start)
        self.fmu.enterInitializationMode(**({"stopTime": stop} if self.three else {}))
        self.fmu.exitInitializationMode()

    def _log(self, message: bytes) -> None:
        self.said.append(message.decode())

    def _log_2(self, environment: Any, name: bytes, status: int, category: bytes, message: bytes) -> None:
        self._log(message)

    def close(self) -> None:
        self.fmu.freeInstance()
        shutil.rmtree(self.folder, ignore_errors=True)

    def refer(self, names: Iterable[str]) -> list[int]:
        return [self.references[name] for name in names]

    def set(self, values: Mapping[str, float]) -> None:
        method = self.fmu.setFloat64 if self.three else self.fmu.setReal
        if values:
            method(self.refer(values), list(values.values()))

    def get(self, names: Iterable[str]) -> np.ndarray:
        method = self.fmu.getFloat64 if self.three else self.fmu.getReal
        return np.array(method(self.refer(names)))

    def step(self, start: float, length: float) -> None:
        self.fmu.doStep(currentCommunicationPoint=start, communicationStepSize=length)

    def derivative(self, unknowns: Sequence[str], knowns: Sequence[str], seed: Sequence[float]) -> np.ndarray:
        return np.array(self.fmu.getDirectionalDerivative(self.refer(unknowns), self.refer(knowns), list(seed)))

    def jacobian(self, unknowns: Sequence[str], knowns: Sequence[str]) -> np.ndarray:
        return np.stack([self.derivative(unknowns, [known], [1.0]) for known in knowns], axis=1)

    def rates(self, states: Sequence[float]) -> np.ndarray:
        """The rates of states, in continuous time."""
        count = len(states)
        given, found = (c_double * count)(*states), (c_double * count)()
        self.fmu.setContinuousStates(given, count)
        (self.fmu.getContinuousStateDerivatives if self.three else self.fmu.getDerivatives)(found, count)
        return np.array(found)


def coordinates(letter: str, names: Sequence[str], values: Iterable[float]) -> dict[str, float]:
    """Values of variables "q.NAME"."""
    return {structured(letter, *levels(name)): float(value) for name, value in zip(names, values, strict=True)}
