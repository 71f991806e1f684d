#pragma once
// A request body that is counted and hashed as it comes, and kept only if somebody will read it.

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>

#include "tests/sim/token_text.hpp"

namespace sim {

/// Beast's Body concept, for parsers only.
struct CountingBody {
    struct value_type {
        bool keep = true;
        std::string bytes;
        std::uint64_t size = 0;
        std::uint64_t fnv = k_fnv_basis;
    };

    class reader {
      public:
        template <bool is_request, typename Fields>
        reader(boost::beast::http::header<is_request, Fields>&, value_type& body) : body_(body) {}

        void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) { error = {}; }

        template <typename Buffers>
        std::size_t put(const Buffers& buffers, boost::system::error_code& error) {
            error = {};
            std::size_t taken = 0;
            for (auto it = boost::asio::buffer_sequence_begin(buffers);
                 it != boost::asio::buffer_sequence_end(buffers); ++it) {
                const boost::asio::const_buffer buffer = *it;
                const std::string_view piece(static_cast<const char*>(buffer.data()), buffer.size());
                body_.fnv = fnv1a(piece, body_.fnv);
                if (body_.keep) body_.bytes += piece;
                taken += piece.size();
            }
            body_.size += taken;
            return taken;
        }

        void finish(boost::system::error_code& error) { error = {}; }

      private:
        value_type& body_;
    };
};

}  // namespace sim
