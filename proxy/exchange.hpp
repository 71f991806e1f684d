#pragma once
// One request and its answer: the straight line from the parsed head to the recorded end.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/exchange_meter.hpp"
#include "metrics/observe/request_observer.hpp"
#include "proxy/admission/connection_quota.hpp"
#include "proxy/admission/gate.hpp"
#include "proxy/connection.hpp"
#include "proxy/failure.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"
#include "proxy/net/patience.hpp"
#include "proxy/net/task.hpp"
#include "proxy/relay/answer_body.hpp"
#include "proxy/relay/held_body.hpp"
#include "proxy/relay/request_body.hpp"
#include "proxy/upload_pace.hpp"
#include "proxy/upstream/pool.hpp"
#include "proxy/worker.hpp"

namespace noren::proxy {

namespace engine_page {
struct Page;
struct Outcome;
}  // namespace engine_page

/// Lives in the connection's frame for the length of run(). What it holds (permit, lease, gauges) gives
/// itself back when it goes, whatever way run() ends. The worker's thread only.
class Exchange final : private relay::PayloadSink {
  public:
    /// head: views of text that the caller keeps until run() is over. at: when it was parsed (t_recv).
    Exchange(Worker& worker, Downstream& down, http::RequestHead& head, const http::Framing& framing,
             metrics::TimePoint at);
    /// An answer that an exception broke off must not look whole.
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// True: the client's connection can carry another request.
    net::Task<bool> run();

  private:
    /// Of an answer's head; larger ones are refused as unparsable.
    static constexpr http::HeadLimits k_answer_head{64 * 1024, 256};
    /// Then it is the turn of the worker's other connections, however much more there is to read.
    static constexpr int k_reads_per_turn = 4;

    /// The request's body, from the client to the engine.
    struct Upload {
        Upload(const http::RequestHead& head, const http::Framing& framing, const config::Downstream& limits,
               metrics::TimePoint at);

        std::optional<metrics::RequestObserver> observer;  ///< until the whole body has been seen
        relay::RequestBody body;
        relay::HeldBody held;    ///< as it goes to the engine, from the first byte on
        bool replayable = true;  ///< held is all that was taken of the body so far
        bool expects_continue;
        bool continue_sent = false;
        std::string upgrade_offer;
        metrics::TimePoint client_heard;  ///< it last sent a byte
        UploadPace pace;
        bool sent = false;     ///< the whole request is with the kernel
        bool stopped = false;  ///< the engine wants no more of it
    };

    /// The place in the engine, and the connection to it.
    struct EngineSide {
        admission::Permit permit;
        admission::ConnectionQuota::EnginePlace place;  ///< in place of a permit, where none is needed
        metrics::TimePoint admitted_at{};
        std::optional<upstream::Lease> lease;
        std::optional<net::Outbox> out;
        bool retried = false;
        std::uint64_t taken_seen = 0;  ///< of out->written(), when last looked at
        metrics::TimePoint heard{};    ///< it last sent, or took, a byte
        bool spoke = false;            ///< any byte of an answer
        bool keeps_alive = false;
        bool surplus = false;  ///< it sent more than one answer
    };

    /// From the engine to the client.
    struct Answer {
        std::string head;  ///< received, not yet whole
        http::HeadScanner scanner{k_answer_head};
        int interims = 0;
        int status = 0;  ///< of the final answer's head, once sent to the client
        std::optional<relay::AnswerBody> body;
        bool keep_alive = false;       ///< what the client was told
        bool close_ends_body = false;  ///< the client can tell the end of the answer by the close only
        bool whole = false;
        bool tunnelling = false;  ///< the engine has switched protocols
        bool stalled = false;
        std::uint64_t written_seen = 0;  ///< of the client's outbox, when last looked at
        metrics::TimePoint client_took{};
    };

    static constexpr std::string_view k_too_slow =
        "the request body comes more slowly than downstream.min_upload_rate";

    /// What happens if nothing else happens before `at`.
    struct Due {
        metrics::TimePoint at = net::k_never;
        Reason reason = Reason::internal_error;
        std::string_view detail;
    };
    static Due sooner(const Due& a, const Due& b) { return b.at < a.at ? b : a; }
    static Verdict verdict_on(relay::RequestBody::Status status);

    // The phases, in order (a tunnel takes the relay's place after a 101). Each moves the exchange on, or
    // says why it cannot go on.
    net::Task<Verdict> collect_body();
    net::Task<Verdict> admit();
    net::Task<Verdict> connect();
    net::Task<Verdict> relay();
    net::Task<Verdict> tunnel();
    net::Task<> deliver_rest();
    /// In place of all of them, for the engine's metrics page. Empty: it is to be relayed like any other.
    net::Task<std::optional<bool>> share_page();
    bool finish(const Verdict& failure);

    // What the phases do between two sleeps.
    Verdict receive(std::string_view& bytes);
    Verdict hold_body();
    Verdict receive_held(std::size_t& received);
    void send_head();
    void tell_what_is_asked();
    Verdict pump_upload();
    Verdict send_on(std::string_view bytes);
    void prefetch() const noexcept;
    Verdict pump_answer();
    Verdict read_answer(bool& moved);
    Verdict take_head_bytes(std::string_view bytes, metrics::TimePoint at);
    Verdict take_interim(const http::ResponseHead& head);
    Verdict switch_protocols(const http::ResponseHead& head, std::string_view rest, metrics::TimePoint at);
    Verdict begin_answer(const http::ResponseHead& head, std::string_view rest, metrics::TimePoint at);
    Verdict take_body_bytes(std::string_view head, std::string_view bytes, metrics::TimePoint at);
    std::string load_report_for(const http::ResponseHead& head) const;
    Verdict engine_hung_up(bool orderly);
    void answer_over(metrics::TimePoint at);
    void leave_engine();
    bool may_retry(bool orderly) const;

    bool wants_shared_page() const;
    Verdict failure_of(const engine_page::Outcome& outcome) const;
    net::Task<Verdict> send_page(const engine_page::Page& page, metrics::TimePoint kept_since);
    std::string page_head(const engine_page::Page& page, metrics::TimePoint kept_since);

    Verdict watch_client();
    bool client_owes_body() const;
    Due next_due() const;
    Verdict expired(const Due& due);
    void break_off();
    Failure refused(Reason reason, std::string_view detail);
    Failure unreachable() const;
    Failure no_connection_left() const;
    std::uint32_t retry_after(std::chrono::duration<double> not_before = {}) const;
    bool answer_options();

    void payload(std::string_view piece) noexcept override;

    Worker& worker_;
    Downstream& down_;
    http::RequestHead& head_;  ///< its fields until the client gets the head of an answer
    const http::Framing framing_;
    const std::shared_ptr<const Settings> settings_;  ///< in force when the exchange began, to its end
    const Route route_;
    const std::string request_id_;
    const metrics::TimePoint began_;
    metrics::ExchangeMeter meter_;
    metrics::ByteCounts bytes_;
    Upload upload_;
    EngineSide engine_;
    Answer answer_;
    net::Patience patience_;
};

}  // namespace noren::proxy
