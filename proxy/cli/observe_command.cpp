#include "proxy/cli/observe_command.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>
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
    /// A cut is tried on so much of the body.
    static constexpr std::size_t k_stretch = 4096;

    Trial(const ObserveOptions& options, std::string_view body) : options_(options), body_(body) {}

    std::string in_pieces(std::size_t size) const;
    std::string cut_at(std::size_t cut) const;

    /// The lowest place where the body, cut in two, is seen otherwise than whole, if there is one; apart from
    /// the multiples of k_stretch, which pieces of that size try.
    std::optional<std::size_t> first_bad_cut(const std::string& whole) const;

  private:
    /// An observer on its way through the body, stretch by stretch.
    struct Walk {
        ResponseObserver observer;
        /// Of the token events in the last stretch; the first is of the last event before it, which may still
        /// move.
        std::vector<std::uint64_t> offsets;

        Walk on(std::initializer_list<std::string_view> pieces) const;
        bool operator==(const Walk&) const = default;
    };

    ResponseObserver fresh() const {
        return {options_.status, options_.content_type, options_.content_encoding};
    }

    const ObserveOptions& options_;
    std::string_view body_;
};

std::string Trial::in_pieces(std::size_t size) const {
    Recorded recorded;
    ResponseObserver observer = fresh();
    observer.record_offsets(&recorded.offsets);
    for (std::size_t at = 0; at < body_.size(); at += size)
        observer.feed(body_.substr(at, size));
    observer.finish();
    recorded.seen = observer.observation();
    return to_json(recorded);
}

std::string Trial::cut_at(std::size_t cut) const {
    Recorded recorded;
    ResponseObserver observer = fresh();
    observer.record_offsets(&recorded.offsets);
    observer.feed(body_.substr(0, cut));
    observer.feed(body_.substr(cut));
    observer.finish();
    recorded.seen = observer.observation();
    return to_json(recorded);
}

Trial::Walk Trial::Walk::on(std::initializer_list<std::string_view> pieces) const {
    Walk walk{observer, {}};
    if (!offsets.empty()) walk.offsets.push_back(offsets.back());
    walk.observer.record_offsets(&walk.offsets);
    for (const std::string_view piece : pieces)
        walk.observer.feed(piece);
    walk.observer.record_offsets(nullptr);
    return walk;
}

/// To feed all of the body for each of its cuts would take the square of its size. But an observer that has
/// walked over a stretch with a cut in it, and stands behind it just as one does that had no cut, cannot see
/// anything else in what follows. Only where it stands otherwise the whole body has to tell whether that
/// matters.
std::optional<std::size_t> Trial::first_bad_cut(const std::string& whole) const {
    Walk before{fresh(), {}};
    for (std::size_t at = 0; at < body_.size(); at += k_stretch) {
        const std::string_view stretch = body_.substr(at, k_stretch);
        Walk uncut = before.on({stretch});
        for (std::size_t cut = 1; cut < stretch.size(); ++cut) {
            if (before.on({stretch.substr(0, cut), stretch.substr(cut)}) == uncut) continue;
            if (cut_at(at + cut) != whole) return at + cut;
        }
        before = std::move(uncut);
    }
    return std::nullopt;
}

/// Exit status of --split all.
int agree(const Trial& trial, const std::string& whole, std::ostream& err) {
    const auto differs = [&](const std::string& seen, const std::string& how) {
        if (seen == whole) return false;
        err << "noren observe: " << how << " gives " << seen << "\n  but the whole body gives " << whole
            << "\n";
        return true;
    };
    if (differs(trial.in_pieces(1), "byte by byte")) return 1;
    const auto cut = trial.first_bad_cut(whole);
    if (cut && differs(trial.cut_at(*cut), "a cut at byte " + std::to_string(*cut))) return 1;
    const std::size_t stretch = Trial::k_stretch;
    return differs(trial.in_pieces(stretch), "pieces of " + std::to_string(stretch) + " bytes") ? 1 : 0;
}

/// Nothing if it is no number of bytes.
std::optional<std::size_t> piece_size(const std::string& split) {
    std::size_t size = 0;
    const char* const end = split.data() + split.size();
    const auto [used, error] = std::from_chars(split.data(), end, size);
    return error == std::errc() && used == end && size > 0 ? std::optional(size) : std::nullopt;
}

}  // namespace

std::string observe_report(const ObserveOptions& options, std::string_view body, std::size_t piece) {
    return Trial(options, body).in_pieces(piece == 0 ? std::max<std::size_t>(1, body.size()) : piece);
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
    ObserveOptions options = given;
    if (options.content_type.empty()) options.content_type = guess_type(*body);
    const std::string report = observe_report(options, *body, *piece);
    if (every_way && agree(Trial(options, *body), report, err) != 0) return 1;
    out << report << "\n";
    return 0;
}

}  // namespace noren::proxy
