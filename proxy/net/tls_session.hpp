#pragma once
// One TLS connection over a descriptor that never blocks. Says what it waits for instead of waiting; who owns
// it knows how to sleep.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "proxy/net/tls_context.hpp"
#include "proxy/net/tls_failure.hpp"

struct bio_st;
struct ssl_st;

namespace noren::proxy::net {

/// What is known of a descriptor: false where the last attempt took all there was, so that the next one would
/// be for nothing. Set true again by whoever is told that it is ready.
struct Readiness {
    bool readable = true;
    bool writable = true;
    bool hung_up = false;  ///< the peer has sent its last byte, or reset: epoll will not tell of that again
};

/// One thread. The descriptor and the readiness outlive it.
class TlsSession {
  public:
    enum class Status : unsigned char {
        ok,
        wants_read,   ///< goes on when the descriptor is readable
        wants_write,  ///< ... writable
        closed,       ///< the peer said that nothing more comes (close_notify)
        broken,  ///< an error, or an end without close_notify: what came may have been cut (RFC 9112 9.8)
    };
    struct Result {
        Status status = Status::ok;  ///< with bytes: why there are not more
        std::size_t bytes = 0;
    };

    TlsSession(const TlsContext& context, int fd, Readiness& readiness);
    ~TlsSession();
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    /// ok: done. Nothing is read or written before.
    Status handshake();

    /// Decrypts until `into` is full or nothing more is there. So after less than a full read nothing
    /// decrypted is left inside that no readiness of the descriptor would ever tell of.
    Result read(std::span<char> into);

    /// Encrypts as much as the descriptor takes, the two parts as one text. What was not taken has to come
    /// again, as the beginning of the next write: a part of its record may be on its way.
    Result write(std::string_view first, std::string_view second);

    /// Tells the peer that nothing more comes (RFC 8446 6.1). wants_write: try again; ok: sent, or cannot be.
    Status close_notify();

    /// An idle session: the peer ended it, or sent anything but what TLS itself sends (tickets, new keys).
    bool disturbed();

    /// Why it is broken.
    const TlsFailure& failure() const { return failure_; }

  private:
    struct Wire;
    struct Freer {
        void operator()(ssl_st* session) const;
    };
    Status judge(int result);
    Status end(Status status, const TlsFailure& failure);
    bool spoke_plain_text() const;

    std::unique_ptr<Wire> wire_;
    std::unique_ptr<ssl_st, Freer> ssl_;
    TlsFailure failure_;
    std::optional<Status> ended_;  ///< closed or broken: what every further read says
    bool established_ = false;
    bool write_broken_ = false;
    bool notified_ = false;
};

}  // namespace noren::proxy::net
