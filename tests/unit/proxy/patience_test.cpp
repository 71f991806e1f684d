#include "proxy/net/patience.hpp"

#include <catch2/catch.hpp>

#include "proxy/net/loop.hpp"

namespace noren::proxy::net {

TEST_CASE("a deadline is over when it has passed and one more look has brought nothing") {
    using namespace std::chrono_literals;
    using Left = Patience::Left;
    const TimePoint deadline{1s};
    Patience patience;
    CHECK(patience.left(deadline, deadline - 1ns) == Left::time);
    CHECK(patience.left(deadline, deadline) == Left::look);
    CHECK(patience.left(deadline, deadline) == Left::none);
    CHECK(patience.left(deadline, deadline + 1h) == Left::none);

    patience.renew();
    CHECK(patience.left(deadline, deadline + 1h) == Left::look);
    CHECK(patience.left(deadline + 2h, deadline + 1h) == Left::time);  // the look has brought something
    CHECK(patience.left(deadline + 2h, deadline + 2h) == Left::look);
    CHECK(patience.left(k_never, deadline + 2h) == Left::time);
}

}  // namespace noren::proxy::net
