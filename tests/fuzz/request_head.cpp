// A request head that is accepted has one reading, and what goes to the engine has the same.

#include <algorithm>
#include <string>
#include <variant>

#include "proxy/http/forward.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"
#include "proxy/http/upgrade.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::proxy::http;

namespace {

/// How far the scanner reads when the text comes in pieces; 0 if it refuses or is not done.
std::size_t scanned(std::string_view text, std::uint32_t seed) {
    HeadScanner scanner({});
    std::size_t there = 0, end = 0;
    bool over = false;
    fuzz::in_pieces(text, seed, [&](std::string_view piece) {
        there += piece.size();
        if (over) return;
        const auto found = scanner.scan(text.substr(0, there));
        if (const auto* size = std::get_if<std::size_t>(&found)) end = *size;
        over = !std::holds_alternative<std::monostate>(found);
    });
    return end;
}

bool is_clean(std::string_view head) {
    for (std::size_t i = 0; i < head.size(); ++i) {
        if (head[i] == '\r' && (i + 1 == head.size() || head[i + 1] != '\n')) return false;
        if (head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) return false;
        if (head[i] == '\0') return false;
    }
    return head.ends_with("\r\n\r\n") && head.find("\r\n\r\n") == head.size() - 4;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint32_t seed = input.byte();
    const std::string text(input.rest());
    const std::size_t end = scanned(text, seed);
    fuzz::expect(end == scanned(text, 0) && end <= text.size(), "the same end however the bytes come");
    if (end == 0) return 0;
    const std::string kept = text.substr(0, end);
    const auto parsed = parse_request_head(kept);
    const auto* head = std::get_if<RequestHead>(&parsed);
    if (!head) return 0;
    const auto framed = request_framing(*head);
    const auto* framing = std::get_if<Framing>(&framed);
    if (!framing) return 0;

    const std::string sent = upstream_head(*head, *framing, "id", upgrade_offer(*head, *framing));
    fuzz::expect(is_clean(sent), "nothing but whole lines goes to the engine");
    const auto reread = parse_request_head(sent);
    const auto* theirs = std::get_if<RequestHead>(&reread);
    fuzz::expect(theirs != nullptr, "the engine can read it");
    fuzz::expect(theirs->method == head->method && theirs->target == head->target, "it is the same request");
    fuzz::expect(theirs->fields.count("host") == 1, "one Host");
    fuzz::expect(theirs->fields.count("content-length") + theirs->fields.count("transfer-encoding") <= 1,
                 "one framing");
    const auto their_framing = request_framing(*theirs);
    const auto* same = std::get_if<Framing>(&their_framing);
    fuzz::expect(same && same->kind == framing->kind && same->length == framing->length, "the same framing");
    return 0;
}
