// Endpoints that are no API: bodies of known bytes and times, for tests of the relay itself.
//
//   /raw/chunked?n=10&interval_ms=0&bytes=20&type=plain|sse|ndjson   one chunk per event, event k at k *
//   interval /raw/sink                                                        tells size and fnv1a of the
//   request body

#include <algorithm>
#include <charconv>

#include "tests/sim/answer.hpp"
#include "tests/sim/answer_writer.hpp"
#include "tests/sim/json_text.hpp"

namespace sim {

namespace {

/// `name=NUMBER` of a query; `otherwise` if it is not there or no number.
std::uint64_t query_number(std::string_view query, std::string_view name, std::uint64_t otherwise) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(query.size(), pair.size() + 1));
        if (!pair.starts_with(name) || pair.size() <= name.size() || pair[name.size()] != '=') continue;
        const std::string_view digits = pair.substr(name.size() + 1);
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error == std::errc{} && end == digits.data() + digits.size()) return value;
    }
    return otherwise;
}

struct RawForm {
    std::string_view type;
    std::string_view before;
    std::string_view after;
};

RawForm form_of(std::string_view query) {
    if (query.find("type=sse") != std::string_view::npos) return {"text/event-stream", "data: ", "\n\n"};
    if (query.find("type=ndjson") != std::string_view::npos)
        return {"application/x-ndjson", "{\"k\":\"", "\"}\n"};
    return {"text/plain", "", "\n"};
}

/// Event `k` of exactly `bytes` bytes (as far as its framing allows): the number, padded with zeros.
std::string raw_event(const RawForm& form, std::uint64_t k, std::size_t bytes) {
    std::string digits = std::to_string(k);
    const std::size_t used = form.before.size() + form.after.size() + digits.size();
    if (used < bytes) digits.insert(0, bytes - used, '0');
    return concat(form.before, digits, form.after);
}

net::awaitable<bool> send_raw(Exchange& exchange, AnswerWriter& writer, std::string_view query) {
    const RawForm form = form_of(query);
    const std::uint64_t count = query_number(query, "n", 10);
    const std::chrono::milliseconds interval(query_number(query, "interval_ms", 0));
    const std::size_t bytes = query_number(query, "bytes", 20);
    const ResponseHead head{.type = form.type, .framing = Framing::chunked};
    if (!co_await writer.head(head)) co_return false;
    TimePoint due = Clock::now();
    for (std::uint64_t k = 0; k < count; ++k, due += interval) {
        while (!exchange.sleeper.cancelled() && Clock::now() < due)
            co_await exchange.sleeper.until(due);
        const Event event{raw_event(form, k, bytes)};
        if (!co_await writer.event(event)) co_return false;
    }
    co_return co_await writer.end();
}

}  // namespace

net::awaitable<bool> answer_raw(Exchange& exchange, std::string_view path, std::string_view query) {
    if (path == "/raw/sink") {
        const std::string body = concat(R"({"bytes":)", exchange.truth.request_bytes, R"(,"fnv1a64":")",
                                        hex(exchange.truth.request_fnv), R"("})");
        co_return co_await answer_document(exchange, 200, body);
    }
    if (path != "/raw/chunked")
        co_return co_await answer_document(exchange, 404, R"({"detail":"Not Found"})");

    AnswerWriter writer(exchange);
    const bool whole = co_await send_raw(exchange, writer, query);
    co_return writer.settle(whole);
}

}  // namespace sim
