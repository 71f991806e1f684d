// Many bodies through the observer in one process, for the differential test. Standard input: for each case a
// line "STATUS PIECE SIZE CONTENT_TYPE" and then SIZE bytes of body; standard output: one report line each.

#include <iostream>
#include <sstream>
#include <string>

#include "proxy/cli/observe_command.hpp"

int main() {
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) {
        noren::proxy::ObserveOptions options;
        options.sequences = 1;
        std::size_t piece = 0, size = 0;
        std::istringstream head(line);
        head >> options.status >> piece >> size >> std::ws;
        std::getline(head, options.content_type);
        std::string body(size, '\0');
        if (!std::cin.read(body.data(), static_cast<std::streamsize>(size))) return 1;
        std::cout << noren::proxy::observe_report(options, body, piece) << "\n";
    }
    std::cout.flush();
    return 0;
}
