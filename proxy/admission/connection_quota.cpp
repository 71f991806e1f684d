#include "proxy/admission/connection_quota.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>

namespace noren::proxy::admission {

std::size_t ConnectionQuota::Hash::operator()(const ClientKey& key) const noexcept {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(key.data()), key.size()});
}

ConnectionQuota::Entry ConnectionQuota::enter(const std::optional<ClientKey>& client, Place& place) {
    const std::lock_guard lock(mutex_);
    if (open_ >= limits_.in_all) return Entry::full;
    if (descriptors_taken() >= limits_.descriptors) return Entry::no_descriptors;
    if (client) {
        // Counted without a limit too, so that one set later finds them.
        std::uint32_t& theirs = by_client_[*client];
        if (limits_.per_client != 0 && theirs >= limits_.per_client) {
            last_client_full_ = client;
            return Entry::client_full;
        }
        ++theirs;
    }
    ++open_;
    publish();
    place = Place(*this, client);
    return Entry::in;
}

void ConnectionQuota::leave(const std::optional<ClientKey>& client) noexcept {
    const std::lock_guard lock(mutex_);
    --open_;
    publish();
    if (!client) return;
    const auto theirs = by_client_.find(*client);
    if (--theirs->second == 0) by_client_.erase(theirs);
}

bool ConnectionQuota::enter_engine(EnginePlace& place) {
    const std::lock_guard lock(mutex_);
    if (place.quota_) return true;
    if (to_engine_ >= limits_.to_engine && descriptors_taken() >= limits_.descriptors) return false;
    ++to_engine_;
    place.quota_ = this;
    return true;
}

std::uint32_t ConnectionQuota::descriptors_taken() const {
    return open_ + (to_engine_ > limits_.to_engine ? to_engine_ - limits_.to_engine : 0);
}

void ConnectionQuota::publish() noexcept {
    const std::uint32_t left = limits_.descriptors - std::min(limits_.descriptors, open_);
    for_engine_.store(std::uint64_t{limits_.kept_for_engine} + left, std::memory_order_relaxed);
}

void ConnectionQuota::leave_engine() noexcept {
    const std::lock_guard lock(mutex_);
    --to_engine_;
}

void ConnectionQuota::set_limits(const ConnectionLimits& limits) {
    const std::lock_guard lock(mutex_);
    limits_ = limits;
    publish();
}

ConnectionLimits ConnectionQuota::limits() const {
    const std::lock_guard lock(mutex_);
    return limits_;
}

std::uint32_t ConnectionQuota::open() const {
    const std::lock_guard lock(mutex_);
    return open_;
}

std::optional<ClientKey> ConnectionQuota::last_client_full() const {
    const std::lock_guard lock(mutex_);
    return last_client_full_;
}

}  // namespace noren::proxy::admission
