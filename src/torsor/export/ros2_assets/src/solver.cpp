/* Written by Torsor: the robot @robot@ behind the inverse_dynamics_solver interface. Vectors are in the joint order of
 * @package@_kernels.hpp, which initialize compares with the robot description. */
#include <stdexcept>
#include <string>
#include <vector>

#include <inverse_dynamics_solver/exceptions.hpp>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/rclcpp.hpp>

#include "@package@/compensator.hpp"
#include "@package@/description.hpp"

namespace @package@ {

class Solver : public inverse_dynamics_solver::InverseDynamicsSolver {
public:
    void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters,
                    const std::string &param_namespace, const std::string &robot_description) override
    {
        rclcpp::Parameter found;
        std::string description = robot_description;
        if (description.empty() && parameters && parameters->get_parameter("robot_description", found)) {
            description = found.as_string();
        }
        if (description.empty()) {
            throw inverse_dynamics_solver::ParameterUninitializedException("robot_description");
        }
        std::vector<std::string> ignored;
        const std::string prefix = param_namespace.empty() ? "" : param_namespace + ".";
        if (parameters && parameters->get_parameter(prefix + "ignored_joints", found)) {
            ignored = found.as_string_array();
        }
        const std::string fault = description_fault(description, ignored);
        if (!fault.empty()) throw inverse_dynamics_solver::InvalidParameterValueException(fault);
        is_initialized_ = true;
    }

    Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd &q) const override
    {
        const Matrix M = model::mass_matrix(view(q));
        Eigen::MatrixXd out(size, size);
        for (Index row = 0; row < size; ++row) {
            for (Index column = 0; column < size; ++column) {
                out(row, column) = M[static_cast<std::size_t>(row * size + column)];
            }
        }
        return out;
    }

    Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd &q, const Eigen::VectorXd &v) const override
    {
        return vector(model::coriolis_force(view(q), view(v)));
    }

    Eigen::VectorXd getGravityVector(const Eigen::VectorXd &q) const override
    {
        return vector(model::gravity_force(view(q)));
    }

    Eigen::VectorXd getFrictionVector(const Eigen::VectorXd &v) const override
    {
        return vector(model::friction_force(view(v)));
    }

    /* Without friction, as the interface defines: M(q) a + C(q, v) v + g(q), in one recursion. */
    Eigen::VectorXd getTorques(const Eigen::VectorXd &q, const Eigen::VectorXd &v,
                               const Eigen::VectorXd &a) const override
    {
        return vector(model::rigid_inverse_dynamics(view(q), view(v), view(a)));
    }

private:
    using Matrix = std::array<double, joint_count * joint_count>;
    using Index = Eigen::Index;
    static constexpr Index size = static_cast<Index>(joint_count);

    model::View<const double, joint_count> view(const Eigen::VectorXd &given) const
    {
        if (!is_initialized_) throw inverse_dynamics_solver::UninitializedException();
        if (given.size() != size) {
            throw std::invalid_argument("a vector has " + std::to_string(given.size()) + " numbers; allowed: " +
                                        std::to_string(size) + ", one for each joint of " + model::robot::name);
        }
        return model::View<const double, joint_count>(given.data());
    }

    static Eigen::VectorXd vector(const Vector &given)
    {
        Eigen::VectorXd out(size);
        for (Index k = 0; k < size; ++k) out(k) = given[static_cast<std::size_t>(k)];
        return out;
    }

    bool is_initialized_ = false;
};

}  // namespace @package@

PLUGINLIB_EXPORT_CLASS(@package@::Solver, inverse_dynamics_solver::InverseDynamicsSolver)
