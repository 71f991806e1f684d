#include "proxy/relay/answer_body.hpp"

#include <algorithm>

#include "proxy/http/forward.hpp"

namespace noren::proxy::relay {

using http::BodyKind;
using http::ChunkScanner;

AnswerBody::AnswerBody(const http::Framing& framing, bool dechunk)
    : framing_(framing), dechunk_(dechunk), status_(Status::running), left_(framing.length) {
    if (framing.kind == BodyKind::none || (framing.kind == BodyKind::length && framing.length == 0))
        status_ = Status::done;
}

AnswerBody::Passed AnswerBody::pass(std::string_view in) {
    payloads_.clear();
    if (status_ != Status::running || in.empty()) return {status_, {}, 0};
    if (framing_.kind == BodyKind::chunked) return pass_chunked(in);
    std::size_t part = in.size();
    if (framing_.kind == BodyKind::length) {
        part = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
        left_ -= part;
        if (left_ == 0) status_ = Status::done;
    }
    payloads_.push_back({0, part});
    return {status_, in.substr(0, part), part};
}

/// Copies nothing as long as all that was scanned goes out as it came: [0, at) of the input is then the wire.
AnswerBody::Passed AnswerBody::pass_chunked(std::string_view in) {
    rewritten_.clear();
    bool verbatim = !dechunk_;
    std::size_t at = 0;
    const auto rewrite_from_here = [&](std::size_t so_far) {
        if (verbatim) rewritten_.assign(in.substr(0, so_far));
        verbatim = false;
    };
    while (at < in.size() && status_ == Status::running) {
        const ChunkScanner::Step step = chunks_.next(in.substr(at));
        const std::size_t begin = at;
        at += step.consumed;
        switch (step.kind) {
            case ChunkScanner::Kind::size_line:
                // A last chunk is written when its trailers are known; a line with an extension never goes
                // on, and one that was cut between two reads is no view of this input.
                if (step.size == 0) {
                    rewrite_from_here(begin);
                } else if (const bool whole = step.bytes.data() == in.data() + begin; !step.plain || !whole) {
                    rewrite_from_here(begin);
                    if (!dechunk_)
                        rewritten_.append(step.plain ? step.bytes
                                                     : std::string_view(http::chunk_size_line(step.size)));
                } else if (!verbatim && !dechunk_) {
                    rewritten_.append(step.bytes);
                }
                break;
            case ChunkScanner::Kind::payload:
                payloads_.push_back({begin, step.bytes.size()});
                if (!verbatim) rewritten_.append(step.bytes);
                break;
            case ChunkScanner::Kind::data_end:
                if (!verbatim && !dechunk_) rewritten_.append(step.bytes);
                break;
            case ChunkScanner::Kind::trailers:
                status_ = Status::done;
                rewrite_from_here(begin);  // the last chunk's size line may have come in an earlier read
                if (!dechunk_) rewritten_.append(http::chunked_end(chunks_.trailers()));
                break;
            case ChunkScanner::Kind::more:
                // The cut line stays in the scanner until its rest is here.
                if (begin < in.size()) rewrite_from_here(begin);
                break;
            case ChunkScanner::Kind::error:
                status_ = Status::malformed;
                rewrite_from_here(begin);
                break;
        }
    }
    return {status_, verbatim ? in.substr(0, at) : std::string_view(rewritten_), at};
}

void AnswerBody::show(std::string_view in, PayloadSink& sink) const noexcept {
    for (const Range& range : payloads_)
        sink.payload(in.substr(range.begin, range.size));
}

AnswerBody::Status AnswerBody::at_close() {
    if (status_ == Status::running)
        status_ = framing_.kind == BodyKind::until_close ? Status::done : Status::malformed;
    return status_;
}

}  // namespace noren::proxy::relay
