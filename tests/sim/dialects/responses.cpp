// OpenAI /v1/responses: typed events with sequence numbers; the done events repeat the whole text. An answer
// that its token limit ended is "incomplete", not "completed".

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

class Responses final : public Dialect {
  public:
    explicit Responses(Ask given)
        : Dialect(std::move(given)),
          item_(concat(R"("item_id":)", quoted("msg_" + ask().id), R"(,"output_index":0)")) {}

    void accepted(Events& out) override {
        emit(out, "response.created", concat(R"("response":)", response("in_progress", "[]", "")));
        emit(out, "response.in_progress", concat(R"("response":)", response("in_progress", "[]", "")));
    }

    void tokens(const Slice& slice, Events& out) override {
        if (slice.first == 0) {
            emit(out, "response.output_item.added",
                 concat(R"("output_index":0,"item":)", message("in_progress", "")));
            emit(out, "response.content_part.added",
                 concat(item_, R"(,"content_index":0,"part":)", part("")));
        }
        emit(out, "response.output_text.delta",
             concat(item_, R"(,"content_index":0,"delta":)", quoted(text(slice)), R"(,"logprobs":[])"));
        out.back().tokens = slice.count;
    }

    void finished(const Timing&, Events& out) override {
        const std::string words = whole_text(0);
        const std::string said = message(final_status(), part(words));
        emit(out, "response.output_text.done",
             concat(item_, R"(,"content_index":0,"text":)", quoted(words), R"(,"logprobs":[])"));
        emit(out, "response.content_part.done", concat(item_, R"(,"content_index":0,"part":)", part(words)));
        emit(out, "response.output_item.done", concat(R"("output_index":0,"item":)", said));
        emit(out, concat("response.", final_status()),
             concat(R"("response":)", response(final_status(), concat("[", said, "]"), counts())));
    }

    void failed(std::string_view message, Events& out) override {
        emit(out, "response.failed",
             concat(R"("response":{"id":)", quoted("resp_" + ask().id),
                    R"(,"object":"response","status":"failed","error":{"code":"server_error","message":)",
                    quoted(message), R"(},"usage":null})"));
    }

    std::string document(const Timing&) const override {
        const std::string said = message(final_status(), part(whole_text(0)));
        return response(final_status(), concat("[", said, "]"), counts());
    }

  private:
    void emit(Events& out, std::string_view type, std::string_view members) {
        out.push_back({sse(
            type, concat(R"({"type":")", type, R"(","sequence_number":)", sequence_++, ",", members, "}"))});
    }

    std::string_view final_status() const { return ask().hit_limit ? "incomplete" : "completed"; }

    static std::string part(std::string_view words) {
        return concat(R"({"type":"output_text","text":)", quoted(words),
                      R"(,"annotations":[],"logprobs":[]})");
    }

    std::string message(std::string_view status, std::string_view content) const {
        return concat(R"({"id":)", quoted("msg_" + ask().id),
                      R"(,"type":"message","role":"assistant","status":")", status, R"(","content":[)",
                      content, "]}");
    }

    std::string response(std::string_view status, std::string_view output, std::string_view usage) const {
        return concat(R"({"id":)", quoted("resp_" + ask().id), R"(,"created_at":)", ask().created,
                      R"(,"error":null,"incomplete_details":)",
                      status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null", R"(,"model":)",
                      quoted(ask().model), R"(,"object":"response","output":)", output, R"(,"status":")",
                      status, R"(","usage":)", usage.empty() ? "null" : usage, "}");
    }

    std::string counts() const {
        if (!ask().report_usage) return {};
        return concat(R"({"input_tokens":)", ask().prompt_tokens,
                      R"(,"input_tokens_details":{"cached_tokens":0},"output_tokens":)", all_output(),
                      R"(,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":)",
                      ask().prompt_tokens + all_output(), "}");
    }

    std::string item_;
    std::uint32_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<Dialect> make_responses(Ask ask) {
    return std::make_unique<Responses>(std::move(ask));
}

}  // namespace sim::dialects
