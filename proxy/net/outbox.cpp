#include "proxy/net/outbox.hpp"

namespace noren::proxy::net {

bool Outbox::accept(const IoResult& result) {
    if (result.status == IoStatus::broken) broken_ = true;
    written_ += result.bytes;
    return !broken_;
}

bool Outbox::send(std::string_view first, std::string_view second) {
    if (broken_) return false;
    if (!empty()) {
        kept_.append(first).append(second);
        return flush();
    }
    const IoResult result = socket_->write(first, second);
    if (!accept(result)) return false;
    std::size_t taken = result.bytes;
    if (taken < first.size()) {
        kept_.append(first.substr(taken)).append(second);
    } else if (taken -= first.size(); taken < second.size()) {
        kept_.append(second.substr(taken));
    }
    return true;
}

bool Outbox::flush() {
    if (broken_ || empty()) return !broken_;
    const IoResult result = socket_->write(std::string_view(kept_).substr(begin_));
    if (!accept(result)) return false;
    begin_ += result.bytes;
    if (empty()) {
        kept_ = {};  // gives the memory back: most streams never need it again
        begin_ = 0;
    } else if (begin_ >= kept_.size() / 2 && begin_ >= 4096) {
        kept_.erase(0, begin_);
        begin_ = 0;
    }
    return true;
}

}  // namespace noren::proxy::net
