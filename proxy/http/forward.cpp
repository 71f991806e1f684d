#include "proxy/http/forward.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "proxy/http/hex.hpp"

namespace noren::proxy::http {
namespace {

/// Some field names. Every field of every message is looked up, and most have a length that no name here has.
template <std::size_t N>
class NameSet {
  public:
    explicit constexpr NameSet(const std::array<std::string_view, N>& names) : names_(names) {
        for (const std::string_view name : names)
            sizes_ |= std::uint32_t{1} << name.size();
    }
    bool has(std::string_view name) const {
        if (name.size() >= 32 || (sizes_ >> name.size() & 1) == 0) return false;
        return std::any_of(names_.begin(), names_.end(),
                           [&](std::string_view n) { return same_name(n, name); });
    }

  private:
    std::array<std::string_view, N> names_;
    std::uint32_t sizes_ = 0;  ///< a bit for each length
};

/// Of this hop, whether nominated in Connection or not. An Upgrade that is passed on is written anew.
constexpr NameSet<9> k_hop_by_hop({"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding",
                                   "upgrade", "http2-settings", "proxy-authenticate", "proxy-authorization"});

/// What Connection must not take away: the next reader would see another message than we did.
constexpr NameSet<9> k_never_nominated({"host", "content-length", "content-type", "content-encoding",
                                        "authorization", "via", "x-request-id", "date", "max-forwards"});

/// What Connection takes away besides: for each field that is left this is looked through.
std::vector<std::string_view> nominated(const Fields& fields) {
    std::vector<std::string_view> names;
    fields.for_each_of("connection", [&](std::string_view option) {
        const bool is_usual = k_hop_by_hop.has(option) || same_name(option, "close");
        if (!is_usual && !k_never_nominated.has(option)) names.push_back(option);
    });
    return names;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
}

/// Fields that pass through as they came, in order: neither hop-by-hop, nor nominated, nor written anew.
template <typename WrittenAnew>
void append_end_to_end(std::string& out, const Fields& fields, WrittenAnew&& written_anew) {
    const std::vector<std::string_view> dropped = nominated(fields);
    for (const Field& field : fields.all()) {
        if (k_hop_by_hop.has(field.name) || written_anew(field.name)) continue;
        if (std::any_of(dropped.begin(), dropped.end(),
                        [&](std::string_view name) { return same_name(name, field.name); }))
            continue;
        append_field(out, field.name, field.value);
    }
}

/// The status line of an answer, and its fields but for the length, which its framing says.
std::string answer_head(const ResponseHead& head) {
    std::string out;
    out.reserve(1024);
    out.append("HTTP/1.1 ")
        .append(std::to_string(head.status))
        .append(" ")
        .append(head.reason)
        .append("\r\n");
    append_end_to_end(out, head.fields,
                      [](std::string_view name) { return same_name(name, "content-length"); });
    return out;
}

void append_framing(std::string& out, const Framing& framing) {
    if (framing.kind == BodyKind::length) append_field(out, "Content-Length", std::to_string(framing.length));
    if (framing.kind == BodyKind::chunked) append_field(out, "Transfer-Encoding", "chunked");
}

}  // namespace

std::string upstream_head(const RequestHead& head, const Framing& framing, std::string_view request_id,
                          std::string_view upgrade) {
    std::string out;
    out.reserve(1024);
    out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
    append_field(out, "Host", head.authority);
    const bool keeps_id =
        head.fields.count("x-request-id") == 1 && head.fields.value("x-request-id") == request_id;
    append_end_to_end(out, head.fields, [&](std::string_view name) {
        // CGI-like servers read content_length as Content-Length: a second name for a field that was checked
        // under its first.
        return same_name(name, "host") || same_name(name, "content-length") || same_name(name, "expect") ||
               (!keeps_id && same_name(name, "x-request-id")) ||
               (head.max_forwards && same_name(name, "max-forwards")) ||
               name.find('_') != std::string_view::npos;
    });
    if (head.max_forwards) append_field(out, "Max-Forwards", std::to_string(*head.max_forwards - 1));
    append_framing(out, framing);
    // An HTTP/1.0 client cannot be told to continue (RFC 9110 10.1.1); without a body nobody waits for it.
    if (head.minor >= 1 && framing.has_body() && head.fields.lists("expect", "100-continue"))
        append_field(out, "Expect", "100-continue");
    if (!upgrade.empty()) {
        append_field(out, "Connection", "Upgrade");
        append_field(out, "Upgrade", upgrade);
    }
    append_field(out, "Via", head.minor == 0 ? "1.0 noren" : "1.1 noren");
    if (!keeps_id) append_field(out, "x-request-id", request_id);
    out.append("\r\n");
    return out;
}

std::string downstream_head(const ResponseHead& head, const Delivery& delivery, std::string_view request_id) {
    std::string out = answer_head(head);
    append_framing(out, delivery.framing);
    // A bodyless answer (HEAD, 304) may tell the length that its body would have: once, however often it
    // came.
    const bool tells_length = delivery.framing.kind == BodyKind::none && head.status != 204;
    if (tells_length && head.fields.has("content-length"))
        append_field(out, "Content-Length", head.fields.value("content-length"));
    if (!delivery.keep_alive) {
        append_field(out, "Connection", "close");
    } else if (delivery.client_minor == 0) {
        append_field(out, "Connection", "keep-alive");
    }
    if (!head.fields.has("date")) append_field(out, "Date", delivery.date);
    if (!head.fields.has("x-request-id")) append_field(out, "x-request-id", request_id);
    if (!delivery.load_report.empty()) append_field(out, "endpoint-load-metrics", delivery.load_report);
    out.append("\r\n");
    return out;
}

std::string interim_head(const ResponseHead& head) {
    std::string out = answer_head(head);
    out.append("\r\n");
    return out;
}

std::string chunk_size_line(std::uint64_t size) {
    std::string line = "\r\n";
    do {
        line.insert(line.begin(), k_hex_digits[size & 15]);
        size >>= 4;
    } while (size != 0);
    return line;
}

std::string chunked_end(const Fields& trailers) {
    std::string out = "0\r\n";
    for (const Field& field : trailers.all())
        append_field(out, field.name, field.value);
    out.append("\r\n");
    return out;
}

}  // namespace noren::proxy::http
