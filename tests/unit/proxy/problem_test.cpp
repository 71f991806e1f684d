#include "proxy/problem.hpp"

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <catch2/catch.hpp>

namespace noren::proxy {
namespace {

/// As Asio's functions fill it in: with the place where it arose.
boost::system::system_error boost_error(int number, const char* words) {
    static constexpr boost::source_location k_here = BOOST_CURRENT_LOCATION;
    boost::system::error_code code;
    code.assign(number, boost::system::system_category(), &k_here);
    return boost::system::system_error(code, words);
}

}  // namespace

TEST_CASE("an operator is told what is wrong, not where in a header it arose") {
    const auto taken = boost_error(EADDRINUSE, "cannot listen on 127.0.0.1:9464 for ops");
    REQUIRE(std::string(taken.what()).find("problem_test.cpp") != std::string::npos);
    CHECK(sentence_of(taken) == "cannot listen on 127.0.0.1:9464 for ops: Address already in use");
    CHECK(sentence_of(boost_error(EACCES, "no: [socket]")) == "no: [socket]: Permission denied");
    CHECK(sentence_of(std::system_error(ENOSPC, std::generic_category(), "cannot write")) ==
          "cannot write: No space left on device");
    CHECK(sentence_of(std::runtime_error("just words")) == "just words");
}

TEST_CASE("a path that is not ours to write is told from other problems") {
    for (const int number : {EACCES, EPERM, EROFS, ENOENT}) {
        CHECK(is_about_rights(boost_error(number, "x")));
        CHECK(is_about_rights(std::system_error(number, std::generic_category(), "x")));
    }
    CHECK_FALSE(is_about_rights(boost_error(EADDRINUSE, "x")));
    CHECK_FALSE(is_about_rights(std::runtime_error("Permission denied")));
}

}  // namespace noren::proxy
