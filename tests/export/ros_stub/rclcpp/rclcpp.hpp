// A stand-in for rclcpp and rclcpp_lifecycle: the types that the exported package uses, with the signatures of Jazzy.
#pragma once
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#define RCLCPP_ERROR(logger, ...) ((logger).error(__VA_ARGS__))

namespace rclcpp {
class Time {};
class Duration {};

class Logger {
public:
    void error(const char *text) const { error("%s", text); }

    template <class... Values>
    void error(const char *format, Values... values) const
    {
        std::printf("error: ");
        std::printf(format, values...);
        std::printf("\n");
    }
};

using Value = std::variant<std::string, std::vector<double>, std::vector<std::string>>;

class Parameter {
public:
    Parameter() = default;
    explicit Parameter(Value value) : value_(std::move(value)) {}
    std::string as_string() const { return std::get<std::string>(value_); }
    std::vector<double> as_double_array() const { return std::get<std::vector<double>>(value_); }
    std::vector<std::string> as_string_array() const { return std::get<std::vector<std::string>>(value_); }
    template <class T>
    T get_value() const
    {
        return std::get<T>(value_);
    }

private:
    Value value_;
};

namespace exceptions {
class InvalidParameterValueException : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class ParameterUninitializedException : public std::runtime_error {
public:
    explicit ParameterUninitializedException(const std::string &name) : std::runtime_error(name + " is not set") {}
};
}  // namespace exceptions

namespace node_interfaces {
class NodeParametersInterface {
public:
    using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>;
    virtual ~NodeParametersInterface() = default;
    virtual bool get_parameter(const std::string &name, Parameter &parameter) const = 0;
};
}  // namespace node_interfaces
}  // namespace rclcpp

namespace rclcpp_lifecycle {
class State {};

class LifecycleNode {
public:
    std::map<std::string, rclcpp::Value> values;
    const char *get_name() const { return "compensation_controller"; }
    rclcpp::Logger get_logger() const { return {}; }
    bool has_parameter(const std::string &name) const { return values.count(name) != 0; }
    rclcpp::Parameter get_parameter(const std::string &name) const { return rclcpp::Parameter(values.at(name)); }
    template <class T>
    T declare_parameter(const std::string &name, const T &value)
    {
        values[name] = value;
        return value;
    }
};
}  // namespace rclcpp_lifecycle
