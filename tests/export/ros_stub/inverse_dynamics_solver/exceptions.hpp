// A stand-in for inverse_dynamics_solver: its exceptions.
#pragma once
#include <stdexcept>

#include "rclcpp/rclcpp.hpp"

namespace inverse_dynamics_solver {
using InvalidParameterValueException = rclcpp::exceptions::InvalidParameterValueException;
using ParameterUninitializedException = rclcpp::exceptions::ParameterUninitializedException;
class UninitializedException : public std::runtime_error {
public:
    UninitializedException() : std::runtime_error("the solver is not initialized") {}
};
}  // namespace inverse_dynamics_solver
