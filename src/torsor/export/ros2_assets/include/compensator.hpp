/* Written by Torsor: the control law of the robot @robot@, without ROS. It does not allocate memory or take locks, and
 * its run time does not depend on the values. */
#ifndef @guard@_COMPENSATOR_HPP
#define @guard@_COMPENSATOR_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "@package@/@package@_kernels.hpp"

namespace @package@ {

namespace model = @package@_kernels;

inline constexpr std::size_t joint_count = model::robot::coordinates.size();
using Vector = std::array<double, joint_count>;

inline Vector filled(double value) noexcept
{
    Vector vector{};
    vector.fill(value);
    return vector;
}

/* References of the joints. NaN means no reference: the position error, velocity, acceleration and effort are zero. */
struct Reference {
    Vector position = filled(std::numeric_limits<double>::quiet_NaN());
    Vector velocity = filled(std::numeric_limits<double>::quiet_NaN());
    Vector acceleration = filled(std::numeric_limits<double>::quiet_NaN());
    Vector effort = filled(std::numeric_limits<double>::quiet_NaN());
};

enum class Mode { gravity, inverse_dynamics };

struct Settings {
    Mode mode = Mode::gravity;
    Vector kp{}, kd{};
    Vector max_effort = model::robot::effort_limit;
};

/* Reads one list: empty keeps the present values, otherwise one nonnegative number for each joint. */
inline std::string take(const std::string &name, const std::vector<double> &given, Vector &target)
{
    if (given.empty()) return "";
    if (given.size() != joint_count) {
        return name + " has " + std::to_string(given.size()) + " numbers; allowed: none, or one for each of " +
               std::to_string(joint_count) + " joints";
    }
    for (double each : given) {
        if (!(each >= 0.0)) return name + " contains " + std::to_string(each) + "; allowed: 0 or more";
    }
    std::copy(given.begin(), given.end(), target.begin());
    return "";
}

/* Fills the settings; returns an error message, or an empty string. */
inline std::string configure(const std::string &mode, const std::vector<double> &kp, const std::vector<double> &kd,
                             const std::vector<double> &max_effort, Settings &settings)
{
    settings = Settings{};
    if (mode == "inverse_dynamics") {
        settings.mode = Mode::inverse_dynamics;
    } else if (mode != "gravity") {
        return "mode is '" + mode + "'; allowed: gravity, inverse_dynamics";
    }
    for (const std::string &fault : {take("kp", kp, settings.kp), take("kd", kd, settings.kd),
                                     take("max_effort", max_effort, settings.max_effort)}) {
        if (!fault.empty()) return fault;
    }
    for (std::size_t k = 0; k < joint_count && max_effort.empty(); ++k) {
        if (!(settings.max_effort[k] > 0.0)) {
            return "the model limits the effort of '" + std::string(model::robot::coordinates[k]) + "' to 0; set max_effort";
        }
    }
    return "";
}

/* Computes tau = g(q) + Kp e + Kd e' + tau_r, or with Mode::inverse_dynamics tau = ID(q_r, v_r, a_r) + Kp e + Kd e' +
 * tau_r, clipped to the maximum efforts; e = q_r - q. Returns false, and leaves tau unchanged, if a position, velocity or
 * result is not finite. */
inline bool compensate(const Settings &settings, const Vector &q, const Vector &v, const Reference &reference,
                       Vector &tau) noexcept
{
    Vector wanted_q{}, wanted_v{}, wanted_a{}, total{};
    const auto given = [](double value, double otherwise) { return std::isnan(value) ? otherwise : value; };
    for (std::size_t k = 0; k < joint_count; ++k) {
        wanted_q[k] = given(reference.position[k], q[k]);
        wanted_v[k] = given(reference.velocity[k], 0.0);
        wanted_a[k] = given(reference.acceleration[k], 0.0);
    }
    if (settings.mode == Mode::gravity) {
        model::gravity_force(q, total);
    } else {
        model::inverse_dynamics(wanted_q, wanted_v, wanted_a, total);
    }
    bool is_finite = true;
    for (std::size_t k = 0; k < joint_count; ++k) {
        total[k] += settings.kp[k] * (wanted_q[k] - q[k]) + settings.kd[k] * (wanted_v[k] - v[k]);
        total[k] += given(reference.effort[k], 0.0);
        is_finite = is_finite && std::isfinite(q[k]) && std::isfinite(v[k]) && std::isfinite(total[k]);
        total[k] = std::max(-settings.max_effort[k], std::min(settings.max_effort[k], total[k]));
    }
    if (is_finite) tau = total;
    return is_finite;
}

}  // namespace @package@

#endif
