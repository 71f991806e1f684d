// Any text is either a config, which is the same when written out and read again, or a list of mistakes.

#include <string>

#include "config/load.hpp"
#include "config/render.hpp"
#include "tests/fuzz/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const auto loaded = noren::config::load_text(input.rest(), "fuzz.yaml");
    fuzz::expect(loaded.ok() == loaded.mistakes.empty(), "a config or mistakes");
    for (const auto& mistake : loaded.mistakes)
        fuzz::expect(!mistake.to_string().empty(), "a mistake has words");
    if (!loaded.ok()) return 0;
    const auto again = noren::config::load_text(noren::config::render(*loaded.config), "again.yaml");
    fuzz::expect(again.ok() && *again.config == *loaded.config, "written out and read again it is the same");
    return 0;
}
