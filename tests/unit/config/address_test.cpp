#include "config/address.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace config = noren::config;
using config::Address;

namespace {

Address listen(std::string_view text) {
    return config::parse_listen(text).address.value();
}
Address upstream(std::string_view text) {
    return config::parse_upstream(text).address.value();
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("addresses to listen on") {
    CHECK(listen("0.0.0.0:8080") == Address{"0.0.0.0", 8080, ""});
    CHECK(listen("127.0.0.1:65535") == Address{"127.0.0.1", 65535, ""});
    CHECK(listen("0.0.0.0:0") == Address{"0.0.0.0", 0, ""});
    CHECK(listen("[::]:9464") == Address{"::", 9464, ""});
    CHECK(listen("[fe80::1%eth0]:80") == Address{"fe80::1%eth0", 80, ""});
    CHECK(listen(":8080") == Address{"", 8080, ""});
    CHECK(listen("unix:/run/noren.sock") == Address{"", 0, "/run/noren.sock"});
    CHECK(listen("unix:/run/noren.sock").is_unix());
    CHECK_FALSE(listen(":1").is_unix());
}

TEST_CASE("what is no address to listen on is refused with what would be one") {
    for (const char* text : {"",
                             "8080",
                             "0.0.0.0",
                             "host:",
                             "host:http",
                             "host:65536",
                             "host:-1",
                             "host: 80",
                             "ho st:80",
                             "::1:8080",
                             "[::1]",
                             "[::1]8080",
                             "[::1:8080",
                             "[nonsense]:80",
                             "[fe80::1%]:80",
                             "300.1.1.1:80",
                             "1.2.3:80",
                             "*:80",
                             "-a:80",
                             "a..b:80",
                             "http://host:80",
                             "unix:",
                             "unix:relative.sock",
                             "unix:@abstract"}) {
        INFO(text);
        const auto parsed = config::parse_listen(text);
        CHECK_FALSE(parsed.address.has_value());
        CHECK_FALSE(parsed.expected.empty());
    }
    using namespace std::string_literals;
    CHECK_FALSE(config::parse_listen("[::1\0]:80"s).address);
    CHECK_FALSE(config::parse_listen("127.0.0.1\0:80"s).address);
    CHECK_FALSE(config::parse_listen("unix:/a\nb").address);
}

TEST_CASE("a name is no address to listen on, and the refusal says what to write instead") {
    for (const auto& parse : {config::parse_listen, config::parse_listen_tcp}) {
        for (const char* text : {"noren:8080", "noren_1.internal:65535", "a.b.:80", "0x7f000001:80"}) {
            INFO(text);
            CHECK_FALSE(parse(text).address);
            CHECK(contains(parse(text).expected, "IPv4:port, [IPv6]:port"));
            CHECK(contains(parse(text).expected, "names are not looked up"));
        }
        CHECK_FALSE(parse("localhost:8080").address);
        CHECK(contains(parse("localhost:8080").expected, "127.0.0.1 or [::1] for localhost"));
    }
}

TEST_CASE("a socket path is bounded by what the kernel takes") {
    const std::string longest = '/' + std::string(106, 'x');
    CHECK(listen("unix:" + longest).path == longest);
    CHECK_FALSE(config::parse_listen("unix:" + longest + 'x').address);
}

TEST_CASE("the ops endpoint is TCP only") {
    CHECK(config::parse_listen_tcp("[::]:9464").address == Address{"::", 9464, ""});
    CHECK_FALSE(config::parse_listen_tcp("unix:/run/ops.sock").address);
}

TEST_CASE("where the engine is") {
    CHECK(upstream("http://127.0.0.1:8000") == Address{"127.0.0.1", 8000, ""});
    CHECK(upstream("http://vllm:8000/") == Address{"vllm", 8000, ""});
    CHECK(upstream("http://engine") == Address{"engine", 80, ""});
    CHECK(upstream("http://[::1]:8000") == Address{"::1", 8000, ""});
    CHECK(upstream("http://[::1]") == Address{"::1", 80, ""});
    CHECK(upstream("https://engine:8443") == Address{"engine", 8443, "", true});
    CHECK(upstream("https://[::1]/") == Address{"::1", 443, "", true});
    CHECK(upstream("unix:/run/engine.sock") == Address{"", 0, "/run/engine.sock"});
}

TEST_CASE("an engine that noren cannot talk to is refused with the reason") {
    const auto expected = [](std::string_view text) {
        const auto parsed = config::parse_upstream(text);
        CHECK_FALSE(parsed.address.has_value());
        return parsed.expected;
    };
    CHECK(contains(expected("https://engine:8000/v1"), "without a path"));
    CHECK(contains(expected("https://user:secret@engine"), "without user and password"));
    CHECK(contains(expected("http://engine:8000/v1"), "without a path"));
    CHECK(contains(expected("http://engine:8000?x=1"), "without a path"));
    CHECK(contains(expected("http://user:secret@engine:8000"), "without user and password"));
    CHECK(contains(expected("http://engine:0"), "a port from 1 to 65535"));
    CHECK(contains(expected("http://engine:"), "a port from 1 to 65535"));
    CHECK(contains(expected("http://engine:99999"), "a port from 1 to 65535"));
    for (const char* text :
         {"", "127.0.0.1:8000", "engine", "ftp://engine", "http:engine", "http://", "http://:8000",
          "http://[::1", "http://a b", "HTTP//engine", "https://", "https:///"}) {
        INFO(text);
        CHECK(contains(expected(text), "http://host:port, https://host:port or unix:/path"));
    }
}

TEST_CASE("what is a host") {
    for (const char* text : {"engine", "engine.ns.svc", "127.0.0.1", "::1", "a_b"})
        CHECK(config::is_host(text));
    for (const char* text : {"", "[::1]", "a b", "engine:80", "10.0.0.300", "https://engine"})
        CHECK_FALSE(config::is_host(text));
}

TEST_CASE("an address is written as it would be typed") {
    for (const char* text : {"0.0.0.0:8080", "[::]:9464", ":80", "unix:/run/noren.sock"}) {
        CHECK(config::to_string(listen(text)) == text);
    }
}

TEST_CASE("secrets before an @ are masked, in slips too") {
    CHECK(config::mask_userinfo("http://user:secret@engine:8000") == "http://***@engine:8000");
    CHECK(config::mask_userinfo("http://se//cr@et@engine") == "http://***@engine");
    CHECK(config::mask_userinfo("http:/user:secret@engine") == "***@engine");
    CHECK(config::mask_userinfo("user:secret@engine") == "***@engine");
    CHECK(config::mask_userinfo("http://engine:8000") == "http://engine:8000");
    CHECK(config::mask_userinfo("unix:/run/a@b.sock") == "unix:/run/a@b.sock");
}
