#pragma once
// Text for JSON, which is UTF-8, while file names and what an engine says may hold any bytes.

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

namespace noren::proxy {

/// U+FFFD stands for what is not UTF-8.
boost::json::string json_text(std::string_view text);
boost::json::array json_texts(const std::vector<std::string>& texts);

/// For people: a string without its quotes, anything else as JSON.
std::string plain_text(const boost::json::value& value);

}  // namespace noren::proxy
