"""One case in a worker: in this process, in a process of this machine, or on another machine of a cluster.

The function travels as bytes, with every case, and is unpacked once in each process: a worker that is started later,
in the place of a killed one, needs nothing else. Errors of a case are part of its row.
"""

import hashlib
import pickle
import threading
import warnings
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

from torsor.base.errors import ModelError
from torsor.motion import MotionError
from torsor.motion.sweeps.cases import Case
from torsor.motion.sweeps.subjects import Subject
from torsor.motion.sweeps.values import Row, check_names
from torsor.simulation import SimulationError

MOST_KEPT = 4  # functions that a process keeps: a cluster may serve several studies
# Errors whose message says what is wrong; the others are shown with their type.
_IN_WORDS = (ModelError, MotionError, SimulationError)

_subjects: dict[str, Subject] = {}


class Parcel(NamedTuple):
    """A subject as bytes, with their hash."""

    digest: str
    content: bytes

    @classmethod
    def of(cls, subject: Subject) -> "Parcel":
        """Return a subject as bytes, by cloudpickle where it is installed: it takes functions of notebooks too."""
        try:
            from cloudpickle import dumps
        except ImportError:
            from pickle import dumps
        try:
            content = dumps(subject)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            found = f"{subject.name} cannot be sent to another process: {error}"
            fix = "define the function in a module, or install cloudpickle, or compute in this process: `workers=0`"
            raise ModelError(found, where="sweep", fix=fix) from None
        return cls(hashlib.blake2b(content, digest_size=8).hexdigest(), content)

    def open(self) -> Subject:
        """Return the subject, unpacked once in a process."""
        found = _subjects.get(self.digest)
        if found is None:
            found = _subjects[self.digest] = pickle.loads(self.content)
            while len(_subjects) > MOST_KEPT:
                _subjects.pop(next(iter(_subjects)), None)
        return found


def run_parcel(parcel: Parcel, case: Case, attempt: int = 0) -> Row:
    """Return the row of a case in a worker; ``attempt`` tells a cluster that a second attempt is another task."""
    try:
        subject = parcel.open()
    except (Exception, SystemExit) as error:  # of a module that this process imports, for example
        reason = f"the function cannot be unpacked in a worker: {type(error).__name__}: {error}"
        return Row(case.number, case.digest, case.values, {}, _encodable(reason), units={})
    return run_case(subject, case)


def run_case(subject: Subject, case: Case) -> Row:
    """Return the row of a case; its error, if it has one, is in the row.

    Example:
        >>> run_case(Subject("ratio", lambda a, b: a / b), Case(7, {"a": 1.0, "b": 0.0})).error
        'ZeroDivisionError: float division by zero'
    """
    start, results, units = perf_counter(), dict[str, Any](), dict[str, str]()
    # Warnings belong to a case only where no other thread can change their filters meanwhile.
    here = threading.current_thread() is threading.main_thread()
    with _one_thread(), warnings.catch_warnings(record=True) if here else warnings.catch_warnings() as caught:
        if here:
            warnings.simplefilter("default")
        try:
            found = subject.run(case.values)
            check_names(case.values, found.results)
            results, error, units = found.results, found.reason, dict(found.units)
        except (Exception, SystemExit) as wrong:
            error = str(wrong) if isinstance(wrong, _IN_WORDS) else f"{type(wrong).__name__}: {wrong}"
    error, warning = _encodable(error), "\n".join(dict.fromkeys(str(each.message) for each in caught or ()))
    return Row(
        case.number, case.digest, case.values, results, error, _encodable(warning), perf_counter() - start, units
    )


def _encodable(text: str) -> str:
    """Return text that every file can hold: half characters (lone surrogates) as escapes."""
    return text.encode(errors="backslashreplace").decode()


def _one_thread() -> Any:
    """Return a context in which linear algebra has one thread: the workers share the cores among themselves."""
    return _controller().limit(limits=1)


@cache
def _controller() -> Any:
    return ThreadpoolController()
