#include "metrics/observe/form_fields.hpp"

#include <algorithm>
#include <utility>

#include "metrics/observe/ascii.hpp"

namespace noren::metrics {
namespace {

constexpr std::size_t k_slice = 4096;     // looked at in one go
constexpr std::size_t k_max_head = 2048;  // of a part's header fields

/// The value of a parameter as in `; name="value"` or `; name=value`; empty: it has none.
std::string parameter(std::string_view field, std::string_view name) {
    for (std::size_t at = 0; (at = field.find(';', at)) != std::string_view::npos;) {
        at = std::min(field.find_first_not_of("; \t", at), field.size());
        const std::string_view rest = field.substr(at);
        if (rest.size() <= name.size() || rest[name.size()] != '=') continue;
        if (!same_word(rest.substr(0, name.size()), name)) continue;
        const std::string_view value = rest.substr(name.size() + 1);
        if (value.starts_with('"')) return std::string(value.substr(1, value.find('"', 1) - 1));
        return std::string(value.substr(0, value.find_first_of("; \t\r\n")));
    }
    return {};
}

}  // namespace

bool FormFields::is_form(std::string_view content_type) {
    constexpr std::string_view k_form = "multipart/form-data";
    return same_word(content_type.substr(0, k_form.size()), k_form);
}

FormFields::FormFields(std::string_view content_type) {
    const std::string boundary = parameter(content_type, "boundary");
    if (boundary.empty()) return;
    delimiter_ = "\r\n--" + boundary;
    held_ = "\r\n";  // the first delimiter may begin the body
}

void FormFields::feed(std::string_view bytes) {
    if (delimiter_.empty()) return;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), k_slice))) {
        held_.append(bytes.substr(0, k_slice));
        while (next()) {
        }
    }
}

/// False: that takes more bytes.
bool FormFields::next() {
    switch (part_) {
        case Part::skipped:
            return skip();
        case Part::head:
            return read_head();
        case Part::field:
            return read_field();
    }
    return false;
}

bool FormFields::skip() {
    const std::size_t end = held_.find(delimiter_);
    if (end == std::string::npos) {
        drop(held_.size() - std::min(held_.size(), delimiter_.size() - 1));
        return false;
    }
    drop(end + delimiter_.size());
    part_ = Part::head;
    return true;
}

bool FormFields::read_head() {
    const std::size_t end = held_.find("\r\n\r\n");
    if (end == std::string::npos) {
        if (held_.size() > k_max_head) part_ = Part::skipped;
        return part_ == Part::skipped;
    }
    const std::string_view head = std::string_view(held_).substr(0, end);
    name_ = parameter(head, "name");
    const bool wanted = name_ == "model" || name_ == "stream";
    part_ = wanted && parameter(head, "filename").empty() ? Part::field : Part::skipped;
    drop(end + 2);  // the second CRLF may begin the delimiter behind an empty field
    return true;
}

bool FormFields::read_field() {
    const std::size_t end = held_.find(delimiter_);
    if (end == std::string::npos) {
        if (held_.size() > k_slice) part_ = Part::skipped;
        return part_ == Part::skipped;
    }
    if (end >= 2) fields_[std::exchange(name_, {})] = held_.substr(2, std::min(end - 2, k_max_field));
    drop(end + delimiter_.size());
    part_ = Part::head;
    return true;
}

void FormFields::drop(std::size_t bytes) {
    held_.erase(0, bytes);
}

}  // namespace noren::metrics
