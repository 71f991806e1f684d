#pragma once
// Runs an io_context until something has happened: the tests' way to wait without sleeping.

#include <chrono>
#include <utility>

#include <boost/asio/io_context.hpp>

namespace noren::test {

/// Runs handlers until done() is true. False: not within the limit, or nothing is left that could happen.
template <typename Done>
bool run_until(boost::asio::io_context& io, Done&& done,
               std::chrono::steady_clock::duration limit = std::chrono::seconds(20)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (io.stopped()) io.restart();
        const auto left = end - std::chrono::steady_clock::now();
        if (left.count() <= 0 || io.run_one_for(left) == 0) return done();
    }
    return true;
}

}  // namespace noren::test
