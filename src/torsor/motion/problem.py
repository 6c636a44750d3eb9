"""The two main user classes, motion problems and their results, which refer to each other."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torsor.base.archive import Archive, reading_archive, register_result
from torsor.base.arrays import Array
from torsor.base.checks import one_of, whole_number
from torsor.base.errors import ModelError, warn
from torsor.base.result import Result
from torsor.base.summary import Summary, as_text
from torsor.base.tables import Column
from torsor.motion import many
from torsor.motion.batched import WIDTHS
from torsor.motion.encoding import encodable
from torsor.motion.files import read_problem, save_problem
from torsor.motion.many import BATCH_SOLVER, Searches, solve_cases
from torsor.motion.multistart import Multistart, solve_from_starts
from torsor.motion.results import certificate, files, replay, report
from torsor.motion.results.certificate import Certificate
from torsor.motion.results.solution import BETWEEN, Solution
from torsor.motion.sensitivity import Sensitivity, sensitivity
from torsor.motion.solve import SolveSettings, solve
from torsor.motion.starts import random_start, read_start
from torsor.motion.statement import ProblemStatement
from torsor.robot.target import Target
from torsor.simulation import Trajectory
from torsor.simulation.files import columns
from torsor.simulation.timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class MotionProblem(ProblemStatement):
    """A motion planning problem.

    A ``robot`` moves through ``phases`` such that the sum of the ``objective`` terms is minimal and all ``constraints``
    are satisfied. The free parameters of a parametric robot are variables, with initial values and bounds in
    ``numbers``. Coordinates may be ``frozen`` ({name: position}), or all of them follow a joint ``path``, along which
    the profile ``progress`` increases from 0 to 1. The motion of robots with closed loops is defined by their active
    coordinates; positions (nq,) in ``assembly`` select the assembly mode. Profiles of successive phases are continuous
    up to accelerations, unless ``Linked`` specifies otherwise. ``settings`` are defaults of ``solve``.

    Every term has a ``name`` for reports and applies to one ``phase`` (index or name) or to all (None). It applies at
    the times ``at`` or, by default, at the nodes ``during`` (first, last). Times are fractions of the phase, 0 to 1.
    Terms of the objective are multiplied by ``weight`` and integrated over time, or summed over the times ``at``.

    ``relaxation_order`` contains groups of constraint names in the order in which they may be relaxed if the problem is
    infeasible. The error then states by how much the first sufficient group has to be relaxed if earlier groups are
    omitted and all other constraints are satisfied.

    Example:
        >>> from torsor import motion
        >>> problem = motion.MotionProblem(
        ...     torsor.library.two_link(),
        ...     motion.Phase((0.1, 2.0), points=12),
        ...     motion.Time(),
        ...     [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0), motion.Torques(upper=10.0)],
        ... )
        >>> round(problem.solve().T, 5)
        0.39563
    """

    def solve(
        self,
        solver: str | None = None,
        *,
        start: Any = None,
        tolerance: float | None = None,
        iterations: int | None = None,
        seconds: float | None = None,
        refine: bool | float | None = None,
        progress: bool | None = None,
        check: bool | None = None,
        feasible_first: bool | None = None,
        tie_break: bool | None = None,
    ) -> "MotionResult":
        """Solve the problem and return the motion.

        ``solver`` is "ipopt" (the default) or another key of ``motion.SOLVERS``. ``start`` is None for straight lines,
        an earlier result (a warm start, which may have different phases), profiles (K, N) at equal time steps, or
        variables (n,). ``tolerance`` (1e-6) applies to optimality and to the scaled rows. ``iterations`` (500) and
        ``seconds`` (no limit) stop the solver, as does Ctrl-C. The result is then the best motion so far, with a status
        that states the reason. If the time limit is reached during compilation, ``MotionError`` is raised.

        Unless ``refine`` is False, phases without ``points`` receive more control points until the objective is within
        an estimated 0.5 % of its limit (``MotionResult.distance``). If the motion is a saddle point of the Lagrangian,
        the problem is solved again along negative curvature (``MotionResult.curvature``).

        ``refine`` adds nodes, and control points for equations, until all rows are also satisfied on a grid ten times
        finer: to 1e-4 of the row scales if it is True, or to the tolerance ``refine``. Refinement ends after 8 rounds,
        at ten times the nodes or four times the control points, or when all rounds together reach ``iterations``. The
        status states the result. If a motion violates rows by more than 0.05 of their scales between the nodes, its
        status is "optimal at the nodes only" and a warning is issued. With ``feasible_first``, the optimisation starts
        from a feasible motion that is computed first. With ``tie_break``, the minimum-effort motion among the fastest
        ones is selected if the objective is the time; the duration may increase by 0.01 %. Without ``tie_break``,
        joints that do not limit the time are undetermined and may chatter. ``progress`` shows iterations on stderr; by
        default, a line appears on a terminal if solving takes a long time. If a setting is None, its value is that of
        ``settings`` or the default above.

        If the problem is infeasible, ``MotionError`` states the conflicting constraints and the smallest violation.
        With ``check=False``, the nearest motion is returned instead.

        Example:
            >>> from torsor import motion
            >>> lift = motion.MotionProblem(
            ...     torsor.library.two_link(),
            ...     motion.Phase(1.0, points=6),
            ...     motion.Effort(),
            ...     [motion.Start(q=0.0, v=0.0), motion.End(q=0.5, v=0.0)],
            ... )
            >>> first = lift.solve()
            >>> again = lift.solve(start=first)
            >>> again.iterations <= first.iterations, again.status
            (True, 'optimal')
        """
        arguments = {"solver": solver, "tolerance": tolerance, "iterations": iterations, "seconds": seconds}
        arguments |= {"refine": refine, "progress": progress, "check": check, "feasible_first": feasible_first}
        settings = self._settings(arguments | {"tie_break": tie_break})
        state = solve(self, start, settings)
        result = None
        if state.result is not None:
            result = MotionResult.of(replace(state.result, settings=asdict(settings)))
        if state.diagnosis is not None and (settings.check or result is None):
            raise state.diagnosis.but(result=result)
        assert result is not None
        warn_between_nodes(result)
        return result

    def solve_many(
        self, cases: Sequence[Mapping[str, Any]], device: str = "cpu", workers: int = 1, **settings: Any
    ) -> list["MotionResult"]:
        """Solve the problem for many cases together, and return their results in the order of the cases.

        A case of a built-in problem is a dict of its arguments, such as ``{"end": q}``. A case of any other problem is
        a dict of named data: "TERM.FIELD" (TERM: the title of a term), "PHASE.FIELD" (PHASE: the name of a phase, by
        default "phase"), a shared number, or "robot" (a robot with different payloads or joint origins). For
        ``settings``, see ``solve``; the default solver is "condensed". Cases with the same structure, which may differ
        in ends, bounds, weights, obstacles and payloads, are solved together, many times faster than one by one.
        Problems with closed loops, or with smoothed energies of unspecified width, are solved one by one, as are cases
        that the batch does not solve, and all cases with a different solver, ``seconds``, ``refine``,
        ``feasible_first`` or ``tie_break``. The status of the result of an infeasible case states the conflict.

        With ``device="cuda"``, batches are solved on a GPU, except for periodic motions and connected phases. A CPU is
        faster for a few hundred cases. GPU batches require CuPy (``pip install "torsor[gpu]"``).

        ``workers`` is the number of processes, which does not affect the results. After Ctrl-C, unsolved cases have the
        status "stopped by Ctrl-C" and their best motion so far. For processes on macOS and Windows, see ``multistart``.

        Example:
            >>> from torsor import motion
            >>> terms = [motion.Start(q=[0, -2], v=0), motion.End(q=[1, -1], v=0), motion.Torques(upper=10.0)]
            >>> phase = motion.Phase((0.1, 2.0), points=8)
            >>> reach = motion.MotionProblem(torsor.library.two_link(), phase, motion.Time(), terms)
            >>> stronger, nearer = reach.solve_many([{"Torques.upper": 40.0}, {"End.q": [0.25, -1.75]}])
            >>> round(stronger.T, 3), round(nearer.T, 3)
            (0.203, 0.2)
        """
        own = self._batch_settings(settings)
        one_of(device, tuple(WIDTHS), self.name, "device")
        Target().changed(self.name, device=device)  # raises an error if there is no GPU
        results, origin = solve_cases(self, cases, own, device, workers), self.__dict__.get("origin")
        for result, case in zip(results, cases, strict=True):
            if origin is not None and not result.passes:  # refinement gives a problem other phases than its function
                result.problem.__dict__["origin"] = origin._replace(given={**origin.given, **case})
        as_dict = asdict(own)
        return [MotionResult.of(result, settings=as_dict) for result in results]

    def _batch_settings(self, given: dict[str, Any]) -> SolveSettings:
        """Return the settings of the batch if it can solve the problem, otherwise those of ``solve``."""
        settings = batch_settings(self, given)
        with suppress(ModelError):  # the data of the original problem may be invalid
            if many.batch_structure(self, settings) is None:
                return self._settings(given)
        return settings

    def _settings(self, given: dict[str, Any]) -> SolveSettings:
        """Return the settings of the problem, updated by those in ``given`` that are not None."""
        given = {key: value for key, value in given.items() if value is not None}
        return SolveSettings.of(self.name, **(dict(self.settings) | given))

    def random_start(self, seed: int, spread: float = 1.0) -> Array:
        """Return random variables (n,) around the initial guess; the same seed yields the same variables.

        ``spread`` is the standard deviation relative to the ranges of the profiles.
        """
        return random_start(self, seed, spread)

    def multistart(
        self,
        count: int = 20,
        seed: int = 0,
        workers: int = 1,
        spread: float = 1.0,
        *,
        starts: Sequence[Any] | None = None,
        **settings: Any,
    ) -> "MotionMultistart":
        """Solve from ``count`` random starts (seeds seed, seed + 1, ...) in ``workers`` processes.

        The result contains all solutions. For ``spread``, see ``random_start``. ``starts`` contains specific starts
        (see ``start`` of ``solve``) instead of random ones, with seeds 0, 1 and so on. For ``settings``, see ``solve``.
        The starts are solved in one batch if ``solve_many`` can solve cases of the problem in a batch; the default
        solver is then "condensed". Control points are not added, so that objectives are comparable; refine the best
        motion with ``solve(start=...)``. The same seeds yield the same results for any number of workers. Ctrl-C ends
        the searches, and the results so far are returned. On systems that spawn processes (macOS, Windows), call this
        method from a script under ``if __name__ == "__main__"``.
        """
        solve_settings = self._batch_settings(settings)
        if starts is None:
            whole_number(count, self.name, "count")
            seeds = range(whole_number(seed, self.name, "seed", least=0), seed + count)
            x = [self.random_start(seed, spread) for seed in seeds]
        else:
            x = [read_start(self, start) for start in starts]
            seeds = range(len(x))
        result = solve_from_starts(self, x, seeds, workers, solve_settings)
        return MotionMultistart(tuple(map(MotionResult.of, result)), result.seeds)

    def save(self, path: str | Path) -> None:
        """Write the problem as TOML, and its robot to a file next to it (``NAME.robot.toml``)."""
        save_problem(self, Path(path))


encodable("motion", MotionProblem)


@dataclass(frozen=True, eq=False, repr=False)
class MotionResult(Result, Solution):
    """The solution of a motion problem.

    ``problem`` is the solved problem (including nodes added by refinement), and ``outcome`` is the solver outcome.
    Profiles ``q``, ``v``, ``a``, ``j``, ``tau``, ``tau_rate`` and ``reactions`` are sampled at ``times`` (200 steps per
    phase; where phases meet, the values are those at the end of the earlier phase). ``at(t)`` evaluates them at any
    time. For the shapes, see ``Moments``. ``passes`` describes refinement rounds, ``distance`` estimates the relative
    distance of the objective from its limit with more control points, and ``curvature`` contains the second-order
    conditions. ``settings`` are the arguments of ``solve``. A .npz file (``save``) includes the problem and the robot;
    a problem with Python functions must be passed to ``load``.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> problem = motion.MotionProblem(
        ...     torsor.library.two_link(), motion.Phase((0.1, 2.0)), motion.Time(), [*ends, motion.Torques(upper=10.0)]
        ... )
        >>> result = problem.solve()
        >>> result.status, round(result.T, 4), round(result.objective, 4)
        ('optimal', 0.3932, 0.3932)
        >>> result.durations.size, result.q.shape, result.reactions.shape, result.trajectory().times.shape
        (1, (201, 2), (201, 2, 6), (201,))
        >>> result.parts[0].title, result.is_feasible, result.simulate().q_error < 1e-4
        ('Time', True, True)
        >>> result.at([0.0, result.T]).q.round(9).tolist()
        [[0.0, -2.0], [1.0, -1.0]]
    """

    kind = "motion"
    problem: MotionProblem

    @classmethod
    def of(cls, solution: Solution, **changes: Any) -> "MotionResult":
        """Return a solution of a ``MotionProblem`` as a result object, with fields replaced by ``changes``."""
        return cls(**{name: getattr(solution, name) for name in solution.__dataclass_fields__} | changes)

    def sensitivity(self, name: str) -> Sensitivity:
        """Return the derivatives of the optimal motion with respect to data, without solving again.

        ``name`` is the name of data that a case of ``MotionProblem.solve_many`` can change: an argument of a built-in
        problem ("end"), named data ("End.q", "Torques.upper"), or a shared number with equal bounds.
        Results with added control points or nodes have only named data. The active constraints are assumed to remain
        active. Data that change the compiled functions, such as waypoints of a path, require compilation for each
        entry.

        Example:
            >>> from torsor import motion
            >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
            >>> phase, limits = motion.Phase((0.1, 2.0), points=12), motion.Torques(upper=10.0)
            >>> reach = motion.MotionProblem(torsor.library.two_link(), phase, motion.Time(), [*ends, limits])
            >>> result = reach.solve()
            >>> by_end, by_torque = result.sensitivity("End.q"), result.sensitivity("Torques.upper")
            >>> by_end.T.round(4).tolist(), by_torque.T.round(4).tolist()  # s/rad, s/(N m)
            ([0.1236, 0.071], -0.0198)
            >>> by_end.at([0.1, 0.2]).shape  # times, joints, data
            (2, 2, 2)
        """
        return sensitivity(self, name)

    def report(self, width: int = 110) -> str:
        """Return text tables of the motion, ``width`` characters wide: key figures, objective terms and constraints."""
        return as_text(report.tables(self), width=width)

    def __rich__(self) -> Any:
        return report.tables(self)

    def plot(self, path: str | Path | None = None, what: Sequence[str] | None = None) -> "Figure":
        """Plot quantities over time with their bounds and return the figure; with ``path``, save it too.

        ``what`` selects the quantities: q, v, a, j, tau, tau_rate, reactions (force magnitudes). The default is q, v,
        tau, reactions, and tau_rate if it is bounded. Each unit has separate panels. Plotting requires matplotlib.
        """
        return report.plot(self, path, what)

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "MotionResult":
        """Load a result from a .npz file; ``problem`` is needed if the file does not include it."""
        with reading_archive(Path(path), cls.kind) as archive:
            return cls.of(files.of_archive(archive, problem, load_problem))

    def to_csv(self, path: str | Path) -> None:
        """Write times, positions, velocities, accelerations and forces as a .csv file, like ``Trajectory.save``.

        For a human on the ground, the forces are the joint torques with ground contact; additional columns contain the
        ground reaction wrenches.
        """
        if Path(path).suffix.lower() != ".csv":
            raise ModelError(f"the suffix is {Path(path).suffix!r}", where=Path(path).name, allowed=".csv")
        self.save(path)

    def trajectory(self) -> Trajectory:
        """Return the motion as a trajectory of the robot; ``external`` contains the wrenches of known contacts."""
        return replay.trajectory(self)

    def simulate(self, steps: int = 2000) -> "replay.Replay":
        """Simulate the motion with its forces, in ``steps`` steps per phase, and return it with its deviations."""
        return replay.replay(self, steps)

    def certify(self, tolerance: float = 0.0) -> Certificate:
        """Return a certificate of the bounds that hold at all times, not only at the nodes.

        Rows may exceed their bounds by ``tolerance`` times half the distance between their bounds, or times the only
        bound. With a tolerance of 0, rounding prevents the proof of a bound at which the motion starts.

        The rows of all inequality constraints are enclosed over time intervals, including rounding, so a bound that is
        shown is proven. The certificate lists the times at which a bound is violated or cannot be shown, and unchecked
        constraints: equations, rows of robots with closed loops, and rows with data at the nodes.

        Example:
            >>> from torsor import motion
            >>> result = motion.PROBLEMS["two-link-time"](points=8).solve()
            >>> certificate = result.certify()
            >>> certificate.is_proven, [bound.status for bound in certificate.bounds]
            (False, ['violated', 'violated'])
        """
        return certificate.certify(self.problem, self.x, tolerance)

    def certified(self, tolerance: float = 0.0) -> "MotionResult":
        """Return the motion, slowed down by the smallest factor for which ``certify`` proves all bounds.

        The increase in duration is the smallest one to within 2 % of it. A slower motion has lower velocities,
        accelerations and torques, except gravity torques, but the same positions and clearances. ``MotionError`` is
        raised if no factor up to about 1.5 proves all bounds, ``ModelError`` if a constraint cannot be checked or a
        duration is fixed. For ``tolerance``, see ``certify``. After ``solve(refine=True)``, the increase is smallest.

        Example:
            >>> from torsor import motion
            >>> result = motion.PROBLEMS["two-link-time"](points=8).solve()
            >>> safe = result.certified()
            >>> safe.certify().is_proven, round(100 * (safe.T / result.T - 1), 2)
            (True, 0.02)
        """
        return certificate.certified(self, tolerance)

    def _archive(self) -> Archive:
        return files.archive(self)

    def _columns(self) -> list[Column]:
        return columns(self.trajectory())

    def _content(self) -> dict[str, Any]:
        return report.plain(self)

    def _summary(self) -> Summary:
        return report.summary(self)


register_result("motion", MotionResult, "a result of a motion problem")


def warn_between_nodes(result: MotionResult) -> None:
    """Issue a warning if a motion violates rows between the nodes."""
    if not result.is_only_at_nodes:
        return
    worst = max(result.constraints.values(), key=lambda group: group.fine)
    message = f"{worst.title} is violated by {worst.fine:.3g} of its scale (allowed: {BETWEEN:g})"
    what = f"between the nodes, {message}: the motion is {result.status.partition(';')[0]}"
    fix = "solve with `refine=True`"
    if result.passes:
        fix = "give the phases more points or a higher degree; "
        fix += "give motors of elastic joints a degree two lower (Phase.own)"
    warn(what, where=result.problem.name, fix=fix)


def can_batch(problem: MotionProblem, given: Mapping[str, Any]) -> bool:
    """Return whether a problem can be solved in a batch with the ``given`` settings."""
    return many.batch_structure(problem, batch_settings(problem, given)) is not None


def batch_settings(problem: MotionProblem, given: Mapping[str, Any]) -> SolveSettings:
    """Return the ``given`` settings, with the batch solver as the default."""
    given = {key: value for key, value in given.items() if value is not None}
    return problem._settings({"solver": BATCH_SOLVER, **problem.settings, **given})


def solve_together(problems: Sequence[MotionProblem], given: Mapping[str, Any]) -> list[MotionResult | None]:
    """Return the results of problems that a batch solves with the ``given`` settings, or None for the others."""
    results: list[MotionResult | None] = [None] * len(problems)
    groups: dict[str, list[int]] = {}
    all_settings = [batch_settings(problem, given) for problem in problems]
    for index, settings in enumerate(all_settings):
        groups.setdefault(repr(settings), []).append(index)
    for members in groups.values():
        settings = all_settings[members[0]]
        solutions = many.solve_together([problems[index] for index in members], settings)
        for index, solution in zip(members, solutions, strict=True):
            if solution is not None:
                results[index] = MotionResult.of(replace(solution, settings=asdict(settings)))
    return results


def solve_similar(
    problems: Sequence[MotionProblem], given: Mapping[str, Any], workers: int, title: str
) -> list[MotionResult | None]:
    """Return the results of problems, each started from that of a similar one, or None if Ctrl-C skipped it."""
    groups: dict[str, list[int]] = {}
    all_settings = [replace(batch_settings(problem, given), check=False) for problem in problems]
    for index, settings in enumerate(all_settings):
        groups.setdefault(repr(settings), []).append(index)
    results: list[MotionResult | None] = [None] * len(problems)
    for members in groups.values():
        settings, own = all_settings[members[0]], [problems[index] for index in members]
        searches = Searches(own, [problem.guess() for problem in own], settings, continued=True)
        for index, solution in zip(members, many.solve_searches(searches, workers, title), strict=True):
            if solution is not None:
                results[index] = MotionResult.of(replace(solution, settings=asdict(settings)))
    return results


@dataclass(frozen=True, repr=False)
class MotionMultistart(Result, Multistart[MotionResult]):
    """The results of ``MotionProblem.multistart``, best first; ``plot`` shows their objectives.

    Example:
        >>> from torsor import motion
        >>> ends = [motion.Start(q=[0.0, -2.0], v=0.0), motion.End(q=[1.0, -1.0], v=0.0)]
        >>> phase = motion.Phase(0.5, points=6)
        >>> motion.MotionProblem(torsor.library.two_link(), phase, motion.Effort(), ends).multistart(2).reached
        2
    """

    kind = "multistart"

    @classmethod
    def load(cls, path: str | Path, problem: MotionProblem | None = None) -> "MotionMultistart":
        """Load results from a .npz file; ``problem`` is needed if the file does not include it."""
        with reading_archive(Path(path), cls.kind) as archive:
            solutions, seeds = files.several_of_archive(archive, problem, load_problem)
            return cls(tuple(map(MotionResult.of, solutions)), seeds)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plot the objectives of all starts, best first, and return the figure; with ``path``, save it too."""
        return files.plot(self.results, self.seeds, path)

    def _archive(self) -> Archive:
        return files.archive_of_several(self.results, self.seeds)

    def _columns(self) -> list[Column]:
        return files.columns(self.results, self.seeds)

    def _content(self) -> dict[str, Any]:
        return files.content(self.results, self.seeds)

    def _summary(self) -> Summary:
        return files.summary(self.results, self.seeds, repr(self).strip("<>"))


