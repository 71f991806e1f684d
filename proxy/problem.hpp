#pragma once
// What an exception has to say to an operator.

#include <exception>
#include <string>

namespace noren::proxy {

/// Its own words. Boost's system errors end with a place in Boost's headers, which is left out here.
std::string sentence_of(const std::exception& problem);

/// Whether it tells of a path that this user may not write to, or may not make the folders of.
bool is_about_rights(const std::exception& problem);

}  // namespace noren::proxy
