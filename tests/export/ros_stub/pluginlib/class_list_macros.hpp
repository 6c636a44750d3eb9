// A stand-in for pluginlib: a plugin is made by the function `factory` of its base class.
#pragma once
#include <memory>

template <class Base>
inline std::unique_ptr<Base> (*factory)() = nullptr;

#define PLUGINLIB_EXPORT_CLASS(Class, Base)                                                                \
    static_assert(std::is_base_of<Base, Class>::value, "a plugin has the type of its base");               \
    [[maybe_unused]] static const bool is_registered_plugin = (factory<Base> = []() -> std::unique_ptr<Base> { \
        return std::make_unique<Class>();                                                                  \
    }) != nullptr;
