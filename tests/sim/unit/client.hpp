#pragma once
// A blocking client that keeps what a library would hide: chunk boundaries, FIN or RST, half an answer.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sim::test {

/// How a connection stands after a reply was read.
enum class Close { open, fin, reset, timeout };

struct Reply {
    unsigned status = 0;              ///< 0 = nothing that is a status line
    std::string head;                 ///< with its blank line
    std::string body;                 ///< payload, as far as it came
    std::vector<std::string> chunks;  ///< of a chunked body, the last one not included
    std::string trailers;             ///< whole lines
    bool whole = false;               ///< the framing says that all has come
    Close close = Close::open;

    std::string field(std::string_view lower_case_name) const;
};

class Client {
  public:
    /// Throws std::system_error if nobody listens.
    explicit Client(std::uint16_t port);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void send(std::string_view bytes) const;

    /// Reads one answer, skipping 1xx, until it is whole or the connection is over. Gives up after 5 s of
    /// silence.
    Reply read_reply();

    /// Reads until `text` has come (true) or no more can come.
    bool read_until(std::string_view text);

    /// Everything received and not yet part of a reply.
    const std::string& received() const { return received_; }

    void close();

  private:
    bool read_more(Reply& reply);
    bool parse_chunks(Reply& reply, std::size_t start);

    int fd_ = -1;
    std::string received_;
};

/// A request with a JSON body; `headers` are whole lines.
std::string post(std::string_view path, std::string_view body, std::string_view headers = "");
std::string get(std::string_view path);

/// One request on a connection of its own.
Reply roundtrip(std::uint16_t port, std::string_view request);

}  // namespace sim::test
