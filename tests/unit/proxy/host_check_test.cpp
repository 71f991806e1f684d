#include "proxy/host_check.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

using test::TempDir;
using test::write_file;

/// The mistakes that only this machine has, as "key: found".
std::vector<std::string> told(const std::string& text) {
    config::Sources sources;
    config::Resolved loaded = config::load(sources, text);
    REQUIRE(loaded.ok());
    check_host(loaded);
    CHECK(loaded.ok() == loaded.mistakes.empty());
    std::vector<std::string> lines;
    for (const config::Mistake& mistake : loaded.mistakes)
        lines.push_back(mistake.key + ": " + mistake.found);
    return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("an address that this machine has not got is told before the start") {
    for (const char* good : {"127.0.0.1:1", "0.0.0.0:1", "'[::]:1'", "':1'", "unix:/none/x.sock"})
        CHECK(told("listen: " + std::string(good) + "\n").empty());
    CHECK(told("listen: 192.0.2.1:80\n") ==
          Lines{"listen: \"192.0.2.1:80\" (Cannot assign requested address)"});
    CHECK(told("ops: {listen: '192.0.2.1:80'}\n") ==
          Lines{"ops.listen: \"192.0.2.1:80\" (Cannot assign requested address)"});
    CHECK(told("listen: '[fe80::dead:beef%no-such-if]:80'\n").size() == 1);
    CHECK(told("listen: 192.0.2.1:80\nops: {listen: '192.0.2.1:81'}\nlog: {access: /tmp}\n").size() == 3);
}

TEST_CASE("a file for another machine is good, and what this one has not got is told all the same") {
    config::Sources sources;
    const config::Resolved loaded = config::load(sources, "listen: 192.0.2.1:80\nlog: {access: /tmp}\n");
    const auto missing = missing_here(loaded);
    REQUIRE(missing.size() == 2);
    CHECK(missing[0].key == "listen");
    CHECK(missing[0].line == 1);
    CHECK(missing[1].key == "log.access");
    CHECK(loaded.ok());
    CHECK(missing_here(config::load(sources, "listen: 127.0.0.1:80\n")).empty());
    CHECK(missing_here(config::load(sources, "lisen: 127.0.0.1:80\n")).empty());  // no good anywhere
}

TEST_CASE("an access log that cannot be written is told before the start, and none is made") {
    const TempDir dir;
    const auto log = [&](const std::string& path) { return told("log: {access: " + path + "}\n"); };
    const std::string folder = (dir / "x").parent_path().string();
    CHECK(told("log: {access: stdout}\n").empty());
    CHECK(told("log: {access: off}\n").empty());
    CHECK(log("/dev/null").empty());
    CHECK(log(folder + "/a/b/access.log").empty());
    CHECK_FALSE(std::filesystem::exists(dir / "a"));
    CHECK(log(folder) == Lines{"log.access: \"" + folder + "\": a directory"});
    write_file(dir / "plain", "x");
    CHECK(log(folder + "/plain").empty());
    CHECK(log(folder + "/plain/access.log") ==
          Lines{"log.access: \"" + folder +
                "/plain/access.log\": a path that leads nowhere (Not a directory)"});
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    CHECK(log(folder + "/pipe").size() == 1);
}

}  // namespace noren::proxy
