#pragma once
// A Config being put together from its sources, weakest first: what load() works with.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/mistake.hpp"
#include "config/value.hpp"

namespace noren::config {

class Assembly {
  public:
    /// The YAML of a file called `name`.
    void add_text(std::string_view text, std::string_view name);

    /// One value from a flag or an environment variable called `source`.
    void add_override(const Key& key, std::string_view text, std::string_view source);

    /// A mistake because of which part of what was asked for is not known: no file, no YAML, no such key.
    void add_gap(Mistake mistake);

    /// What was acceptable so far; the rest is at its default.
    const Config& so_far() const { return config_; }

    /// Checks what only the whole can tell (contradictions) and hands everything over.
    LoadResult finish() &&;

  private:
    struct Place {
        std::string_view source;
        int line = 0;
    };

    void add_mistake(Mistake mistake);
    void decode_map(const Value& map, std::string_view section, std::string_view name);
    void decode_entry(const Value& key, const Value& value, std::string_view section, std::string_view name);
    void read_key(const Key& key, const Value& value, Place place);
    void check_contradictions();
    bool is_full() const;

    Config config_;
    Origins origins_;
    Origins overruled_;  ///< where the file sets what an override has taken over
    std::vector<Mistake> mistakes_;
    /// Keys whose value in config_ is not what somebody asked for.
    std::set<std::string, std::less<>> refused_;
    /// False once something was asked for that could not be put to any key.
    bool is_whole_ = true;
};

}  // namespace noren::config
