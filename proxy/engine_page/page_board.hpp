#pragma once
// Who wants the engine's metrics page, and the fetches they share: those who ask for the same page within a
// window get the same one. A fetch belongs to nobody who waits for it, so that whoever leaves ends nothing.

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "metrics/clock.hpp"
#include "proxy/engine_page/page.hpp"
#include "proxy/net/notifiable.hpp"
#include "proxy/net/tls_context.hpp"

namespace noren::proxy::engine_page {

using metrics::TimePoint;

/// What is asked of the engine.
struct PageRequest {
    std::string key;   ///< the same for requests whose answer is the same
    std::string head;  ///< as it goes out, with "Connection: close"
};

struct PageTerms {
    std::chrono::milliseconds window{0};  ///< for how long a page is shared, from the beginning of its fetch
    std::chrono::milliseconds timeout{5'000};
    std::size_t max_size = 8 * 1024 * 1024;
    std::shared_ptr<const net::TlsContext> tls;  ///< null: plain
};

/// One look at the engine, running or over. Any thread.
class PageFetch {
  public:
    PageFetch(PageRequest asked, PageTerms agreed, TimePoint at)
        : request(std::move(asked)), terms(std::move(agreed)), began(at) {}

    /// Empty while it runs.
    std::optional<Outcome> outcome() const;
    /// When it is over, at the latest.
    TimePoint due() const { return began + terms.timeout; }

    /// To be woken when it is over; not if it is already.
    void tell(std::shared_ptr<net::Notifiable> waiter);
    /// Once.
    void end(Outcome outcome);

    const PageRequest request;
    const PageTerms terms;
    const TimePoint began;

  private:
    mutable std::mutex mutex_;
    std::optional<Outcome> outcome_;
    std::vector<std::shared_ptr<net::Notifiable>> waiters_;
};

/// Any thread.
class PageBoard {
  public:
    /// Different pages (a request with another Accept is one) that are kept at once.
    static constexpr std::size_t k_most_pages = 8;

    using Start = std::function<void(const std::shared_ptr<PageFetch>& fetch)>;

    /// Who fetches. Set before anybody asks, and taken away after nobody does any more.
    void set_fetcher(Start start) { start_ = std::move(start); }

    struct Share {
        std::shared_ptr<PageFetch> fetch;  ///< null: too many different ones are on the board
        bool joined = false;               ///< somebody else had asked for it
    };
    /// The fetch that answers the request: one that runs, one whose page (a 200) is still within its window,
    /// or a new one.
    Share ask(PageRequest request, const PageTerms& terms, TimePoint now);

    /// Nobody is given this one any more.
    void forget(const PageFetch& fetch);

  private:
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<PageFetch>> fetches_;  ///< by key
    Start start_;
};

}  // namespace noren::proxy::engine_page
