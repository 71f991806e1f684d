#include "config/document.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/ascii.hpp"

namespace noren::config {

namespace {

constexpr std::size_t k_max_depth = 16;
constexpr std::size_t k_max_nodes = 20'000;

Mistake mistake(int line, std::string found, std::string expected) {
    return {"", line, "", std::move(found), std::move(expected)};
}

/// Carries a mistake out through yaml-cpp, which only knows exceptions.
struct Unreadable {
    Mistake mistake;
};

int line_of(const YAML::Mark& mark) {
    return mark.is_null() ? 0 : mark.line + 1;
}

/// Builds the tree from the parser's events instead of using YAML::Node: that one has no depth of its own,
/// follows aliases, and loses duplicate keys.
class TreeBuilder final : public YAML::EventHandler {
  public:
    Value take() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ == 1) return;
        throw Unreadable{mistake(line_of(mark), "more text after the end of the document",
                                 "one document (is the indentation right?)")};
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(Value::Kind::null, mark); }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        add(Value::Kind::unsupported, mark).text = "an alias";
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  const std::string& value) override {
        Value& scalar = add(Value::Kind::scalar, mark);
        scalar.quoted = tag == "!";
        scalar.text = value;
        refuse_tag(scalar, tag);
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {
        open(Value::Kind::list, mark, tag);
    }
    void OnSequenceEnd() override { open_.pop_back(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {
        open(Value::Kind::map, mark, tag);
    }
    void OnMapEnd() override { open_.pop_back(); }

  private:
    Value& add(Value::Kind kind, const YAML::Mark& mark) {
        const int line = line_of(mark);
        if (++nodes_ > k_max_nodes) {
            throw Unreadable{
                mistake(line, "more than " + std::to_string(k_max_nodes) + " values", "a configuration")};
        }
        Value& value = open_.empty() ? root_ : open_.back()->items.emplace_back();
        value.kind = kind;
        value.line = line;
        return value;
    }

    void open(Value::Kind kind, const YAML::Mark& mark, const std::string& tag) {
        if (open_.size() == k_max_depth) {
            throw Unreadable{mistake(line_of(mark),
                                     "nesting deeper than " + std::to_string(k_max_depth) + " levels",
                                     "sections with keys")};
        }
        Value& value = add(kind, mark);
        refuse_tag(value, tag);
        // Stays valid while it is open: a vector only grows while its last element is closed.
        open_.push_back(&value);
    }

    /// "?" and "" are what yaml-cpp gives to a value without a tag, "!" to a quoted one.
    static void refuse_tag(Value& value, const std::string& tag) {
        if (tag.empty() || tag == "?" || tag == "!") return;
        value.kind = Value::Kind::unsupported;
        value.text = "a value with the tag " + quote(tag);
    }

    Value root_;
    std::vector<Value*> open_;
    std::size_t nodes_ = 0;
    int documents_ = 0;
};

int line_at(std::string_view text, std::size_t offset) {
    const auto begin = text.begin();
    return 1 + static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(offset), '\n'));
}

/// Length of the UTF-8 character at the front of `text`; 0 = not valid by RFC 3629.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return length;
}

/// yaml-cpp takes any bytes; what is not text is told here.
std::optional<Mistake> find_unreadable_bytes(std::string_view text) {
    if (text.size() > k_max_document) return mistake(0, "more than 1MiB", "at most 1MiB of YAML");
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_length(text.substr(i));
        if (length == 0) return mistake(line_at(text, i), "bytes that are not UTF-8", "UTF-8 text");
        if (is_control(text[i]) && text[i] != '\t' && text[i] != '\n' && text[i] != '\r')
            return mistake(line_at(text, i), "a control character", "UTF-8 text");
        i += length;
    }
    return std::nullopt;
}

bool is_indented_with_tab(std::string_view text, int line) {
    std::size_t begin = 0;
    for (int i = 1; i < line && begin != std::string_view::npos; ++i) {
        begin = text.find('\n', begin);
        if (begin != std::string_view::npos) ++begin;
    }
    if (begin == std::string_view::npos) return false;
    const std::size_t first = text.find_first_not_of(' ', begin);
    return first != std::string_view::npos && text[first] == '\t';
}

Mistake syntax_mistake(std::string_view text, const YAML::Exception& error) {
    const int line = line_of(error.mark);
    if (is_indented_with_tab(text, line)) return mistake(line, "a tab", "spaces as indentation");
    return mistake(line, "a syntax error (" + error.msg + ')', "YAML");
}

}  // namespace

std::variant<Value, Mistake> parse_document(std::string_view text) {
    if (auto unreadable = find_unreadable_bytes(text)) return std::move(*unreadable);
    // With a line break at the end yaml-cpp takes an open quote as closed there.
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    try {
        std::istringstream in{std::string(text)};
        YAML::Parser parser(in);
        TreeBuilder builder;
        // The second call only finds out whether there is more; the builder refuses it if so.
        if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
        return builder.take();
    } catch (const Unreadable& unreadable) {
        return unreadable.mistake;
    } catch (const YAML::Exception& error) {
        return syntax_mistake(text, error);
    } catch (const std::exception& error) {
        return mistake(0, std::string("text that cannot be read (") + error.what() + ')', "YAML");
    }
}

}  // namespace noren::config
