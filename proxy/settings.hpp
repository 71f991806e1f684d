#pragma once
// The configuration in force, as exchanges use it: immutable, replaced as a whole by a reload. An exchange
// keeps the one it began with.

#include <memory>

#include "config/config.hpp"
#include "proxy/route.hpp"

namespace noren::proxy {

struct Settings {
    explicit Settings(config::Config c) : config(std::move(c)), routes(config.admission.gated_paths) {}

    config::Config config;
    RouteTable routes;
};

}  // namespace noren::proxy
