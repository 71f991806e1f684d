#include "tests/bench/load/command.hpp"

#include <algorithm>
#include <exception>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/bench/load/arguments.hpp"
#include "tests/bench/load/report.hpp"
#include "tests/bench/load/request_source.hpp"
#include "tests/bench/load/runner.hpp"
#include "tests/bench/load/text_table.hpp"

namespace load {
namespace {

constexpr const char* k_about =
    "Sends a load to an LLM inference server, checks the answers, reports latencies. Of a noren-sim every "
    "byte of\n"
    "a body is checked: its text is known, and it tells the body's hash. Of another engine: the framing, "
    "that\n"
    "every event is JSON, and the API's own end.\n"
    "Exit status: 0 all well (refusals with 429 or 503 are), 1 something altered, cut or failed, 2 wrong "
    "usage.\n";

/// What the command line says beyond Options.
struct Command {
    Options options;
    std::string url, against, labels = "A,B", api = "chat", prompts, per_request, stages, duration;
    std::uint32_t connections = 1;
    bool no_stream = false, no_keep_alive = false, no_verify = false, json = false;
};

/// An option whose text a function turns into a value.
template <typename Value, typename Parse>
CLI::Option* add_parsed(CLI::App& cli, const std::string& names, Value& value, Parse parse,
                        const std::string& about) {
    return cli.add_option_function<std::string>(
        names,
        [&value, parse, names](const std::string& text) {
            try {
                value = parse(text);
            } catch (const std::invalid_argument& problem) {
                throw CLI::ValidationError(names, problem.what());
            }
        },
        about);
}

void declare_what(CLI::App& cli, Command& c) {
    Options& o = c.options;
    cli.add_option("--url", c.url, "http://HOST:PORT or unix:/PATH; a path in it replaces the API's own")
        ->required();
    cli.add_option("--against", c.against, "a second url: every request goes to both, reported side by side");
    cli.add_option("--labels", c.labels, "what the report calls the two, as NAME,NAME")
        ->capture_default_str();
    cli.add_option("--api", c.api, "chat, completions, responses, messages, tgi, ollama, llamacpp or triton")
        ->capture_default_str();
    cli.add_option("--model", o.model, "model to ask for")->capture_default_str();
    add_parsed(cli, "--max-tokens", o.max_tokens, parse_range, "N or LEAST:MOST (64)");
    add_parsed(cli, "--prompt-words", o.prompt_words, parse_range,
               "N or LEAST:MOST, of synthetic prompts (32)");
    cli.add_option("--prompts", c.prompts,
                   "file of JSON lines, each {\"prompt\": \"...\"} or {\"body\": {...}}, used in turn");
    cli.add_option_function<std::vector<std::string>>(
        "-H,--header",
        [&o](const std::vector<std::string>& lines) {
            for (const std::string& line : lines)
                o.headers.push_back(parse_header(line));
        },
        "further request header, \"Name: value\"; may be repeated");
    cli.add_flag("--no-stream", c.no_stream, "ask for plain answers");
    cli.add_flag("--no-keep-alive", c.no_keep_alive, "a new connection for every request");
}

void declare_when(CLI::App& cli, Command& c) {
    Options& o = c.options;
    cli.add_option("-c,--connections", c.connections, "closed loop: clients, each asking again when served")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    cli.add_option("-n,--requests", o.requests, "end after so many requests (100 if no time is given)");
    cli.add_option("--duration", c.duration, "end after a time, such as 10s");
    cli.add_option("--stages", c.stages, "closed loop in stages, CLIENTS:TIME,..., each reported apart");
    add_parsed(cli, "--refused-pause", o.refused_pause, parse_duration,
               "closed loop: wait of a client that was refused, before it asks again (100ms)");
    add_parsed(cli, "--spread", o.spread, parse_duration,
               "closed loop: the clients of a stage begin evenly over so long (0s)");
    cli.add_option("--rate", o.rate, "open loop: requests per second, Poisson arrivals")
        ->check(CLI::Range(1e-3, 1e6));
    cli.add_option("--max-open", o.max_open, "open loop: arrivals beyond so many open requests are missed")
        ->capture_default_str();
    cli.add_option("--seed", o.seed, "of everything random")->capture_default_str();
    add_parsed(cli, "--connect-timeout", o.connect_timeout, parse_duration, "(5s)");
    add_parsed(cli, "--first-byte-timeout", o.first_byte_timeout, parse_duration,
               "from the request's start (120s)");
    add_parsed(cli, "--silence-timeout", o.silence_timeout, parse_duration,
               "between bytes of an answer (120s)");
    add_parsed(cli, "--total-timeout", o.total_timeout, parse_duration, "of a whole request, 0s = none (0s)");
}

void declare_how(CLI::App& cli, Command& c) {
    Options& o = c.options;
    cli.add_option("--leave", o.leave, "fraction of requests whose client leaves at a random moment")
        ->check(CLI::Range(0.0, 1.0));
    add_parsed(cli, "--leave-within", o.leave_within, parse_duration, "the latest such moment (1s)");
    cli.add_option("--slow", o.slow, "fraction of requests whose client reads slowly")
        ->check(CLI::Range(0.0, 1.0));
    cli.add_option("--read-rate", o.read_rate, "bytes per second that a slow client reads")
        ->check(CLI::Range(1, 1'000'000'000))
        ->capture_default_str();
    cli.add_flag(
        "--lean", o.lean,
        "of a noren-sim: time each event from its stamp (delay_seconds), check bodies by their hash, "
        "read no JSON");
    cli.add_flag("--no-verify", c.no_verify, "do not check the bytes of a noren-sim, nor ask it for hashes");
    cli.add_flag("--expect-same", o.expect_same, "with --against: both must generate the same text");
    cli.add_flag("--json", c.json, "one JSON object instead of the table");
    cli.add_option("--per-request", c.per_request, "write one JSON line per request to this file");
}

/// What the options mean together. Throws std::invalid_argument.
void complete(Command& c) {
    Options& o = c.options;
    const auto api = api_of(c.api);
    if (!api) throw std::invalid_argument("--api: there is no API \"" + c.api + "\"");
    o.api = *api;
    o.stream = !c.no_stream;
    o.keep_alive = !c.no_keep_alive;
    o.verify = !c.no_verify;
    o.urls = {c.url};
    if (!c.against.empty()) o.urls.push_back(c.against);
    const std::size_t comma = c.labels.find(',');
    if (comma == std::string::npos || c.labels.find(',', comma + 1) != std::string::npos)
        throw std::invalid_argument("--labels: expected NAME,NAME, found \"" + c.labels + "\"");
    o.labels = {c.labels.substr(0, comma), c.labels.substr(comma + 1)};
    o.labels.resize(o.urls.size());
    if (o.expect_same && c.against.empty()) throw std::invalid_argument("--expect-same needs --against");
    if (o.lean && c.no_verify) throw std::invalid_argument("--lean and --no-verify exclude each other");
    if (o.rate > 0 && o.spread.count() > 0)
        throw std::invalid_argument("--rate and --spread exclude each other");
    if (o.rate > 0 && !c.stages.empty())
        throw std::invalid_argument("--rate and --stages exclude each other");
    if (!c.stages.empty() && !c.duration.empty())
        throw std::invalid_argument("--stages and --duration exclude each other");
    if (c.stages.empty()) {
        const auto time = c.duration.empty() ? std::chrono::milliseconds(0) : parse_duration(c.duration);
        if (o.requests == 0 && time.count() == 0) o.requests = 100;
        o.stages = {{c.connections, time}};
    } else {
        o.stages = parse_stages(c.stages);
    }
    if (c.prompts.empty()) return;
    std::ifstream in(c.prompts);
    if (!in) throw std::invalid_argument("--prompts: cannot read " + c.prompts);
    o.prompts = read_prompts(in, c.prompts);
}

void show(const Options& options, const Progress& p, std::ostream& err) {
    std::string line = "  " + rounded(p.seconds) + " s";
    if (options.stages.size() > 1)
        line += "  stage " + std::to_string(p.stage + 1) + "/" + std::to_string(options.stages.size());
    line += "  " + grouped(p.done) + " done, " + grouped(p.open) + " open, " + grouped(p.refused) +
            " refused, " + grouped(p.failed) + " failed, " +
            rounded(p.seconds > 0 ? static_cast<double>(p.tokens) / p.seconds : 0) + " tokens/s";
    if (p.stopping) line += "  stopping";
    // CSI K: the rest of a longer line before.
    err << "\r" << line << "\x1b[K" << std::flush;
}

int run_and_report(const Command& c, std::ostream& out, std::ostream& err, bool live) {
    // Opened before the run: a long one is not to end in a wrong file name.
    std::ofstream per_request;
    if (!c.per_request.empty()) per_request.open(c.per_request);
    if (!c.per_request.empty() && !per_request) throw std::runtime_error("cannot write " + c.per_request);
    const Outcome outcome = run(c.options, [&](const Progress& progress) {
        if (live) show(c.options, progress, err);
    });
    if (live) err << "\r\x1b[K" << std::flush;
    if (c.json) {
        out << to_json(c.options, outcome) << "\n";
    } else {
        print_table(c.options, outcome, out);
    }
    if (per_request.is_open()) write_per_request(c.options, outcome, per_request);
    if (per_request.is_open() && !per_request.flush())
        throw std::runtime_error("cannot write " + c.per_request);
    const bool bad = std::any_of(outcome.results.begin(), outcome.results.end(),
                                 [](const Result& result) { return result.failed(); });
    return bad ? 1 : 0;
}

}  // namespace

int run_command(int argc, const char* const* argv, std::ostream& out, std::ostream& err, bool live) {
    Command command;
    CLI::App cli{k_about, "noren-load"};
    declare_what(cli, command);
    declare_when(cli, command);
    declare_how(cli, command);
    try {
        cli.parse(argc, argv);
        complete(command);
        return run_and_report(command, out, err, live);
    } catch (const CLI::ParseError& error) {
        return cli.exit(error, out, err) == 0 ? 0 : 2;
    } catch (const std::exception& problem) {
        err << "noren-load: " << problem.what() << "\n";
        return 2;
    }
}

}  // namespace load
