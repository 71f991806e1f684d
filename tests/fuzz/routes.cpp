// No spelling of a gated path is a way around the gate.

#include <string>

#include "config/config.hpp"
#include "proxy/http/target.hpp"
#include "proxy/route.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const RouteTable routes(noren::config::Config().admission.gated_paths);
    fuzz::Input input(data, size);
    const std::string text(input.rest());
    const http::Target target = http::parse_target(text, "POST");
    if (target.error) return 0;
    const Route route = routes.find("POST", target.origin_form);
    // The same path, with what servers fold away.
    const std::string path(path_of(target.origin_form));
    for (const std::string& spelled : {path + "/", "/." + path, "/x/.." + path, "/" + path, path + "?a=b"})
        fuzz::expect(routes.find("POST", spelled).gated == route.gated, "gated however it is spelled");
    return 0;
}
