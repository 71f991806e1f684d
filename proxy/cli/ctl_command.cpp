#include "proxy/cli/ctl_command.hpp"

#include <sys/un.h>

#include <optional>
#include <ostream>
#include <string_view>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#include "proxy/cli/status_table.hpp"
#include "proxy/ops/control_protocol.hpp"
#include "proxy/ops/json_text.hpp"

namespace noren::proxy {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::local::stream_protocol;
using boost::system::error_code;

constexpr int k_done = 0;
constexpr int k_failed = 1;
constexpr int k_nobody_there = 3;
constexpr std::size_t k_longest_path = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t k_max_reply = 4 * 1024 * 1024;

int explain_no_connection(const CtlOptions& options, const error_code& error, std::ostream& err) {
    if (error == asio::error::access_denied) {
        err << "noren ctl: not allowed to use " << options.socket
            << ": be the user that runs noren, or root\n";
        return k_failed;
    }
    err << "noren ctl: no noren listens on " << options.socket << " (" << error.message()
        << "); is it running, and is this its control.socket? --config FILE or --socket PATH name another\n";
    return k_nobody_there;
}

/// One line there, one line back; or why not.
std::variant<std::string, error_code> ask(stream_protocol::socket& socket, asio::io_context& io,
                                          const CtlOptions& options) {
    const std::string request = control_line(options.command);
    std::string line;
    std::optional<error_code> outcome;
    asio::async_write(socket, asio::buffer(request), [&](const error_code& write_error, std::size_t) {
        // A noren that refuses may answer without reading, so a failed write does not decide.
        (void)write_error;
        asio::async_read_until(socket, asio::dynamic_buffer(line, k_max_reply), '\n',
                               [&](const error_code& error, std::size_t) { outcome = error; });
    });
    io.run_for(options.patience);
    if (!outcome) return error_code(asio::error::timed_out);
    if (*outcome) return *outcome;
    return line;
}

void print_lines(const json::object& reply, const char* name, std::string_view indent, std::ostream& out) {
    const auto* lines = reply.if_contains(name);
    if (!lines || !lines->is_array()) return;
    for (const json::value& line : lines->as_array())
        out << indent << plain_text(line) << "\n";
}

void print_reply(const json::object& reply, std::ostream& out) {
    if (const auto* message = reply.if_contains("message")) out << plain_text(*message) << "\n";
    // As a compiler writes them, so that editors find the place.
    print_lines(reply, "errors", "", out);
    print_lines(reply, "changes", "  ", out);
    const auto* keys = reply.if_contains("restart_required");
    if (keys && keys->is_array() && !keys->as_array().empty()) out << "needs a restart:\n";
    print_lines(reply, "restart_required", "  ", out);
    if (const auto* status = reply.if_contains("status"); status && status->is_object())
        print_status(status->as_object(), out);
}

}  // namespace

int show_control_answer(const std::string& line, const CtlOptions& options, std::ostream& out,
                        std::ostream& err) {
    error_code error;
    const json::value reply = json::parse(line, error);
    if (error || !reply.is_object()) {
        err << "noren ctl: no usable answer from " << options.socket << "\n";
        return k_failed;
    }
    const auto* ok = reply.as_object().if_contains("ok");
    const bool done = ok && ok->is_bool() && ok->as_bool();
    if (options.json) {
        out << line;
    } else {
        print_reply(reply.as_object(), done ? out : err);
    }
    return done ? k_done : k_failed;
}

int ctl_command(const CtlOptions& options, std::ostream& out, std::ostream& err) {
    if (options.socket.empty() || options.socket.size() > k_longest_path) {
        err << "noren ctl: found socket path \"" << options.socket << "\", expected 1 to " << k_longest_path
            << " bytes\n";
        return k_nobody_there;
    }
    asio::io_context io;
    stream_protocol::socket socket(io);
    error_code error;
    socket.connect(stream_protocol::endpoint(options.socket), error);
    if (error) return explain_no_connection(options, error, err);
    const auto answer = ask(socket, io, options);
    if (const auto* problem = std::get_if<error_code>(&answer)) {
        err << "noren ctl: no answer from " << options.socket << " (" << problem->message() << ")\n";
        return k_failed;
    }
    return show_control_answer(std::get<std::string>(answer), options, out, err);
}

}  // namespace noren::proxy
