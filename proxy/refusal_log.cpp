#include "proxy/refusal_log.hpp"

#include <utility>

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;

std::optional<RefusalEpisode::News> RefusalEpisode::look(double total, TimePoint now) {
    const bool more = total > std::exchange(seen_, total);
    if (more) last_refusal_ = now;
    if (!on_) {
        if (!more) return std::nullopt;
        on_ = true;
        at_begin_ = std::exchange(told_, total);
        last_news_ = now;
        return News{News::Kind::begins, total - at_begin_};
    }
    if (now - last_refusal_ >= k_quiet) {
        on_ = false;
        told_ = total;
        return News{News::Kind::over, total - at_begin_};
    }
    if (total == told_ || now - last_news_ < k_quiet) return std::nullopt;
    last_news_ = now;
    return News{News::Kind::lasts, total - std::exchange(told_, total)};
}

RefusalLog::RefusalLog(boost::asio::io_context& io, std::vector<std::string_view> reasons, Count count,
                       Tell tell)
    : timer_(io), count_(std::move(count)), tell_(std::move(tell)) {
    for (const std::string_view reason : reasons)
        watched_.push_back({reason, {}});
}

void RefusalLog::wait() {
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (error) return;
        look();
        wait();
    });
}

void RefusalLog::look() {
    for (Watched& one : watched_)
        if (const auto news = one.episode.look(count_(one.reason), Clock::now())) tell_(one.reason, *news);
}

}  // namespace noren::proxy
