#pragma once
// What is said over the control socket, as bytes in and bytes out: a client sends one line of JSON,
// {"command": "limit 48"}, and gets one line of JSON back, {"ok": true, "message": "..."}. No I/O.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace noren::proxy {

/// Of a client's line, its end included.
inline constexpr std::size_t k_max_control_line = 64 * 1024;

/// The line, its end included, that says a command.
std::string control_line(std::string_view command);

/// An answer, without the line end.
std::string control_answer(bool ok, std::string_view message);

/// The whole answer, its line end included, to what a client has said: text up to the first line end, or to
/// its end if there is none. handle: makes the answer to the words of a command; is called at most once, and
/// what it throws becomes an answer.
std::string answer_control(std::string_view text,
                           const std::function<std::string(std::string_view words)>& handle);

/// One of the things that a running noren can be told.
struct ControlCommand {
    enum class Kind { reload, drain, undrain, status, ready, limit };
    Kind kind = Kind::status;
    std::uint32_t limit = 0;  ///< of Kind::limit; 0 = unlimited

    bool operator==(const ControlCommand&) const = default;
};

/// words: what stands behind `noren ctl`. A string: why they are no command, for the person who said them.
std::variant<ControlCommand, std::string> parse_control_command(std::string_view words);

}  // namespace noren::proxy
