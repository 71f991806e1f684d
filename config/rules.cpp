#include "config/rules.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>
#include <variant>

#include "config/address.hpp"
#include "config/ascii.hpp"
#include "config/units.hpp"

namespace noren::config {

namespace {

constexpr std::size_t k_longest_list = 1'000;
constexpr std::size_t k_longest_path = 4'096;
constexpr std::size_t k_longest_model_name = 256;

std::nullopt_t refuse(Refusals& refusals, const Value& value, std::string found, std::string expected) {
    refusals.push_back({value.line, std::move(found), std::move(expected)});
    return std::nullopt;
}

/// VCHAR of RFC 5234, without `#`: a fragment is never sent.
bool is_request_path(std::string_view text) {
    return text.starts_with('/') && text.size() <= k_longest_path &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

bool is_path_pattern(std::string_view text) {
    if (!is_request_path(text) || text.find('?') != std::string_view::npos) return false;
    for (std::size_t star = text.find('*'); star != std::string_view::npos; star = text.find('*', star + 1)) {
        const bool whole_segment =
            text[star - 1] == '/' && (star + 1 == text.size() || text[star + 1] == '/');
        if (!whole_segment) return false;
    }
    return true;
}

bool is_model_name(std::string_view text) {
    return !text.empty() && text.size() <= k_longest_model_name &&
           std::none_of(text.begin(), text.end(), is_control);
}

bool is_access_log(std::string_view text) {
    if (text == "stdout" || text == "off") return true;
    // A slash is asked for so that a slip (`stdot`) is told instead of becoming a file of that name.
    return text.find('/') != std::string_view::npos && !text.ends_with('/') &&
           text.size() <= k_longest_path && std::none_of(text.begin(), text.end(), is_control);
}

Rule<std::string> text(std::string expected, std::function<bool(std::string_view)> accepts) {
    return {[expected = std::move(expected), accepts = std::move(accepts)](
                const Value& value, Refusals& refusals) -> std::optional<std::string> {
                if (value.kind == Value::Kind::scalar && accepts(value.text)) return value.text;
                return refuse(refusals, value, describe(value), expected);
            },
            [](const std::string& member) { return Value::scalar(member); }};
}

Rule<std::vector<std::string>> list_of(std::string plural, const Rule<std::string>& item) {
    auto read = [plural = std::move(plural), read_item = item.read](
                    const Value& value, Refusals& refusals) -> std::optional<std::vector<std::string>> {
        if (value.kind != Value::Kind::list)
            return refuse(refusals, value, describe(value), "a list of " + plural);
        if (value.items.size() > k_longest_list) {
            return refuse(refusals, value, "a list of " + std::to_string(value.items.size()),
                          "at most " + std::to_string(k_longest_list) + ' ' + plural);
        }
        const std::size_t refused_before = refusals.size();
        std::vector<std::string> members;
        for (const Value& one : value.items) {
            if (auto member = read_item(one, refusals)) members.push_back(std::move(*member));
        }
        if (refusals.size() > refused_before) return std::nullopt;
        return members;
    };
    auto write = [write_item = item.write](const std::vector<std::string>& members) {
        std::vector<Value> items;
        std::transform(members.begin(), members.end(), std::back_inserter(items), write_item);
        return Value::list(std::move(items));
    };
    return {std::move(read), std::move(write)};
}

Rule<std::string> address(ParsedAddress (*parse)(std::string_view)) {
    return {[parse](const Value& value, Refusals& refusals) -> std::optional<std::string> {
                Value shown = value;
                if (value.kind != Value::Kind::scalar) shown.text.clear();
                ParsedAddress parsed = parse(shown.text);
                if (parsed.address) return value.text;
                shown.text = mask_userinfo(value.text);
                return refuse(refusals, value, describe(shown), std::move(parsed.expected));
            },
            [](const std::string& member) { return Value::scalar(mask_userinfo(member)); }};
}

/// A whole number without quotes; nothing if it is none or does not fit.
template <class T>
std::optional<T> parse_count(const Value& value) {
    if (value.kind != Value::Kind::scalar || value.quoted) return std::nullopt;
    const std::string& digits = value.text;
    if (digits.size() > 1 && digits.front() == '0') return std::nullopt;  // octal to some readers
    T number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return number;
}

std::string found_amount(const Value& value, UnitError error) {
    const std::string found = describe(value);
    return error == UnitError::no_unit ? found + " without a unit" : found;
}

/// What durations and sizes share: text to an amount between two bounds.
template <class T>
Rule<T> amount(std::variant<T, UnitError> (*parse)(std::string_view), std::string (*format)(T), T least,
               T most, const std::string& expected) {
    return {[=](const Value& value, Refusals& refusals) -> std::optional<T> {
                if (value.kind != Value::Kind::scalar)
                    return refuse(refusals, value, describe(value), expected);
                const auto parsed = parse(value.text);
                if (const auto* error = std::get_if<UnitError>(&parsed)) {
                    return refuse(refusals, value, found_amount(value, *error), expected);
                }
                const T member = std::get<T>(parsed);
                if (member < least || member > most)
                    return refuse(refusals, value, describe(value), expected);
                return member;
            },
            [format](const T& member) { return Value::scalar(format(member)); }};
}

/// Four digits, so that it looks like what chmod takes and cannot be meant as a decimal number.
std::optional<std::uint32_t> parse_mode(const Value& value) {
    if (value.kind != Value::Kind::scalar || value.text.size() != 4 || value.text.front() != '0')
        return std::nullopt;
    std::uint32_t mode = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [rest, error] = std::from_chars(value.text.data(), end, mode, 8);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return mode;
}

std::string octal(std::uint32_t mode) {
    std::string digits = "0";
    for (const unsigned shift : {6u, 3u, 0u})
        digits += static_cast<char>('0' + (mode >> shift & 7u));
    return digits;
}

template <class Choices>
std::string listing(const Choices& choices) {
    std::string out;
    for (const auto& choice : choices) {
        out.append(out.empty() ? "" : ", ").append(choice);
    }
    return out;
}

}  // namespace

Rule<std::uint32_t> count(std::uint32_t least, std::uint32_t most) {
    std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    return {[=, expected = std::move(expected)](const Value& value,
                                                Refusals& refusals) -> std::optional<std::uint32_t> {
                const auto number = parse_count<std::uint32_t>(value);
                if (number && *number >= least && *number <= most) return number;
                return refuse(refusals, value, describe(value), expected);
            },
            [](const std::uint32_t& member) { return Value::scalar(std::to_string(member)); }};
}

Rule<std::uint16_t> one_of(std::initializer_list<std::uint16_t> choices) {
    std::vector<std::uint16_t> allowed(choices);
    std::vector<std::string> names;
    for (const std::uint16_t choice : allowed)
        names.push_back(std::to_string(choice));
    return {[allowed = std::move(allowed), expected = "one of " + listing(names)](
                const Value& value, Refusals& refusals) -> std::optional<std::uint16_t> {
                const auto number = parse_count<std::uint16_t>(value);
                if (number && std::find(allowed.begin(), allowed.end(), *number) != allowed.end())
                    return number;
                return refuse(refusals, value, describe(value), expected);
            },
            [](const std::uint16_t& member) { return Value::scalar(std::to_string(member)); }};
}

Rule<std::string> one_of(std::initializer_list<std::string_view> choices) {
    std::vector<std::string> allowed(choices.begin(), choices.end());
    std::string expected = "one of " + listing(allowed);
    return text(std::move(expected), [allowed = std::move(allowed)](std::string_view word) {
        return std::find(allowed.begin(), allowed.end(), word) != allowed.end();
    });
}

Rule<Duration> duration(Duration least, Duration most) {
    return amount<Duration>(parse_duration, format_duration, least, most,
                            "a duration from " + format_duration(least) + " to " + format_duration(most) +
                                " (units ms, s, m, h)");
}

Rule<Bytes> size(Bytes least, Bytes most) {
    return amount<Bytes>(
        parse_size, format_size, least, most,
        "a size from " + format_size(least) + " to " + format_size(most) + " (units KiB, MiB, GiB)");
}

Rule<std::string> listen_address() {
    return address(parse_listen);
}

Rule<std::string> listen_tcp_address() {
    return address(parse_listen_tcp);
}

Rule<std::string> upstream_url() {
    return address(parse_upstream);
}

Rule<std::string> page_path() {
    return text("a path that begins with / and has neither spaces nor a query", [](std::string_view path) {
        return is_request_path(path) && path.find('?') == std::string_view::npos;
    });
}

Rule<std::string> plain_url() {
    return text("http://host[:port] or unix:/path, or \"\" for none", [](std::string_view url) {
        const auto engine = parse_upstream(url).address;
        return url.empty() || (engine && !engine->tls);
    });
}

Rule<std::string> socket_path() {
    return text("an absolute path of at most 107 bytes, or \"\" for none",
                [](std::string_view path) { return path.empty() || is_socket_path(path); });
}

Rule<std::string> file_path() {
    return text("an absolute path without control characters, or \"\" for none", [](std::string_view path) {
        return path.empty() || (path.starts_with('/') && std::none_of(path.begin(), path.end(), is_control));
    });
}

Rule<std::string> host_name() {
    return text("the name or address of a host, or \"\" for none",
                [](std::string_view host) { return host.empty() || is_host(host); });
}

Rule<std::uint32_t> file_mode() {
    const std::string expected = "the permissions of a file as four octal digits, 0000 to 0777";
    return {[=](const Value& value, Refusals& refusals) -> std::optional<std::uint32_t> {
                if (const auto mode = parse_mode(value)) return mode;
                return refuse(refusals, value, describe(value), expected);
            },
            [](const std::uint32_t& mode) { return Value::scalar(octal(mode)); }};
}

Rule<std::string> request_path() {
    return text("a path that begins with / and has no spaces", is_request_path);
}

Rule<std::string> access_log() {
    return text("stdout, off, or the path of a file", is_access_log);
}

Rule<std::vector<std::string>> path_patterns() {
    return list_of("paths",
                   text("a path that begins with /, where * stands for one whole segment", is_path_pattern));
}

Rule<std::vector<std::string>> model_names() {
    return list_of("model names",
                   text("a model name of 1 to 256 bytes without control characters", is_model_name));
}

}  // namespace noren::config
