#pragma once
// How many files this process may have open (ulimit -n), and what that leaves for client connections.

#include <cstdint>

namespace noren::proxy {

/// Lifts the soft limit to the hard one, as a server has no reason to stay below it. Returns what is in
/// force.
std::uint64_t raise_descriptor_limit();

/// What is in force now.
std::uint64_t descriptor_limit();

/// Kept back for requests that need no permit.
inline constexpr std::uint32_t k_kept_without_permit = 32;

/// Client connections that fit, so that at the limit those inside still reach the engine and probes are still
/// answered: one descriptor for each request in the engine is kept back, and some for ops, logs, files and
/// requests that need no permit; never more than half of all. max_concurrency: 0 = unlimited.
std::uint32_t connections_that_fit(std::uint64_t descriptors, std::uint32_t max_concurrency);

/// Of what is kept back: for connections to the engine, with a permit and without.
std::uint32_t kept_for_engine(std::uint64_t descriptors, std::uint32_t max_concurrency);

}  // namespace noren::proxy
