#include "tests/support/counted_heap.hpp"

#ifdef NOREN_COUNTED_HEAP

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <openssl/crypto.h>

// The C library's own, which its free() fits.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<std::uint64_t> counted{0};

bool is_worker() {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    return std::strncmp(name.data(), "noren-w", 7) == 0;
}

void count_one() {
    if (counting.load(std::memory_order_relaxed) && is_worker()) ++counted;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
    count_one();
    return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    count_one();
    return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
    count_one();
    return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
    count_one();
    return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
    void* const given = memalign(alignment, size);
    if (given == nullptr) return ENOMEM;
    *memory = given;
    return 0;
}

}  // extern "C"

namespace {

// OpenSSL allocates for each record; what it needs is not for noren to decide, and not counted.
void* for_openssl(std::size_t size, const char*, int) {
    return __libc_malloc(size);
}
void* again_for_openssl(void* memory, std::size_t size, const char*, int) {
    return __libc_realloc(memory, size);
}
void of_openssl(void* memory, const char*, int) {
    std::free(memory);
}

// Only before its first allocation.
const int openssl_apart = CRYPTO_set_mem_functions(for_openssl, again_for_openssl, of_openssl);

}  // namespace

bool test::openssl_allocates_apart() {
    return openssl_apart == 1;
}

void test::count_worker_allocations() {
    counted = 0;
    counting = true;
}

std::uint64_t test::counted_worker_allocations() {
    counting = false;
    return counted;
}

#endif
