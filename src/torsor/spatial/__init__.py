"""Vectors, rotations, poses and inertias. Most functions take numbers (NumPy) or symbols (CasADi SX).

Vector, pose and exponential functions accept arrays with leading batch axes, which broadcast. Spatial vectors have the
angular part first: twist (omega, v), wrench (moment, force).
"""

from torsor.spatial.exponentials import (
    exp_se3,
    exp_so3,
    inverse_left_jacobian,
    inverse_right_jacobian,
    left_jacobian,
    log_se3,
    log_so3,
    right_jacobian,
)
from torsor.spatial.inertia import (
    composite,
    from_pseudo_inertia,
    is_physical,
    moment,
    move_inertia,
    pseudo_inertia,
    rotational_inertia,
    second_moment,
    spatial_inertia,
)
from torsor.spatial.poses import adjoint, inverse_pose, make_pose, move_pseudo_inertia
from torsor.spatial.rotations import (
    about_z,
    axis_frame,
    from_quaternion,
    from_rpy,
    log_rotation,
    quaternion_exp,
    quaternion_product,
    to_quaternion,
    to_rpy,
)
from torsor.spatial.vectors import Matrix, Vector, ad, cross, matrix, skew, stack

__all__ = [
    "Matrix",
    "Vector",
    "about_z",
    "ad",
    "adjoint",
    "axis_frame",
    "composite",
    "cross",
    "exp_se3",
    "exp_so3",
    "from_pseudo_inertia",
    "from_quaternion",
    "from_rpy",
    "inverse_left_jacobian",
    "inverse_pose",
    "inverse_right_jacobian",
    "is_physical",
    "left_jacobian",
    "log_rotation",
    "log_se3",
    "log_so3",
    "make_pose",
    "matrix",
    "moment",
    "move_inertia",
    "move_pseudo_inertia",
    "pseudo_inertia",
    "quaternion_exp",
    "quaternion_product",
    "right_jacobian",
    "rotational_inertia",
    "second_moment",
    "skew",
    "spatial_inertia",
    "stack",
    "to_quaternion",
    "to_rpy",
]
