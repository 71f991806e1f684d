#pragma once
// Counts what noren's workers take from the heap, by whatever way, but for what OpenSSL takes for itself.
// Linked into a test program, it replaces malloc. Not under sanitizers, which have one of their own.

#include <cstdint>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NOREN_COUNTED_HEAP 1
#endif

namespace test {

/// Whether OpenSSL's own is told apart, which it is unless it allocated before main().
bool openssl_allocates_apart();

/// From now on. Worker threads must have begun.
void count_worker_allocations();

/// How many there were, of all workers; ends the counting.
std::uint64_t counted_worker_allocations();

}  // namespace test
