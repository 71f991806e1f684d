// OpenAI chat/completions and completions, as vLLM spells them.

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

class OpenAi final : public Dialect {
  public:
    explicit OpenAi(Ask given)
        : Dialect(std::move(given)),
          chat_(ask().api == Api::chat),
          head_(head(chat_ ? "chat.completion.chunk" : "text_completion")) {}

    void tokens(const Slice& slice, Events& out) override {
        if (chat_ && slice.first == 0) {
            out.push_back(chunk(slice.choice, R"("delta":{"role":"assistant","content":""})", "null", 0));
        }
        const std::uint32_t so_far = slice.first + slice.count;
        const bool ends_here = !chat_ && slice.last;  // completions: the last text carries the reason
        Event event = chunk(slice.choice, said(quoted(text(slice))), ends_here ? reason() : "null", so_far);
        event.tokens = slice.count;
        out.push_back(std::move(event));
        if (chat_ && slice.last) out.push_back(chunk(slice.choice, said(R"("")"), reason(), so_far));
    }

    void finished(const Timing&, Events& out) override {
        if (ask().report_usage) {
            out.push_back({sse("", concat(head_, R"("choices":[],)", counts(all_output()), "}"))});
        }
        out.push_back({sse("", "[DONE]")});
    }

    // vLLM: json.dumps with its blanks, and [DONE] after an error as well.
    void failed(std::string_view message, Events& out) override {
        out.push_back({sse("", concat(R"({"error": {"message": )", quoted(message),
                                      R"(, "type": "InternalServerError", "param": null, "code": 500}})"))});
        out.push_back({sse("", "[DONE]")});
    }

    std::string document(const Timing&) const override {
        std::string body = concat(head(chat_ ? "chat.completion" : "text_completion"), R"("choices":[)");
        for (std::uint32_t choice = 0; choice < ask().choices; ++choice) {
            const std::string words = quoted(whole_text(choice));
            body += concat(choice > 0 ? "," : "", R"({"index":)", choice, ",");
            body += chat_
                        ? concat(R"("message":{"role":"assistant","content":)", words, R"(,"tool_calls":[]})")
                        : concat(R"("text":)", words);
            body += concat(R"(,"logprobs":null,"finish_reason":)", reason(), R"(,"stop_reason":null})");
        }
        body += "]";
        if (ask().report_usage) body += "," + counts(all_output());
        return body + "}";
    }

  private:
    std::string head(std::string_view object) const {
        return concat(R"({"id":)", quoted(concat(chat_ ? "chatcmpl-" : "cmpl-", ask().id)), R"(,"object":")",
                      object, R"(","created":)", ask().created, R"(,"model":)", quoted(ask().model), ",");
    }

    std::string said(std::string_view words) const {
        return chat_ ? concat(R"("delta":{"content":)", words, "}") : concat(R"("text":)", words);
    }

    std::string_view reason() const { return ask().hit_limit ? R"("length")" : R"("stop")"; }

    // Continuous usage counts the one choice of the chunk; only the last chunk has the sum.
    Event chunk(std::uint32_t choice, std::string_view content, std::string_view finish,
                std::uint32_t so_far) const {
        std::string data = concat(head_, R"("choices":[{"index":)", choice, ",", content,
                                  R"(,"logprobs":null,"finish_reason":)", finish);
        if (finish != "null") data += R"(,"stop_reason":null)";
        data += "}]";
        if (ask().continuous_usage) data += "," + counts(so_far);
        return {sse("", data + "}")};
    }

    std::string counts(std::uint64_t output) const {
        return concat(R"("usage":{"prompt_tokens":)", ask().prompt_tokens, R"(,"total_tokens":)",
                      ask().prompt_tokens + output, R"(,"completion_tokens":)", output, "}");
    }

    bool chat_;
    std::string head_;
};

}  // namespace

std::unique_ptr<Dialect> make_openai(Ask ask) {
    return std::make_unique<OpenAi>(std::move(ask));
}

}  // namespace sim::dialects
