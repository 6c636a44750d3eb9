// A stand-in for hardware_interface: names, handles and loaned handles with the signatures of each release.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "hardware_interface/version.h"

namespace hardware_interface {
constexpr char HW_IF_POSITION[] = "position";
constexpr char HW_IF_VELOCITY[] = "velocity";
constexpr char HW_IF_ACCELERATION[] = "acceleration";
constexpr char HW_IF_EFFORT[] = "effort";

class Interface {
public:
    Interface(std::string name, double *value) : name_(std::move(name)), value_(value) {}
    const std::string &get_name() const { return name_; }
#if HARDWARE_INTERFACE_VERSION_MAJOR < 3
    double get_value() const { return *value_; }
    void set_value(double value) { *value_ = value; }
#else
    template <class T = double>
    std::optional<T> get_optional() const
    {
        return *value_;
    }
    template <class T>
    [[nodiscard]] bool set_value(const T &value)
    {
        *value_ = value;
        return true;
    }
#endif

private:
    std::string name_;
    double *value_;
};

class CommandInterface : public Interface {
public:
    using SharedPtr = std::shared_ptr<CommandInterface>;
#if HARDWARE_INTERFACE_VERSION_MAJOR < 6
    CommandInterface(const std::string &prefix, const std::string &name, double *value)
    : Interface(prefix + "/" + name, value), prefix_(prefix)
    {
    }
#else
    CommandInterface(const std::string &prefix, const std::string &name)
    : Interface(prefix + "/" + name, &own_), prefix_(prefix)
    {
    }
    CommandInterface(const CommandInterface &) = delete;
#endif
    const std::string &get_prefix_name() const { return prefix_; }

private:
    std::string prefix_;
#if HARDWARE_INTERFACE_VERSION_MAJOR >= 6
    double own_ = 0.0;
#endif
};

using LoanedStateInterface = Interface;
using LoanedCommandInterface = Interface;
}  // namespace hardware_interface
