#include "proxy/memory_bound.hpp"

#include "config/address.hpp"

namespace noren::proxy {
namespace {

constexpr std::uint64_t k_kib = 1024;
constexpr std::uint64_t k_mib = 1024 * k_kib;

// Binary and libraries, the registry, and both log queues when full (9 MiB).
constexpr std::uint64_t k_process = 48 * k_mib;
constexpr std::uint64_t k_worker = k_mib;          // its scratch buffer, loop, stack and arena
constexpr std::uint64_t k_model = 64 * k_kib;      // the series of a label, its counters for each way to end
constexpr std::uint64_t k_connection = 4 * k_kib;  // coroutine frames, socket, its place in the sets
constexpr std::uint64_t k_tls = 64 * k_kib;        // a TLS session in the middle of a record
constexpr std::uint64_t k_request = 16 * k_kib;    // the exchange, its meter, what it logs
constexpr std::uint64_t k_observer = 512 * k_kib;  // of a body: its bounds on nodes and text (json_tree.hpp)
constexpr std::uint64_t k_read = 64 * k_kib;       // one read, and what may be read ahead of a request
constexpr std::uint64_t k_answer_head = 64 * k_kib;

/// A string that grows doubles its room.
constexpr std::uint64_t grown(std::uint64_t size) {
    return 2 * size;
}

}  // namespace

MemoryBound memory_bound(const config::Config& config, std::uint64_t workers, std::uint64_t connections) {
    const config::Downstream& limits = config.downstream;
    const auto engine = config::parse_upstream(config.upstream.url).address;
    const std::uint64_t held = grown(limits.request_buffer + 2 * k_read);

    MemoryBound bound;
    bound.process = k_process + workers * k_worker + (config.metrics.max_models + 2) * k_model;
    bound.connection = k_connection + (config.tls.certificate.empty() ? 0 : k_tls);
    // The head as it came and as it is kept, what was read ahead, what is held of the body.
    bound.waiting_request = k_request + 2 * grown(limits.max_head) + grown(2 * k_read) + held + k_observer;
    // Besides: what the engine has not taken yet, and what its client has not.
    bound.running_request = bound.waiting_request + k_connection + (engine && engine->tls ? k_tls : 0) +
                            grown(limits.max_head) + held + grown(k_answer_head) +
                            2 * grown(limits.buffer + k_read) + k_observer;
    bound.worst_case = bound.process + connections * (bound.connection + bound.running_request);
    return bound;
}

}  // namespace noren::proxy
