// Ollama /api/chat and /api/generate: one JSON document per line, counts in the last one.

#include <ctime>

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

std::string rfc3339(std::int64_t unix_seconds) {
    const std::time_t when = unix_seconds;
    std::tm parts{};
    gmtime_r(&when, &parts);
    char text[32];
    const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000000Z", &parts);
    return {text, size};
}

class Ollama final : public Dialect {
  public:
    explicit Ollama(Ask given)
        : Dialect(std::move(given)),
          head_(concat(R"({"model":)", quoted(ask().model, Escapes::go), R"(,"created_at":")",
                       rfc3339(ask().created), R"(",)")) {}

    std::string_view stream_type() const override { return "application/x-ndjson"; }

    void tokens(const Slice& slice, Events& out) override {
        out.push_back({concat(head_, said(text(slice)), R"(,"done":false})", "\n"), slice.count});
    }

    void finished(const Timing& timing, Events& out) override {
        out.push_back({concat(head_, said(""), done(timing), "}\n")});
    }

    // The status stays 200, nothing follows.
    void failed(std::string_view message, Events& out) override {
        out.push_back({concat(R"({"error":)", quoted(message, Escapes::go), "}\n")});
    }

    std::string document(const Timing& timing) const override {
        return concat(head_, said(whole_text(0)), done(timing), "}");
    }

  private:
    std::string said(std::string_view words) const {
        const std::string text = quoted(words, Escapes::go);
        if (ask().api == Api::ollama_generate) return concat(R"("response":)", text);
        return concat(R"("message":{"role":"assistant","content":)", text, "}");
    }

    std::string done(const Timing& timing) const {
        std::string text = concat(R"(,"done":true,"done_reason":")", ask().hit_limit ? "length" : "stop",
                                  R"(","total_duration":)", (timing.prompt + timing.decode).count(),
                                  R"(,"load_duration":0)");
        if (ask().report_usage) {
            text += concat(R"(,"prompt_eval_count":)", ask().prompt_tokens, R"(,"prompt_eval_duration":)",
                           timing.prompt.count(), R"(,"eval_count":)", all_output(), R"(,"eval_duration":)",
                           timing.decode.count());
        }
        return text;
    }

    std::string head_;
};

}  // namespace

std::unique_ptr<Dialect> make_ollama(Ask ask) {
    return std::make_unique<Ollama>(std::move(ask));
}

}  // namespace sim::dialects
