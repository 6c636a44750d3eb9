// A stand-in for hardware_interface: the major version of ros2_control, that of Jazzy unless another is given.
#pragma once
#ifndef HARDWARE_INTERFACE_VERSION_MAJOR
#define HARDWARE_INTERFACE_VERSION_MAJOR 4
#endif
