// llama.cpp's native /completion: SSE without [DONE]; the last event has no text but all the timings.

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

class LlamaCpp final : public Dialect {
  public:
    using Dialect::Dialect;

    void tokens(const Slice& slice, Events& out) override {
        out.push_back({sse("", concat(R"({"index":0,"content":)", quoted(text(slice)),
                                      R"(,"tokens":[],"stop":false,"id_slot":0)",
                                      counts(slice.first + slice.count), "}")),
                       slice.count});
    }

    void finished(const Timing& timing, Events& out) override { out.push_back({sse("", last("", timing))}); }

    void failed(std::string_view message, Events& out) override {
        out.push_back({sse("", concat(R"({"error":{"code":500,"message":)", quoted(message),
                                      R"(,"type":"server_error"}})"))});
    }

    std::string document(const Timing& timing) const override { return last(whole_text(0), timing); }

  private:
    std::string last(std::string_view words, const Timing& timing) const {
        return concat(R"({"index":0,"content":)", quoted(words),
                      R"(,"tokens":[],"id_slot":0,"stop":true,"model":)", quoted(ask().model),
                      counts(all_output()), R"(,"generation_settings":{"n_predict":)", ask().output_tokens,
                      R"(,"stream":)", ask().stream ? "true" : "false",
                      R"(},"prompt":"","has_new_line":false,"truncated":false,"stop_type":")",
                      ask().hit_limit ? "limit" : "eos", R"(","stopping_word":"")", timings(timing), "}");
    }

    std::string counts(std::uint64_t output) const {
        if (!ask().report_usage) return {};
        return concat(R"(,"tokens_predicted":)", output, R"(,"tokens_evaluated":)", ask().prompt_tokens);
    }

    std::string timings(const Timing& timing) const {
        if (!ask().report_usage) return {};
        const auto ms = [](Duration d) {
            return std::to_string(std::chrono::duration<double, std::milli>(d).count());
        };
        return concat(R"(,"tokens_cached":)", ask().prompt_tokens + all_output(),
                      R"(,"timings":{"cache_n":0,"prompt_n":)", ask().prompt_tokens, R"(,"prompt_ms":)",
                      ms(timing.prompt), R"(,"predicted_n":)", all_output(), R"(,"predicted_ms":)",
                      ms(timing.decode), "}");
    }
};

}  // namespace

std::unique_ptr<Dialect> make_llamacpp(Ask ask) {
    return std::make_unique<LlamaCpp>(std::move(ask));
}

}  // namespace sim::dialects
