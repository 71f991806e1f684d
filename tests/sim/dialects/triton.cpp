// Triton's generate extension: no counts, no end marker, an empty event before and after the text.

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"

namespace sim::dialects {

namespace {

class Triton final : public Dialect {
  public:
    explicit Triton(Ask given)
        : Dialect(std::move(given)),
          head_(concat(
              R"({"model_name":)", quoted(ask().model),
              R"(,"model_version":"1","sequence_end":false,"sequence_id":0,"sequence_start":false,"text_output":)")) {
    }

    void tokens(const Slice& slice, Events& out) override {
        if (slice.first == 0) out.push_back(event("", 0));
        out.push_back(event(text(slice), slice.count));
    }

    void finished(const Timing&, Events& out) override { out.push_back(event("", 0)); }

    void failed(std::string_view message, Events& out) override {
        out.push_back({sse("", concat(R"({"error":)", quoted(message), "}"))});
    }

    std::string document(const Timing&) const override { return concat(head_, quoted(whole_text(0)), "}"); }

  private:
    Event event(std::string_view words, std::uint32_t tokens) const {
        return {sse("", concat(head_, quoted(words), "}")), tokens};
    }

    std::string head_;
};

}  // namespace

std::unique_ptr<Dialect> make_triton(Ask ask) {
    return std::make_unique<Triton>(std::move(ask));
}

}  // namespace sim::dialects
