#include "proxy/cli/observe_command.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include <boost/json.hpp>

#include "metrics/observe/response_observer.hpp"
#include "metrics/utf8.hpp"

namespace noren::proxy {
namespace {

namespace json = boost::json;
using metrics::Observation;
using metrics::ResponseObserver;

constexpr int k_unusable = 2;

struct Recorded {
    Observation seen;
    std::vector<std::uint64_t> offsets;  ///< where each token event ends
    bool operator==(const Recorded&) const = default;
};

/// Nothing if it cannot be read, or not to its end.
std::optional<std::string> read_all(const std::string& file) {
    try {
        if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
        std::ifstream in(file, std::ios::binary);
        if (!in) return std::nullopt;
        return std::string(std::istreambuf_iterator<char>(in), {});
    } catch (const std::ios_base::failure&) {  // a directory, for one
        return std::nullopt;
    }
}

/// What a captured body most probably was, for who did not say: the three kinds begin differently.
std::string guess_type(std::string_view body) {
    if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
    body.remove_prefix(std::min(body.size(), body.find_first_not_of("\r\n")));
    for (const std::string_view start : {"data:", "event:", ":", "id:", "retry:"})
        if (body.starts_with(start)) return "text/event-stream";
    const std::size_t line_end = body.find('\n');
    const bool more_lines = line_end != std::string_view::npos &&
                            body.find_first_not_of(" \r\n\t", line_end) != std::string_view::npos;
    boost::system::error_code error;
    json::parse(json::string_view(body.data(), std::min(line_end, body.size())), error);
    return more_lines && !error ? "application/x-ndjson" : "application/json";
}

template <typename Value>
json::value or_null(const std::optional<Value>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

json::value text_or_null(const std::optional<std::string>& text) {
    return text ? json::value(metrics::to_valid_utf8(*text)) : json::value(nullptr);
}

/// The field names of the corpus, which are those of the access log and the metrics where these have them.
std::string to_json(const Recorded& recorded) {
    const Observation& o = recorded.seen;
    json::value source(nullptr);
    if (o.output_tokens_source == metrics::TokenSource::usage) source = "usage";
    if (o.output_tokens_source == metrics::TokenSource::events) source = "events";
    json::array offsets;
    for (const std::uint64_t offset : recorded.offsets)
        offsets.emplace_back(offset);
    return json::serialize(json::object{{"streaming", o.streaming},
                                        {"token_events", o.token_events},
                                        {"first_token_event_offset", or_null(o.first_token_event_offset)},
                                        {"first_token_event_start", or_null(o.first_token_event_start)},
                                        {"token_event_offsets", offsets},
                                        {"output_tokens", or_null(o.output_tokens)},
                                        {"output_tokens_source", source},
                                        {"input_tokens", or_null(o.input_tokens)},
                                        {"cached_tokens", or_null(o.cached_tokens)},
                                        {"reasoning_tokens", or_null(o.reasoning_tokens)},
                                        {"model", text_or_null(o.model)},
                                        {"finish_reason", text_or_null(o.finish_reason)},
                                        {"error", o.error},
                                        {"complete", o.complete}});
}

/// The ways of feeding one body to an observer.
class Trial {
  public:
    Trial(const ObserveOptions& options, std::string_view body) : options_(options), body_(body) {}

    Recorded whole() const;
    Recorded in_pieces(std::size_t size) const;
    /// 0 and the body's size are cuts too: one of the two pieces is empty.
    Recorded cut_at(std::size_t cut) const;

    /// The lowest of the cuts 0, step, 2 * step... at which the body is seen otherwise than expected.
    std::optional<std::size_t> first_bad_cut(std::size_t step, const Recorded& expected) const;

  private:
    template <typename Feed>
    Recorded recorded(Feed&& feed) const;

    const ObserveOptions& options_;
    std::string_view body_;
};

template <typename Feed>
Recorded Trial::recorded(Feed&& feed) const {
    Recorded result;
    ResponseObserver observer(options_.status, options_.content_type, options_.content_encoding);
    observer.record_offsets(&result.offsets);
    feed(observer);
    observer.finish();
    result.seen = observer.observation(options_.sequences);
    return result;
}

Recorded Trial::whole() const {
    return recorded([this](ResponseObserver& observer) { observer.feed(body_); });
}

Recorded Trial::in_pieces(std::size_t size) const {
    return recorded([this, size](ResponseObserver& observer) {
        for (std::size_t at = 0; at < body_.size(); at += size)
            observer.feed(body_.substr(at, size));
    });
}

Recorded Trial::cut_at(std::size_t cut) const {
    return recorded([this, cut](ResponseObserver& observer) {
        observer.feed(body_.substr(0, cut));
        observer.feed(body_.substr(cut));
    });
}

std::optional<std::size_t> Trial::first_bad_cut(std::size_t step, const Recorded& expected) const {
    constexpr std::size_t k_none = std::string_view::npos;
    std::atomic<std::size_t> lowest{k_none};
    const auto try_cuts = [&](std::size_t first, std::size_t stride) {
        for (std::size_t cut = first; cut <= body_.size() && cut < lowest; cut += stride) {
            if (cut_at(cut) == expected) continue;
            for (std::size_t known = lowest; cut < known && !lowest.compare_exchange_weak(known, cut);) {
            }
        }
    };
    const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
    {
        std::vector<std::jthread> working;
        for (std::size_t i = 0; i < threads; ++i)
            working.emplace_back(try_cuts, i * step, threads * step);
    }
    return lowest == k_none ? std::nullopt : std::optional(lowest.load());
}

/// Every how many bytes a body is cut. To feed it once for each of its cuts takes the square of its size;
/// above a mebibyte the cuts become fewer, so that the work does not grow further.
std::size_t cut_step(std::size_t size) {
    constexpr std::size_t k_cut_everywhere = 1024 * 1024;
    const std::size_t times = (size + k_cut_everywhere - 1) / k_cut_everywhere;
    return std::max<std::size_t>(1, times * times);
}

/// Do all ways of feeding a body of that size give the same? Says so, or what differs.
bool agree(const Trial& trial, std::size_t size, std::ostream& err) {
    const Recorded whole = trial.whole();
    const auto complain = [&](const std::string& how, const Recorded& seen) {
        err << "noren observe: " << how << " gives " << to_json(seen) << "\n  but the whole body gives "
            << to_json(whole) << "\n";
        return false;
    };
    if (const Recorded seen = trial.in_pieces(1); seen != whole) return complain("byte by byte", seen);
    const std::size_t step = cut_step(size);
    if (const auto cut = trial.first_bad_cut(step, whole))
        return complain("a cut at byte " + std::to_string(*cut), trial.cut_at(*cut));
    err << "noren observe: the same byte by byte, and cut in two at " << size / step + 1 << " of " << size + 1
        << " places\n";
    return true;
}

/// Nothing if it is no number of bytes.
std::optional<std::size_t> piece_size(const std::string& split) {
    std::size_t size = 0;
    const char* const end = split.data() + split.size();
    const auto [used, error] = std::from_chars(split.data(), end, size);
    return error == std::errc() && used == end && size > 0 ? std::optional(size) : std::nullopt;
}

bool looks_like_json(std::string_view body) {
    const std::size_t first = body.find_first_not_of(" \r\n\t");
    return first != std::string_view::npos && (body[first] == '{' || body[first] == '[');
}

/// Empty if there is one. options: with the content type that the body was taken for.
std::string why_no_first_token(const ObserveOptions& options, bool guessed, std::string_view body) {
    const Observation seen = Trial(options, body).whole().seen;
    if (seen.token_events > 0) return {};
    if (seen.opaque)
        return "its Content-Encoding is " + options.content_encoding + ", and noren does not look inside";
    if (body.empty()) return "the body is empty";
    if (!seen.streaming && guessed && !looks_like_json(body))
        return "it is not streamed, by its first bytes: they begin neither an event stream nor JSON; "
               "--content-type says what it is";
    if (!seen.streaming)
        return "it is not streamed: its Content-Type" + std::string(guessed ? ", by its first bytes," : "") +
               " is " + options.content_type + ", not text/event-stream or application/x-ndjson";
    std::string why =
        seen.error ? "it is an error, and no event of it has a token" : "no event of it has a token";
    if (seen.unparsed_events > 0)
        why += "; " + std::to_string(seen.unparsed_events) + " were no JSON object that noren understands";
    return why;
}

/// As `curl -i` writes it.
bool begins_with_head(std::string_view body) {
    return body.starts_with("HTTP/") && body.substr(0, body.find('\n')).find(' ') != std::string_view::npos;
}

}  // namespace

std::string observe_report(const ObserveOptions& options, std::string_view body, std::size_t piece) {
    const Trial trial(options, body);
    return to_json(piece == 0 ? trial.whole() : trial.in_pieces(piece));
}

int observe_command(const ObserveOptions& given, std::ostream& out, std::ostream& err) {
    const bool every_way = given.split == "all";
    const auto piece =
        given.split.empty() || every_way ? std::optional<std::size_t>(0) : piece_size(given.split);
    if (!piece) {
        err << "noren observe: --split: found \"" << given.split << "\", expected a number of bytes or all\n";
        return k_unusable;
    }
    const auto body = read_all(given.file);
    if (!body) {
        err << "noren observe: cannot read " << given.file << "\n";
        return k_unusable;
    }
    if (begins_with_head(*body)) {
        err << "noren observe: " << given.file
            << " begins with an HTTP head; give the body only (curl without -i), and what its head says with "
               "--status, --content-type and --content-encoding\n";
        return k_unusable;
    }
    ObserveOptions options = given;
    const bool guessed = options.content_type.empty();
    if (guessed) options.content_type = guess_type(*body);
    if (every_way && !agree(Trial(options, *body), body->size(), err)) return 1;
    out << observe_report(options, *body, *piece) << "\n";
    if (const std::string why = why_no_first_token(options, guessed, *body); !why.empty())
        err << "noren observe: no time to first token: " << why << "\n";
    return 0;
}

}  // namespace noren::proxy
