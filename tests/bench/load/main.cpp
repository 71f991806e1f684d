// noren-load: command line. Exit status: 0 all well, 1 something was altered, cut or failed, 2 wrong usage.

#include <unistd.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "tests/bench/load/report.hpp"
#include "tests/bench/load/runner.hpp"

namespace {

using namespace load;

/// "64" or "16:256".
Range range_of(const std::string& text) {
    Range range;
    char colon = ':';
    std::istringstream in(text);
    in >> range.least;
    if (in.eof()) {
        range.most = range.least;
    } else if (!(in >> colon >> range.most) || colon != ':' || range.most < range.least || !in.eof()) {
        throw CLI::ValidationError("expected N or LEAST:MOST, found " + text);
    }
    return range;
}

/// "250ms", "10s", "2m".
std::chrono::milliseconds duration_of(const std::string& text) {
    std::size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    const std::string unit = text.substr(used);
    const double factor = unit == "ms" ? 1 : unit == "s" ? 1e3 : unit == "m" ? 6e4 : 0;
    if (used == 0 || factor == 0 || value < 0)
        throw CLI::ValidationError("expected a time like 250ms, 10s or 2m, found " + text);
    return std::chrono::milliseconds(static_cast<std::int64_t>(value * factor));
}

/// "4:5s,16:5s".
std::vector<Stage> stages_of(const std::string& text) {
    std::vector<Stage> stages;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        const std::size_t colon = part.find(':');
        if (colon == std::string::npos)
            throw CLI::ValidationError("expected CLIENTS:TIME,..., found " + part);
        stages.push_back({range_of(part.substr(0, colon)).least, duration_of(part.substr(colon + 1))});
    }
    return stages;
}

/// JSON lines with a "prompt" each.
std::vector<std::string> read_prompts(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("cannot read " + file);
    std::vector<std::string> prompts;
    for (std::string line; std::getline(in, line);) {
        boost::system::error_code error;
        const auto value = boost::json::parse(line, error);
        const auto* object = value.if_object();
        const auto* prompt = object ? object->if_contains("prompt") : nullptr;
        if (error || !prompt || !prompt->is_string())
            throw std::runtime_error(file + ": line " + std::to_string(prompts.size() + 1) +
                                     ": expected {\"prompt\": \"...\"}");
        prompts.emplace_back(prompt->as_string());
    }
    if (prompts.empty()) throw std::runtime_error(file + " holds no prompt");
    return prompts;
}

bool anything_failed(const Outcome& outcome) {
    for (const Result& result : outcome.results)
        if (!result.error.empty() || (result.status >= 400 && result.status != 429 && result.status != 503))
            return true;
    return false;
}

int run_and_report(const Options& options, bool json, const std::string& per_request) {
    const bool show_progress = !json && ::isatty(STDERR_FILENO) != 0;
    const Outcome outcome = run(options, [&](const Progress& progress) {
        if (!show_progress) return;
        std::cerr << "\r  " << static_cast<int>(progress.seconds) << " s: " << progress.done
                  << " requests done, " << progress.failed << " refused or failed   " << std::flush;
    });
    if (show_progress) std::cerr << "\r" << std::string(60, ' ') << "\r";
    if (json) {
        std::cout << to_json(options, outcome) << "\n";
    } else {
        print_table(options, outcome, std::cout);
    }
    if (!per_request.empty()) {
        std::ofstream file(per_request);
        write_per_request(outcome, file);
        if (!file) throw std::runtime_error("cannot write " + per_request);
    }
    return anything_failed(outcome) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App cli{
        "noren-load: sends a load to an inference server, checks every byte of the answers, reports "
        "latencies"};
    Options options;
    std::string url, against, api = "chat", max_tokens = "64", prompt_words = "32", duration, stages, prompts,
                              per_request;
    std::string silence = "120s", leave_within = "1s";
    std::uint32_t connections = 1;
    bool no_stream = false, no_keep_alive = false, no_verify = false, json = false;
    cli.add_option("--url", url, "http://host:port or unix:/path")->required();
    cli.add_option("--against", against,
                   "a second url: every request goes to both in turn, reported side by side");
    cli.add_option("--api", api, "chat, completions, responses, messages, tgi, ollama, llamacpp, triton");
    cli.add_option("--model", options.model, "model to ask for");
    cli.add_option("--max-tokens", max_tokens, "N or LEAST:MOST");
    cli.add_option("--prompt-words", prompt_words, "N or LEAST:MOST, of synthetic prompts");
    cli.add_option("--prompts", prompts, "JSON lines with a \"prompt\" each, instead of synthetic ones");
    cli.add_option("-H,--header", options.headers, "further request header, \"Name: value\"");
    cli.add_option("-c,--connections", connections,
                   "closed loop: clients, each sending its next request when served");
    cli.add_option("-n,--requests", options.requests, "end after so many requests");
    cli.add_option("--duration", duration, "end after so long, such as 10s");
    cli.add_option("--stages", stages, "closed loop in stages, CLIENTS:TIME,...");
    cli.add_option("--rate", options.rate, "open loop: requests per second, Poisson arrivals");
    cli.add_option("--max-open", options.max_open,
                   "open loop: arrivals beyond so many open requests are missed");
    cli.add_option("--seed", options.seed, "of everything random");
    cli.add_option("--silence", silence, "give a request up after so long without a byte");
    cli.add_option("--leave", options.leave, "fraction of requests whose client leaves at a random moment");
    cli.add_option("--leave-within", leave_within, "the latest such moment");
    cli.add_option("--per-request", per_request, "file for one JSON line per request");
    cli.add_flag("--no-stream", no_stream, "ask for plain answers");
    cli.add_flag("--no-keep-alive", no_keep_alive, "a new connection for every request");
    cli.add_flag("--no-verify", no_verify, "do not check the text of a noren-sim");
    cli.add_flag("--json", json, "one JSON object instead of the table");
    try {
        cli.parse(argc, argv);
        const auto known = api_of(api);
        if (!known) throw CLI::ValidationError("there is no API " + api);
        options.api = *known;
        options.urls = {url};
        if (!against.empty()) options.urls.push_back(against);
        options.stream = !no_stream;
        options.keep_alive = !no_keep_alive;
        options.verify_text = !no_verify;
        options.max_tokens = range_of(max_tokens);
        options.prompt_words = range_of(prompt_words);
        options.silence_timeout = duration_of(silence);
        options.leave_within = duration_of(leave_within);
        if (!prompts.empty()) options.prompts = read_prompts(prompts);
        const auto length = duration.empty() ? std::chrono::milliseconds(0) : duration_of(duration);
        if (options.requests == 0 && duration.empty() && stages.empty()) options.requests = 100;
        options.stages = stages.empty() ? std::vector<Stage>{{connections, length}} : stages_of(stages);
        return run_and_report(options, json, per_request);
    } catch (const CLI::ParseError& error) {
        return cli.exit(error) == 0 ? 0 : 2;
    } catch (const std::exception& problem) {
        std::cerr << "noren-load: " << problem.what() << "\n";
        return 2;
    }
}
