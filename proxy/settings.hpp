#pragma once
// The configuration in force, as exchanges use it: immutable, replaced as a whole by a reload. An exchange
// keeps the one it began with.

#include <utility>

#include "config/config.hpp"
#include "proxy/route.hpp"
#include "proxy/tls_files.hpp"

namespace noren::proxy {

struct Settings {
    Settings(config::Config c, TlsContexts t)
        : config(std::move(c)), tls(std::move(t)), routes(config.admission.gated_paths) {}

    config::Config config;
    TlsContexts tls;
    RouteTable routes;
};

}  // namespace noren::proxy
