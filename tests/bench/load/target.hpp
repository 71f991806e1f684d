#pragma once
// Where requests go.

#include <string>
#include <vector>

#include <boost/asio/generic/stream_protocol.hpp>

namespace load {

struct Target {
    using Endpoint = boost::asio::generic::stream_protocol::endpoint;

    std::vector<Endpoint> endpoints;  ///< tried in turn; at least one
    std::string host;                 ///< for the Host field
    std::string path;                 ///< with query; empty = the API's own
};

/// http://host:port[/path] or unix:/path; looks the name up, blocking. Throws std::runtime_error with the url
/// and what is wrong with it.
Target resolve(const std::string& url);

}  // namespace load
