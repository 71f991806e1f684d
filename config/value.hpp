#pragma once
// A configuration document as a small tree with line numbers: what the YAML reader hands to the rules, and
// what the rules hand to the renderer. Knows nothing of YAML or of keys.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace noren::config {

struct Value {
    enum class Kind {
        null,    ///< a key with nothing behind it
        scalar,  ///< `text`, plain or quoted
        list,    ///< `items`
        map,     ///< `items`, as key, value, key, value, ...; duplicates are kept, so that they can be told
        unsupported,  ///< YAML that has no place in a config; `text` names it: "an alias", "the tag !secret"
    };

    Kind kind = Kind::null;
    int line = 0;  ///< of its first character, from 1; 0 = not from a file
    std::string text;
    bool quoted = false;  ///< a quoted scalar is text, never a number
    std::vector<Value> items;

    static Value scalar(std::string text, int line = 0, bool quoted = false);
    static Value list(std::vector<Value> items);

    bool operator==(const Value&) const = default;
};

/// `text` in double quotes for a message: control characters escaped, long text cut.
std::string quote(std::string_view text);

/// What `value` is, for the "found ..." part of a mistake: `"abc"`, `12`, `a list`, `nothing`.
std::string describe(const Value& value);

}  // namespace noren::config
