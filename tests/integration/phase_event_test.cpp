// Every phase a request can be in, against everything that can happen to it then: what its client sees, what
// the log says of it, and that nothing is left behind.

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/no_descriptors.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using noren::config::Config;
using test::chunk;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

// A cell: what the client sees, then the outcome and the reason of the log line.
//   429, 502, ...  an answer of noren's         whole   the engine's answer to its end, in spite of it all
//   cut            an answer without an end     closed  no answer, and the end of the connection
//   left           (the client itself is gone)  .       a pair that cannot be
// Where no exchange has begun, or none is running, there is no outcome.
constexpr const char* k_table = R"(
            | client_fin         | client_rst         | client_deaf
accept      | left               | left               | closed
head        | left               | left               | 408
upload      | left client_closed | left client_closed | 408 timeout body_timeout
queued      | left client_closed | left client_closed | 429 rejected queue_timeout
connecting  | left client_closed | left client_closed | .
sent        | left client_closed | left client_closed | whole ok
prefill     | left client_closed | left client_closed | whole ok
streaming   | left client_closed | left client_closed | cut timeout stall_timeout
last_chunk  | left ok            | left ok            | whole ok
idle        | left               | left               | closed

            | engine_fin                        | engine_rst                        | engine_silent                       | engine_garbage
accept      | .                                 | .                                 | .                                   | .
head        | .                                 | .                                 | .                                   | .
upload      | .                                 | .                                 | .                                   | .
queued      | .                                 | .                                 | .                                   | .
connecting  | .                                 | .                                 | 502 upstream_error upstream_connect | .
sent        | 502 upstream_error upstream_reset | 502 upstream_error upstream_reset | 504 timeout upstream_timeout        | 502 upstream_error upstream_protocol
prefill     | cut upstream_error upstream_reset | cut upstream_error upstream_reset | cut timeout upstream_timeout        | cut upstream_error upstream_protocol
streaming   | cut upstream_error upstream_reset | cut upstream_error upstream_reset | cut timeout upstream_timeout        | cut upstream_error upstream_protocol
last_chunk  | cut upstream_error upstream_reset | cut upstream_error upstream_reset | cut timeout upstream_timeout        | cut upstream_error upstream_protocol
idle        | whole                             | whole                             | whole                               | whole

            | drain                   | reload    | limit     | no_descriptors
accept      | closed                  | whole     | whole     | whole
head        | closed                  | whole     | whole     | whole
upload      | 503 rejected draining   | whole ok  | whole ok  | whole ok
queued      | 503 rejected draining   | whole ok  | whole ok  | whole ok
connecting  | 503 timeout draining    | .         | .         | .
sent        | 503 timeout draining    | whole ok  | whole ok  | whole ok
prefill     | cut timeout draining    | whole ok  | whole ok  | whole ok
streaming   | cut timeout draining    | whole ok  | whole ok  | whole ok
last_chunk  | cut timeout draining    | whole ok  | whole ok  | whole ok
idle        | closed                  | whole     | whole     | whole
)";

struct Cell {
    std::string phase, event;
    std::string seen, outcome, reason;
};

std::string trimmed(const std::string& text) {
    const std::size_t from = text.find_first_not_of(' ');
    return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(' ') - from + 1);
}

std::vector<Cell> cells() {
    std::vector<Cell> all;
    std::vector<std::string> events;
    std::istringstream lines(k_table);
    for (std::string line; std::getline(lines, line);) {
        std::vector<std::string> columns;
        std::istringstream row(line);
        for (std::string column; std::getline(row, column, '|');)
            columns.push_back(trimmed(column));
        if (columns.size() < 2) continue;
        if (columns[0].empty()) {
            events = columns;
            continue;
        }
        for (std::size_t i = 1; i < columns.size(); ++i) {
            Cell cell{columns[0], events.at(i), {}, {}, {}};
            std::istringstream(columns[i]) >> cell.seen >> cell.outcome >> cell.reason;
            if (cell.seen != ".") all.push_back(cell);
        }
    }
    return all;
}

const std::string k_body = "{\"model\":\"m\",\"stream\":true,\"messages\":[]}";
const std::string k_request = test::post_request("/v1/chat/completions", k_body, "x-request-id: subject\r\n");
const std::string k_other = test::post_request("/v1/chat/completions", k_body, "x-request-id: other\r\n");
const std::string k_answer_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string k_token = chunk("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n");
const std::string k_done = chunk("data: [DONE]\n\n");
const std::string k_end = "0\r\n\r\n";
constexpr auto k_short = 700ms;  // of the limit that a pair waits for; the others never matter

