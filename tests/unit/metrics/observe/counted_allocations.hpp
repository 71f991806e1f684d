#pragma once
// How often this thread has allocated. Linked into a test program, it replaces operator new.

#include <cstdint>

namespace noren::metrics::testing {

std::uint64_t allocations_of_this_thread();

}  // namespace noren::metrics::testing
