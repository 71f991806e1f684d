#include "proxy/problem.hpp"

#include <system_error>

#include <boost/system/system_error.hpp>

namespace noren::proxy {
namespace {

/// None: not an error of the system.
std::error_code code_of(const std::exception& problem) {
    if (const auto* error = dynamic_cast<const boost::system::system_error*>(&problem)) return error->code();
    if (const auto* error = dynamic_cast<const std::system_error*>(&problem)) return error->code();
    return {};
}

}  // namespace

std::string sentence_of(const std::exception& problem) {
    std::string text = problem.what();
    const auto* error = dynamic_cast<const boost::system::system_error*>(&problem);
    if (!error) return text;
    const std::string with_place = error->code().what();
    if (text.ends_with(with_place))
        text.replace(text.size() - with_place.size(), with_place.size(), error->code().message());
    return text;
}

bool is_about_rights(const std::exception& problem) {
    const std::error_code code = code_of(problem);
    // A folder that could not be made shows as one that is not there.
    for (const std::errc error : {std::errc::permission_denied, std::errc::operation_not_permitted,
                                  std::errc::read_only_file_system, std::errc::no_such_file_or_directory})
        if (code == error) return true;
    return false;
}

}  // namespace noren::proxy
