#include "proxy/relay/request_body.hpp"

#include <algorithm>

#include "proxy/http/forward.hpp"

namespace noren::proxy::relay {

using http::BodyKind;
using http::ChunkScanner;

RequestBody::RequestBody(const http::Framing& framing, std::uint64_t max_bytes)
    : framing_(framing),
      max_bytes_(max_bytes),
      done_(framing.kind == BodyKind::none || (framing.kind == BodyKind::length && framing.length == 0)) {}

RequestBody::Step RequestBody::next(std::string_view in) {
    if (done_ || in.empty()) return {};
    if (framing_.kind == BodyKind::chunked) return next_chunked(in);
    const std::string_view part = in.substr(0, std::min<std::uint64_t>(in.size(), framing_.length - taken_));
    taken_ += part.size();
    done_ = taken_ == framing_.length;
    return {Status::ok, part.size(), part, part};
}

RequestBody::Step RequestBody::next_chunked(std::string_view in) {
    std::size_t consumed = 0;
    while (consumed < in.size()) {
        const ChunkScanner::Step step = chunks_.next(in.substr(consumed));
        consumed += step.consumed;
        switch (step.kind) {
            case ChunkScanner::Kind::error:
                return {Status::malformed, consumed, {}, {}};
            case ChunkScanner::Kind::payload:
                taken_ += step.bytes.size();
                if (max_bytes_ != 0 && taken_ > max_bytes_) return {Status::too_large, consumed, {}, {}};
                framed_ = http::chunk_size_line(step.bytes.size());
                framed_.append(step.bytes).append("\r\n");
                return {Status::ok, consumed, framed_, step.bytes};
            case ChunkScanner::Kind::trailers:
                done_ = true;
                framed_ = http::chunked_end(chunks_.trailers());
                return {Status::ok, consumed, framed_, {}};
            case ChunkScanner::Kind::more:
                return {Status::ok, consumed, {}, {}};
            case ChunkScanner::Kind::size_line:
            case ChunkScanner::Kind::data_end:
                break;
        }
    }
    return {Status::ok, consumed, {}, {}};
}

}  // namespace noren::proxy::relay
