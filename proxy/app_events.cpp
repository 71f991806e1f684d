// What happens to noren's parts, told to the log and the metrics.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/app.hpp"
#include "proxy/descriptors.hpp"
#include "proxy/net/client_address.hpp"

namespace noren::proxy {

void App::engine_changed(bool up, std::string_view why) {
    if (up) {
        log_.event(Level::info, "the engine is up", {{"engine", config::to_string(engine_)}});
    } else {
        log_.event(Level::warning, "the engine is down",
                   {{"engine", config::to_string(engine_)}, {"because", std::string(why)}});
    }
}

void App::page_fetched(const engine_page::Outcome& outcome) {
    const auto& page = outcome.page;
    const bool other_status = page && page->head.status != 200;
    telemetry_.page_fetch(other_status ? "status" : word_of(outcome.ending), page ? page->body.size() : 0);
}

void App::worker_changed(std::size_t worker, bool stuck) {
    log_.event(stuck ? Level::error : Level::warning, stuck ? "a worker is stuck" : "the worker turns again",
               {{"worker", std::to_string(worker)}});
}

void App::refusing(std::string_view reason, const RefusalEpisode::News& news) {
    using Kind = RefusalEpisode::News::Kind;
    std::string because = "no memory is left";
    if (reason == "limit") because = "downstream.max_connections are open";
    if (reason == "descriptors")
        because = "no file descriptor is left, of " + std::to_string(descriptor_limit()) + " (ulimit -n)";
    std::vector<Log::Field> fields{{"reason", std::string(reason)},
                                   {"refused", std::to_string(static_cast<std::uint64_t>(news.refused))},
                                   {"open", std::to_string(quota_.open())}};
    if (reason == "client_limit") {
        because = "a client has downstream.max_connections_per_client open";
        if (const auto client = quota_.last_client_full())
            fields.emplace_back("client", net::to_text(*client));
    }
    if (news.kind != Kind::over) fields.emplace_back("because", because);
    if (news.kind == Kind::begins)
        log_.event(Level::warning, "client connections are refused", fields);
    else if (news.kind == Kind::lasts)
        log_.event(Level::warning, "client connections are still refused", fields);
    else
        log_.event(Level::info, "client connections are taken again", fields);
}

}  // namespace noren::proxy
