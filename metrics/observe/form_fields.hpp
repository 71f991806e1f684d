#pragma once
// Text fields of a multipart/form-data body (RFC 7578), which speech-to-text requests are: the model stands
// in one of them, before the sound file or behind it.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace noren::metrics {

/// Bytes come cut anywhere. Of a file nothing is kept, of a field k_max_field bytes. May throw
/// std::bad_alloc.
class FormFields {
  public:
    static constexpr std::size_t k_max_field = 256;

    static bool is_form(std::string_view content_type);

    /// A content type without a boundary has no fields.
    explicit FormFields(std::string_view content_type);

    void feed(std::string_view bytes);

    /// By name: of the model and stream fields that have come.
    const std::map<std::string, std::string, std::less<>>& fields() const { return fields_; }

  private:
    enum class Part : unsigned char { skipped, head, field };

    bool next();
    bool skip();
    bool read_head();
    bool read_field();
    void drop(std::size_t bytes);

    std::string delimiter_;  ///< CRLF, two dashes and the boundary; empty: there is none
    std::string held_;       ///< bytes that are not decided yet
    Part part_ = Part::skipped;
    std::string name_;  ///< of the field
    std::map<std::string, std::string, std::less<>> fields_;
};

}  // namespace noren::metrics
