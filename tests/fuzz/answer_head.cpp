// An answer head that is accepted has one reading, and its client gets the same.

#include <array>
#include <string>
#include <variant>

#include "proxy/http/forward.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::proxy::http;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::array<std::string_view, 4> k_methods = {"GET", "HEAD", "POST", "CONNECT"};
    fuzz::Input input(data, size);
    const std::string_view method = k_methods[input.byte() % k_methods.size()];
    const auto found = HeadScanner({64 * 1024, 256}).scan(input.rest());
    const auto* end = std::get_if<std::size_t>(&found);
    if (!end) return 0;
    const std::string text(input.rest().substr(0, *end));
    const auto parsed = parse_response_head(text);
    const auto* head = std::get_if<ResponseHead>(&parsed);
    if (!head || head->status < 200) return 0;
    const auto framed = response_framing(*head, method);
    const auto* framing = std::get_if<Framing>(&framed);
    if (!framing) return 0;
    const std::string sent = downstream_head(*head, {*framing, true, 1, {}}, "id");
    const auto reread = parse_response_head(sent);
    const auto* theirs = std::get_if<ResponseHead>(&reread);
    fuzz::expect(theirs != nullptr, "the client can read it");
    fuzz::expect(theirs->status == head->status && theirs->reason == head->reason, "it is the same answer");
    fuzz::expect(theirs->fields.count("content-length") + theirs->fields.count("transfer-encoding") <= 1,
                 "one framing");
    const auto their_framing = response_framing(*theirs, method);
    const auto* same = std::get_if<Framing>(&their_framing);
    fuzz::expect(same && same->kind == framing->kind && same->length == framing->length, "the same framing");
    return 0;
}
