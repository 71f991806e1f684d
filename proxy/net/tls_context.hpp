#pragma once
// What TLS connections share: our certificate, whom we trust, and the rules (TLS 1.2 and newer, forward
// secret AEAD ciphers, HTTP/1.1 only). Made once from PEM text; a changed certificate is a new context, and a
// session keeps the one it began with.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct ssl_ctx_st;

namespace noren::proxy::net {

/// What the PEM text of one part has instead of what it should have.
struct TlsProblem {
    enum class Part : unsigned char { certificate, key, ca };

    Part part;
    std::string found;
    std::string expected;
};
using TlsProblems = std::vector<TlsProblem>;

/// Immutable, so any thread may begin sessions with it.
class TlsContext {
  public:
    /// For sessions with clients. All members are PEM, but the last.
    struct Server {
        std::string certificate;  ///< and its chain
        std::string key;
        std::string client_ca;  ///< empty = clients need no certificate
        bool tls13_only = false;
    };
    /// For sessions with the engine.
    struct Client {
        std::string server_name;  ///< the name or address that its certificate must be for
        std::string ca;           ///< PEM; empty = what the system trusts
        std::string certificate;  ///< PEM; to show if it asks, empty = none
        std::string key;          ///< PEM
        bool verify = true;
    };

    /// Null, with at least one problem added, if the material is not sound.
    static std::shared_ptr<const TlsContext> server(const Server& material, TlsProblems& problems);
    static std::shared_ptr<const TlsContext> client(const Client& material, TlsProblems& problems);

    bool is_server() const { return is_server_; }
    bool verifies() const { return verifies_; }
    /// For SNI; empty for an address, which has no place there (RFC 6066 3).
    const std::string& sni() const { return sni_; }
    /// When our own certificate ends; nothing if we have none.
    std::optional<std::chrono::system_clock::time_point> expiry() const;
    ssl_ctx_st* handle() const { return handle_.get(); }

  private:
    explicit TlsContext(bool is_server);
    void show(const std::string& certificate, const std::string& key, TlsProblems& problems);
    void trust(const std::string& ca, TlsProblems& problems);
    void expect(const std::string& server_name);

    std::shared_ptr<ssl_ctx_st> handle_;
    bool is_server_;
    bool verifies_ = false;
    std::string sni_;
};

}  // namespace noren::proxy::net
