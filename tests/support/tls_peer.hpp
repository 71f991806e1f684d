#pragma once
// A blocking TLS client or server for tests: OpenSSL over its own socket BIO, sharing no code with noren's.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/support/certificates.hpp"
#include "tests/support/peer.hpp"

struct ssl_ctx_st;
struct ssl_st;

namespace test {

struct TlsManner {
    Certified own = {};   ///< to show; a server needs one
    std::string ca = {};  ///< PEM; empty = whoever it is will do. A server with one demands certificates
    std::string server_name = {};  ///< SNI
    int most_version = 0;          ///< 0 = any; TLS1_2_VERSION, ...
    std::string alpn = {};         ///< as on the wire: "\x08http/1.1"
};

class TlsPeer {
  public:
    /// Shakes hands at once. A handshake that fails leaves a peer that says why in problem().
    static TlsPeer client(Peer connected, const TlsManner& manner);
    static TlsPeer server(Peer accepted, const TlsManner& manner);
    TlsPeer(TlsPeer&&) noexcept = default;
    TlsPeer& operator=(TlsPeer&&) noexcept = default;
    ~TlsPeer();

    bool is_open() const { return problem_.empty(); }
    const std::string& problem() const { return problem_; }
    std::string version() const;
    std::string alpn() const;
    /// The common name that the other side showed.
    std::string shown_name() const;

    /// TLS 1.2 only. False: the other side would not.
    bool renegotiate();

    void send(std::string_view bytes);
    /// Some bytes; empty at the end, whichever it was, or after 20 s.
    std::string receive(std::size_t most = 65536);
    std::string receive_until(std::string_view text) { return read_until(*this, text); }
    std::string receive_all() { return read_all(*this); }
    /// The last receive() ended with close_notify, not with a bare end.
    bool ended_cleanly() const { return clean_; }

    /// close_notify, then FIN.
    void close();
    /// close_notify alone.
    void end_writing();
    /// A FIN without close_notify.
    void cut();
    void reset();

  private:
    TlsPeer(Peer connection, const TlsManner& manner, bool is_server);

    std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
    Peer connection_;
    std::unique_ptr<ssl_st, void (*)(ssl_st*)> session_;
    std::string problem_;
    bool clean_ = false;
};

}  // namespace test
