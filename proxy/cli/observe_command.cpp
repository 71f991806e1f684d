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
    std::vector<std::uint64_t> offsets;
};

std::optional<std::string> read_all(const std::string& file) {
    if (file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::nullopt;
    std::string body((std::istreambuf_iterator<char>(in)), {});
    return in.bad() ? std::nullopt : std::optional(std::move(body));
}

/// What a captured body most probably was, for who did not say: the three kinds begin differently.
std::string guess_type(std::string_view body) {
    if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
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

class Trial {
  public:
    Trial(const ObserveOptions& options, std::string_view body) : options_(options), body_(body) {}

    /// The body in pieces: cut once at `cut` (0: not at all), or everywhere into pieces of `size`.
    std::string whole() const { return in_pieces(std::max<std::size_t>(1, body_.size())); }

    std::string in_pieces(std::size_t size) const {
        Recorded recorded;
        ResponseObserver observer = fresh(recorded);
        for (std::size_t at = 0; at < body_.size(); at += size)
            observer.feed(body_.substr(at, size));
        return end(observer, recorded);
    }

    std::string cut_at(std::size_t cut) const {
        Recorded recorded;
        ResponseObserver observer = fresh(recorded);
        observer.feed(body_.substr(0, cut));
        observer.feed(body_.substr(cut));
        return end(observer, recorded);
    }

  private:
    ResponseObserver fresh(Recorded& recorded) const {
        ResponseObserver observer(options_.status, options_.content_type, options_.content_encoding);
        observer.record_offsets(&recorded.offsets);
        return observer;
    }

    static std::string end(ResponseObserver& observer, Recorded& recorded) {
        observer.finish();
        recorded.seen = observer.observation();
        return to_json(recorded);
    }

    const ObserveOptions& options_;
    std::string_view body_;
};

/// The lowest place where the body, cut in two, is seen otherwise than whole; empty if there is none. Every
/// place is tried, which for a body of n bytes is n passes over it: shared by all CPUs.
std::optional<std::size_t> first_bad_cut(const Trial& trial, std::size_t size, const std::string& whole) {
    std::atomic<std::size_t> next{1};
    std::atomic<std::size_t> bad{size};
    const auto work = [&] {
        for (std::size_t cut = next++; cut < bad.load(); cut = next++) {
            if (trial.cut_at(cut) == whole) continue;
            for (std::size_t known = bad.load(); cut < known && !bad.compare_exchange_weak(known, cut);) {
            }
        }
    };
    std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
    for (std::jthread& thread : threads)
        thread = std::jthread(work);
    threads.clear();
    return bad < size ? std::optional(bad.load()) : std::nullopt;
}

}  // namespace

std::string observe_report(const ObserveOptions& options, std::string_view body, std::size_t piece) {
    return Trial(options, body).in_pieces(piece == 0 ? std::max<std::size_t>(1, body.size()) : piece);
}

int observe_command(const ObserveOptions& given, std::ostream& out, std::ostream& err) {
    const auto body = read_all(given.file);
    if (!body) {
        err << "noren observe: cannot read " << given.file << "\n";
        return k_unusable;
    }
    ObserveOptions options = given;
    if (options.content_type.empty()) options.content_type = guess_type(*body);
    const Trial trial(options, *body);
    const std::string whole = trial.whole();
    std::size_t size = 0;
    if (!options.split.empty() && options.split != "all") {
        const char* const end = options.split.data() + options.split.size();
        const auto [used, error] = std::from_chars(options.split.data(), end, size);
        if (error != std::errc() || used != end || size == 0) {
            err << "noren observe: --split: found \"" << options.split
                << "\", expected a number of bytes or all\n";
            return k_unusable;
        }
        out << trial.in_pieces(size) << "\n";
        return 0;
    }
    if (options.split == "all") {
        const auto differs = [&](const std::string& seen, const std::string& how) {
            if (seen == whole) return false;
            err << "noren observe: " << how << " gives " << seen << "\n  but the whole body gives " << whole
                << "\n";
            return true;
        };
        if (differs(trial.in_pieces(1), "byte by byte")) return 1;
        if (const auto cut = first_bad_cut(trial, body->size(), whole))
            return differs(trial.cut_at(*cut), "a cut at byte " + std::to_string(*cut)) ? 1 : 0;
    }
    out << whole << "\n";
    return 0;
}

}  // namespace noren::proxy
