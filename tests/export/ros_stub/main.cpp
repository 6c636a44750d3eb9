// Runs controller and solver of an exported package behind the stand-ins. Arguments: a robot description, a mode, and
// names of ignored joints; standard input: kp, kd, q, v, references (4 N numbers), a. Prints what they say and compute.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <new>

#include "PACKAGE/compensator.hpp"
#include "controller_interface/chainable_controller_interface.hpp"
#include "inverse_dynamics_solver/inverse_dynamics_solver.hpp"
#include "pluginlib/class_list_macros.hpp"

static std::size_t allocations = 0;
void *operator new(std::size_t size)
{
    ++allocations;
    return std::malloc(size);
}
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, std::size_t) noexcept { std::free(pointer); }

using Numbers = std::vector<double>;
constexpr std::size_t count = PACKAGE::joint_count;

static Numbers read(std::size_t size)
{
    Numbers found;
    std::string word;
    while (found.size() < size && std::cin >> word) found.push_back(std::strtod(word.c_str(), nullptr));
    return found;
}

template <class Array>
static void print(const char *name, const Array &numbers)
{
    std::printf("%s", name);
    for (std::size_t k = 0; k < static_cast<std::size_t>(numbers.size()); ++k) std::printf(" %.17g", numbers.data()[k]);
    std::printf("\n");
}

static Eigen::VectorXd vector(const Numbers &numbers)
{
    Eigen::VectorXd found(static_cast<Eigen::Index>(numbers.size()));
    for (std::size_t k = 0; k < numbers.size(); ++k) found(static_cast<Eigen::Index>(k)) = numbers[k];
    return found;
}

static bool set(hardware_interface::CommandInterface &interface, double value)
{
#if HARDWARE_INTERFACE_VERSION_MAJOR < 3
    interface.set_value(value);
    return true;
#else
    return interface.set_value(value);
#endif
}

class Parameters : public rclcpp::node_interfaces::NodeParametersInterface {
public:
    std::map<std::string, rclcpp::Value> values;
    bool get_parameter(const std::string &name, rclcpp::Parameter &parameter) const override
    {
        if (values.count(name) != 0) parameter = rclcpp::Parameter(values.at(name));
        return values.count(name) != 0;
    }
};

int main(int argc, char **argv)
{
    using namespace controller_interface;
    std::ifstream file(argv[1]);
    const std::string description{std::istreambuf_iterator<char>(file), {}};
    const Numbers kp = read(count), kd = read(count), q = read(count), v = read(count), wanted = read(4 * count);
    const Numbers a = read(count);

    auto controller = factory<ChainableControllerInterface>();
    controller->description = description;
    controller->on_init();
    controller->node->values["robot_description"] = description;
    controller->node->values["mode"] = std::string(argv[2]);
    controller->node->values["kp"] = kp;
    controller->node->values["kd"] = kd;
    controller->node->values["ignored_joints"] = std::vector<std::string>(argv + 3, argv + argc);
    if (controller->on_configure({}) != CallbackReturn::SUCCESS) return 3;
    auto references = controller->export_reference_interfaces();
    Numbers state(q), tau(count, 0.0);
    state.insert(state.end(), v.begin(), v.end());
    std::size_t k = 0;
    for (const std::string &name : controller->state_interface_configuration().names) {
        controller->state_interfaces_.emplace_back(name, &state[k++]);
    }
    k = 0;
    for (const std::string &name : controller->command_interface_configuration().names) {
        controller->command_interfaces_.emplace_back(name, &tau[k++]);
    }
    if (controller->on_activate({}) != CallbackReturn::SUCCESS) return 4;
    for (k = 0; k < references.size(); ++k) if (!set(*references[k], wanted[k])) return 5;
    const std::size_t before = allocations;
    const return_type done = controller->update({}, {});
    std::printf("allocations %zu\n", allocations - before);
    std::printf("ok %d\n", done == return_type::OK);
    std::printf("names %s %s %s\n", controller->state_interfaces_[count].get_name().c_str(),
                controller->command_interfaces_[0].get_name().c_str(), references.back()->get_name().c_str());
    print("tau", tau);
    controller->on_deactivate({});
    print("after", tau);

    auto solver = factory<inverse_dynamics_solver::InverseDynamicsSolver>();
    try {
        solver->getGravityVector(vector(q));
    } catch (const std::exception &fault) {
        std::printf("before %s\n", fault.what());
    }
    auto parameters = std::make_shared<Parameters>();
    parameters->values["robot_description"] = description;
    parameters->values["solver.ignored_joints"] = std::vector<std::string>(argv + 3, argv + argc);
    solver->initialize(parameters, "solver");
    const auto [M, c, g] = solver->getDynamicParameters(vector(q), vector(v));
    print("M", M);
    print("c", c);
    print("g", g);
    print("f", solver->getFrictionVector(vector(v)));
    print("torques", solver->getTorques(vector(q), vector(v), vector(a)));
    try {
        solver->getGravityVector(vector({1.0}));
    } catch (const std::exception &fault) {
        std::printf("wrong %s\n", fault.what());
    }
    return 0;
}
