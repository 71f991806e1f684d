#include "proxy/host_check.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "config/address.hpp"
#include "config/value.hpp"
#include "proxy/net/descriptor.hpp"
#include "proxy/tls_files.hpp"

namespace noren::proxy {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

std::string words_of(int error) {
    return std::generic_category().message(error);
}

/// Whether it can be bound to, at any port; 0 or errno. Every address of all interfaces can.
int bind_error(const config::Address& wanted) {
    if (wanted.is_unix() || wanted.host.empty() || wanted.host == "::") return 0;
    boost::system::error_code no_address;
    const asio::ip::tcp::endpoint address(asio::ip::make_address(wanted.host, no_address), 0);
    if (no_address) return EADDRNOTAVAIL;
    const net::Descriptor probe(::socket(address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!probe.is_open()) return errno == EAFNOSUPPORT ? EAFNOSUPPORT : 0;
    const bool bound = ::bind(probe.number(), address.data(), static_cast<socklen_t>(address.size())) == 0;
    // Anything else is of this moment.
    return !bound && (errno == EADDRNOTAVAIL || errno == EINVAL || errno == ENODEV) ? errno : 0;
}

void check_address(config::Resolved& loaded, std::string_view key, const config::ParsedAddress& parsed) {
    const int error = parsed.address ? bind_error(*parsed.address) : 0;
    if (error == 0) return;
    loaded.add_mistake(key, config::quote(config::to_string(*parsed.address)) + " (" + words_of(error) + ')',
                       "an address of this machine");
}

/// Why a log cannot be written there, or nothing. The folders of a path that is not there are made at the
/// start.
std::string unwritable(const fs::path& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) return "a directory";
        // Opening a pipe tells whether somebody reads it; a plain file needs no opening.
        if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
            const net::Descriptor pipe(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
            return pipe.is_open() ? "" : "a pipe or socket that nobody reads (" + words_of(errno) + ')';
        }
        return ::access(path.c_str(), W_OK) == 0 ? ""
                                                 : "a file that cannot be written (" + words_of(errno) + ')';
    }
    if (errno != ENOENT) return "a path that leads nowhere (" + words_of(errno) + ')';
    fs::path folder = path.parent_path();
    while (!folder.empty() && ::stat(folder.c_str(), &status) != 0 && errno == ENOENT &&
           folder != folder.root_path())
        folder = folder.parent_path();
    if (folder.empty()) folder = ".";
    if (::access(folder.c_str(), W_OK | X_OK) == 0) return "";
    return "a file in a folder that cannot be written (" + words_of(errno) + ')';
}

}  // namespace

void check_host(config::Resolved& loaded) {
    if (!loaded.ok()) return;
    const config::Config& config = *loaded.config;
    check_address(loaded, "listen", config::parse_listen(config.listen));
    check_address(loaded, "ops.listen", config::parse_listen_tcp(config.ops.listen));
    const std::string& log = config.log.access;
    if (log != "stdout" && log != "off")
        if (std::string found = unwritable(log); !found.empty())
            loaded.add_mistake("log.access", config::quote(log) + ": " + found,
                               "stdout, off, or the path of a file that can be written");
    check_tls_files(loaded);
}

std::vector<config::Mistake> missing_here(config::Resolved loaded) {
    if (!loaded.ok()) return {};
    check_host(loaded);
    return std::move(loaded.mistakes);
}

}  // namespace noren::proxy
