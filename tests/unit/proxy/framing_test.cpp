#include "proxy/http/framing.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::proxy::http {
namespace {

using Lines = std::vector<std::string_view>;

/// What the Transfer-Encoding lines of a message are, said by hand.
enum class Coding { absent, chunked, unknown, twisted };
struct CodingSample {
    Lines lines;
    Coding is;
};
const std::vector<CodingSample> k_codings = {
    {{}, Coding::absent},
    {{"chunked"}, Coding::chunked},
    {{"ChUnKeD"}, Coding::chunked},
    {{""}, Coding::unknown},
    {{"identity"}, Coding::unknown},
    {{"gzip"}, Coding::unknown},
    {{"xchunked"}, Coding::unknown},
    {{"chunkedx"}, Coding::unknown},
    {{"chunked;a=b"}, Coding::unknown},
    {{"chunked x"}, Coding::unknown},
    {{"\"chunked\""}, Coding::unknown},
    {{"[chunked]"}, Coding::unknown},
    {{"\xa0"
      "chunked"},
     Coding::unknown},
    {{"gzip", "deflate"}, Coding::unknown},
    {{"chunked, chunked"}, Coding::twisted},
    {{"chunked", "chunked"}, Coding::twisted},
    {{"chunked", ""}, Coding::twisted},
    {{"gzip, chunked"}, Coding::twisted},
    {{"gzip", "chunked"}, Coding::twisted},
    {{"chunked, gzip"}, Coding::twisted},
    {{",chunked"}, Coding::twisted},
    {{"chunked,"}, Coding::twisted},
    {{"gzip;q=1, chunked"}, Coding::twisted},
};

/// What the Content-Length lines are: nothing, a number, or (bad) neither.
struct LengthSample {
    Lines lines;
    std::optional<std::uint64_t> is;
    bool bad = false;
};
const std::vector<LengthSample> k_lengths = {
    {{}, std::nullopt},
    {{"0"}, 0},
    {{"5"}, 5},
    {{"0005"}, 5},
    {{"9223372036854775807"}, 9'223'372'036'854'775'807u},
    {{"5", "5"}, 5},
    {{"5", "05", "5"}, 5},
    {{"5", "6"}, std::nullopt, true},
    {{"6", "5", "6"}, std::nullopt, true},
    {{"5", ""}, std::nullopt, true},
    {{"x", "5"}, std::nullopt, true},
    {{"5, 5"}, std::nullopt, true},
    {{"5,"}, std::nullopt, true},
    {{",5"}, std::nullopt, true},
    {{""}, std::nullopt, true},
    {{"+5"}, std::nullopt, true},
    {{"-5"}, std::nullopt, true},
    {{"0x5"}, std::nullopt, true},
    {{"5x"}, std::nullopt, true},
    {{"5 5"}, std::nullopt, true},
    {{"5.0"}, std::nullopt, true},
    {{"1_0"}, std::nullopt, true},
    {{"\"5\""}, std::nullopt, true},
    {{"9223372036854775808"}, std::nullopt, true},
    {{"18446744073709551621"}, std::nullopt, true},
    {{"184467440737095516160"}, std::nullopt, true},
};

void add_lines(Fields& fields, std::string_view name, const Lines& lines) {
    for (const std::string_view line : lines)
        fields.add(name, line);
}

/// The same fields in both orders: which one comes first must not matter.
template <typename Head>
std::vector<Head> heads_with(const CodingSample& coding, const LengthSample& length) {
    std::vector<Head> heads(2);
    add_lines(heads[0].fields, "Transfer-Encoding", coding.lines);
    add_lines(heads[0].fields, "Content-Length", length.lines);
    add_lines(heads[1].fields, "content-length", length.lines);
    add_lines(heads[1].fields, "transfer-encoding", coding.lines);
    return heads;
}

bool is(const std::variant<Framing, HeadError>& result, BodyKind kind, std::uint64_t length = 0) {
    const auto* framing = std::get_if<Framing>(&result);
    return framing && framing->kind == kind && framing->length == length;
}
int status_of(const std::variant<Framing, HeadError>& result) {
    const auto* error = std::get_if<HeadError>(&result);
    return error ? error->status : 0;
}

}  // namespace

TEST_CASE("request framing: every coding with every length, in both orders and versions") {
    for (const CodingSample& coding : k_codings) {
        for (const LengthSample& length : k_lengths) {
            for (RequestHead& head : heads_with<RequestHead>(coding, length)) {
                for (const int minor : {0, 1}) {
                    head.minor = minor;
                    const auto result = request_framing(head);
                    INFO("coding " << (coding.lines.empty() ? "-" : coding.lines.front()) << " length "
                                   << (length.lines.empty() ? "-" : length.lines.front()) << " HTTP/1."
                                   << minor);
                    // RFC 9112 6.1, 6.3: chunked alone, never with a length, never in HTTP/1.0.
                    if (coding.is == Coding::unknown) {
                        CHECK(status_of(result) == 501);
                    } else if (coding.is == Coding::twisted) {
                        CHECK(status_of(result) == 400);
                    } else if (coding.is == Coding::chunked) {
                        const bool allowed = minor == 1 && length.lines.empty();
                        CHECK((allowed ? is(result, BodyKind::chunked) : status_of(result) == 400));
                    } else if (length.bad) {
                        CHECK(status_of(result) == 400);
                    } else if (length.is) {
                        CHECK(is(result, BodyKind::length, *length.is));
                    } else {
                        CHECK(is(result, BodyKind::none));
                    }
                }
            }
        }
    }
}

