#pragma once
// Gets what is asked for on the board, each over a connection of its own, outside of admission.

#include <functional>
#include <memory>

#include "config/address.hpp"
#include "proxy/engine_page/page_board.hpp"
#include "proxy/net/loop.hpp"
#include "proxy/upstream/resolver.hpp"

namespace noren::proxy::engine_page {

/// Runs on a worker's loop, with the sockets that exchanges use.
class PageFetcher {
  public:
    /// Told of each fetch that has ended, on the loop's thread, before those who wait for it.
    using OnEnd = std::function<void(const Outcome& outcome)>;

    PageFetcher(net::Loop& loop, upstream::Resolver& resolver, config::Address engine, PageBoard& board,
                OnEnd on_end);
    /// While the loop does not run.
    ~PageFetcher();
    PageFetcher(const PageFetcher&) = delete;
    PageFetcher& operator=(const PageFetcher&) = delete;

  private:
    struct State;
    std::shared_ptr<State> state_;
    PageBoard& board_;
};

}  // namespace noren::proxy::engine_page
