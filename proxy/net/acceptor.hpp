#pragma once
// Takes new connections from one listening descriptor.

#include <functional>
#include <string_view>

#include "proxy/net/descriptor.hpp"
#include "proxy/net/loop.hpp"
#include "proxy/net/reserve_descriptor.hpp"

namespace noren::proxy::net {

/// The loop's thread only. Where there is no descriptor left, connections are closed at once.
class Acceptor final : private Watcher {
  public:
    struct Events {
        std::function<void(Descriptor client)> connected;        ///< non-blocking
        std::function<void(std::string_view for_want_of)> shed;  ///< one was closed: "descriptors", "memory"
    };

    /// Throws std::system_error if the descriptor cannot be watched.
    Acceptor(Loop& loop, Descriptor listening, ReserveDescriptor& reserve, Events events);
    ~Acceptor();
    Acceptor(const Acceptor&) = delete;
    Acceptor& operator=(const Acceptor&) = delete;

  private:
    void ready(std::uint32_t events) override;
    void welcome(Descriptor client);
    void pause();
    void resume();

    Loop& loop_;
    const Descriptor listening_;
    ReserveDescriptor& reserve_;
    const Events events_;
    Timer pause_;
};

}  // namespace noren::proxy::net
