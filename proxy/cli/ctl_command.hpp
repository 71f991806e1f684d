#pragma once
// `noren ctl`: says one command to a running noren through its control socket and shows the answer.

#include <chrono>
#include <iosfwd>
#include <string>

namespace noren::proxy {

struct CtlOptions {
    std::string socket;   ///< path of the control socket
    std::string command;  ///< reload, drain, undrain, status, ready, limit N
    bool json = false;    ///< the answer as it came
    /// For the answer: a noren that hangs must not hang a preStop hook.
    std::chrono::milliseconds patience{10'000};
};

/// Exit status: 0 done (ready: it is), 1 refused or failed (ready: it is not), 3 no noren listens there.
int ctl_command(const CtlOptions& options, std::ostream& out, std::ostream& err);

/// Prints a noren's answer, one line of JSON; the exit status that it means.
int show_control_answer(const std::string& line, const CtlOptions& options, std::ostream& out,
                        std::ostream& err);

}  // namespace noren::proxy
