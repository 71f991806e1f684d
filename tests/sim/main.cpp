// noren-sim: the simulated inference engine as a program.

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <system_error>

#include <CLI/CLI.hpp>

#include "tests/sim/engine.hpp"

namespace {

/// What the command line says before it is made into Options.
struct Flags {
    std::string listen = "127.0.0.1:8000";
    double ttft = -1;
    double tps = -1;
    std::string gap = "exp";
    double keep_alive = 5;
    double step_base_ms = 12;
    double step_per_sequence_ms = 0.4;
    double step_per_kv_token_us = 0.02;
    std::string fault;
};

sim::Duration from_seconds(double seconds) {
    return std::chrono::duration_cast<sim::Duration>(std::chrono::duration<double>(seconds));
}

void describe_engine(CLI::App& app, Flags& flags, sim::Options& options) {
    auto* gpu = app.add_option_group("The GPU", "a batch that all requests share (the default)");
    gpu->add_option("--max-batch", options.gpu.max_batch, "sequences in one step")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    gpu->add_option("--kv-tokens", options.gpu.kv_tokens, "KV cache; a sequence reserves prompt + output")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    gpu->add_option("--step-tokens", options.gpu.step_tokens, "tokens one step may process (chunked prefill)")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    gpu->add_option("--prefill-tps", options.gpu.prefill_tps, "prompt tokens per second")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    gpu->add_option("--step-base-ms", flags.step_base_ms, "time of a decode step, the fixed part")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    gpu->add_option("--step-per-seq-ms", flags.step_per_sequence_ms, "and per sequence in the batch")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    gpu->add_option("--step-per-kv-token-us", flags.step_per_kv_token_us, "and per token of context")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);

    auto* lone =
        app.add_option_group("Lone streams", "each request paced for itself (if --ttft or --tps is given)");
    lone->add_option("--ttft", flags.ttft, "seconds from request to first token (default 0.2)")
        ->check(CLI::NonNegativeNumber);
    lone->add_option("--tps", flags.tps, "token events per second after it; 0 = no gaps (default 50)")
        ->check(CLI::NonNegativeNumber);
    lone->add_option("--gap", flags.gap, "fixed or exp(onential) gaps")
        ->capture_default_str()
        ->check(CLI::IsMember({"fixed", "exp"}));
    lone->add_option("--seed", options.seed, "of the gaps, together with the request id")
        ->capture_default_str();
}

void describe_server(CLI::App& app, Flags& flags, sim::Options& options) {
    app.add_option("--listen", flags.listen, "HOST:PORT; port 0 takes any free one")->capture_default_str();
    app.add_option("--model", options.model, "model name to list and to answer with")->capture_default_str();
    app.add_option("--default-tokens", options.ask.default_tokens,
                   "output tokens when the request names none")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--max-output", options.ask.max_output, "what max_tokens is cut to")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--keep-alive", flags.keep_alive, "seconds an idle connection is kept")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--max-body", options.max_body, "request body bytes; more is 413")->capture_default_str();
    app.add_option("--created", options.created, "Unix seconds to put into answers instead of now");
    app.add_option("--fault", flags.fault,
                   "do this to every request that asks for no fault: " + sim::fault_forms());
    app.add_option("--truth", options.truth_file,
                   "append what really happened to each request, as JSON lines");
    app.add_flag("--keep-truth", options.keep_truth, "also keep it in memory for GET /sim/truth");
}

void apply(const Flags& flags, sim::Options& options) {
    const auto colon = flags.listen.rfind(':');
    if (colon == std::string::npos)
        throw CLI::ValidationError("--listen", "expected HOST:PORT, found " + flags.listen);
    options.address = flags.listen.substr(0, colon);
    if (options.address.starts_with('[') && options.address.ends_with(']')) {
        options.address = options.address.substr(1, options.address.size() - 2);
    }
    const std::string port = flags.listen.substr(colon + 1);
    if (!CLI::detail::lexical_cast(port, options.port)) {
        throw CLI::ValidationError("--listen", "expected a port from 0 to 65535, found " + port);
    }
    options.keep_alive =
        std::chrono::duration_cast<std::chrono::milliseconds>(from_seconds(flags.keep_alive));
    options.gpu.step_base = from_seconds(flags.step_base_ms / 1e3);
    options.gpu.step_per_sequence = from_seconds(flags.step_per_sequence_ms / 1e3);
    options.gpu.step_per_kv_token = from_seconds(flags.step_per_kv_token_us / 1e6);
    if (flags.ttft >= 0 || flags.tps >= 0) {
        sim::Pace pace;
        if (flags.ttft >= 0) pace.ttft = from_seconds(flags.ttft);
        if (flags.tps >= 0) pace.gap = flags.tps > 0 ? from_seconds(1 / flags.tps) : sim::Duration{};
        pace.exponential = flags.gap == "exp";
        options.lone = pace;
    }
    if (flags.fault.empty()) return;
    const auto fault = sim::parse_fault(flags.fault);
    if (!fault)
        throw CLI::ValidationError("--fault",
                                   "found " + flags.fault + ", expected one of " + sim::fault_forms());
    options.fault = *fault;
}

/// Thousands of streams need more than the usual 1,024 descriptors.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int wait_for_signal(const sigset_t& signals) {
    int signal = 0;
    sigwait(&signals, &signal);
    return signal;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "A simulated LLM inference engine: continuous batching, eight API families, faults on demand.");
    Flags flags;
    sim::Options options;
    describe_server(app, flags, options);
    describe_engine(app, flags, options);
    try {
        app.parse(argc, argv);
        apply(flags, options);
    } catch (const CLI::ParseError& error) {
        return app.exit(error);
    }

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread, so that only sigwait() sees them
    std::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();

    try {
        const std::string address = options.address;
        sim::Engine engine(std::move(options));
        engine.start();
        std::cout << "noren-sim listens on "
                  << (address.find(':') == std::string::npos ? address : "[" + address + "]") << ':'
                  << engine.port() << std::endl;
        wait_for_signal(signals);
        engine.stop();
    } catch (const std::system_error& error) {
        std::cerr << "noren-sim: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
