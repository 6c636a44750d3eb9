// A stand-in for inverse_dynamics_solver: the abstract class of version 2, for Jazzy.
#pragma once
#include <string>
#include <tuple>

#include <eigen3/Eigen/Core>

#include "rclcpp/rclcpp.hpp"

namespace inverse_dynamics_solver {
using EigenVector = Eigen::VectorXd;

class InverseDynamicsSolver {
public:
    virtual ~InverseDynamicsSolver() = default;
    virtual void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr parameters_interface = nullptr,
                            const std::string &param_namespace = "", const std::string &robot_description = "") = 0;
    virtual std::tuple<Eigen::MatrixXd, EigenVector, EigenVector> getDynamicParameters(const EigenVector &q, const EigenVector &v) const
    {
        return {getInertiaMatrix(q), getCoriolisVector(q, v), getGravityVector(q)};
    }
    virtual Eigen::MatrixXd getInertiaMatrix(const EigenVector &q) const = 0;
    virtual EigenVector getCoriolisVector(const EigenVector &q, const EigenVector &v) const = 0;
    virtual EigenVector getGravityVector(const EigenVector &q) const = 0;
    virtual EigenVector getFrictionVector(const EigenVector &v) const = 0;
    virtual EigenVector getTorques(const EigenVector &q, const EigenVector &v, const EigenVector &a) const = 0;
};
}  // namespace inverse_dynamics_solver