@singledispatch
def timeline_of_term(term: Any, result: MotionResult) -> Timeline | None:
    """Return the timeline of a result if a term of its problem provides one, otherwise None.

    The package that defines a term registers the corresponding function.
    """
    return None


@timeline_of.register
def _(result: MotionResult) -> Timeline:
    for term in result.problem.terms:
        timeline = timeline_of_term(term, result)
        if timeline is not None:
            return timeline
    states = (result.times, result.q, result.v, result.a)
    return Timeline(result.robot, result.robot.name, *states, result.tau, result.force_names)


register_result("multistart", MotionMultistart, "results from random starts")


def load_problem(path: str | Path) -> MotionProblem:
    r"""Load a motion problem from a TOML file.

    ``robot`` is the name of a library robot, or a file path relative to the folder of the TOML file. ``phases``,
    ``objectives`` and ``constraints`` are arrays of tables. Their keys are the fields of ``Phase`` and of the terms.
    ``kind`` is the class of the term in snake case, such as ``torque_rates`` for ``TorqueRates``. A field named kind is
    called ``form``. Angles are in rad.

    Example:
        >>> import tempfile
        >>> text = '''
        ... torsor = 1
        ... robot = "two_link"
        ... phases = [{ duration = [0.1, 2.0], points = 6 }]
        ... objectives = [{ kind = "time" }]
        ... constraints = [
        ...   { kind = "start", q = [0, -2], v = 0 },
        ...   { kind = "end", q = [1, -1], v = 0 },
        ...   { kind = "torques", upper = 10 },
        ... ]
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "reach.toml").write_text(text)
        ...     problem = load_problem(folder + "/reach.toml")
        >>> problem.name, round(problem.solve().T, 4)
        ('reach', 0.4212)
    """
    return read_problem(Path(path), MotionProblem)
