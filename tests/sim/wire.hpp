#pragma once
// One answer on its way out: framing, stamps, and the faults that strike at a byte.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

#include "tests/sim/fault.hpp"
#include "tests/sim/response_head.hpp"
#include "tests/sim/sleeper.hpp"
#include "tests/sim/token_text.hpp"

namespace sim {

using tcp = net::ip::tcp;

/// Cuts every write into pieces; 0 bytes = one write per event.
struct Split {
    std::uint32_t bytes = 0;
    std::chrono::microseconds pause{0};
};

/// Whether events that begin their text with k_unstamped get the time there.
enum class Stamps : bool { no, yes };

/// Every function returns false once nothing more can be written, be it that the client is gone or that a
/// fault has struck; struck() tells which.
class Wire {
  public:
    /// `over` is called before a write or a close after which the client can know that the answer is over.
    Wire(tcp::socket& socket, Sleeper& sleeper, const Fault& fault, const Split& split,
         std::function<void()> over, Stamps stamps = Stamps::no)
        : socket_(socket),
          sleeper_(sleeper),
          fault_(fault),
          split_(split),
          over_(std::move(over)),
          stamps_(stamps) {}

    /// Whether bytes end the answer for its reader.
    enum class Last : bool { no, yes };

    /// The response head (or any bytes that are not body), in one write.
    net::awaitable<bool> head(std::string_view bytes, Framing framing, Last last = Last::no);

    /// One event: one chunk, one write. With a length it is the whole body.
    net::awaitable<bool> body(std::string_view payload);

    /// The last chunk, with trailers (whole lines); strikes faults whose byte the body never reached.
    net::awaitable<bool> end(std::string_view trailers = {});

    /// Breaks the chunked framing and closes.
    net::awaitable<void> break_chunk();

    /// When the last head() or body() called write(): right before the call, before the kernel has the bytes.
    TimePoint stamped() const { return stamped_; }

    bool struck() const { return struck_; }
    std::uint64_t body_bytes() const { return body_bytes_; }
    std::uint64_t body_fnv() const { return body_fnv_; }  ///< fnv1a of the payload written so far

  private:
    net::awaitable<bool> write(std::string_view bytes, Last last = Last::no);
    net::awaitable<bool> strike(std::string_view payload);
    bool strikes_at_byte() const;
    void count(std::string_view payload);

    tcp::socket& socket_;
    Sleeper& sleeper_;
    Fault fault_;
    Split split_;
    std::function<void()> over_;
    Stamps stamps_;
    Framing framing_ = Framing::chunked;
    std::string buffer_;
    TimePoint stamped_{};
    std::uint64_t body_bytes_ = 0;
    std::uint64_t body_fnv_ = k_fnv_basis;
    bool struck_ = false;
};

/// Closes with RST instead of FIN.
void reset(tcp::socket& socket);

/// Closes with FIN, as far as the kernel has no unread bytes to complain about.
void close_politely(tcp::socket& socket);

}  // namespace sim
