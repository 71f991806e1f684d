#pragma once
// How many files this process may have open (ulimit -n), and what that leaves for client connections.

#include <cstdint>

#include "config/config.hpp"

namespace noren::proxy {

/// Lifts the soft limit to the hard one, as a server has no reason to stay below it. Returns what is in
/// force.
std::uint64_t raise_descriptor_limit();

/// What is in force now.
std::uint64_t descriptor_limit();

/// Has the kernel make its table of our descriptors now, for as many as the config can need: 8 bytes each, of
/// kernel memory, for 65,536 at most. It would grow by doubling as connections come, and in a process of
/// several threads each time a thread waits for all CPUs to pass a quiet state (Linux, expand_fdtable() in
/// fs/file.c): a worker with all its streams, for 10 ms and more. Call it while there is one thread.
void make_descriptor_table(const config::Config& config);

/// Kept back for requests that need no permit.
inline constexpr std::uint32_t k_kept_without_permit = 32;

/// Client connections that fit, so that at the limit those inside still reach the engine and probes are still
/// answered: one descriptor for each request in the engine is kept back, and some for ops, logs, files and
/// requests that need no permit; never more than half of all. max_concurrency: 0 = unlimited.
std::uint32_t connections_that_fit(std::uint64_t descriptors, std::uint32_t max_concurrency);

/// Of what is kept back: for connections to the engine, with a permit and without.
std::uint32_t kept_for_engine(std::uint64_t descriptors, std::uint32_t max_concurrency);

}  // namespace noren::proxy
