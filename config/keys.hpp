#pragma once
// The list of all keys: loading, overriding, diffing, rendering and the test of the example file run over it.

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/rules.hpp"
#include "config/value.hpp"

namespace noren::config {

/// When a changed value takes effect.
enum class Applies { live, after_restart };

struct Key {
    std::string_view section;  ///< `admission`, `upstream.tls`; empty for the keys at the top
    std::string_view name;     ///< `max_queue`
    Applies applies;
    /// Sets the member; false, with at least one refusal added, if the value is not acceptable.
    std::function<bool(const Value&, Config&, Refusals&)> read;
    /// The member, as it would stand in a file; secrets are masked.
    std::function<Value(const Config&)> write;
    std::function<bool(const Config&, const Config&)> equal;
    std::function<void(const Config& from, Config& to)> copy;

    std::string path() const;  ///< `admission.max_queue`
};

/// `section.name`, or `name` alone at the top.
std::string key_path(std::string_view section, std::string_view name);

/// In the order of config.hpp; a section's keys stand together, those at the top come first.
std::span<const Key> keys();

/// Null if there is none.
const Key* find_key(std::string_view section, std::string_view name);

/// path: `upstream`, `upstream.tls`.
bool is_section(std::string_view path);

}  // namespace noren::config
