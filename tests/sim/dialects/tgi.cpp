// Text Generation Inference: /generate, /generate_stream and / (which answers an array).

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"

namespace sim::dialects {

namespace {

class Tgi final : public Dialect {
  public:
    using Dialect::Dialect;

    // One event is one token here, whatever a step of the engine produced.
    void tokens(const Slice& slice, Events& out) override {
        for (std::uint32_t i = 0; i < slice.count; ++i) {
            const bool last = slice.last && i + 1 == slice.count;
            const std::uint32_t index = slice.first + i;
            std::string data =
                concat(R"({"index":)", index + 1, R"(,"token":{"id":)", 1000 + index, R"(,"text":)",
                       quoted(text({slice.choice, index, 1, last})),
                       R"(,"logprob":-0.25,"special":false},"generated_text":)",
                       last ? quoted(all_words()) : "null", R"(,"details":)", last ? details() : "null", "}");
            // Without the blank after the colon, as axum wrote it before 0.7.
            out.push_back({concat("data:", data, "\n\n"), 1});
        }
    }

    void finished(const Timing&, Events&) override {}  // the last token's event said it

    void failed(std::string_view message, Events& out) override {
        out.push_back(
            {concat(R"(data:{"error":)", quoted(message), R"(,"error_type":"generation"})", "\n\n")});
    }

    std::string document(const Timing&) const override {
        std::string answer = concat(R"({"generated_text":)", quoted(all_words()));
        if (ask().report_usage) answer += R"(,"details":)" + details();
        answer += "}";
        return ask().api == Api::tgi_root ? concat("[", answer, "]") : answer;
    }

  private:
    std::string all_words() const {
        return sim::whole_text(stream_key(ask().id), 0, ask().output_tokens, 1, ask().event_bytes);
    }

    std::string details() const {
        if (!ask().report_usage) return "null";
        return concat(R"({"finish_reason":")", ask().hit_limit ? "length" : "eos_token",
                      R"(","generated_tokens":)", all_output(), R"(,"seed":null,"input_length":)",
                      ask().prompt_tokens, "}");
    }
};

}  // namespace

std::unique_ptr<Dialect> make_tgi(Ask ask) {
    return std::make_unique<Tgi>(std::move(ask));
}

}  // namespace sim::dialects
