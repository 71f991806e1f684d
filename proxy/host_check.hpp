#pragma once
// What a good configuration asks of the machine it is on, and whether that is there: so that the start and
// `noren check` say it in the same words, at the lines that ask for it.

#include <vector>

#include "config/load.hpp"
#include "config/mistake.hpp"

namespace noren::proxy {

/// Where an address to listen on is not one of this machine, the access log cannot be written, or TLS files
/// are bad (check_tls_files), the mistakes are added at the lines that name them and the configuration is no
/// good one any more. Leaves no file and no socket behind. What another process may have (a port in use) is
/// not looked at: a running noren's file is good.
void check_host(config::Resolved& loaded);

/// The same, told only: a file may be checked on another machine than it is for.
std::vector<config::Mistake> missing_here(config::Resolved loaded);

}  // namespace noren::proxy
