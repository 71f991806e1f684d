#include "proxy/engine_page/page_board.hpp"

#include <utility>

namespace noren::proxy::engine_page {
namespace {

constexpr std::chrono::seconds k_grace{1};

bool is_shared(const PageFetch& fetch, TimePoint now) {
    const auto outcome = fetch.outcome();
    if (!outcome) return now < fetch.due() + k_grace;  // or something has gone wrong with it
    return outcome->page && outcome->page->head.status == 200 && now < fetch.began + fetch.terms.window;
}

}  // namespace

std::optional<Outcome> PageFetch::outcome() const {
    const std::lock_guard lock(mutex_);
    return outcome_;
}

void PageFetch::tell(std::shared_ptr<net::Notifiable> waiter) {
    const std::lock_guard lock(mutex_);
    if (!outcome_) waiters_.push_back(std::move(waiter));
}

void PageFetch::end(Outcome outcome) {
    std::vector<std::shared_ptr<net::Notifiable>> waiters;
    {
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
        waiters.swap(waiters_);
    }
    for (const auto& waiter : waiters)
        waiter->post();
}

PageBoard::Share PageBoard::ask(PageRequest request, const PageTerms& terms, TimePoint now) {
    const std::lock_guard lock(mutex_);
    const auto known = fetches_.find(request.key);
    if (known != fetches_.end() && is_shared(*known->second, now)) return {known->second, true};
    if (known != fetches_.end()) fetches_.erase(known);
    if (fetches_.size() >= k_most_pages || !start_) return {};
    auto fetch = std::make_shared<PageFetch>(std::move(request), terms, now);
    start_(fetch);
    fetches_.emplace(fetch->request.key, fetch);
    return {std::move(fetch), false};
}

void PageBoard::forget(const PageFetch& fetch) {
    const std::lock_guard lock(mutex_);
    const auto known = fetches_.find(fetch.request.key);
    if (known != fetches_.end() && known->second.get() == &fetch) fetches_.erase(known);
}

}  // namespace noren::proxy::engine_page
