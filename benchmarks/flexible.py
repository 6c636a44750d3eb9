"""Compare the forward dynamics of an arm with two flexible links with those of the same arm made of rigid segments.

Both are functions of Torsor, in one process on one core, for a batch of states. The table also contains the errors of
the first two natural frequencies, relative to the arm with seven modes for each link. The hinges are held, and each
error is the largest for three elbow angles: 0, 0.7 and 1.5 rad. Operation counts do not depend on the machine.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # one core for NumPy too

import casadi as ca
import numpy as np

import torsor
from bench.measure import best

STATES = 4096
ELBOWS = (0.0, 0.7, 1.5)
HINGES = ("joint1", "joint2")


def seconds(arm: torsor.Robot) -> float:
    """Return the time of forward dynamics per state of a batch."""
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, STATES, arm.nv)) * 0.05
    return best(lambda: arm.forward_dynamics(q, v, tau)) / STATES


def frequencies(arm: torsor.Robot, count: int) -> np.ndarray:
    """Return the first natural frequencies (elbows x count), in rad/s."""
    still = arm.with_gravity((0.0, 0.0, 0.0))
    n, x = arm.nv, ca.SX.sym("q", arm.nv)
    slope = ca.Function("K", [x], [ca.jacobian(still.function("inverse_dynamics")(x, np.zeros(n), np.zeros(n)), x)])
    mass, names = still.function("mass_matrix"), arm.coordinate_names
    free = np.ix_(*[[k for k, name in enumerate(names) if name not in HINGES]] * 2)
    found = []
    for elbow in ELBOWS:
        q = np.where(np.array(names) == "joint2", elbow, 0.0)
        squares = np.linalg.eigvals(np.linalg.solve(np.array(mass(q))[free], np.array(slope(q))[free])).real
        found.append(np.sqrt(np.sort(squares))[:count])
    return np.array(found)


def table(spatial: bool) -> None:
    """Print the rows of arms that bend in one plane, or in two."""
    library, count = torsor.library, 4 if spatial else 2
    exact = frequencies(library.flexible_arm((6, 6) if spatial else (7, 0)), count)
    arms = {"20 rigid links with springs": library.segmented_arm(10, spatial=spatial)}
    for n in (2, 3):
        arms[f"{n} modes for each link and direction"] = library.flexible_arm((n, n if spatial else 0))
    spent = dict.fromkeys(arms, np.inf)
    for _ in range(3):  # in turn, so that a busy machine slows all of them
        spent = {what: min(spent[what], seconds(arm)) for what, arm in arms.items()}
    slow = max(spent.values())
    for what, arm in arms.items():
        operations = arm.operation_count("forward_dynamics")
        errors = np.abs(frequencies(arm, count) / exact - 1).max(axis=0)
        adds = f"{operations.multiplications + operations.additions + operations.other}"
        texts = [f"{1e9 * spent[what]:.0f} ns", f"{slow / spent[what]:.1f}", adds, f"{operations.trigonometric}"]
        texts.append(", ".join(f"{each:.0e}" for each in errors))
        print(f"| {'two planes' if spatial else 'one plane'} | {what} | {arm.nv} | {' | '.join(texts)} |")


if __name__ == "__main__":
    print("| bending | arm | dof | one state | times as fast | operations | sin, cos | errors of first frequencies |")
    print("|---|---|---|---|---|---|---|---|")
    table(spatial=False)
    table(spatial=True)
