#pragma once
// An answer put together from bytes that come in pieces. Sans-IO, bounded.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/engine_page/page.hpp"
#include "proxy/relay/answer_body.hpp"

namespace noren::proxy::engine_page {

class PageAssembly {
  public:
    /// most: bytes of a body. The answer is one to a GET.
    explicit PageAssembly(std::size_t most) : most_(most) {}

    /// Empty: more is to come.
    std::optional<Outcome> add(std::string_view bytes);
    /// The engine has closed the connection; orderly: with a FIN.
    Outcome at_close(bool orderly);

  private:
    std::optional<Outcome> read_head();
    std::optional<Outcome> begin(std::string text);
    std::optional<Outcome> add_body(std::string_view bytes);
    Outcome finish();

    std::size_t most_;
    std::string received_;  ///< of a head that is not whole
    http::HeadScanner scanner_{k_head};
    int interims_ = 0;
    std::shared_ptr<Page> page_;
    std::optional<relay::AnswerBody> body_;

    static constexpr http::HeadLimits k_head{64 * 1024, 256};
};

}  // namespace noren::proxy::engine_page
