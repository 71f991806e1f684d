// noren: command line to action. Exit status: 0 done, 1 failed (also: this machine lacks what the config asks
// for), 2 wrong usage, 3 no noren to ask (ctl), 78 (EX_CONFIG) a config with mistakes.

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/load.hpp"
#include "proxy/app.hpp"
#include "proxy/cli/ctl_command.hpp"
#include "proxy/cli/observe_command.hpp"
#include "proxy/descriptors.hpp"
#include "proxy/host_check.hpp"
#include "proxy/problem.hpp"
#include "proxy/version.hpp"

namespace {

using namespace noren;

constexpr int k_failed = 1;
constexpr int k_wrong_usage = 2;
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

struct Loaded {
    config::Resolved config;
    int status = 0;  ///< what to exit with
};

/// Every mistake goes to stderr. here: what this machine lacks is one, but another start may find it there
/// (an address that comes up late), where a mistake in the file stays one.
Loaded load_and_tell(const config::Sources& sources, bool here) {
    Loaded loaded{config::load(sources)};
    const bool good = loaded.config.ok();
    if (here) proxy::check_host(loaded.config);
    for (const config::Mistake& mistake : loaded.config.mistakes)
        std::cerr << mistake.to_string() << "\n";
    if (!loaded.config.ok()) loaded.status = good ? k_failed : k_config_error;
    return loaded;
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
    const Loaded loaded = load_and_tell(sources, true);
    if (loaded.status != 0) return loaded.status;
    proxy::raise_descriptor_limit();
    proxy::make_descriptor_table(*loaded.config.config);
    try {
        proxy::App app(loaded.config, sources);
        for (const std::string& warning : warnings)
            app.warn(warning);
        app.run(true);
        return 0;
    } catch (const std::exception& problem) {
        std::cerr << "noren: " << proxy::sentence_of(problem) << "\n";
        return k_failed;
    }
}

/// The file, then every variable and flag that was set: what a verdict is about.
std::string names_of(const config::Sources& sources) {
    std::string names = sources.file().value_or("defaults");
    for (const config::OverrideName& name : config::override_names()) {
        if (name.name.empty()) continue;  // the file
        if (sources.flags.*name.member)
            names.append(", ").append(name.flag);
        else if (sources.environment.*name.member)
            names.append(", ").append(name.variable);
    }
    return names;
}

/// Judges what a start with the same flags and variables would start with. Without here, this machine is left
/// out of it: all of that may be for another one.
int check(config::Sources sources, const std::string& file, bool here) {
    if (!file.empty() && sources.flags.config) {
        std::cerr << "noren check: one file, please: FILE or --config\n";
        return k_wrong_usage;
    }
    if (!file.empty()) sources.flags.config = file;
    const Loaded loaded = load_and_tell(sources, here);
    if (loaded.status != 0) return loaded.status;
    for (const config::Mistake& missing : proxy::missing_here(loaded.config))
        std::cerr << "not on this machine: " << missing.to_string() << "\n";
    const std::string& warning = loaded.config.limit_file.warning;
    if (!warning.empty()) std::cerr << warning << "\n";
    if (sources.file() && config::says_nothing(loaded.config.file_text))
        std::cerr << config::k_empty_file << "\n";
    for (const config::Overruled& key : loaded.config.overruled)
        std::cerr << key.to_string() << "\n";
    std::cout << names_of(sources) << ": good\n";
    return 0;
}

std::string version_line() {
    return "noren " + std::string(proxy::version()) + " (" + std::string(proxy::revision()) + ", " +
           std::string(proxy::compiler()) + ")";
}

CLI::App* add_check(CLI::App& cli, std::string& file, bool& here, config::Overrides& flags) {
    CLI::App* check = cli.add_subcommand(
        "check",
        "Say whether noren could start with this file, these flags and the NOREN_* variables, or every "
        "mistake in them");
    check->add_option("FILE", file, "the config file; the same as --config");
    add_override_flags(*check, flags);
    check->add_flag("--here", here,
                    "also whether it can start on this machine: its addresses, the log's file, TLS files");
    return check;
}

CLI::App* add_observe(CLI::App& cli, proxy::ObserveOptions& options) {
    CLI::App* observe =
        cli.add_subcommand("observe", "Print what noren would record for a captured answer body");
    observe->add_option("FILE", options.file, "the body, as after HTTP de-chunking; - is stdin")->required();
    observe->add_option("--status", options.status, "the answer's status (200)");
    observe->add_option("--content-type", options.content_type, "the answer's Content-Type");
    observe->add_option("--content-encoding", options.content_encoding, "the answer's Content-Encoding");
    observe
        ->add_option("--sequences", options.sequences,
                     "how many the request asked for of each prompt, its n: where each reports its prompt, "
                     "all prompts are added up (not known: the last one is told)")
        ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
    observe->add_option("--split", options.split, "feed it in pieces of N bytes, or cut in \"all\" ways");
    return observe;
}

/// limit: what follows the command, if anything does.
void add_ctl(CLI::App& cli, proxy::CtlOptions& options, std::string& limit) {
    CLI::App* ctl = cli.add_subcommand("ctl", "Say something to a running noren");
    ctl->add_option("COMMAND", options.command, "reload, drain, undrain, status, ready or limit")
        ->required()
        ->check(CLI::IsMember({"reload", "drain", "undrain", "status", "ready", "limit"}));
    ctl->add_option("N", limit,
                    "for limit: requests in the engine at once until the next reload; 0 = unlimited");
    ctl->add_option("--socket", options.socket, "its control socket (default: the one of the config)");
    ctl->add_flag("--json", options.json, "print the answer as it came");
    ctl->fallthrough();  // `noren ctl status --config FILE` as well as `noren --config FILE ctl status`
}

int ctl(proxy::CtlOptions options, const std::string& limit, const config::Sources& sources) {
    if ((options.command == "limit") == limit.empty()) {
        std::cerr << "noren ctl: a number belongs to limit, and to nothing else: noren ctl limit 48\n";
        return k_wrong_usage;
    }
    if (!limit.empty()) options.command += " " + limit;
    // So that it needs no path: the socket of the noren that these flags and variables would start.
    if (options.socket.empty()) options.socket = config::control_socket(sources);
    return proxy::ctl_command(options, std::cout, std::cerr);
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_descriptors();
    CLI::App cli{"noren: a measuring, admitting reverse proxy in front of one LLM inference server"};
    cli.set_version_flag("--version", version_line());
    const config::Environment environment = config::read_environment(environ);
    config::Sources sources{environment.overrides, {}};
    std::string check_file, ctl_limit;
    bool check_here = false;
    proxy::ObserveOptions observe_options;
    proxy::CtlOptions ctl_options;
    add_override_flags(cli, sources.flags);
    const CLI::App* check_cli = add_check(cli, check_file, check_here, sources.flags);
    const CLI::App* observe_cli = add_observe(cli, observe_options);
    add_ctl(cli, ctl_options, ctl_limit);
    cli.require_subcommand(0, 1);

    try {
        cli.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return cli.exit(error) == 0 ? 0 : k_wrong_usage;
    }
    if (cli.get_subcommands().empty()) return serve(sources, environment.warnings);
    for (const std::string& warning : environment.warnings)
        std::cerr << "noren: " << warning << "\n";
    if (check_cli->parsed()) return check(std::move(sources), check_file, check_here);
    if (observe_cli->parsed()) return proxy::observe_command(observe_options, std::cout, std::cerr);
    return ctl(std::move(ctl_options), ctl_limit, sources);
}
