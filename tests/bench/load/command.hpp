#pragma once
// The program as a function.

#include <iosfwd>

namespace load {

/// Runs the command line. Progress goes to `err`, redrawn in place if `live`. Returns the exit status: 0 all
/// well, 1 something was altered, cut or failed, 2 wrong usage.
int run_command(int argc, const char* const* argv, std::ostream& out, std::ostream& err, bool live);

}  // namespace load
