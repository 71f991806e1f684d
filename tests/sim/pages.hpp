#pragma once
// What is answered from a string: health, models, metrics, and the simulator's own control.

#include <string>
#include <string_view>

#include "tests/sim/core.hpp"

namespace sim {

struct Page {
    unsigned status = 200;
    std::string_view type = "application/json";
    std::string body = {};
    std::string_view allow = {};  ///< with 405
};

/// GET: /health /ping /version /v1/models /metrics /sim/state /sim/truth. POST: /sim/control, whose JSON may
/// hold `faults` (array of fault forms, "" = none: Engine::set_script), `refuse_ms` and `drop`
/// (Engine::refuse_for). HEAD as GET. 404 and 405 in FastAPI's words.
Page page_for(Core& core, std::string_view method, std::string_view path, std::string_view body);

}  // namespace sim
