"""Count operations with closed loops, and measure the assembly speed on one core; print Markdown tables."""

import numpy as np

import torsor
from bench.measure import best

STATES = 100_000
COUNTED = (
    "constrained_accelerations",
    "constrained_inverse_dynamics",
    "constrained_forward_dynamics",
    "constrained_inverse_dynamics_derivatives",
    "constrained_forward_dynamics_derivatives",
    "closed_forward_dynamics",
)


def mechanisms() -> dict[str, torsor.Robot]:
    """Return the mechanisms that are counted, by what the table calls them."""
    library = torsor.library
    return {
        "four-bar": library.four_bar(),
        "slider-crank": library.slider_crank(),
        "five-bar": library.five_bar(),
        "palletiser": library.palletiser(),
    }


def assembled(robot: torsor.Robot, middle: list[float], guess: list[float], spread: float) -> float:
    """Return the number of configurations assembled per second, spread around the centre by some rad."""
    start = robot.closed.assemble(middle, guess=guess)
    wanted = np.array(middle) + np.random.default_rng(0).uniform(-spread, spread, size=(STATES, len(middle)))
    return STATES / best(lambda: robot.closed.assemble(wanted, guess=start))


def main() -> None:
    """Print both tables."""
    print("| additions and multiplications |" + "".join(f" {name} |" for name in mechanisms()))
    print("|---|" + "---|" * len(mechanisms()))
    for name in COUNTED:
        counts = "".join(f" {robot.operation_count(name).arithmetic} |" for robot in mechanisms().values())
        print(f"| `{name}` |{counts}")
    print("\n| five-bar, one core | assembled a second |\n|---|---|")
    robot = torsor.library.five_bar()
    for spread in (0.05, 0.4):
        rate = assembled(robot, [1.9, 1.2], [1.9, -1.2, 1.2, 1.2], spread)
        print(f"| drives within {spread} rad of the guess | {rate / 1e6:.1f} million |")


if __name__ == "__main__":
    main()
