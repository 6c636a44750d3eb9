/* Written by Torsor: a chainable ros2_control controller for the robot @robot@. It reads the position and velocity of
 * each joint and writes its effort. Preceding controllers may write the references position, velocity, acceleration and
 * effort of each joint. Without references it compensates gravity, with damping kd. */
#include <string>
#include <vector>

#include "@package@/compensator.hpp"
#include "@package@/description.hpp"
#include "@package@/releases.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"

namespace @package@ {

using controller_interface::CallbackReturn;
using controller_interface::interface_configuration_type;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;

class CompensationController : public ReferenceController {
public:
    CallbackReturn on_init() override
    {
        auto_declare<std::string>("mode", "gravity");
        for (const char *name : {"kp", "kd", "max_effort"}) auto_declare<std::vector<double>>(name, {});
        auto_declare<std::vector<std::string>>("ignored_joints", std::vector<std::string>{});
        declare_description();
        return CallbackReturn::SUCCESS;
    }

    CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
    {
        const auto numbers = [this](const char *name) { return get_node()->get_parameter(name).as_double_array(); };
        const auto ignored = get_node()->get_parameter("ignored_joints").as_string_array();
        const std::string mode = get_node()->get_parameter("mode").as_string();
        std::string fault = configure(mode, numbers("kp"), numbers("kd"), numbers("max_effort"), settings_);
        if (fault.empty()) fault = description_fault(description(), ignored);
        if (fault.empty()) return CallbackReturn::SUCCESS;
        RCLCPP_ERROR(get_node()->get_logger(), "%s", fault.c_str());
        return CallbackReturn::FAILURE;
    }

    InterfaceConfiguration command_interface_configuration() const override
    {
        return {interface_configuration_type::INDIVIDUAL, names({hardware_interface::HW_IF_EFFORT})};
    }

    InterfaceConfiguration state_interface_configuration() const override
    {
        return {interface_configuration_type::INDIVIDUAL,
                names({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY})};
    }

    CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
    {
        if (!in_order(state_interfaces_, state_interface_configuration().names) ||
            !in_order(command_interfaces_, command_interface_configuration().names)) {
            RCLCPP_ERROR(get_node()->get_logger(), "the interfaces are not in the joint order of the model");
            return CallbackReturn::FAILURE;
        }
        return forget_references() ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
    }

    CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
    {
        return written(Vector{}) ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;  // clears the last command
    }

protected:
    std::vector<std::string> reference_names() const override
    {
        return names({hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
                      hardware_interface::HW_IF_ACCELERATION, hardware_interface::HW_IF_EFFORT});
    }

    /* The real-time loop: fixed-length arrays, no allocation, no lock, no log message. */
    return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) override
    {
        Vector q{}, v{}, tau{};
        Reference reference;
        const std::vector<double> &wanted = references();
        for (std::size_t k = 0; k < joint_count; ++k) {
            q[k] = number_of(state_interfaces_[k], none);
            v[k] = number_of(state_interfaces_[joint_count + k], none);
            reference.position[k] = wanted[k];
            reference.velocity[k] = wanted[joint_count + k];
            reference.acceleration[k] = wanted[2 * joint_count + k];
            reference.effort[k] = wanted[3 * joint_count + k];
        }
        if (!compensate(settings_, q, v, reference, tau)) return return_type::ERROR;
        return written(tau) ? return_type::OK : return_type::ERROR;
    }

private:
    bool written(const Vector &tau)
    {
        bool is_written = true;
        for (std::size_t k = 0; k < joint_count; ++k) {
            is_written = set_number(command_interfaces_[k], tau[k]) && is_written;
        }
        return is_written;
    }

    static std::vector<std::string> names(std::initializer_list<const char *> kinds)
    {
        std::vector<std::string> found;
        for (const char *kind : kinds) {
            for (const char *joint : model::robot::coordinates) found.push_back(std::string(joint) + "/" + kind);
        }
        return found;
    }

    template <class Interfaces>
    static bool in_order(const Interfaces &interfaces, const std::vector<std::string> &wanted)
    {
        bool is_same = interfaces.size() == wanted.size();
        for (std::size_t k = 0; is_same && k < wanted.size(); ++k) is_same = interfaces[k].get_name() == wanted[k];
        return is_same;
    }

    Settings settings_;
};

}  // namespace @package@

PLUGINLIB_EXPORT_CLASS(@package@::CompensationController, controller_interface::ChainableControllerInterface)
