#pragma once
// Makes one memory allocation of one of noren's workers fail. Linked into a test program, it replaces
// operator new.

namespace test {

/// The allocation number `countdown` from now on, over all worker threads, throws std::bad_alloc; 0 is the
/// next one.
void fail_allocation_in(int countdown);

/// Calls it off. True: it has happened.
bool allocation_failed();

}  // namespace test
