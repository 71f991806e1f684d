// noren: command line to action. Exit status: 0 done, 1 failed, 2 wrong usage, 78 (EX_CONFIG) a config with
// mistakes.

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/overrides.hpp"
#include "proxy/app.hpp"
#include "proxy/cli/ctl_command.hpp"
#include "proxy/cli/observe_command.hpp"
#include "proxy/descriptors.hpp"
#include "proxy/host_check.hpp"
#include "proxy/problem.hpp"
#include "proxy/version.hpp"

namespace {

using namespace noren;

constexpr int k_config_error = 78;

void add_override_flags(CLI::App& cli, config::Overrides& flags) {
    for (const config::OverrideName& name : config::override_names()) {
        cli.add_option_function<std::string>(
               std::string(name.flag),
               [&flags, &name](const std::string& value) { flags.*name.member = value; },
               std::string(name.help))
            ->option_text(" ");
    }
}

/// Every mistake goes to stderr. here: what this machine lacks is one.
config::Resolved load_and_tell(const config::Sources& sources, bool here) {
    config::Resolved resolved = config::load(sources);
    if (here) proxy::check_host(resolved);
    for (const config::Mistake& mistake : resolved.mistakes)
        std::cerr << mistake.to_string() << "\n";
    return resolved;
}

/// A descriptor that was closed at the start (`noren >&-`) would be given to the first socket, and the log
/// would be written into it. This one cannot be written to: what is lost is counted.
void occupy_standard_descriptors() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);  // takes the lowest free number
}

/// What held bodies give back is soon used again: without this the kernel would take it and hand it out anew
/// page by page, which costs more than the copy (glibc; the limits are bytes).
void keep_freed_memory() {
    ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
    ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

int serve(const config::Sources& sources, const std::vector<std::string>& warnings) {
    keep_freed_memory();
    std::signal(SIGPIPE, SIG_IGN);  // whoever reads the log may go; that must not end the process
    const config::Resolved loaded = load_and_tell(sources, true);
    if (!loaded.ok()) return k_config_error;
    proxy::raise_descriptor_limit();
    try {
        proxy::App app(loaded, sources);
        for (const std::string& warning : warnings)
            app.warn(warning);
        app.run(true);
        return 0;
    } catch (const std::exception& problem) {
        std::cerr << "noren: " << proxy::sentence_of(problem) << "\n";
        return 1;
    }
}

/// Without here, only by what is in the file: it may be for another machine.
int check(const std::string& file, bool here) {
    config::Sources sources;
    sources.flags.config = file;
    const config::Resolved resolved = load_and_tell(sources, here);
    if (!resolved.ok()) return k_config_error;
    for (const config::Mistake& missing : proxy::missing_here(resolved))
        std::cerr << "not on this machine: " << missing.to_string() << "\n";
    if (!resolved.limit_file.warning.empty()) std::cerr << resolved.limit_file.warning << "\n";
    std::cout << file << ": good\n";
    return 0;
}

std::string version_line() {
    return "noren " + std::string(proxy::version()) + " (" + std::string(proxy::revision()) + ", " +
           std::string(proxy::compiler()) + ")";
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_descriptors();
    CLI::App cli{"noren: a measuring, admitting reverse proxy in front of one LLM inference server"};
    cli.set_version_flag("--version", version_line());
    config::Environment environment = config::read_environment(environ);
    config::Sources sources{environment.overrides, {}};
    add_override_flags(cli, sources.flags);

    std::string check_file;
    auto* check_cli =
        cli.add_subcommand("check", "Say whether a config file is good, or every mistake in it");
    check_cli->add_option("FILE", check_file, "the config file")->required();
    bool check_here = false;
    check_cli->add_flag(
        "--here", check_here,
        "also whether it can start on this machine: its addresses, the log's file, TLS files");

    proxy::ObserveOptions observe;
    auto* observe_cli =
        cli.add_subcommand("observe", "Print what noren would record for a captured answer body");
    observe_cli->add_option("FILE", observe.file, "the body, as after HTTP de-chunking; - is stdin")
        ->required();
    observe_cli->add_option("--status", observe.status, "the answer's status (200)");
    observe_cli->add_option("--content-type", observe.content_type, "the answer's Content-Type");
    observe_cli->add_option("--content-encoding", observe.content_encoding, "the answer's Content-Encoding");
    observe_cli->add_option("--sequences", observe.sequences,
                            "how many the request asked for of each prompt: its n (1)");
    observe_cli->add_option("--split", observe.split, "feed it in pieces of N bytes, or cut in \"all\" ways");

    proxy::CtlOptions ctl;
    ctl.socket.clear();
    auto* ctl_cli = cli.add_subcommand("ctl", "Say something to a running noren");
    ctl_cli->add_option("COMMAND", ctl.command, "reload, drain, undrain, status, ready or limit")
        ->required()
        ->check(CLI::IsMember({"reload", "drain", "undrain", "status", "ready", "limit"}));
    std::string limit;
    ctl_cli->add_option("N", limit,
                        "for limit: requests in the engine at once until the next reload; 0 = unlimited");
    ctl_cli->add_option("--socket", ctl.socket, "its control socket (default: the one of the config)");
    ctl_cli->add_flag("--json", ctl.json, "print the answer as it came");
    ctl_cli->fallthrough();  // `noren ctl status --config FILE` as well as `noren --config FILE ctl status`
    cli.require_subcommand(0, 1);

    try {
        cli.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return cli.exit(error) == 0 ? 0 : 2;
    }
    if (cli.get_subcommands().empty()) return serve(sources, environment.warnings);
    for (const std::string& warning : environment.warnings)
        std::cerr << "noren: " << warning << "\n";
    if (check_cli->parsed()) return check(check_file, check_here);
    if (observe_cli->parsed()) return proxy::observe_command(observe, std::cout, std::cerr);
    if ((ctl.command == "limit") == limit.empty()) {
        std::cerr << "noren ctl: a number belongs to limit, and to nothing else: noren ctl limit 48\n";
        return 2;
    }
    if (!limit.empty()) ctl.command += " " + limit;
    // So that it needs no path: the socket of the noren that these flags and variables would start.
    if (ctl.socket.empty()) ctl.socket = config::control_socket(sources);
    return proxy::ctl_command(ctl, std::cout, std::cerr);
}
