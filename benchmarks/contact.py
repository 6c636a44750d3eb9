"""Compare a quadruped that lands and stands on the ground with MuJoCo; print the table of contact.md.

Both simulate the same robot with the same time step, the same joint springs and dampers, and a contact stiffness with
the same penetration of the feet at rest. Each uses one core, measured in processor time, which reduces the influence of
other programs. MuJoCo takes all steps in one call of mj_step.
"""

import time
from collections.abc import Callable
from typing import Any

import casadi as ca
import mujoco
import numpy as np

import torsor
from torsor.simulation import Contact

LEGS = ("fl", "fr", "hl", "hr")
RADIUS, FRICTION, STEP, DURATION = 0.02, 0.8, 2e-3, 4.0
KP, KD = 60.0, 2.0
BENT = np.tile([0.0, 0.7, -1.4], 4)
HEIGHT = 0.40


def model(own: Any) -> Any:
    """Return the same robot and ground as a MuJoCo model."""

    def body(index: int) -> str:
        link, joint = own.links[index], own.joints[index]
        c, J = link.com, link.inertia
        numbers = f"{J[0, 0]} {J[1, 1]} {J[2, 2]} {J[0, 1]} {J[0, 2]} {J[1, 2]}"
        inertial = f'<inertial pos="{c[0]} {c[1]} {c[2]}" mass="{link.mass}" fullinertia="{numbers}"/>'
        where = " ".join(map(str, joint.placement[:3, 3]))
        if joint.type == "free":
            moving = "<freejoint/>"
        else:
            axis, rest = " ".join(map(str, joint.axis)), BENT[index - 1]
            moving = (
                f'<joint axis="{axis}" armature="{float(np.sum(joint.rotor_inertia))}" stiffness="{KP}" damping="{KD}" '
            )
            moving += f'springref="{rest}"/>'
        foot = ""
        if link.name.endswith("shank"):
            foot = f'<geom type="sphere" size="{RADIUS}" pos="0 0 -0.2" friction="{FRICTION} 0.005 0.0001" condim="3"/>'
        below = "".join(body(k) for k, each in enumerate(own.joints) if each.parent == link.name)
        return f'<body name="{link.name}" pos="{where}">{inertial}{moving}{foot}{below}</body>'

    ground = f'<geom type="plane" size="0 0 1" friction="{FRICTION} 0.005 0.0001" condim="3"/>'
    text = f'<mujoco><compiler angle="radian" autolimits="false"/><option timestep="{STEP}" gravity="0 0 -9.81"/>'
    return mujoco.MjModel.from_xml_string(f"{text}<worldbody>{ground}{body(0)}</worldbody></mujoco>")


def posture(own: Any) -> Any:
    """Return the start: the legs are bent, and the feet are a few centimetres above the ground."""
    q = own.neutral()
    q[2], q[7:] = HEIGHT, BENT
    return q


def controller(own: Any) -> ca.Function:
    """Return the springs and dampers of the joints."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", own.nq), ca.SX.sym("v", own.nv)
    forces = -KP * (q[7:] - BENT) - KD * v[6:]
    return ca.Function("springs", [t, q, v], [ca.vertcat(ca.SX.zeros(6, 1), forces)])


def best(call: Callable[[], object], repeats: int = 15) -> float:
    """Return the shortest processor time (s) of a call, after a first call that compiles."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def depth(own: Any, q: Any) -> float:
    """Return the mean penetration depth of the feet (m)."""
    return float(np.mean([RADIUS - own.pose(q, f"{leg}_foot")[2, 3] for leg in LEGS]))


def main() -> None:
    """Print the table."""
    own = torsor.library.quadruped()
    start, springs, steps = posture(own), controller(own), round(DURATION / STEP)
    peer = model(own)
    data = mujoco.MjData(peer)

    def theirs() -> None:
        mujoco.mj_resetData(peer, data)
        data.qpos[:] = np.concatenate([start[:3], start[[6, 3, 4, 5]], start[7:]])
        mujoco.mj_step(peer, data, steps)

    seconds = best(theirs)
    q = np.concatenate([data.qpos[:3], data.qpos[[4, 5, 6, 3]], data.qpos[7:]])
    deep = depth(own, q)
    stiffness = own.mass * 9.81 / 4 / deep
    solver, cone = mujoco.mjtSolver(peer.opt.solver).name, mujoco.mjtCone(peer.opt.cone).name
    limits = f"at most {peer.opt.iterations} iterations, tolerance {peer.opt.tolerance:g}"
    print(f"{solver}, {cone}, {limits}; used at rest: {data.solver_niter[0]} iterations")
    print(f"MuJoCo {mujoco.__version__}: height {q[2]:.5f} m; depth at rest {1e3 * deep:.4f} mm: {stiffness:.0f} N/m")
    print("| | step | rollouts | depth at rest | steps a second, one core | to `mj_step` |\n|---|---|---|---|---|---|")
    print(f"| `mj_step` | {1e3 * STEP:g} ms | 1 | {1e3 * deep:.2f} mm | {steps / seconds:,.0f} | 1 |")
    hard = Contact(kind="hard", stiffness=stiffness, friction=FRICTION)
    soft = Contact(stiffness=stiffness, exponent=1.0, dissipation=2.0, friction=FRICTION, slip=0.1)
    stiff = torsor.control.drives(own, start, kp=1e4, kd=20.0)
    cases: list[tuple[str, Contact, str, float, Any]] = [
        ("compliant, implicit", soft, "linearly_implicit", STEP, springs),
        ("hard", hard, "rk4", STEP, springs),
        ("hard, drives of 10,000 N m/rad", hard, "rk4", STEP, stiff),
        ("compliant, `rk4`", soft, "rk4", STEP / 8, springs),
    ]
    for name, contact, method, step, law in cases:
        settings: dict[str, Any] = {"controller": law, "contact": contact, "method": method, "step": step}
        for count in (1, 64):
            many = np.tile(start, (count, 1)) if count > 1 else start

            def ours(many: Any = many, settings: dict[str, Any] = settings) -> torsor.Trajectory:
                return torsor.simulate(own, many, None, DURATION, record=1.0, **settings)

            found = depth(own, ours().q.reshape(-1, own.nq)[-1])
            rate = count * DURATION / step / best(ours, 15 if count == 1 else 3)
            share = f"{rate:,.0f} | {rate * seconds / steps:.1f}"
            print(f"| {name} | {1e3 * step:g} ms | {count} | {1e3 * found:.2f} mm | {share} |")
    run = torsor.simulate(own, start, None, DURATION, controller=springs, contact=hard, step=STEP)
    most, mean = (1e3 * run.settings["contact"][name] for name in ("residual", "mean_residual"))
    print(f"hard, one rollout: residual of at most {most:.2g} mm/s (mean: {mean:.1g} mm/s)")


if __name__ == "__main__":
    main()
