#include "proxy/route.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "proxy/http/head.hpp"
#include "proxy/http/hex.hpp"

namespace noren::proxy {
namespace {

/// Of a path that somebody else keeps.
using Segments = boost::container::small_vector<std::string_view, 8>;
using metrics::ApiEndpoint;

/// One round of percent-decoding and lower case.
std::string fold(std::string_view path) {
    std::string folded;
    folded.reserve(path.size());
    for (std::size_t i = 0; i < path.size(); ++i) {
        char c = path[i];
        if (c == '%' && i + 2 < path.size() && http::hex_digit(path[i + 1]) >= 0 &&
            http::hex_digit(path[i + 2]) >= 0) {
            c = static_cast<char>(http::hex_digit(path[i + 1]) * 16 + http::hex_digit(path[i + 2]));
            i += 2;
        }
        folded.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
    }
    return folded;
}

/// As nearly every path comes: folding it would change nothing.
bool is_folded(std::string_view path) {
    return std::none_of(path.begin(), path.end(), [](char c) { return c == '%' || (c >= 'A' && c <= 'Z'); });
}

/// Empty and dot segments folded away (RFC 3986 5.2.4).
void add_segment(Segments& segments, std::string_view segment) {
    if (segment == "..") {
        if (!segments.empty()) segments.pop_back();
    } else if (!segment.empty() && segment != ".") {
        segments.push_back(segment);
    }
}

template <typename Visit>
void for_each_segment(std::string_view path, Visit&& visit) {
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        visit(path.substr(0, slash));
        if (slash == std::string_view::npos) break;
        path.remove_prefix(slash + 1);
    }
}

Segments segments_of(std::string_view path) {
    Segments segments;
    for_each_segment(path, [&](std::string_view segment) { add_segment(segments, segment); });
    return segments;
}

using Patterns = std::vector<std::vector<std::string>>;

bool any_matches(const Patterns& patterns, const Segments& path) {
    const auto alike = [](const std::string& p, std::string_view s) { return p == "*" || p == s; };
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::vector<std::string>& pattern) {
        return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(), alike);
    });
}

/// As a server reads it that splits the path, then unescapes: an escaped slash stays inside its segment, so
/// that a `*` matches it.
bool any_matches_split_first(const Patterns& patterns, std::string_view path) {
    std::vector<std::string> folded;
    for_each_segment(path, [&](std::string_view segment) { folded.push_back(fold(segment)); });
    Segments segments;
    for (const std::string& segment : folded)
        add_segment(segments, segment);
    return any_matches(patterns, segments);
}

/// Labels are told by the last segments, so that an engine behind a path prefix is told as well. What is not
/// named here generates text, or something like it.
ApiEndpoint endpoint_of(const Segments& path) {
    struct Known {
        std::string_view name;
        ApiEndpoint endpoint;
    };
    constexpr std::array<Known, 20> k_known = {{
        {"chat", ApiEndpoint::chat_completions},
        {"responses", ApiEndpoint::responses},
        {"messages", ApiEndpoint::messages},
        {"embeddings", ApiEndpoint::embeddings},
        {"embedding", ApiEndpoint::embeddings},
        {"embed", ApiEndpoint::embeddings},
        {"embed_all", ApiEndpoint::embeddings},
        {"embed_sparse", ApiEndpoint::embeddings},
        {"encode", ApiEndpoint::embeddings},
        {"pooling", ApiEndpoint::embeddings},
        {"rerank", ApiEndpoint::rerank},
        {"reranking", ApiEndpoint::rerank},
        {"rank", ApiEndpoint::rerank},
        {"score", ApiEndpoint::rerank},
        {"generative_scoring", ApiEndpoint::rerank},
        {"similarity", ApiEndpoint::rerank},
        {"classify", ApiEndpoint::rerank},
        {"decisions", ApiEndpoint::rerank},
        {"predict", ApiEndpoint::rerank},
        {"predict_tokens", ApiEndpoint::rerank},
    }};
    const auto at = [&](std::size_t from_end) {
        return path.size() >= from_end ? path[path.size() - from_end] : std::string_view();
    };
    const std::size_t batch = at(1) == "batch" ? 1 : 0;
    if (at(1 + batch) == "completions" && at(2 + batch) == "chat") return ApiEndpoint::chat_completions;
    const auto known =
        std::find_if(k_known.begin(), k_known.end(), [&](const Known& k) { return k.name == at(1); });
    return known == k_known.end() ? ApiEndpoint::completions : known->endpoint;
}

/// Methods are case-sensitive (RFC 9110 9.1), but not for every server. Engines serve more than POST (SGLang:
/// PUT too), and a method that we do not know may do anything.
bool may_generate(std::string_view method) {
    constexpr std::array<std::string_view, 4> k_harmless = {"GET", "HEAD", "OPTIONS", "DELETE"};
    return std::none_of(k_harmless.begin(), k_harmless.end(),
                        [&](std::string_view harmless) { return http::same_name(method, harmless); });
}

Dialect dialect_of(const Segments& path) {
    if (path.empty()) return Dialect::tgi;
    // Also what lies below, as count_tokens and batches; but not the messages of an OpenAI thread.
    const auto messages = std::find(path.begin(), path.end(), "messages");
    if (messages != path.end() && (messages == path.begin() || *(messages - 1) == "v1"))
        return Dialect::anthropic;
    if (path.front() == "api") return Dialect::ollama;
    if (path.size() == 1 && (path.front() == "generate" || path.front() == "generate_stream"))
        return Dialect::tgi;
    return Dialect::openai;
}

}  // namespace

std::string_view path_of(std::string_view target) {
    return target.substr(0, target.find('?'));
}

RouteTable::RouteTable(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        const std::string folded = fold(pattern);
        const Segments segments = segments_of(folded);
        gated_.emplace_back(segments.begin(), segments.end());
    }
}

Route RouteTable::find(std::string_view method, std::string_view target) const {
    const std::string_view path = path_of(target);
    const bool has_escapes = path.find('%') != std::string_view::npos;
    const std::string unescaped = is_folded(path) ? std::string() : fold(path);
    const Segments segments = segments_of(unescaped.empty() ? path : std::string_view(unescaped));
    Route route;
    route.dialect = dialect_of(segments);
    route.gated = may_generate(method) &&
                  (any_matches(gated_, segments) || (has_escapes && any_matches_split_first(gated_, path)));
    if (route.gated) route.endpoint = endpoint_of(segments);
    return route;
}

}  // namespace noren::proxy
