#include "proxy/ops/json_text.hpp"

#include <boost/json/serialize.hpp>

#include "metrics/utf8.hpp"

namespace noren::proxy {

boost::json::string json_text(std::string_view text) {
    return boost::json::string(metrics::to_valid_utf8(text));
}

boost::json::array json_texts(const std::vector<std::string>& texts) {
    boost::json::array array;
    for (const std::string& text : texts)
        array.emplace_back(json_text(text));
    return array;
}

std::string plain_text(const boost::json::value& value) {
    return value.is_string() ? std::string(value.as_string()) : boost::json::serialize(value);
}

}  // namespace noren::proxy
