"""The accessor method of each algorithm."""

ACCESSORS: dict[str, dict[str, str]] = {
    "derivatives": {
        "inverse_dynamics": "inverse_dynamics_derivatives",
        "forward_dynamics": "forward_dynamics_derivatives",
        "joint_wrenches": "joint_wrench_derivatives",
        "hybrid_dynamics": "hybrid_dynamics_derivatives",
        "velocity": "velocity_derivatives",
        "acceleration": "acceleration_derivatives",
        "jerk": "jerk_derivatives",
        "hessian": "inverse_dynamics_hessian",
    },
    "closed": {
        "error": "closure_error",
        "jacobian": "closure_jacobian",
        "velocities": "constrained_velocities",
        "accelerations": "constrained_accelerations",
        "inverse_dynamics": "constrained_inverse_dynamics",
        "forward_dynamics": "constrained_forward_dynamics",
        "loop_forces": "loop_forces",
        "loop_wrenches": "loop_wrenches",
        "joint_wrenches": "constrained_joint_wrenches",
        "loop_loads": "loop_loads",
    },
    "closed.derivatives": {
        "velocities": "constrained_velocity_derivatives",
        "accelerations": "constrained_acceleration_derivatives",
        "inverse_dynamics": "constrained_inverse_dynamics_derivatives",
        "forward_dynamics": "constrained_forward_dynamics_derivatives",
        "loop_forces": "loop_force_derivatives",
        "loop_wrenches": "loop_wrench_derivatives",
        "joint_wrenches": "constrained_joint_wrench_derivatives",
    },
    "inertial": {name: name for name in ("regressor", "energy_regressor", "power_regressor")},
    "centroidal": {
        "momentum_matrix": "centroidal_momentum_matrix",
        "momentum_matrix_rate": "centroidal_momentum_matrix_rate",
        "momentum_bias": "centroidal_momentum_bias",
        "inertia": "composite_inertia",
        "jacobian": "center_of_mass_jacobian",
        "jacobian_rate": "center_of_mass_jacobian_rate",
        "velocity": "center_of_mass_velocity",
        "acceleration": "center_of_mass_acceleration",
    },
    "task": {
        **{name: name for name in ("jacobian_rate", "jerk", "jerks", "manipulability", "manipulability_gradient")},
        **{name: name for name in ("null_space", "kinematic_null_space")},
        "mass_matrix": "cartesian_mass_matrix",
    },
}
"""{accessor: {method: algorithm}}."""

OF_ALL = {
    "constrained_velocities": "closed_velocities",
    "constrained_inverse_dynamics": "closed_inverse_dynamics",
    "constrained_forward_dynamics": "closed_forward_dynamics",
    "loop_forces": "closed_loop_forces",
}
"""{algorithm with ``coordinates="active"``: algorithm with ``coordinates="all"``} of the ``closed`` methods."""

PATHS = {algorithm: f"{accessor}.{name}" for accessor, names in ACCESSORS.items() for name, algorithm in names.items()}
PATHS |= {every: PATHS[active] for active, every in OF_ALL.items()}
"""Method of each algorithm: {"closure_error": "closed.error"}. Other algorithms are methods of the robot."""

ALGORITHM_OF = {path: algorithm for algorithm, path in PATHS.items() if algorithm not in OF_ALL.values()}
"""Algorithm of each method: {"closed.error": "closure_error"}. Both names are accepted."""


class Accessor:
    """Base class of the accessors, which group robot methods.

    Example:
        >>> torsor.library.two_link().shapes
        <Shapes of 'two_link': allowed, distances>
    """

    def __repr__(self) -> str:
        owner = next(iter(vars(self).values()))
        names = (name for name in dir(type(self)) if not name.startswith("_"))
        return f"<{type(self).__name__} of {getattr(owner, 'mechanism', owner).name!r}: {', '.join(names)}>"
