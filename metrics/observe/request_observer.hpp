#pragma once
// What a request asks for, learnt from its body (JSON, or a form) as it passes, never held back for it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace noren::metrics {

struct RequestFacts {
    std::optional<std::string> model;  ///< top-level "model", at most 256 bytes are kept
    std::optional<bool> stream;        ///< top-level "stream"
    /// max_completion_tokens, max_output_tokens, max_tokens, max_new_tokens (also in "parameters" and
    /// "sampling_params"), n_predict, num_predict (also in "options"): the first of these that is there
    std::optional<std::int64_t> max_tokens;
    /// Sequences generated at the same time: prompts (a list in "prompt", "text" or "input_ids") times the
    /// highest of n and best_of, wherever the API has them. Empty: nothing was said of it.
    std::optional<std::int64_t> choices;
    std::int64_t of_each_prompt = 1;  ///< the second factor alone
};

/// Sans-IO, bounded memory, never throws. A body that is no JSON object leaves everything empty; of a form
/// (audio transcription) the model and stream fields are known.
class RequestObserver {
  public:
    explicit RequestObserver(std::string_view content_type);
    ~RequestObserver();
    RequestObserver(RequestObserver&&) noexcept;
    RequestObserver& operator=(RequestObserver&&) noexcept;

    void feed(std::string_view bytes) noexcept;
    const RequestFacts& facts() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace noren::metrics
