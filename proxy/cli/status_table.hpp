#pragma once
// The status of a running noren, for a person at a terminal.

#include <iosfwd>

#include <boost/json/object.hpp>

namespace noren::proxy {

/// status: what ops/status.hpp's to_json() makes, maybe of another version of noren: what is missing in it
/// shows as "?".
void print_status(const boost::json::object& status, std::ostream& out);

}  // namespace noren::proxy
