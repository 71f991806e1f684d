#pragma once
// Every knob of noren, with its default and unit. Plain data: the rule for each key's value is in keys.cpp,
// loading is load.hpp, what the environment and the command line may set is overrides.hpp, what a reload
// changes is diff.hpp.
// noren.example.yaml lists the same keys with the same defaults; a test holds the two together.
// A new key: one member here, one line in keys.cpp, one line in noren.example.yaml.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace noren::config {

using Duration = std::chrono::milliseconds;  ///< resolution of every duration in the file: 1 ms
using Bytes = std::uint64_t;

/// TLS to the engine; only with an https:// url. Files are PEM and are read again when they change.
struct UpstreamTls {
    std::string ca;             ///< file of the CAs to trust; empty = those of the system
    std::string server_name;    ///< what the engine's certificate must be for; empty = the host of the url
    std::string verify = "on";  ///< on, or off: anybody can pose as the engine
    std::string certificate;    ///< file of the certificate to show if the engine asks; empty = none
    std::string key;            ///< file of its private key

    bool operator==(const UpstreamTls&) const = default;
};

/// The only inference server behind this noren.
struct Upstream {
    /// http://host[:port], https://host[:port] or unix:/path. Restart needed.
    std::string url = "http://127.0.0.1:8000";
    /// How long a pooled connection may idle. Must stay below the engine's own keep-alive time (uvicorn
    /// closes at 5 s), or a request is sent into a connection that is just being closed. 0 = no reuse.
    Duration idle_timeout{4'000};
    std::string health_path = "/health";  ///< probed with GET; any answer below 500 means "up"
    Duration health_interval{5'000};      ///< up to 1h; 0 = no probing, the engine counts as up
    Duration health_timeout{2'000};       ///< 10ms..1h
    UpstreamTls tls;

    bool operator==(const Upstream&) const = default;
};

/// TLS towards the clients; plain HTTP without a certificate. Files are PEM and are read again when they
/// change.
struct Tls {
    std::string certificate;  ///< file of the certificate and its chain; empty = no TLS
    std::string key;          ///< file of its private key, without a passphrase
    std::string client_ca;    ///< file of CAs: clients must show a certificate of one; empty = need not
    std::string min_version = "1.2";  ///< 1.2 or 1.3

    bool operator==(const Tls&) const = default;
};

/// Who may be in the engine, and who may wait.
struct Admission {
    std::uint32_t max_concurrency = 256;  ///< requests in the engine at once; 0 = unlimited
    /// A file that holds a max_concurrency and nothing else, stronger than every other source: an annotation
    /// of the pod, by way of the downward API. Empty = none; so is a file that is missing or blank.
    std::string max_concurrency_file;
    std::uint32_t max_queue = 512;    ///< requests waiting; 0 = nobody waits, refuse at once
    Duration queue_timeout{30'000};   ///< absolute, from ready-to-be-admitted; 0 = wait for ever
    std::uint16_t full_status = 429;  ///< status of queue_full and queue_timeout: 429 or 503
    /// Paths that make the engine work and so need a permit, with every method that may (all but GET, HEAD,
    /// OPTIONS and DELETE). `*` stands for exactly one path segment.
    // clang-format off
    std::vector<std::string> gated_paths = {
        // OpenAI, Anthropic and Cohere APIs, which most engines speak
        "/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", "/v1/responses", "/v1/messages",
        "/v1/embeddings", "/v1/rerank", "/v1/score", "/v1/classify", "/v1/audio/transcriptions",
        "/v1/audio/translations", "/v1/audio/speech", "/v1/images/generations", "/v1/images/edits",
        "/v2/chat", "/v2/embed", "/v2/rerank",
        // vLLM; SageMaker's /invocations also SGLang, TGI, TEI, Triton
        "/inference/v1/generate", "/pooling", "/classify", "/score", "/rerank", "/generative_scoring",
        "/v1/decisions", "/invocations",
        // SGLang
        "/generate", "/generate_from_file", "/encode", "/vertex_generate",
        // TGI, TEI
        "/", "/generate_stream", "/vertex", "/embed", "/embed_all", "/embed_sparse", "/predict", "/predict_tokens",
        "/similarity",
        // llama.cpp
        "/completion", "/completions", "/chat/completions", "/responses", "/infill", "/embedding", "/embeddings",
        "/reranking", "/v1/reranking", "/audio/transcriptions",
        // Ollama
        "/api/generate", "/api/chat", "/api/embed", "/api/embeddings",
        // Triton, TensorRT-LLM behind it
        "/v2/models/*/generate", "/v2/models/*/generate_stream", "/v2/models/*/infer",
        "/v2/models/*/versions/*/generate", "/v2/models/*/versions/*/generate_stream",
        "/v2/models/*/versions/*/infer",
        // NVIDIA's and others' ranking
        "/v1/rank"};
    // clang-format on

    bool operator==(const Admission&) const = default;
};

/// The client's side.
struct Downstream {
    Bytes buffer = 256 * 1024;          ///< read ahead of a slow reader, so the engine is freed; 16KiB..1GiB
    Duration stall_timeout{60'000};     ///< a client that takes no byte for so long is cut; 0 = never
    Bytes request_buffer = 256 * 1024;  ///< request body held before admission and for a retry; 4KiB..64MiB
    Bytes max_head = 32 * 1024;         ///< request line and fields together; 8KiB..63KiB
    std::uint32_t max_fields = 128;     ///< header fields of a request; 16..1000
    Bytes max_body = 1024ull * 1024 * 1024;  ///< request body; 0 = unlimited
    /// A request body that brings fewer bytes a second, on average over min_upload_window, is ended. 0 = may
    /// be as slow as timeouts.body_idle allows. Time in which the engine takes no more does not count.
    Bytes min_upload_rate = 500;
    Duration min_upload_window{30'000};      ///< 10ms..1h
    std::uint32_t max_connections = 20'000;  ///< open client connections, over all workers; 1..1000000
    /// ... of one client: of one IPv4 address, or of one IPv6 /64. 0 = no limit. Off, because behind a
    /// gateway all clients have one address. Clients on a Unix socket have none.
    std::uint32_t max_connections_per_client = 0;

    bool operator==(const Downstream&) const = default;
};

/// One named duration for each way of waiting; each has its own reason in logs and metrics. 0 = no limit
/// (not allowed for head and connect).
struct Timeouts {
    Duration head{10'000};            ///< to a new connection's first byte; from there to a head's end
    Duration body_idle{30'000};       ///< between bytes of a request body
    Duration keep_alive{75'000};      ///< an idle client connection between requests
    Duration connect{5'000};          ///< to the engine
    Duration first_byte{600'000};     ///< from the request sent to the answer's head; prefill included
    Duration upstream_idle{300'000};  ///< between bytes of an answer; comments and pings count as bytes
    Duration tunnel_idle{3'600'000};  ///< after a switch of protocols (WebSocket): between bytes either way
    Duration total{0};                ///< a whole exchange, from its head

    bool operator==(const Timeouts&) const = default;
};

/// GET-only endpoint for people, probes and Prometheus.
struct Ops {
    /// IPv4:port or [IPv6]:port; falls back to IPv4 where there is no IPv6. Restart needed.
    std::string listen = "[::]:9464";

    bool operator==(const Ops&) const = default;
};

/// The socket through which `noren ctl` changes things.
struct Control {
    std::string socket = "/run/noren/control.sock";  ///< path, mode 0600; empty = none. Restart needed.

    bool operator==(const Control&) const = default;
};

/// How a changed file is noticed.
struct Reload {
    /// auto: where the kernel reports changes, at once; and by looking every 5 s in any case. poll: by
    /// looking only, for a file system that reports changes that are none, or too many. Restart needed.
    std::string watch = "auto";

    bool operator==(const Reload&) const = default;
};

struct Drain {
    Duration lame_duck{5'000};  ///< not ready any more, still accepting, so that routers can notice
    Duration timeout{120'000};  ///< then running streams have so long to finish; below the pod's grace - 5s

    bool operator==(const Drain&) const = default;
};

struct Log {
    std::string level = "info";     ///< trace, debug, info, warning, error, off
    std::string access = "stdout";  ///< one JSON line per exchange: stdout, off, or a file. Restart needed.

    bool operator==(const Log&) const = default;
};

struct Metrics {
    std::vector<std::string> models;  ///< model names that always have their own label; others as they come
    /// Label values for models in all; later ones become "other". 1..1000. A label that is in use stays until
    /// the end of the process, though the names or the number change.
    std::uint32_t max_models = 32;

    bool operator==(const Metrics&) const = default;
};

/// The engine's own metrics page: how it is passed on, and what noren makes of it.
struct EngineMetrics {
    std::string path = "/metrics";  ///< on the data port and at the engine
    /// http://host[:port] or unix:/path of the page, where it is not at upstream.url; empty = it is. Restart
    /// needed.
    std::string url;
    /// GETs of the page that come within so long share one fetch. 0 = each is passed on by itself; up to 1m.
    Duration window{250};
    Duration timeout{5'000};  ///< for a fetch, 10ms..1h
    Bytes max_size =
        8 * 1024 * 1024;            ///< a larger page is passed on, but neither shared nor read; 4KiB..64MiB
    std::string figures = "off";    ///< on: noren_engine_* among noren's own metrics
    std::string merge = "off";      ///< on: noren's own metrics are followed by the engine's page
    std::string add_queue = "off";  ///< on, with merge: the waiting requests there include noren's queue
    Duration max_age{10'000};       ///< what is older is left out of both; 100ms..1h
    std::string orca = "off";       ///< endpoint-load-metrics in answers: off, asked, always

    bool operator==(const EngineMetrics&) const = default;
};

struct Config {
    std::string listen = "0.0.0.0:8080";  ///< IPv4:port, [IPv6]:port or unix:/path. Restart needed.
    std::uint32_t listen_mode = 0660;     ///< of the socket file, with listen: unix:/path. Restart needed.
    std::uint32_t workers = 0;            ///< threads; 0 = CPUs of the container, at most 4. Restart needed.
    Tls tls;
    Upstream upstream;
    Admission admission;
    Downstream downstream;
    Timeouts timeouts;
    Ops ops;
    Control control;
    Reload reload;
    Drain drain;
    Log log;
    Metrics metrics;
    EngineMetrics engine_metrics;

    bool operator==(const Config&) const = default;
};

}  // namespace noren::config
