/* Written by Torsor. Matrices are stored row by row. Outputs must not overlap inputs. No memory is allocated or retained.
 * Controller elastic_tracking of robot ur5, by Torsor 0.2.0 (licence Apache-2.0). SI units, radians.
 * Positions q: shoulder_pan_joint (rad), shoulder_lift_joint (rad), elbow_joint (rad), wrist_1_joint (rad), wrist_2_joint (rad), wrist_3_joint (rad), elbow_joint/motor (rad).
 * Velocities v: shoulder_pan_joint (rad/s), shoulder_lift_joint (rad/s), elbow_joint (rad/s), wrist_1_joint (rad/s), wrist_2_joint (rad/s), wrist_3_joint (rad/s), elbow_joint/motor (rad/s).
 * Forces tau: shoulder_pan_joint (N m), shoulder_lift_joint (N m), elbow_joint (N m), wrist_1_joint (N m), wrist_2_joint (N m), wrist_3_joint (N m), elbow_joint/motor (N m).
 * Positions, velocities and forces refer to the output side of the gears.
 * Ratios: elbow_joint 101. The torque of the rotor is tau / ratio.
 * Entries of tau that are always 0, because a spring drives the joint: elbow_joint.
 * Sampling period: 0.001 s. Sample k is at the time k x 0.001 s.
 * Constants of the code: the model, the reference, gains and limits. No state; memory: the stack.
 * All numbers have double precision (64 bits). */
#ifndef TORSOR_CONTROLLER_H
#define TORSOR_CONTROLLER_H

#ifdef __cplusplus
extern "C" {
#endif

/* elastic_tracking. Operations: 622 multiplications, 534 additions, 12 trigonometric, 5 other.
 * Compute tau at sample k; hold it for one period. There is no return value.
 *   k, 1 x 1, in: number of the sample: 0, 1, 2 and so on
 *   q, 7 x 1, in: measured positions, rad and m
 *   v, 7 x 1, in: measured velocities, rad/s and m/s
 *   tau, 7 x 1, out: forces to apply, N m and N */
void elastic_tracking(const double k[1], const double q[7], const double v[7], double tau[7]);
enum {
    ELASTIC_TRACKING_K_SIZE = 1,
    ELASTIC_TRACKING_Q_SIZE = 7,
    ELASTIC_TRACKING_V_SIZE = 7,
    ELASTIC_TRACKING_TAU_SIZE = 7
};

#ifdef __cplusplus
}
#endif

#endif
