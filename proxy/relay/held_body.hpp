#pragma once
// Body bytes that are kept until it is known where they go.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace noren::proxy::relay {

/// Grows by appending, or by letting somebody write into it, so that a large body is received where it stays.
class HeldBody {
  public:
    std::string_view bytes() const { return {data_.get(), size_}; }
    std::size_t size() const { return size_; }

    void append(std::string_view more) {
        const std::span<char> place = room(more.size());
        if (!more.empty()) std::memcpy(place.data(), more.data(), more.size());
        took(more.size());
    }
    /// A place for so many bytes behind those that are there; took() then says how many were written. Moves
    /// the others.
    std::span<char> room(std::size_t size) {
        if (capacity_ - size_ < size) grow(std::max(size_ + size, capacity_ * 2));
        return {data_.get() + size_, size};
    }
    void took(std::size_t size) { size_ += size; }
    /// Gives the memory back.
    void clear() { *this = {}; }

  private:
    void grow(std::size_t capacity) {
        auto data = std::make_unique_for_overwrite<char[]>(capacity);
        if (size_ > 0) std::memcpy(data.get(), data_.get(), size_);
        data_ = std::move(data);
        capacity_ = capacity;
    }

    std::unique_ptr<char[]> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace noren::proxy::relay
