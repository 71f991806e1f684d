#include "proxy/http/target.hpp"

#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::proxy::http {

TEST_CASE("request targets in each of their forms") {
    struct Sample {
        std::string_view target, method, origin_form, authority;
    };
    const std::vector<Sample> samples = {
        {"/", "GET", "/", ""},
        {"/v1/models?a=%20b&c[]=1", "GET", "/v1/models?a=%20b&c[]=1", ""},
        {"//evil.test/x", "GET", "//evil.test/x", ""},
        {"/a?http://b/", "GET", "/a?http://b/", ""},
        {"*", "OPTIONS", "*", ""},
        {"http://a.test/x?y", "GET", "/x?y", "a.test"},
        {"HTTP://A.test:8080/x", "GET", "/x", "A.test:8080"},
        {"https://[2001:db8::1]:443/x", "GET", "/x", "[2001:db8::1]:443"},
        {"http://a.test", "GET", "/", "a.test"},
        {"http://a.test", "OPTIONS", "*", "a.test"},
        {"http://a.test/", "OPTIONS", "/", "a.test"},
    };
    for (const Sample& sample : samples) {
        INFO(sample.method << " " << sample.target);
        const Target target = parse_target(sample.target, sample.method);
        CHECK_FALSE(target.error);
        CHECK(target.origin_form == sample.origin_form);
        CHECK(target.authority == sample.authority);
    }
}

TEST_CASE("targets that two parsers may read in two ways are refused") {
    const std::vector<std::string_view> targets = {
        "",           "foo",        "*",           "**",           "?a",         "#",
        "/a#b",       "/a b",       "/a\tb",       "/a\\b",        "/\"a\"",     "/<a>",
        "/`",         "/\x7f",      "/\xc3\xa9",   "a.test:80",    "ftp://a/x",  "http:/a/x",
        "http://",    "http:///x",  "http://:80/", "http://u@a/x", "http://a?b", "http://u:p@a/",
        "http://a b", "http://a#b", "http://a:x/", "http://[::1/", "http://[]/", "http://a/b#c"};
    for (const std::string_view target : targets) {
        INFO(target);
        const Target read = parse_target(target, "GET");
        REQUIRE(read.error);
        CHECK(read.error->status == 400);
    }
    CHECK(parse_target("/*", "OPTIONS").error == std::nullopt);
}

TEST_CASE("authorities are a host and a port") {
    for (const std::string_view good :
         {"", "a", "a.test", "A-b_c.d~e", "1.2.3.4", "a:80", "a:", "[::1]", "[::1]:8080", "[::ffff:1.2.3.4]",
          "xn--caf-dma.test", "a%20b", "a,b"}) {
        INFO(good);
        CHECK(is_valid_authority(good));
    }
    for (const std::string_view bad :
         {"a b",      "a/b",  "a?b",    "a#b",   "u@a",     "a:b",  "a:80:80",
          "::1",      "[::1", "[::1]x", "[:]",   "[::1]:x", "[]",   "[a/b]",
          "a:123456", "a:-1", "a:+1",   "\"a\"", "<a>",     "a\\b", "caf\xc3\xa9"}) {
        INFO(bad);
        CHECK_FALSE(is_valid_authority(bad));
    }
}

}  // namespace noren::proxy::http
