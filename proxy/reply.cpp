#include "proxy/reply.hpp"

namespace noren::proxy {

void append_reply_fields(std::string& head, const Reply& reply) {
    head.append("Date: ").append(reply.date).append("\r\n");
    if (!reply.request_id.empty()) head.append("x-request-id: ").append(reply.request_id).append("\r\n");
    if (!reply.keep_alive) {
        head.append("Connection: close\r\n");
    } else if (reply.client_minor == 0) {
        head.append("Connection: keep-alive\r\n");
    }
}

std::size_t body_size(std::string_view answer) {
    constexpr std::string_view k_head_end = "\r\n\r\n";
    return answer.size() - answer.find(k_head_end) - k_head_end.size();
}

std::string options_response(const Reply& reply) {
    std::string out = "HTTP/1.1 200 OK\r\nAllow: ";
    out.append(k_allowed_methods).append("\r\nContent-Length: 0\r\n");
    append_reply_fields(out, reply);
    return out.append("\r\n");
}

}  // namespace noren::proxy