TEST_CASE("answer framing: every coding with every length, for every kind of answer") {
    struct Kind {
        int status;
        std::string_view method;
        bool bodyless;
    };
    const std::vector<Kind> kinds = {{200, "GET", false},  {200, "POST", false}, {404, "GET", false},
                                     {500, "POST", false}, {205, "GET", false},  {200, "HEAD", true},
                                     {500, "HEAD", true},  {204, "GET", true},   {304, "GET", true},
                                     {100, "POST", true},  {103, "GET", true},   {200, "head", false}};
    for (const CodingSample& coding : k_codings) {
        for (const LengthSample& length : k_lengths) {
            for (ResponseHead& head : heads_with<ResponseHead>(coding, length)) {
                for (const Kind& kind : kinds) {
                    for (const int minor : {0, 1}) {
                        head.minor = minor;
                        head.status = kind.status;
                        const auto result = response_framing(head, kind.method);
                        INFO("coding " << (coding.lines.empty() ? "-" : coding.lines.front()) << " length "
                                       << (length.lines.empty() ? "-" : length.lines.front()) << " status "
                                       << kind.status << " to " << kind.method << " HTTP/1." << minor);
                        const bool twisted = coding.is == Coding::unknown || coding.is == Coding::twisted ||
                                             length.bad ||
                                             (coding.is == Coding::chunked && (minor == 0 || length.is));
                        if (twisted) {
                            CHECK(status_of(result) == 502);
                        } else if (kind.bodyless) {
                            CHECK(is(result, BodyKind::none));
                        } else if (coding.is == Coding::chunked) {
                            CHECK(is(result, BodyKind::chunked));
                        } else if (length.is) {
                            CHECK(is(result, BodyKind::length, *length.is));
                        } else {
                            CHECK(is(result, BodyKind::until_close));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("persistence: close wins, HTTP/1.0 asks for it") {
    struct Sample {
        Lines connection;
        bool with_1_0, with_1_1;
    };
    const std::vector<Sample> samples = {
        {{}, false, true},
        {{"keep-alive"}, true, true},
        {{"Keep-Alive, x"}, true, true},
        {{"x", "KEEP-ALIVE"}, true, true},
        {{"close"}, false, false},
        {{"CLOSE"}, false, false},
        {{"x,\tclose ,"}, false, false},
        {{"keep-alive, close"}, false, false},
        {{"keep-alive", "close"}, false, false},
        {{"closed"}, false, true},
        {{""}, false, true},
    };
    for (const Sample& sample : samples) {
        Fields fields;
        add_lines(fields, "Connection", sample.connection);
        INFO((sample.connection.empty() ? "-" : sample.connection.front()));
        CHECK(keeps_alive(fields, 0) == sample.with_1_0);
        CHECK(keeps_alive(fields, 1) == sample.with_1_1);
    }
    Fields fields;
    fields.add("Proxy-Connection", "keep-alive");  // no standard ever gave it a meaning here
    CHECK_FALSE(keeps_alive(fields, 0));
}

TEST_CASE("lengths are decimal digits below 2^63") {
    CHECK(parse_length("0") == 0);
    CHECK(parse_length("9223372036854775807") == 9'223'372'036'854'775'807u);
    CHECK(parse_length("00000000000000000000000000000000000007") == 7);
    CHECK_FALSE(parse_length("9223372036854775808"));
    CHECK_FALSE(parse_length("92233720368547758070"));
    CHECK_FALSE(parse_length(""));
    for (int byte = 0; byte < 256; ++byte) {
        const char text[] = {'1', static_cast<char>(byte)};
        INFO("byte " << byte);
        CHECK(parse_length({text, 2}).has_value() == (byte >= '0' && byte <= '9'));
    }
}

TEST_CASE("a content coding that changes the body is found on whatever line it stands") {
    struct Sample {
        Lines lines;
        std::string_view coding;
    };
    const std::vector<Sample> samples = {
        {{}, ""},
        {{""}, ""},
        {{"identity"}, ""},
        {{"Identity , identity"}, ""},
        {{"identity", "identity"}, ""},
        {{"gzip"}, "gzip"},
        {{"identity", "gzip"}, "gzip"},
        {{"gzip", "identity"}, "gzip"},
        {{", identity, br", "gzip"}, "br"},
        {{"identityx"}, "identityx"},
    };
    for (const Sample& sample : samples) {
        Fields fields;
        fields.add("Content-Type", "gzip");
        for (const std::string_view line : sample.lines)
            fields.add("Content-Encoding", line);
        CHECK(content_coding(fields) == sample.coding);
    }
}

}  // namespace noren::proxy::http
