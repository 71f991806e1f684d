#include "proxy/ops/ops_pages.hpp"

#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

namespace noren::proxy {
namespace {

struct Process {
    bool ready = true, draining = false, drained = true;
    std::string complaint;
    OpsHooks hooks() {
        return {
            .metrics = [] { return std::string("noren_up 1\n"); },
            .status_json = [] { return std::string("{\"s\":1}"); },
            .config_yaml = [] { return std::string("listen: x\n"); },
            .ready = [this] { return ready; },
            .ready_json = [] { return std::string("{\"because\":[]}"); },
            .drained = [this] { return drained; },
            .draining = [this] { return draining; },
            .complaint = [this] { return complaint; },
        };
    }
};

}  // namespace

TEST_CASE("each ops page has its content and type") {
    Process process;
    const OpsHooks hooks = process.hooks();
    const auto check = [&](const char* target, std::string_view type, std::string_view body) {
        const OpsPage page = page_at(hooks, target);
        INFO(target);
        CHECK(page.status == 200);
        CHECK(page.type == type);
        CHECK(page.body == body);
    };
    check("/metrics", "text/plain; version=0.0.4; charset=utf-8", "noren_up 1\n");
    check("/metrics?name[]=x", "text/plain; version=0.0.4; charset=utf-8", "noren_up 1\n");
    check("/-/healthy", "text/plain; charset=utf-8", "healthy\n");
    check("/-/ready", "application/json", "{\"because\":[]}\n");
    check("/-/status", "application/json", "{\"s\":1}\n");
    check("/-/config", "application/yaml", "listen: x\n");
    check("/-/drain-wait", "text/plain; charset=utf-8", "not draining\n");
}

TEST_CASE("the index names every page") {
    Process process;
    const OpsHooks hooks = process.hooks();
    const OpsPage index = page_at(hooks, "/");
    CHECK(index.status == 200);
    for (const char* path :
         {"/metrics", "/-/healthy", "/-/ready", "/-/status", "/-/config", "/-/drain-wait"}) {
        CHECK(index.body.find("<a href=\"" + std::string(path) + "\">") != std::string::npos);
        CHECK(page_at(hooks, path).status == 200);
    }
}

TEST_CASE("paths that only look like a page are not found") {
    Process process;
    const OpsHooks hooks = process.hooks();
    for (const char* path :
         {"/metrics/", "/Metrics", "/-/drain-waiting", "/-/", "/x.php", "*", "", "//metrics"}) {
        INFO(path);
        CHECK(page_at(hooks, path).status == 404);
        CHECK_FALSE(drain_wait_of(path));
    }
}

TEST_CASE("not ready is a 503 that still says why") {
    Process process;
    process.ready = false;
    const OpsPage page = page_at(process.hooks(), "/-/ready");
    CHECK(page.status == 503);
    CHECK(page.body == "{\"because\":[]}\n");
}

TEST_CASE("not healthy is a 503 that says what is wrong") {
    Process process;
    process.complaint = "worker 1 has not turned for 15 s";
    const OpsPage page = page_at(process.hooks(), "/-/healthy");
    CHECK(page.status == 503);
    CHECK(page.body == "worker 1 has not turned for 15 s\n");
}

TEST_CASE("a drain that is not over is never called drained") {
    Process process;
    process.draining = true;
    process.drained = false;
    CHECK(page_at(process.hooks(), "/-/drain-wait").status == 503);
    process.drained = true;
    CHECK(page_at(process.hooks(), "/-/drain-wait").body == "drained\n");
}

TEST_CASE("a page that cannot be made is a 500, not the end of the endpoint") {
    Process process;
    OpsHooks hooks = process.hooks();
    hooks.metrics = []() -> std::string { throw std::runtime_error("no memory for it"); };
    const OpsPage page = page_at(hooks, "/metrics");
    CHECK(page.status == 500);
    CHECK(page.body == "no memory for it\n");
}

TEST_CASE("drain-wait takes a patience of whole seconds, or says what it takes") {
    using std::chrono::seconds;
    CHECK(drain_wait_of("/-/drain-wait")->begin_within == seconds(0));
    CHECK(drain_wait_of("/-/drain-wait?")->begin_within == seconds(0));
    CHECK(drain_wait_of("/-/drain-wait?begin_within=0")->begin_within == seconds(0));
    CHECK(drain_wait_of("/-/drain-wait?begin_within=5")->begin_within == seconds(5));
    CHECK(drain_wait_of("/-/drain-wait?begin_within=60")->begin_within == seconds(60));
    CHECK_FALSE(drain_wait_of("/-/drain-wait?begin_within=60")->mistake);
    for (const char* query :
         {"begin_within=61", "begin_within=", "begin_within=-1", "begin_within=5s", "begin_within",
          "begin_within=99999999999999", "within=5", "begin_within=5&x=1"}) {
        const auto wait = drain_wait_of(std::string("/-/drain-wait?") + query);
        INFO(query);
        REQUIRE(wait);
        REQUIRE(wait->mistake);
        CHECK(wait->mistake->status == 400);
        CHECK(wait->begin_within == seconds(0));
    }
}

}  // namespace noren::proxy
