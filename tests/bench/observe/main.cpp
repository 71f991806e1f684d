// noren-observe-bench: what looking at an answer costs on its way through, per event and per byte, for a few
// shapes of stream. Each is fed in pieces as an engine sends them (one event per read), again and again for a
// tenth of a second; the best of five such rounds counts, since everything that disturbs makes it slower.
//
// noren-observe-bench --once: one pass each, for tests/bench/instructions.sh; prints the names and how many
// pieces each has.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/observe/request_observer.hpp"
#include "metrics/observe/response_observer.hpp"

namespace {

using noren::metrics::RequestObserver;
using noren::metrics::ResponseObserver;
using Clock = std::chrono::steady_clock;

constexpr std::string_view k_sse = "text/event-stream";

struct Shape {
    std::string_view name;
    std::string_view content_type;
    std::vector<std::string> pieces;
    bool is_request = false;
};

std::string repeated(std::string_view part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i)
        out += part;
    return out;
}

/// The same event over and over, with other words in the place of "%".
std::vector<std::string> events(const std::string& event, std::size_t count) {
    constexpr std::array<std::string_view, 8> k_words = {" the",     " a",  " noren", ",",
                                                         " kitchen", " of", " soup",  " and"};
    const std::size_t place = event.find('%');
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(event);
        if (place != std::string::npos) all.back().replace(place, 1, k_words[i % k_words.size()]);
    }
    return all;
}

std::string chat_event(std::string_view delta, std::string_view logprobs) {
    return "data: "
           "{\"id\":\"chatcmpl-0f3b9c7a51d24e6f8a\",\"object\":\"chat.completion.chunk\",\"created\":"
           "1760000000,"
           "\"model\":\"meta-llama/Llama-3.1-8B-Instruct\",\"choices\":[{\"index\":0,\"delta\":" +
           std::string(delta) + ",\"logprobs\":" + std::string(logprobs) + ",\"finish_reason\":null}]}\n\n";
}

std::string top_logprobs() {
    const std::string one = "{\"token\":\" soup\",\"logprob\":-0.30685281944,\"bytes\":[32,115,111,117,112]}";
    return "{\"content\":[{\"token\":\" "
           "soup\",\"logprob\":-0.306,\"bytes\":[32,115,111,117,112],\"top_logprobs\":[" +
           one + repeated("," + one, 19) + "]}]}";
}

std::vector<std::string> pieces_of(const std::string& body, std::size_t size) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < body.size(); at += size)
        pieces.push_back(body.substr(at, size));
    return pieces;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts)
        all += part;
    return all;
}

std::vector<Shape> shapes() {
    const std::string embedding = "{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.0123456789" +
                                  repeated(",-0.00098765432", 4095) + "]}";
    return {
        {"chat event", k_sse, events(chat_event("{\"content\":\"%\"}", "null"), 1000)},
        {"tool call event", k_sse,
         events(chat_event("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"%\\\":\"}}]}",
                           "null"),
                1000)},
        {"with 20 logprobs", k_sse, events(chat_event("{\"content\":\"%\"}", top_logprobs()), 100)},
        {"Responses event", k_sse,
         events("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\","
                "\"item_id\":\"msg_5f2e\",\"output_index\":0,\"content_index\":0,\"delta\":\"%\","
                "\"sequence_number\":12,\"logprobs\":[]}\n\n",
                1000)},
        {"Anthropic event", k_sse,
         events("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
                "\"delta\":{\"type\":\"text_delta\",\"text\":\"%\"}}\n\n",
                1000)},
        {"Ollama line", "application/x-ndjson",
         events("{\"model\":\"llama3.2\",\"created_at\":\"2026-01-01T00:00:00.000000000Z\",\"message\":{"
                "\"role\":"
                "\"assistant\",\"content\":\"%\"},\"done\":false}\n",
                1000)},
        {"chat events, 64 KB reads", k_sse,
         pieces_of(joined(events(chat_event("{\"content\":\"%\"}", "null"), 10'000)), 65'536)},
        {"keep-alive comment", k_sse, events(": keep-alive\n\n", 1000)},
        {"one 2 MB text event", k_sse,
         pieces_of(chat_event("{\"content\":\"" + repeated("the quick brown fox ", 100'000) + "\"}", "null"),
                   65'536)},
        {"64 embeddings of 4096", "application/json",
         pieces_of("{\"object\":\"list\",\"data\":[" + embedding + repeated("," + embedding, 63) +
                       "],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9}}",
                   65'536)},
        {"1 MB request", "application/json",
         pieces_of("{\"messages\":[{\"role\":\"user\",\"content\":\"" +
                       repeated("What is a noren?\\n", 60'000) + "\"}],\"model\":\"m\",\"stream\":true}",
                   65'536),
         true},
    };
}

std::size_t bytes_in(const std::vector<std::string>& pieces) {
    std::size_t bytes = 0;
    for (const std::string& piece : pieces)
        bytes += piece.size();
    return bytes;
}

/// Nanoseconds for one pass over the pieces.
template <typename Pass>
double best_pass(Pass&& pass) {
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
        const auto began = Clock::now();
        std::uint64_t passes = 0;
        Clock::duration took{};
        do {
            pass();
            ++passes;
            took = Clock::now() - began;
        } while (took < std::chrono::milliseconds(100));
        best = std::min(best,
                        std::chrono::duration<double, std::nano>(took).count() / static_cast<double>(passes));
    }
    return best;
}

void print(std::string_view name, double nanoseconds, const std::vector<std::string>& pieces) {
    const auto count = static_cast<double>(pieces.size());
    const auto bytes = static_cast<double>(bytes_in(pieces));
    std::printf("%-24.*s %8.0f bytes/piece %10.0f ns/piece %8.0f MB/s\n", static_cast<int>(name.size()),
                name.data(), bytes / count, nanoseconds / count, bytes / nanoseconds * 1e3);
}

/// Tokens seen, so that no pass can be optimised away. Instructions are counted inside this function.
[[gnu::noinline]] std::uint64_t one_pass(const Shape& shape) {
    std::uint64_t seen = 0;
    if (shape.is_request) {
        RequestObserver observer(shape.content_type);
        for (const std::string& piece : shape.pieces)
            observer.feed(piece);
        return observer.facts().stream.value_or(false) ? 1 : 0;
    }
    ResponseObserver observer(200, shape.content_type, "");
    for (const std::string& piece : shape.pieces)
        seen += observer.feed(piece);
    return seen + observer.finish();
}

/// The count is written down when this function returns.
[[gnu::noinline]] std::uint64_t counted_pass(const Shape& shape) {
    const std::uint64_t seen = one_pass(shape);
    std::printf("%zu %.*s\n", shape.pieces.size(), static_cast<int>(shape.name.size()), shape.name.data());
    return seen;
}

}  // namespace

int main(int argc, char** argv) {
    const bool once = argc > 1 && std::string_view(argv[1]) == "--once";
    std::uint64_t seen = 0;
    ResponseObserver(200, k_sse, "").feed("data: {}\n\n");  // what is done once in a process is not counted
    for (const Shape& shape : shapes()) {
        if (once) {
            seen += counted_pass(shape);
        } else {
            print(shape.name, best_pass([&] { seen += one_pass(shape); }), shape.pieces);
        }
    }
    if (!once) std::printf("(%llu token events)\n", static_cast<unsigned long long>(seen));
    return seen > 0 ? 0 : 1;
}
