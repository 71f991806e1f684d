#include "tests/support/allocation_fault.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr int k_off = -1;
std::atomic<int> countdown{k_off};
std::atomic<bool> failed{false};

bool is_worker() {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    return std::strncmp(name.data(), "noren-w", 7) == 0;
}

bool is_to_fail() {
    if (countdown.load(std::memory_order_relaxed) == k_off || !is_worker()) return false;
    if (countdown.fetch_sub(1) != 0) return false;
    failed = true;
    return true;
}

void* allocate(std::size_t size) {
    if (is_to_fail()) throw std::bad_alloc();
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new[](std::size_t size) {
    return allocate(size);
}
// By default these call the ones above; under AddressSanitizer they do not, and free() must fit.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return is_to_fail() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return is_to_fail() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace test {

void fail_allocation_in(int allocations) {
    failed = false;
    countdown = allocations;
}

bool allocation_failed() {
    countdown = k_off;
    return failed;
}

}  // namespace test
