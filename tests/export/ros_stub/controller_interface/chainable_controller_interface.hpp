// A stand-in for controller_interface: the interface of a chainable controller with the signatures of each release.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "rclcpp/rclcpp.hpp"

namespace controller_interface {
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };

struct InterfaceConfiguration {
    interface_configuration_type type;
    std::vector<std::string> names = {};
};

class ChainableControllerInterface {
public:
    virtual ~ChainableControllerInterface() = default;
    virtual InterfaceConfiguration command_interface_configuration() const = 0;
    virtual InterfaceConfiguration state_interface_configuration() const = 0;
    virtual CallbackReturn on_init() = 0;
    virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
    virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }
    virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) { return CallbackReturn::SUCCESS; }

    return_type update(const rclcpp::Time &time, const rclcpp::Duration &period)
    {
#if HARDWARE_INTERFACE_VERSION_MAJOR < 3
        const return_type found = update_reference_from_subscribers();
#else
        const return_type found = update_reference_from_subscribers(time, period);
#endif
        return found == return_type::OK ? update_and_write_commands(time, period) : found;
    }
    std::vector<hardware_interface::CommandInterface::SharedPtr> export_reference_interfaces()
    {
#if HARDWARE_INTERFACE_VERSION_MAJOR < 6
        std::vector<hardware_interface::CommandInterface::SharedPtr> exported;
        for (const auto &each : on_export_reference_interfaces()) {
            exported.push_back(std::make_shared<hardware_interface::CommandInterface>(each));
        }
        if (exported.size() != reference_interfaces_.size()) throw std::runtime_error("number of references");
#else
        const auto exported = on_export_reference_interfaces_list();
#endif
        for (const auto &each : exported) {  // as ros2_control: the prefix is the controller's name, nothing more
            if (each->get_prefix_name() != node->get_name()) throw std::runtime_error("prefix of " + each->get_name());
        }
        return exported;
    }
    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const { return node; }
#if HARDWARE_INTERFACE_VERSION_MAJOR >= 3
    const std::string &get_robot_description() const { return description; }
#endif

    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node = std::make_shared<rclcpp_lifecycle::LifecycleNode>();
    std::string description;
    std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
    std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;

protected:
    template <class T>
    auto auto_declare(const std::string &name, const T &value)
    {
        if (node->has_parameter(name)) return node->get_parameter(name).get_value<T>();
        return node->declare_parameter<T>(name, value);
    }
    virtual return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) = 0;
#if HARDWARE_INTERFACE_VERSION_MAJOR < 3
    virtual return_type update_reference_from_subscribers() = 0;
#else
    virtual return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) = 0;
#endif
#if HARDWARE_INTERFACE_VERSION_MAJOR < 6
    virtual std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() = 0;
    std::vector<double> reference_interfaces_;
#else
    virtual std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() = 0;
#endif
};
}  // namespace controller_interface
