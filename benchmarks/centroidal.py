"""Compare centroidal matrices of Talos with those of Pinocchio, on one core in one process; print a Markdown table."""

import numpy as np
import pinocchio as pin

import torsor
from bench.coordinates import PinocchioCoordinates
from bench.measure import best, robot_file, states

STATES = 1024


def main() -> None:
    """Print the table."""
    path = robot_file("talos_reduced.urdf")
    robot, model = torsor.load(path, base="floating"), pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data, peer = model.createData(), PinocchioCoordinates(robot, model)
    q, v, _ = states(robot, STATES)
    few = min(STATES, 512)
    theirs_q = [peer.positions(each) for each in q[:few]]
    theirs_v = [peer.velocity_map(x) @ y for x, y in zip(q[:few], v[:few], strict=True)]
    out = np.empty((STATES, 6, robot.nv))

    def map_of_all() -> None:
        for each in theirs_q:
            pin.computeCentroidalMap(model, data, each)

    def rate_of_all() -> None:
        for x, y in zip(theirs_q, theirs_v, strict=True):
            pin.dccrba(model, data, x, y)

    def jacobian_of_all() -> None:
        for each in theirs_q:
            pin.jacobianCenterOfMass(model, data, each, False)

    com = np.empty((STATES, 3, robot.nv))
    rows = {
        "centroidal_momentum_matrix": (lambda: robot.centroidal.momentum_matrix(q, out=out), map_of_all),
        "centroidal_momentum_matrix_rate": (
            lambda: robot.centroidal.momentum_matrix_rate(q, v, out=out),
            rate_of_all,
        ),
        "center_of_mass_jacobian": (lambda: robot.centroidal.jacobian(q, out=com), jacobian_of_all),
    }
    print(f"| Talos, floating, {STATES} states | operations | Torsor, us a state | Pinocchio, us a state | ratio |")
    print("|---|---|---|---|---|")
    for name, (ours, theirs) in rows.items():
        one, other = best(ours, 2.0) / STATES * 1e6, best(theirs, 2.0) / few * 1e6
        count = robot.operation_count(name).arithmetic
        print(f"| `{name}` | {count} | {one:.2f} | {other:.2f} | {other / one:.1f} |")


if __name__ == "__main__":
    main()
