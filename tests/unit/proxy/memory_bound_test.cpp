#include "proxy/memory_bound.hpp"

#include <catch2/catch.hpp>

namespace noren::proxy {

TEST_CASE("the worst case is that every connection runs a request which holds all it may") {
    const config::Config config;
    const MemoryBound one = memory_bound(config, 2, 1), many = memory_bound(config, 2, 1001);
    CHECK(one.worst_case == one.process + one.connection + one.running_request);
    CHECK(many.worst_case - one.worst_case == 1000 * (one.connection + one.running_request));
    CHECK(many.process == one.process);
}

TEST_CASE("each limit of the config counts in the bound of what it limits, at least once") {
    const config::Config plain;
    const MemoryBound before = memory_bound(plain, 1, 1);
    constexpr std::uint64_t k_more = 1 << 20;
    const auto with = [](auto&& change) {
        config::Config config;
        change(config);
        return memory_bound(config, 1, 1);
    };
    const MemoryBound body = with([](auto& c) { c.downstream.request_buffer += k_more; });
    CHECK(body.waiting_request >= before.waiting_request + k_more);
    CHECK(body.running_request >= before.running_request + 2 * k_more);
    const MemoryBound answer = with([](auto& c) { c.downstream.buffer += k_more; });
    CHECK(answer.waiting_request == before.waiting_request);
    CHECK(answer.running_request >= before.running_request + k_more);
    const MemoryBound head = with([](auto& c) { c.downstream.max_head += 1024; });
    CHECK(head.waiting_request >= before.waiting_request + 1024);
    const MemoryBound models = with([](auto& c) { c.metrics.max_models += 10; });
    CHECK(models.process > before.process);
    CHECK(models.connection == before.connection);
    const MemoryBound tls = with([](auto& c) {
        c.tls.certificate = "/a";
        c.upstream.url = "https://127.0.0.1:8000";
    });
    CHECK(tls.connection > before.connection);
    CHECK(tls.running_request > before.running_request);
    CHECK(memory_bound(plain, 8, 1).process > before.process);
}

}  // namespace noren::proxy
