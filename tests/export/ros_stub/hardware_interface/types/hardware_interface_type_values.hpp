// A stand-in for hardware_interface: names, handles and loaned handles with the signatures of Jazzy.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace hardware_interface {
constexpr char HW_IF_POSITION[] = "position";
constexpr char HW_IF_VELOCITY[] = "velocity";
constexpr char HW_IF_ACCELERATION[] = "acceleration";
constexpr char HW_IF_EFFORT[] = "effort";

class CommandInterface {
public:
    CommandInterface(const std::string &prefix, const std::string &name, double *value)
    : prefix_(prefix), name_(prefix + "/" + name), value_(value)
    {
    }
    const std::string &get_name() const { return name_; }
    const std::string &get_prefix_name() const { return prefix_; }
    double *value() const { return value_; }

private:
    std::string prefix_, name_;
    double *value_;
};

class LoanedInterface {
public:
    LoanedInterface(std::string name, double *value) : name_(std::move(name)), value_(value) {}
    const std::string &get_name() const { return name_; }
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

private:
    std::string name_;
    double *value_;
};
using LoanedStateInterface = LoanedInterface;
using LoanedCommandInterface = LoanedInterface;
}  // namespace hardware_interface