/// A request brought into a phase.
class Scene {
  public:
    Scene(const std::string& phase, const std::string& event) : phase_(phase) {
        engine_ = std::make_unique<Listener>(phase == "connecting" ? 0 : 128);
        if (phase == "connecting") engine_->fill_backlog();
        noren_ = std::make_unique<NorenUnderTest>(engine_->url(), [&](Config& config) {
            config.admission.max_concurrency = 1;  // a permit that is lost stops all that follows
            config.timeouts.connect = 60s;
            if (event == "drain") config.drain.timeout = k_short;
            if (event == "client_deaf") {
                config.timeouts.head = config.timeouts.body_idle = config.timeouts.keep_alive = k_short;
                config.admission.queue_timeout = config.downstream.stall_timeout = k_short;
            }
            if (event == "engine_silent")
                config.timeouts.connect = config.timeouts.first_byte = config.timeouts.upstream_idle =
                    k_short;
        });
        client_ = Peer::connect(noren_->port());
        (this->*phases().at(phase))();
    }

    NorenUnderTest& noren() { return *noren_; }
    Peer& client() { return client_; }
    Peer& upstream() { return upstream_; }

    /// Everybody does what is left to do.
    void go_on() {
        if (phase_ == "accept" || phase_ == "idle") client_.send(k_request);
        if (phase_ == "head") client_.send(k_request.substr(40));
        if (phase_ == "upload") client_.send(k_request.substr(k_request.size() - 10));
        if (phase_ == "queued") {
            answer(holder_upstream_, k_answer_head + k_token + k_done + k_end);
            holder_.receive_until(k_end);
            holder_.close();
            upstream_ = std::move(holder_upstream_);  // which the next request comes on
        }
        const bool arrived = phase_ == "sent" || !received_.empty();
        if (!arrived) meet();
        std::string rest = k_answer_head + k_token + k_done + k_end;
        if (phase_ == "prefill") rest = k_token + k_done + k_end;
        if (phase_ == "streaming") rest = k_done + k_end;
        if (phase_ == "last_chunk") rest = k_end;
        upstream_.send(rest);
    }

    /// What the client has got in the end.
    std::string seen() {
        std::string all = received_;
        for (;;) {
            if (all.starts_with("HTTP/1.1 200 ") && all.ends_with("\r\n" + k_end)) return "whole";
            if (all.size() > 12 && !all.starts_with("HTTP/1.1 200 ") && all.ends_with("}"))
                return all.substr(9, 3);
            const std::string more = client_.receive();
            if (more.empty()) break;
            all += more;
        }
        return all.empty() ? "closed" : "cut";
    }

    /// A newcomer is served: nothing was lost.
    bool serves_others() {
        Peer other = Peer::connect(noren_->port());
        other.send(k_other);
        if (phase_ == "connecting") return true;  // nobody answers this engine's door
        meet();
        upstream_.send(k_answer_head + k_token + k_done + k_end);
        return other.receive_until(k_end).ends_with(k_end);
    }

    void close_all() {
        for (Peer* peer : {&client_, &upstream_, &holder_, &holder_upstream_})
            peer->close();
    }

  private:
    using Step = void (Scene::*)();
    static const std::vector<std::pair<std::string, Step>>& all_phases() {
        static const std::vector<std::pair<std::string, Step>> steps = {
            {"accept", &Scene::accepted}, {"head", &Scene::half_a_head},    {"upload", &Scene::half_a_body},
            {"queued", &Scene::queued},   {"connecting", &Scene::dialled},  {"sent", &Scene::sent},
            {"prefill", &Scene::prefill}, {"streaming", &Scene::streaming}, {"last_chunk", &Scene::marked},
            {"idle", &Scene::idle}};
        return steps;
    }
    struct Phases {
        Step at(const std::string& name) const {
            for (const auto& [known, step] : all_phases())
                if (known == name) return step;
            throw std::runtime_error("no phase " + name);
        }
    };
    static Phases phases() { return {}; }

    void accepted() { REQUIRE(noren_->reaches("noren_client_connections", 1)); }
    void half_a_head() {
        client_.send(k_request.substr(0, 40));
        accepted();
    }
    void half_a_body() {
        client_.send(k_request.substr(0, k_request.size() - 10));
        REQUIRE(noren_->reaches("noren_inflight_requests", 1));
    }
    void queued() {
        holder_ = Peer::connect(noren_->port());
        holder_.send(k_other);
        holder_upstream_ = engine_->accept();
        take_request(holder_upstream_);
        client_.send(k_request);
        REQUIRE(noren_->reaches("noren_queued_requests", 1));
    }
    void dialled() {
        client_.send(k_request);
        REQUIRE(noren_->reaches("noren_running_requests", 1));
    }
    void sent() {
        client_.send(k_request);
        meet();
    }
    void prefill() {
        sent();
        pass(k_answer_head + chunk(": engine at work\n\n"));
    }
    void streaming() {
        sent();
        pass(k_answer_head + k_token);
    }
    void marked() {
        sent();
        pass(k_answer_head + k_token + k_done);
    }
    void idle() {
        client_.send(k_other);
        meet();
        upstream_.send(k_answer_head + k_token + k_done + k_end);
        client_.receive_until(k_end);
        REQUIRE(noren_->reaches("noren_inflight_requests", 0));
    }

