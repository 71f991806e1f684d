#pragma once
// From the files that a configuration names for TLS to the contexts that connections use.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/load.hpp"
#include "proxy/net/tls_context.hpp"

namespace noren::proxy {

struct TlsContexts {
    std::shared_ptr<const net::TlsContext> downstream;  ///< null = clients speak plain HTTP
    std::shared_ptr<const net::TlsContext> upstream;    ///< null = the engine does
};

/// What is in the files at one moment.
class TlsFiles {
  public:
    struct File {
        std::string path;
        std::variant<std::string, config::Mistake> content;
    };

    /// Of those keys that matter: a file that no TLS needs is not looked at.
    static TlsFiles read(const config::Config& config);

    /// The same for the same content, and tells nothing of it.
    std::string fingerprint() const;

    /// key: its path, "tls.key". Null: it names no file, or none that matters.
    const File* find(std::string_view key) const;

  private:
    std::map<std::string_view, File> files_;  ///< by the path of their key; only those that are named
};

/// What is wrong with the file of a key.
struct TlsMistake {
    std::string_view key;
    std::string found;
    std::string expected;
};

struct TlsLoad {
    TlsContexts contexts;  ///< as configured, if there are no mistakes
    std::vector<TlsMistake> mistakes;

    static TlsLoad from(const config::Config& config, const TlsFiles& files);
};

/// Whether both name the same files and rules.
bool same_tls(const config::Config& a, const config::Config& b);

/// Where a good configuration names bad files, the mistakes are added at the lines that name them and it is
/// no good one any more.
void check_tls_files(config::Resolved& loaded);

}  // namespace noren::proxy
