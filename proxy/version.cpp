#include "proxy/version.hpp"

namespace noren::proxy {

std::string_view version() {
    return NOREN_VERSION;
}
std::string_view revision() {
    return NOREN_REVISION;
}
std::string_view compiler() {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

}  // namespace noren::proxy
