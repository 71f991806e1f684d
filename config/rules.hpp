#pragma once
// What a value may be: how it is read from a document, how it is written back, and how it is explained to the
// person who got it wrong. keys.cpp gives each key one of these.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/value.hpp"

namespace noren::config {

/// Why a value, or one item of a list, was not accepted.
struct Refusal {
    int line = 0;
    std::string found;
    std::string expected;
};
using Refusals = std::vector<Refusal>;

template <class T>
struct Rule {
    /// The value, or nothing and at least one refusal added.
    std::function<std::optional<T>(const Value&, Refusals&)> read;
    /// The inverse of read, but for userinfo in URLs, which is masked.
    std::function<Value(const T&)> write;
};

/// A whole number, plain (a quoted one is text), least..most.
Rule<std::uint32_t> count(std::uint32_t least, std::uint32_t most);

/// One of a few numbers.
Rule<std::uint16_t> one_of(std::initializer_list<std::uint16_t> choices);

/// One of a few words.
Rule<std::string> one_of(std::initializer_list<std::string_view> choices);

/// A duration with a unit, least..most.
Rule<Duration> duration(Duration least, Duration most);

/// Bytes, with or without a unit, least..most.
Rule<Bytes> size(Bytes least, Bytes most);

Rule<std::string> listen_address();      ///< as parse_listen
Rule<std::string> listen_tcp_address();  ///< as parse_listen_tcp
Rule<std::string> upstream_url();        ///< as parse_upstream
Rule<std::string> page_path();           ///< a request_path without a query
Rule<std::string> plain_url();           ///< as parse_upstream but for https, or empty = none
Rule<std::string> socket_path();         ///< as is_socket_path, or empty = none
Rule<std::string> file_path();           ///< an absolute path, or empty = none
Rule<std::string> request_path();        ///< what may stand in a request line: `/...`, visible ASCII
Rule<std::string> host_name();           ///< a host's name or address, or empty = none
Rule<std::uint32_t> file_mode();         ///< permissions as chmod takes them: `0660`
Rule<std::string> access_log();          ///< `stdout`, `off`, or a path with at least one `/`

/// Request paths where `*` may stand for a whole segment.
Rule<std::vector<std::string>> path_patterns();

/// Names of models: any UTF-8 without control characters, 1..256 bytes.
Rule<std::vector<std::string>> model_names();

}  // namespace noren::config
