#include "proxy/net/outbox.hpp"

#include <algorithm>
#include <utility>

namespace noren::proxy::net {

bool Outbox::accept(const IoResult& result) {
    if (result.status == IoStatus::broken) broken_ = true;
    written_ += result.bytes;
    return !broken_;
}

bool Outbox::send(std::string_view first, std::string_view second) {
    if (broken_) return false;
    if (!empty()) {
        kept_.append(std::exchange(lent_, {})).append(first).append(second);
        return flush();
    }
    if (!lend(first, second)) return false;
    kept_.append(std::exchange(lent_, {}));
    return true;
}

bool Outbox::lend(std::string_view first, std::string_view second) {
    if (broken_) return false;
    if (!empty()) return send(first, second);
    const IoResult result = socket_->write(first, second);
    if (!accept(result)) return false;
    kept_.append(first.substr(std::min(result.bytes, first.size())));
    lent_ = second.substr(result.bytes - std::min(result.bytes, first.size()));
    return true;
}

bool Outbox::flush() {
    if (broken_ || empty()) return !broken_;
    const std::string_view kept = std::string_view(kept_).substr(begin_);
    const IoResult result = kept.empty() ? socket_->write(lent_) : socket_->write(kept, lent_);
    if (!accept(result)) return false;
    begin_ += std::min(result.bytes, kept.size());
    lent_.remove_prefix(result.bytes - std::min(result.bytes, kept.size()));
    if (begin_ == kept_.size()) {
        kept_ = {};  // gives the memory back: most streams never need it again
        begin_ = 0;
    } else if (begin_ >= kept_.size() / 2 && begin_ >= 4096) {
        kept_.erase(0, begin_);
        begin_ = 0;
    }
    return true;
}

}  // namespace noren::proxy::net
