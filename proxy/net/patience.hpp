#pragma once
// When a deadline is over for good.

#include <utility>

#include "metrics/clock.hpp"

namespace noren::proxy::net {

/// A deadline can pass while what it waits for is in the kernel already: the process was held up (a stopped
/// container, a busy node), or the peer takes bytes, but not so many that it would be told. So one that has
/// passed is over only if a last look (Socket::try_anyway) has brought nothing.
class Patience {
  public:
    enum class Left : unsigned char {
        time,  ///< the deadline is still to come
        look,  ///< it has passed: look once more, then ask again
        none,  ///< it has passed, and the look brought nothing
    };
    Left left(metrics::TimePoint deadline, metrics::TimePoint now) {
        if (now < deadline) {
            renew();
            return Left::time;
        }
        return std::exchange(looked_, true) ? Left::none : Left::look;
    }
    /// The peer did something: the next deadline that passes is worth a look again.
    void renew() { looked_ = false; }

  private:
    bool looked_ = false;
};

}  // namespace noren::proxy::net
