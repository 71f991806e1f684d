// Anthropic /v1/messages: named events; input tokens at the start, output tokens near the end.

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

class Anthropic final : public Dialect {
  public:
    using Dialect::Dialect;

    void tokens(const Slice& slice, Events& out) override {
        if (slice.first == 0) open(out);
        out.push_back(
            {sse("content_block_delta",
                 concat(R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":)",
                        quoted(text(slice)), "}}")),
             slice.count});
    }

    void finished(const Timing&, Events& out) override {
        out.push_back({sse("content_block_stop", R"({"type":"content_block_stop","index":0})")});
        const std::string counts =
            ask().report_usage ? concat(R"(,"usage":{"output_tokens":)", all_output(), "}") : std::string();
        out.push_back({sse("message_delta", concat(R"({"type":"message_delta","delta":{"stop_reason":)",
                                                   reason(), R"(,"stop_sequence":null})", counts, "}"))});
        out.push_back({sse("message_stop", R"({"type":"message_stop"})")});
    }

    void failed(std::string_view message, Events& out) override {
        out.push_back({sse("error", concat(R"({"type":"error","error":{"type":"api_error","message":)",
                                           quoted(message), "}}"))});
    }

    std::string document(const Timing&) const override {
        return concat(
            start(R"([{"type":"text","text":)" + quoted(whole_text(0)) + "}]", reason(), all_output()));
    }

  private:
    // The 1 is the provisional count Anthropic itself puts there.
    void open(Events& out) const {
        out.push_back({sse("message_start",
                           concat(R"({"type":"message_start","message":)", start("[]", "null", 1), "}"))});
        out.push_back(
            {sse("content_block_start",
                 R"({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})")});
        out.push_back({sse("ping", R"({"type":"ping"})")});
    }

    std::string start(std::string_view content, std::string_view stop, std::uint64_t output) const {
        std::string message =
            concat(R"({"id":)", quoted("msg_" + ask().id), R"(,"type":"message","role":"assistant","model":)",
                   quoted(ask().model), R"(,"content":)", content, R"(,"stop_reason":)", stop,
                   R"(,"stop_sequence":null)");
        if (ask().report_usage) {
            message +=
                concat(R"(,"usage":{"input_tokens":)", ask().prompt_tokens,
                       R"(,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":)",
                       output, "}");
        }
        return message + "}";
    }

    std::string_view reason() const { return ask().hit_limit ? R"("max_tokens")" : R"("end_turn")"; }
};

}  // namespace

std::unique_ptr<Dialect> make_anthropic(Ask ask) {
    return std::make_unique<Anthropic>(std::move(ask));
}

}  // namespace sim::dialects
