#pragma once
// Client connections that are closed as soon as they are accepted, told in the log: when it begins, now and
// then while it lasts, and when it is over. Never a line for each: who floods noren must not flood its log.

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "metrics/clock.hpp"

namespace noren::proxy {

/// Refusals for one reason, as a counter and the time tell of them.
class RefusalEpisode {
  public:
    static constexpr std::chrono::seconds k_quiet{10};  ///< between lines; without a refusal it is over

    struct News {
        enum class Kind : unsigned char { begins, lasts, over } kind;
        double refused;  ///< since the news before; `over`: in all
    };

    /// total: refused since start.
    std::optional<News> look(double total, metrics::TimePoint now);

  private:
    bool on_ = false;
    double seen_ = 0, told_ = 0, at_begin_ = 0;
    metrics::TimePoint last_refusal_{}, last_news_{};
};

/// One thread (the ops thread): a look each second.
class RefusalLog {
  public:
    using Count = std::function<double(std::string_view reason)>;
    using Tell = std::function<void(std::string_view reason, const RefusalEpisode::News& news)>;

    RefusalLog(boost::asio::io_context& io, std::vector<std::string_view> reasons, Count count, Tell tell);
    void start() { wait(); }

  private:
    void wait();
    void look();

    struct Watched {
        std::string_view reason;
        RefusalEpisode episode;
    };
    boost::asio::steady_timer timer_;
    std::vector<Watched> watched_;
    const Count count_;
    const Tell tell_;
};

}  // namespace noren::proxy
