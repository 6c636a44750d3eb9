/* Written by Torsor: a chainable ros2_control controller for all releases. The major version is 2 in Humble, 4 in
 * Jazzy, 5 in Kilted, and 6 or more in Lyrical and Rolling. */
#ifndef @guard@_RELEASES_HPP
#define @guard@_RELEASES_HPP

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "hardware_interface/version.h"

namespace @package@ {

inline constexpr double none = std::numeric_limits<double>::quiet_NaN();

/* number_of returns the value of an interface, or a fallback while its owner holds the lock; set_number sets the value
 * and returns whether it succeeded. */
#if HARDWARE_INTERFACE_VERSION_MAJOR < 3
template <class Interface>
double number_of(const Interface &interface, double)
{
    return interface.get_value();
}

template <class Interface>
bool set_number(Interface &interface, double value)
{
    interface.set_value(value);
    return true;
}
#else
template <class Interface>
double number_of(const Interface &interface, double otherwise)
{
    return interface.get_optional().value_or(otherwise);
}

template <class Interface>
bool set_number(Interface &interface, double value)
{
    return interface.set_value(value);
}
#endif

class ReferenceController : public controller_interface::ChainableControllerInterface {
protected:
    /* Returns the reference names without the prefix, which is the controller name. */
    virtual std::vector<std::string> reference_names() const = 0;

#if HARDWARE_INTERFACE_VERSION_MAJOR < 3  /* the controller manager does not pass on the robot description */
    void declare_description() { auto_declare<std::string>("robot_description", ""); }
    std::string description() const { return get_node()->get_parameter("robot_description").as_string(); }

    controller_interface::return_type update_reference_from_subscribers() override
    {
        return controller_interface::return_type::OK;
    }
#else
    void declare_description() {}
    std::string description() const { return get_robot_description(); }

    controller_interface::return_type update_reference_from_subscribers(const rclcpp::Time &,
                                                                        const rclcpp::Duration &) override
    {
        return controller_interface::return_type::OK;
    }
#endif

#if HARDWARE_INTERFACE_VERSION_MAJOR < 6  /* the controller owns its reference values */
    std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override
    {
        std::vector<hardware_interface::CommandInterface> exported;
        const std::vector<std::string> names = reference_names();
        reference_interfaces_.assign(names.size(), none);
        for (const std::string &name : names) {
            exported.emplace_back(get_node()->get_name(), name, &reference_interfaces_[exported.size()]);
        }
        return exported;
    }

    bool forget_references()
    {
        std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), none);
        return true;
    }

    const std::vector<double> &references() { return reference_interfaces_; }
#else  /* each interface owns its value; a locked interface keeps its last value */
    std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() override
    {
        exported_.clear();
        for (const std::string &name : reference_names()) {
            exported_.push_back(std::make_shared<hardware_interface::CommandInterface>(get_node()->get_name(), name));
        }
        forget_references();
        return exported_;
    }

    bool forget_references()
    {
        bool is_done = true;
        last_.assign(exported_.size(), none);
        for (const auto &each : exported_) is_done = set_number(*each, none) && is_done;
        return is_done;
    }

    const std::vector<double> &references()
    {
        for (std::size_t k = 0; k < last_.size(); ++k) last_[k] = number_of(*exported_[k], last_[k]);
        return last_;
    }

private:
    std::vector<hardware_interface::CommandInterface::SharedPtr> exported_;
    std::vector<double> last_;
#endif
};

}  // namespace @package@

#endif
