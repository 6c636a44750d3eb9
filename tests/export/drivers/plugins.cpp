// Makes the plugins of an exported package by their names, through pluginlib and the ament index, and prints what they
// compute. Argument: a robot description; standard input: the positions.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include <controller_interface/chainable_controller_interface.hpp>
#include <inverse_dynamics_solver/inverse_dynamics_solver.hpp>
#include <pluginlib/class_loader.hpp>

#include "PACKAGE/PACKAGE_kernels.hpp"

int main(int, char **argv)
{
    using Controller = controller_interface::ChainableControllerInterface;
    using Solver = inverse_dynamics_solver::InverseDynamicsSolver;
    constexpr auto count = PACKAGE_kernels::robot::coordinates.size();
    std::ifstream file(argv[1]);
    const std::string description{std::istreambuf_iterator<char>(file), {}};
    Eigen::VectorXd q(count);
    for (std::size_t k = 0; k < count; ++k) std::cin >> q(static_cast<Eigen::Index>(k));

    pluginlib::ClassLoader<Controller> controllers("controller_interface", "controller_interface::ChainableControllerInterface");
    for (const std::string &name : controllers.getDeclaredClasses()) std::printf("controller %s\n", name.c_str());
    auto controller = controllers.createUniqueInstance("PACKAGE/CompensationController");
    controller->description = description;
    controller->on_init();
    std::printf("configured %d\n", controller->on_configure({}) == controller_interface::CallbackReturn::SUCCESS);

    pluginlib::ClassLoader<Solver> solvers("inverse_dynamics_solver", "inverse_dynamics_solver::InverseDynamicsSolver");
    for (const std::string &name : solvers.getDeclaredClasses()) std::printf("solver %s\n", name.c_str());
    auto solver = solvers.createUniqueInstance("PACKAGE/Solver");
    solver->initialize(nullptr, "", description);
    const Eigen::VectorXd g = solver->getGravityVector(q);
    std::printf("gravity");
    for (Eigen::Index k = 0; k < g.size(); ++k) std::printf(" %.17g", g(k));
    std::printf("\n");
    return 0;
}
