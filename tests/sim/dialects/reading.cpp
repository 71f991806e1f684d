// What only reads: embeddings and rerank. Their one "token" is the pass over the prompt; it is not output.

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

class Reading final : public Dialect {
  public:
    using Dialect::Dialect;

    // Never streamed: these are there because the base asks for them.
    void tokens(const Slice&, Events&) override {}
    void finished(const Timing&, Events&) override {}
    void failed(std::string_view, Events&) override {}

    std::string document(const Timing&) const override {
        return ask().api == Api::embeddings ? embeddings() : ranking();
    }

  private:
    std::string embeddings() const {
        std::string body = concat(R"({"id":)", quoted("embd-" + ask().id), R"(,"object":"list","created":)",
                                  ask().created, R"(,"model":)", quoted(ask().model), R"(,"data":[)");
        for (std::uint32_t i = 0; i < ask().items; ++i) {
            body += concat(i > 0 ? "," : "", R"({"index":)", i,
                           R"(,"object":"embedding","embedding":[0.0123,-0.4,0.25,1e-05]})");
        }
        return concat(body, "]", counts(R"(,"completion_tokens":0,"prompt_tokens_details":null)"), "}");
    }

    std::string ranking() const {
        std::string body = concat(R"({"id":)", quoted("rerank-" + ask().id), R"(,"model":)",
                                  quoted(ask().model), R"(,"results":[)");
        for (std::uint32_t i = 0; i < ask().items; ++i) {
            // Falling scores in the order given: there is no model here to have an opinion.
            body += concat(i > 0 ? "," : "", R"({"index":)", i, R"(,"relevance_score":)",
                           std::to_string(1.0 / (1.0 + i)), "}");
        }
        return concat(body, "]", counts(""), "}");
    }

    std::string counts(std::string_view more) const {
        if (!ask().report_usage) return {};
        return concat(R"(,"usage":{"prompt_tokens":)", ask().prompt_tokens, R"(,"total_tokens":)",
                      ask().prompt_tokens, more, "}");
    }
};

}  // namespace

std::unique_ptr<Dialect> make_reading(Ask ask) {
    return std::make_unique<Reading>(std::move(ask));
}

}  // namespace sim::dialects
