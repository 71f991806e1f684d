#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "config/diff.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/render.hpp"

namespace config = noren::config;

namespace {

/// A config in which every key differs from its default.
config::Config all_different() {
    auto result = config::load_text(
        "listen: ':1'\nlisten_mode: 0600\nworkers: 2\n"
        "tls: {certificate: /a, key: /b, client_ca: /c, min_version: 1.3}\n"
        "upstream: {url: 'https://[::1]:3', idle_timeout: 0, health_path: '/a?b=c', health_interval: 1s, "
        "health_timeout: 1s, tls: {ca: /d, server_name: '::1', verify: off, certificate: /e, key: /f}}\n"
        "admission: {max_concurrency: 4, max_concurrency_file: /a/b, max_queue: 0, queue_timeout: 1500ms, "
        "full_status: 503, gated_paths: []}\n"
        "downstream: {buffer: 20000, stall_timeout: 0, request_buffer: 1MiB, max_head: 9KiB, max_fields: 16, "
        "max_body: 0, min_upload_rate: 0, min_upload_window: 1s, max_connections: 1, "
        "max_connections_per_client: "
        "3}\n"
        "timeouts: {head: 1h, body_idle: 0, keep_alive: 0, connect: 10ms, first_byte: 0, upstream_idle: 0, "
        "tunnel_idle: 0, total: 24h}\n"
        "ops: {listen: '127.0.0.1:0'}\ncontrol: {socket: ''}\nreload: {watch: poll}\n"
        "drain: {lame_duck: 0, timeout: 0}\n"
        "log: {level: off, access: off}\n"
        "metrics: {max_models: 20, models: [plain, 'org/name:tag', '7', 'null', 'yes', ' space', '- x', 'a: "
        "b', "
        "'a #b', \"q'\\\"\\\\\", '*x', '&x', '[x]', '~', '\u65e5\u672c', 'ends:', '%', '@']}\n"
        "engine_metrics: {path: /m, url: 'http://e:8002', window: 1s, timeout: 1s, max_size: 1MiB, figures: "
        "on, merge: on, add_queue: on, max_age: 1s, orca: asked}\n",
        "t");
    for (const auto& mistake : result.mistakes)
        UNSCOPED_INFO(mistake.to_string());
    REQUIRE(result.ok());
    return *result.config;
}

std::vector<std::string> lines(const std::vector<config::Change>& changes) {
    std::vector<std::string> out;
    for (const auto& change : changes)
        out.push_back(change.to_string());
    return out;
}

}  // namespace

TEST_CASE("nothing changed, nothing told") {
    CHECK(config::diff(config::Config{}, config::Config{}).empty());
    CHECK(config::diff(all_different(), all_different()).empty());
}

TEST_CASE("what changed is told as it would stand in the file") {
    const config::Config from;
    config::Config to;
    to.admission.max_concurrency = 64;
    to.admission.gated_paths = {"/a", "/b/*"};
    to.timeouts.total = config::Duration{90'000};
    to.downstream.max_body = 0;
    to.listen = "[::]:80";
    auto changes = config::diff(from, to);
    REQUIRE(changes.size() == 5);
    CHECK(changes[2].to == "[/a, /b/*]");
    changes.erase(changes.begin() + 2);
    CHECK(lines(changes) == std::vector<std::string>{"listen: 0.0.0.0:8080 -> \"[::]:80\" (restart needed)",
                                                     "admission.max_concurrency: 256 -> 64",
                                                     "downstream.max_body: 1GiB -> 0",
                                                     "timeouts.total: 0 -> 90s"});
}

TEST_CASE("every key is seen when it changes") {
    CHECK(config::diff(config::Config{}, all_different()).size() == config::keys().size());
}

TEST_CASE("the keys that need a restart") {
    std::vector<std::string> keys;
    for (const auto& change : config::diff(config::Config{}, all_different())) {
        if (change.restart_required) keys.push_back(change.key);
    }
    CHECK(keys == std::vector<std::string>{"listen", "listen_mode", "workers", "upstream.url", "ops.listen",
                                           "control.socket", "reload.watch", "log.access",
                                           "engine_metrics.url"});
}

TEST_CASE("a live reload keeps what needs a restart and takes the rest") {
    const config::Config running;
    const config::Config wanted = all_different();
    const config::Config live = config::apply_live(running, wanted);
    for (const auto& change : config::diff(running, live))
        CHECK_FALSE(change.restart_required);
    for (const auto& change : config::diff(live, wanted))
        CHECK(change.restart_required);
    CHECK(config::diff(live, wanted).size() == 9);
    CHECK(live.admission == wanted.admission);
    CHECK(live.upstream.url == running.upstream.url);
    CHECK(live.upstream.health_path == wanted.upstream.health_path);
}

TEST_CASE("the effective configuration reads back as itself") {
    for (const auto& config : {config::Config{}, all_different()}) {
        const std::string text = config::render(config);
        INFO(text);
        const auto result = config::load_text(text, "rendered");
        for (const auto& mistake : result.mistakes)
            UNSCOPED_INFO(mistake.to_string());
        REQUIRE(result.ok());
        CHECK(*result.config == config);
        CHECK(result.origins.size() == config::keys().size());
    }
}

TEST_CASE("text that YAML would take for something else is rendered in quotes") {
    const auto text = [](const char* scalar) { return config::render_inline(config::Value::scalar(scalar)); };
    CHECK(text("info") == "info");
    CHECK(text("/v1/*") == "/v1/*");
    CHECK(text("http://127.0.0.1:8000") == "http://127.0.0.1:8000");
    CHECK(text("off") == "\"off\"");
    CHECK(text("0660") == "\"0660\"");
    CHECK(text("0") == "0");
    CHECK(text("") == "\"\"");
    CHECK(text("NULL") == "\"NULL\"");
    CHECK(text("a: b") == "\"a: b\"");
    CHECK(text("[::]:1") == "\"[::]:1\"");
    CHECK(text("a\"\\\n") == "\"a\\\"\\\\\\x0a\"");
    CHECK(config::render_inline(config::Value::list({})) == "[]");
    CHECK(config::render_inline(config::Value::list({config::Value::scalar("a:b")})) == "[\"a:b\"]");
}

TEST_CASE("user and password never reach a log or the status page") {
    config::Config from;
    config::Config to;
    from.upstream.url = "http://user:secret1@engine:8000";
    to.upstream.url = "http://user:secret2@engine:8000";
    CHECK(config::render(from).find("secret") == std::string::npos);
    CHECK(config::render(from).find("http://***@engine:8000") != std::string::npos);
    const auto changes = config::diff(from, to);
    REQUIRE(changes.size() == 1);
    CHECK(changes.front().to_string().find("secret") == std::string::npos);
}
