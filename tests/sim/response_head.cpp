#include "tests/sim/response_head.hpp"

#include <ostream>  // Boost 1.81: status.hpp does not bring what it needs

#include <boost/beast/http/status.hpp>

#include "tests/sim/json_text.hpp"

namespace sim {

std::string to_string(const ResponseHead& head) {
    const auto reason = boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(head.status));
    std::string text = concat("HTTP/1.1 ", head.status, " ", std::string_view(reason.data(), reason.size()),
                              "\r\nserver: noren-sim\r\n");
    if (!head.type.empty()) text += concat("content-type: ", head.type, "\r\n");
    if (!head.request_id.empty()) text += concat("x-request-id: ", head.request_id, "\r\n");
    text += head.extra;
    const bool bodiless = head.status == 204 || head.status == 304 || head.status < 200;
    if (head.framing == Framing::length && !bodiless) text += concat("content-length: ", head.length, "\r\n");
    if (head.framing == Framing::chunked) text += "transfer-encoding: chunked\r\n";
    if (head.close || head.framing == Framing::close) text += "connection: close\r\n";
    text += "\r\n";
    return text;
}

}  // namespace sim
