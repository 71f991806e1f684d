#pragma once
// Waiting for what other threads bring about.

#include <chrono>
#include <thread>

namespace test {

/// Whether the condition holds within 20 s: long enough for any machine, and never waited out if all is well.
template <typename Condition>
bool eventually(Condition condition) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > give_up) return false;
        std::this_thread::yield();
    }
    return true;
}

}  // namespace test
