/* Written by Torsor. Matrices lie row by row. Outputs must not overlap inputs. Nothing is allocated or kept.
 * Robot two_link, by Torsor 0.1.0 (licence Apache-2.0). SI units, radians.
 * Positions q: joint1 (rad), joint2 (rad).
 * Velocities v: joint1 (rad/s), joint2 (rad/s). Accelerations and forces are in the same order.
 * Moving links: link1, link2.
 * Spatial vectors have the angular part first. Twists, wrenches, accelerations and Jacobians of a link or frame are at its origin, in its axes. Poses are 4 x 4, from the axes of the link to those of the base. Gravity is in base axes. A floating base has positions x y z and a quaternion x y z w, its velocities are in its own axes. */
#ifndef TORSOR_KERNELS_H
#define TORSOR_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

/* inverse_dynamics. Operations: 14 multiplications, 7 additions, 2 trigonometric, 0 other.
 * Generalised forces (nv) of a motion, in N m and N.
 *   q, 2 x 1, in: positions, rad and m
 *   v, 2 x 1, in: velocities, rad/s and m/s
 *   a, 2 x 1, in: accelerations, rad/s^2 and m/s^2
 *   out, 2 x 1, out: inverse_dynamics */
void inverse_dynamics(const double q[2], const double v[2], const double a[2], double out[2]);
enum {
    INVERSE_DYNAMICS_Q_SIZE = 2,
    INVERSE_DYNAMICS_V_SIZE = 2,
    INVERSE_DYNAMICS_A_SIZE = 2,
    INVERSE_DYNAMICS_OUT_SIZE = 2
};

#ifdef __cplusplus
}
#endif

#endif
