#pragma once
// HTTP/1.x message heads, read strictly (RFC 9112 sections 2 to 5, RFC 9110 section 5): what is ambiguous is
// refused, never repaired, because a proxy that guesses and an engine that guesses otherwise make one request
// into two. Sans-IO; everything parsed is a view of the caller's bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace noren::proxy::http {

struct Field {
    std::string_view name;   ///< as it came; compare with same_name()
    std::string_view value;  ///< without the blanks around it
};

/// Letters alike without regard to case; both of the same size.
bool same_letters(std::string_view a, std::string_view b);

/// Field names and tokens such as codings and connection options compare without regard to case. Most differ
/// in their length already.
inline bool same_name(std::string_view a, std::string_view b) {
    return a.size() == b.size() && same_letters(a, b);
}

/// Without the blanks and tabs around it.
std::string_view trim(std::string_view text);

/// Calls visit(element) for each element of a comma-separated list (RFC 9110 5.6.1), blanks trimmed, empty
/// ones left out.
template <typename Visit>
void for_each_element(std::string_view list, Visit&& visit) {
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        if (const std::string_view element = trim(list.substr(0, comma)); !element.empty()) visit(element);
        if (comma == std::string_view::npos) break;
        list.remove_prefix(comma + 1);
    }
}

class Fields {
  public:
    void add(std::string_view name, std::string_view value) {
        if (all_.empty()) all_.reserve(k_usual);
        all_.push_back({name, value});
    }
    const std::vector<Field>& all() const { return all_; }
    std::size_t count(std::string_view name) const;
    bool has(std::string_view name) const { return count(name) != 0; }
    /// The first value; empty if there is none.
    std::string_view value(std::string_view name) const;
    /// Calls visit(element) for each element of a list field, all its lines together.
    template <typename Visit>
    void for_each_of(std::string_view name, Visit&& visit) const {
        for (const Field& field : all_)
            if (same_name(field.name, name)) for_each_element(field.value, visit);
    }
    /// True if a comma-separated list field (all its lines together) holds the token.
    bool lists(std::string_view name, std::string_view token) const;

  private:
    static constexpr std::size_t k_usual = 8;

    std::vector<Field> all_;
};

struct RequestHead {
    std::string_view method;
    std::string_view target;     ///< origin-form or "*", as it goes to the engine
    std::string_view authority;  ///< of an absolute-form target, else Host; may be empty with HTTP/1.0
    int minor = 1;               ///< HTTP/1.minor: 0 or 1
    Fields fields;
    std::optional<std::uint64_t> max_forwards;  ///< of an OPTIONS request; 0: it asks us, not the engine
};

struct ResponseHead {
    int status = 0;  ///< 100..599
    std::string_view reason;
    int minor = 1;
    Fields fields;
};

struct HeadLimits {
    std::size_t bytes = 32 * 1024;  ///< first line and fields together
    std::size_t fields = 128;
};

/// Why a head is refused.
struct HeadError {
    int status = 400;         ///< of a request: 400, 405, 414, 431, 501 or 505; of a response: 502
    std::string_view detail;  ///< one sentence for a person, fixed text
};

/// Looks for the end of a head in bytes that arrive in pieces, and for what can be refused before its end.
class HeadScanner {
  public:
    explicit HeadScanner(const HeadLimits& limits) : limits_(limits) {}

    /// buffer: all bytes so far, from the head's first on. The head's length with its empty line, once known.
    std::variant<std::monostate, std::size_t, HeadError> scan(std::string_view buffer);

  private:
    HeadLimits limits_;
    std::size_t looked_at_ = 0;
    std::size_t line_start_ = 0;
    std::size_t lines_ = 0;
};

/// One empty line before a request line is to be ignored (RFC 9112 2.2). How many bytes to drop; 0 if none or
/// not sure yet.
std::size_t leading_empty_line(std::string_view buffer);

/// head: whole, with its empty line, as HeadScanner has found its end.
std::variant<RequestHead, HeadError> parse_request_head(std::string_view head);
std::variant<ResponseHead, HeadError> parse_response_head(std::string_view head);

/// Field lines up to the end of the text, each ended by CRLF: a head's, or a trailer section's.
std::optional<HeadError> parse_fields(std::string_view lines, Fields& into);

/// token of RFC 9110 5.6.2.
bool is_token(std::string_view text);

}  // namespace noren::proxy::http
