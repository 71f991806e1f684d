#include "proxy/cli/ctl_command.hpp"

#include <iomanip>
#include <ostream>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

namespace noren::proxy {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr int k_nobody_there = 3;

std::string text_of(const json::value& value) {
    return value.is_string() ? std::string(value.as_string()) : json::serialize(value);
}

/// Nested objects as indented groups, one "name  value" line per leaf.
void print_tree(const json::object& object, std::ostream& out, int depth) {
    for (const auto& [key, value] : object) {
        out << std::string(static_cast<std::size_t>(depth) * 2, ' ') << std::left << std::setw(26 - depth * 2)
            << std::string(key);
        if (value.is_object()) {
            out << "\n";
            print_tree(value.as_object(), out, depth + 1);
        } else {
            out << " " << text_of(value) << "\n";
        }
    }
}

void print_reply(const json::object& reply, std::ostream& out) {
    if (const auto* message = reply.if_contains("message")) out << text_of(*message) << "\n";
    for (const char* list : {"errors", "changes", "restart_required"}) {
        const auto* lines = reply.if_contains(list);
        if (!lines || !lines->is_array() || lines->as_array().empty()) continue;
        if (std::string_view(list) == "restart_required") out << "needs a restart:\n";
        for (const auto& line : lines->as_array())
            out << "  " << text_of(line) << "\n";
    }
    if (const auto* status = reply.if_contains("status")) print_tree(status->as_object(), out, 0);
}

}  // namespace

int ctl_command(const CtlOptions& options, std::ostream& out, std::ostream& err) {
    asio::io_context io;
    asio::local::stream_protocol::socket socket(io);
    boost::system::error_code error;
    if (options.socket.size() > 107) {
        err << "noren ctl: the socket path is longer than 107 bytes\n";
        return k_nobody_there;
    }
    socket.connect(asio::local::stream_protocol::endpoint(options.socket), error);
    if (error) {
        err << "noren ctl: no noren listens on " << options.socket << " (" << error.message()
            << "); is it running, and is this its control.socket?\n";
        return k_nobody_there;
    }
    const std::string request = json::serialize(json::object{{"command", options.command}}) + "\n";
    std::string line;
    asio::write(socket, asio::buffer(request), error);
    if (!error) asio::read_until(socket, asio::dynamic_buffer(line), '\n', error);
    boost::system::error_code bad_json;
    const json::value reply = json::parse(line, bad_json);
    if (line.empty() || bad_json || !reply.is_object()) {
        err << "noren ctl: no usable answer from " << options.socket << "\n";
        return 1;
    }
    const json::object& object = reply.as_object();
    const auto* ok = object.if_contains("ok");
    const bool done = ok && ok->is_bool() && ok->as_bool();
    if (options.json) {
        out << line;
    } else {
        print_reply(object, done ? out : err);
    }
    return done ? 0 : 1;
}

}  // namespace noren::proxy
