#include "proxy/engine_page/page_assembly.hpp"

#include <utility>
#include <variant>

namespace noren::proxy::engine_page {
namespace {

constexpr int k_max_interims = 16;

Outcome malformed(std::string_view detail) {
    return {Ending::malformed, detail, nullptr};
}

Outcome too_large() {
    return {Ending::too_large, "the engine's metrics page is larger than engine_metrics.max_size", nullptr};
}

/// The one that the engine may have said back is that of whoever asked first.
http::Fields without_request_id(const http::Fields& fields) {
    http::Fields rest;
    for (const http::Field& field : fields.all())
        if (!http::same_name(field.name, "x-request-id")) rest.add(field.name, field.value);
    return rest;
}

}  // namespace

std::optional<Outcome> PageAssembly::add(std::string_view bytes) {
    if (body_) return add_body(bytes);
    received_.append(bytes);
    return read_head();
}

std::optional<Outcome> PageAssembly::read_head() {
    for (;;) {
        const auto found = scanner_.scan(received_);
        if (std::holds_alternative<std::monostate>(found)) return std::nullopt;
        if (std::holds_alternative<http::HeadError>(found))
            return malformed("the engine's answer is not valid HTTP");
        const std::size_t size = std::get<std::size_t>(found);
        std::string text = received_.substr(0, size);
        received_.erase(0, size);
        scanner_ = http::HeadScanner(k_head);
        if (auto outcome = begin(std::move(text))) return outcome;
        if (body_) return add_body(std::exchange(received_, {}));
    }
}

/// text: a whole head. Without an outcome and without a body it was a 1xx.
std::optional<Outcome> PageAssembly::begin(std::string text) {
    page_ = std::make_shared<Page>();
    page_->text = std::move(text);
    auto parsed = http::parse_response_head(page_->text);
    if (const auto* error = std::get_if<http::HeadError>(&parsed)) return malformed(error->detail);
    page_->head = std::get<http::ResponseHead>(std::move(parsed));
    if (page_->head.status == 101) return malformed("the engine switched protocols unasked");
    if (page_->head.status < 200) {
        if (++interims_ > k_max_interims) return malformed("the engine sent too many 1xx");
        return std::nullopt;
    }
    const auto framed = http::response_framing(page_->head, "GET");
    if (const auto* error = std::get_if<http::HeadError>(&framed)) return malformed(error->detail);
    page_->framing = std::get<http::Framing>(framed);
    if (page_->framing.kind == http::BodyKind::length && page_->framing.length > most_) return too_large();
    page_->head.fields = without_request_id(page_->head.fields);
    body_.emplace(page_->framing, true);
    return std::nullopt;
}

std::optional<Outcome> PageAssembly::add_body(std::string_view bytes) {
    const relay::AnswerBody::Passed passed = body_->pass(bytes);
    if (passed.status == relay::AnswerBody::Status::malformed)
        return malformed("the engine's chunks are malformed");
    if (page_->body.size() + passed.wire.size() > most_) return too_large();
    page_->body.append(passed.wire);
    if (passed.status == relay::AnswerBody::Status::running) return std::nullopt;
    return finish();
}

Outcome PageAssembly::at_close(bool orderly) {
    if (body_ && orderly && body_->at_close() == relay::AnswerBody::Status::done) return finish();
    return {Ending::broken,
            body_ ? "the engine broke its answer off" : "the engine closed the connection without an answer",
            nullptr};
}

Outcome PageAssembly::finish() {
    if (page_->framing.kind != http::BodyKind::none)
        page_->framing = {http::BodyKind::length, page_->body.size()};
    return {Ending::whole, {}, std::move(page_)};
}

}  // namespace noren::proxy::engine_page