    /// A request arrives at the engine: over the connection it has, or a new one.
    void meet() {
        for (int looks = 0; looks < 1'000; ++looks) {
            if (upstream_.is_open() && !upstream_.is_silent_for(10)) {
                if (take_request(upstream_)) return;
                upstream_.close();
            }
            if (!engine_->is_called(10)) continue;
            upstream_ = engine_->accept();
            if (take_request(upstream_)) return;
        }
        FAIL("no request reaches the engine");
    }
    static bool take_request(Peer& upstream) { return upstream.receive_until(k_body).ends_with(k_body); }
    static void answer(Peer& upstream, const std::string& bytes) { upstream.send(bytes); }
    void pass(const std::string& bytes) {
        upstream_.send(bytes);
        const std::string last = bytes.substr(bytes.size() - 20);
        received_ = client_.receive_until(last);
        REQUIRE(received_.ends_with(last));
    }

    const std::string phase_;
    std::unique_ptr<Listener> engine_;
    std::unique_ptr<NorenUnderTest> noren_;
    Peer client_{-1}, upstream_{-1}, holder_{-1}, holder_upstream_{-1};
    std::string received_;
};

/// True: the scene is to go on as if nothing had been.
bool happen(const std::string& event, const std::string& phase, Scene& scene) {
    if (event == "client_fin") scene.client().close();
    if (event == "client_rst") scene.client().reset();
    if (event == "client_deaf") {
        if (phase == "sent" || phase == "prefill" || phase == "last_chunk") return true;
        if (phase == "streaming") {
            const std::string flood = chunk(std::string(60'000, 'x'));
            for (int i = 0; i < 1'000; ++i)  // far more than all buffers hold; noren ends it
                scene.upstream().send(flood);
        }
    }
    if (event == "engine_fin") scene.upstream().close();
    if (event == "engine_rst") scene.upstream().reset();
    if (event == "engine_garbage") scene.upstream().send("neither a head nor a chunk\r\n\r\n");
    if (event == "drain") scene.noren().terminate();
    if (event == "reload") scene.noren().reload([](Config& config) { config.timeouts.upstream_idle = 50s; });
    if (event == "limit") {
        scene.noren().reload([](Config& config) { config.admission.max_concurrency = 8; });
        scene.noren().reload([](Config& config) { config.admission.max_concurrency = 1; });
    }
    if (event == "no_descriptors") {
        Peer turned_away = Peer::connect(scene.noren().port());
        const test::NoDescriptors none;
        scene.client().is_silent_for(20);
    }
    return phase == "idle" ? event.starts_with("engine") || event == "reload" || event == "limit" ||
                                 event == "no_descriptors"
                           : event == "reload" || event == "limit" || event == "no_descriptors";
}

std::optional<std::string> log_line(NorenUnderTest& noren) {
    for (const std::string& line : noren.access_log())
        if (line.find("\"request_id\":\"subject\"") != std::string::npos) return line;
    return std::nullopt;
}

bool says(const std::string& line, const std::string& key, const std::string& value) {
    return line.find("\"" + key + "\":\"" + value + "\"") != std::string::npos;
}

void play(const Cell& cell) {
    Scene scene(cell.phase, cell.event);
    if (happen(cell.event, cell.phase, scene)) scene.go_on();
    if (cell.seen != "left") CHECK(scene.seen() == cell.seen);
    if (cell.event != "drain") {
        if (cell.phase == "queued" && cell.seen != "whole") scene.close_all();
        if (cell.phase == "connecting") scene.client().close();
        CHECK(scene.serves_others());
        scene.close_all();
        for (const char* gauge : {"noren_inflight_requests", "noren_running_requests",
                                  "noren_queued_requests", "noren_awaiting_first_token_requests",
                                  "noren_client_connections", "noren_upstream_connections{state=\"active\"}"})
            CHECK(scene.noren().reaches(gauge, 0));
    }
    const std::optional<std::string> line = log_line(scene.noren());
    INFO(line.value_or("no log line"));
    if (cell.outcome.empty()) {
        if (cell.seen != "whole") CHECK_FALSE(line.has_value());
        return;
    }
    REQUIRE(line.has_value());
    CHECK(says(*line, "outcome", cell.outcome));
    if (!cell.reason.empty()) CHECK(says(*line, "reason", cell.reason));
}

}  // namespace

TEST_CASE("phase x event: the client, the log and the gauges say what the table says") {
    int played = 0;
    for (const Cell& cell : cells()) {
        INFO(cell.phase << " x " << cell.event);
        play(cell);
        ++played;
    }
    CHECK(played == 87);
    std::cout << "phase x event: " << played << " pairs\n";
}
