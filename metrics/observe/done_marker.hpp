#pragma once
// The end marker of OpenAI's streams, which is the only data that is no JSON.

#include <cstddef>
#include <string_view>

namespace noren::metrics {

/// Is this data exactly [DONE], blanks around it aside?
class DoneMarker {
  public:
    void reset() { at_ = 0; }
    void feed(std::string_view bytes) {
        for (const char c : bytes) {
            if (at_ > k_word.size()) return;
            const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
            if (blank && (at_ == 0 || at_ == k_word.size())) continue;
            at_ = at_ < k_word.size() && c == k_word[at_] ? at_ + 1 : k_word.size() + 1;
        }
    }
    bool seen() const { return at_ == k_word.size(); }

  private:
    static constexpr std::string_view k_word = "[DONE]";
    std::size_t at_ = 0;
};

}  // namespace noren::metrics
