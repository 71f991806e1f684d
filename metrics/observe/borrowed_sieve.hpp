#pragma once
// Parsers of answers, shared by the streams of a thread.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "metrics/observe/answer_schema.hpp"
#include "metrics/observe/json_sieve.hpp"

namespace noren::metrics {

/// A parser for as long as a document needs one. Most events are recognised without, so the parsers of a
/// thread's streams are few and warm, and a stream between two events holds none.
class BorrowedSieve {
  public:
    BorrowedSieve() = default;
    ~BorrowedSieve() { give_back(); }
    BorrowedSieve(const BorrowedSieve&) = delete;
    BorrowedSieve& operator=(const BorrowedSieve&) = delete;

    /// Ready for a document if it was not borrowed before.
    JsonSieve& operator*() {
        if (!sieve_ && !spare().empty()) {
            sieve_ = std::move(spare().back());
            spare().pop_back();
        }
        if (!sieve_) sieve_ = std::make_unique<JsonSieve>(answer_schema());
        return *sieve_;
    }
    JsonSieve* operator->() { return &**this; }
    explicit operator bool() const { return sieve_ != nullptr; }

    void give_back() noexcept {
        if (!sieve_) return;
        sieve_->reset();
        if (spare().size() < k_spare) spare().push_back(std::move(sieve_));
        sieve_.reset();
    }

  private:
    static constexpr std::size_t k_spare = 8;

    static std::vector<std::unique_ptr<JsonSieve>>& spare() {
        thread_local std::vector<std::unique_ptr<JsonSieve>> sieves = [] {
            std::vector<std::unique_ptr<JsonSieve>> none;
            none.reserve(k_spare);
            return none;
        }();
        return sieves;
    }

    std::unique_ptr<JsonSieve> sieve_;
};

}  // namespace noren::metrics
