// noren-observe-bench: what looking at an answer costs on its way through, per event and per byte, for a few
// shapes of stream. Each is fed in pieces as an engine sends them (one event per read), again and again for a
// tenth of a second; the best of five such rounds counts, since everything that disturbs makes it slower.

#include <algorithm>
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
};

std::string repeated(std::string_view part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i)
        out += part;
    return out;
}

std::vector<std::string> events(const std::string& event, std::size_t count) {
    return std::vector<std::string>(count, event);
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

std::vector<Shape> shapes() {
    const std::string embedding = "{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.0123456789" +
                                  repeated(",-0.00098765432", 4095) + "]}";
    return {
        {"chat event", k_sse, events(chat_event("{\"content\":\" soup\"}", "null"), 1000)},
        {"with 20 logprobs", k_sse, events(chat_event("{\"content\":\" soup\"}", top_logprobs()), 100)},
        {"Responses event", k_sse,
         events("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\","
                "\"item_id\":\"msg_5f2e\",\"output_index\":0,\"content_index\":0,\"delta\":\" soup\","
                "\"sequence_number\":12,\"logprobs\":[]}\n\n",
                1000)},
        {"Anthropic event", k_sse,
         events("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
                "\"delta\":{\"type\":\"text_delta\",\"text\":\" soup\"}}\n\n",
                1000)},
        {"Ollama line", "application/x-ndjson",
         events("{\"model\":\"llama3.2\",\"created_at\":\"2026-01-01T00:00:00.000000000Z\",\"message\":{"
                "\"role\":"
                "\"assistant\",\"content\":\" soup\"},\"done\":false}\n",
                1000)},
        {"keep-alive comment", k_sse, events(": keep-alive\n\n", 1000)},
        {"one 2 MB text event", k_sse,
         pieces_of(chat_event("{\"content\":\"" + repeated("the quick brown fox ", 100'000) + "\"}", "null"),
                   65'536)},
        {"64 embeddings of 4096", "application/json",
         pieces_of("{\"object\":\"list\",\"data\":[" + embedding + repeated("," + embedding, 63) +
                       "],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9}}",
                   65'536)},
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

}  // namespace

int main() {
    std::uint64_t seen = 0;  // printed, so that no pass can be optimised away
    for (const Shape& shape : shapes()) {
        const double took = best_pass([&] {
            ResponseObserver observer(200, shape.content_type, "");
            for (const std::string& piece : shape.pieces)
                seen += observer.feed(piece);
            seen += observer.finish();
        });
        print(shape.name, took, shape.pieces);
    }
    const std::vector<std::string> request =
        pieces_of("{\"messages\":[{\"role\":\"user\",\"content\":\"" +
                      repeated("What is a noren?\\n", 60'000) + "\"}],\"model\":\"m\",\"stream\":true}",
                  65'536);
    const double took = best_pass([&] {
        RequestObserver observer("application/json");
        for (const std::string& piece : request)
            observer.feed(piece);
        seen += observer.facts().stream.value_or(false) ? 1 : 0;
    });
    print("1 MB request", took, request);
    std::printf("(%llu token events)\n", static_cast<unsigned long long>(seen));
    return 0;
}
