#include "tests/unit/proxy/kinds/passage.hpp"

#include <optional>
#include <variant>

#include <catch2/catch.hpp>

#include "proxy/http/forward.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"
#include "proxy/relay/answer_body.hpp"
#include "proxy/relay/request_body.hpp"
#include "tests/unit/proxy/kinds/rfc_reader.hpp"

namespace noren::test {
namespace {

using namespace proxy;

constexpr http::HeadLimits k_limits{4096, 64};

/// The head's text once it is whole, and the pieces behind it; empty if it never is.
std::optional<std::string> take_head(const Pieces& pieces, Pieces& behind) {
    http::HeadScanner scanner(k_limits);
    std::string buffer;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        buffer.append(pieces[i]);
        const auto found = scanner.scan(buffer);
        if (std::holds_alternative<http::HeadError>(found)) return std::nullopt;
        const auto* size = std::get_if<std::size_t>(&found);
        if (!size) continue;
        const std::size_t left = buffer.size() - *size;
        behind.push_back(pieces[i].substr(pieces[i].size() - left));
        behind.insert(behind.end(), pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, pieces.end());
        buffer.resize(*size);
        return buffer;
    }
    return std::nullopt;
}

/// What noren adds to every request, drops from it by its own choice, or writes anew.
bool is_of_noren(const std::string& name) {
    return name.find('_') != std::string::npos || http::same_name(name, "host") ||
           http::same_name(name, "via") || http::same_name(name, "x-request-id") ||
           http::same_name(name, "date") || http::same_name(name, "connection") ||
           http::same_name(name, "content-length") || http::same_name(name, "transfer-encoding");
}

FieldLines end_to_end(const FieldLines& fields) {
    FieldLines kept;
    for (const auto& field : fields)
        if (!is_of_noren(field.first)) kept.push_back(field);
    return kept;
}

/// The wire holds the message that was meant, the whole wire, and nothing that invites another reading.
void check_sent_on(const Reading& meant, const Reading& sent, const Passage& passage) {
    REQUIRE(passage.is_whole);
    REQUIRE(passage.consumed == meant.size);
    REQUIRE(sent.verdict == Verdict::whole);
    REQUIRE(sent.size == passage.wire.size());
    REQUIRE(sent.body == meant.body);
    REQUIRE_FALSE(sent.has_extensions);
    REQUIRE(end_to_end(sent.fields) == end_to_end(meant.fields));
    REQUIRE(end_to_end(sent.trailers) == end_to_end(meant.trailers));
    REQUIRE(sent.values("content-length").size() + sent.values("transfer-encoding").size() <= 1);
}

}  // namespace

Passage through_to_engine(const Pieces& pieces) {
    Passage passage;
    Pieces behind;
    const auto text = take_head(pieces, behind);
    if (!text) return passage;
    const auto parsed = http::parse_request_head(*text);
    const auto* head = std::get_if<http::RequestHead>(&parsed);
    if (!head) return passage;
    const auto framed = http::request_framing(*head);
    const auto* framing = std::get_if<http::Framing>(&framed);
    if (!framing) return passage;
    passage.wire = http::upstream_head(*head, *framing, "id-1");
    passage.consumed = text->size();
    relay::RequestBody body(*framing, 0);
    std::string in;
    for (const std::string_view piece : behind) {
        in.append(piece);
        while (!body.done()) {
            const auto step = body.next(in);
            passage.wire.append(step.wire);
            passage.consumed += step.consumed;
            in.erase(0, step.consumed);
            if (step.status != relay::RequestBody::Status::ok) return passage;
            if (step.consumed == 0) break;
        }
    }
    passage.is_whole = body.done();
    return passage;
}

Passage through_to_client(const Pieces& pieces, std::string_view method) {
    Passage passage;
    Pieces behind;
    const auto text = take_head(pieces, behind);
    if (!text) return passage;
    const auto parsed = http::parse_response_head(*text);
    const auto* head = std::get_if<http::ResponseHead>(&parsed);
    if (!head) return passage;
    const auto framed = http::response_framing(*head, method);
    const auto* framing = std::get_if<http::Framing>(&framed);
    if (!framing) return passage;
    const bool is_interim = head->status < 200;
    passage.wire = is_interim ? http::interim_head(*head)
                              : http::downstream_head(*head, {*framing, true, 1, "today"}, "id-1");
    passage.consumed = text->size();
    relay::AnswerBody body(*framing, false);
    for (const std::string_view piece : behind) {
        const auto passed = body.pass(piece);
        passage.wire.append(passed.wire);
        passage.consumed += passed.consumed;
    }
    passage.is_whole = body.at_close() == relay::AnswerBody::Status::done;
    return passage;
}

Pieces bytewise(std::string_view text) {
    Pieces pieces;
    for (std::size_t at = 0; at < text.size(); ++at)
        pieces.push_back(text.substr(at, 1));
    return pieces;
}

bool is_taken_as_read(const std::string& request) {
    CAPTURE(request);
    const Reading meant = read_request(request);
    for (const Pieces& pieces : {Pieces{request}, bytewise(request)}) {
        const Passage passage = through_to_engine(pieces);
        const Reading sent = read_request(passage.wire);
        if (meant.verdict != Verdict::whole) {
            REQUIRE_FALSE(passage.is_whole);
            REQUIRE(sent.verdict != Verdict::whole);
            continue;
        }
        check_sent_on(meant, sent, passage);
        REQUIRE(sent.minor == 1);
        REQUIRE(sent.start_line == meant.start_line);
        REQUIRE(sent.values("host") ==
                (meant.values("host").empty() ? std::vector<std::string>{""} : meant.values("host")));
    }
    return meant.verdict == Verdict::whole;
}

bool is_taken_as_read(const std::string& response, std::string_view method) {
    CAPTURE(response, method);
    const Reading meant = read_response(response, method);
    for (const Pieces& pieces : {Pieces{response}, bytewise(response)}) {
        const Passage passage = through_to_client(pieces, method);
        const Reading sent = read_response(passage.wire, method);
        if (meant.verdict != Verdict::whole) {
            REQUIRE_FALSE(passage.is_whole);
            continue;
        }
        check_sent_on(meant, sent, passage);
        REQUIRE(sent.minor == 1);
        REQUIRE(sent.start_line == meant.start_line);
    }
    return meant.verdict == Verdict::whole;
}

}  // namespace noren::test
