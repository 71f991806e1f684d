#include "proxy/http/max_forwards.hpp"

#include <algorithm>
#include <limits>

#include "proxy/http/framing.hpp"

namespace noren::proxy::http {

MaxForwards max_forwards(std::string_view method, const Fields& fields) {
    // With other methods the field means nothing and goes on as it came.
    if (method != "OPTIONS" || !fields.has("max-forwards")) return {};
    const std::string_view text = fields.value("max-forwards");
    const bool is_number =
        !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || fields.count("max-forwards") != 1)
        return {std::nullopt, HeadError{400, "Max-Forwards is not one decimal number"}};
    // More than we can count is as far as we can count.
    return {parse_length(text).value_or(std::numeric_limits<std::int64_t>::max()), std::nullopt};
}

}  // namespace noren::proxy::http
