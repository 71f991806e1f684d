#include "proxy/reload.hpp"

#include <fcntl.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "metrics/json_line.hpp"
#include "proxy/tls_files.hpp"

namespace noren::proxy {
namespace {

/// An editor that puts a new file into the place of the old one needs less, and so does a second look.
constexpr std::chrono::seconds k_gone{1};

/// "admission.max_queue by --max-queue", in the order of the keys' names.
std::vector<std::string> stronger_than_file(const config::Resolved& resolved) {
    std::vector<std::string> keys;
    for (const auto& [key, origin] : resolved.origins)
        if (origin.line == 0) keys.push_back(key + " by " + origin.source);
    return keys;
}

/// One sentence for each key that the file sets in vain.
std::vector<std::string> overruled_in(const config::Resolved& resolved) {
    std::vector<std::string> sentences;
    for (const config::Overruled& key : resolved.overruled)
        sentences.push_back(key.to_string());
    return sentences;
}

}  // namespace

Reload::Reload(asio::io_context& io, const config::Resolved& loaded, config::Sources sources,
               metrics::Telemetry& telemetry, Log& log, Apply apply)
    : running_(*loaded.config),
      file_text_(loaded.file_text),
      limit_loaded_(loaded.limit_file),
      sources_(std::move(sources)),
      telemetry_(telemetry),
      log_(log),
      apply_(std::move(apply)),
      io_(io),
      schedule_(std::chrono::steady_clock::now()),
      timer_(io),
      stronger_(stronger_than_file(loaded)),
      overruled_(overruled_in(loaded)),
      last_{true, "loaded at start", {}, {}, {}},
      last_at_(metrics::rfc3339_now().str()) {}

void Reload::start() {
    warn_of(limit_loaded_);
    const auto file = sources_.file();
    if (!file) return;
    if (config::says_nothing(file_text_)) log_.event(Level::warning, config::k_empty_file);
    for (const std::string& key : overruled_)
        log_.event(Level::info, key);
    config_file_ = watch(*file, file_text_);
    if (!config_file_->events && !only_polls())
        log_.event(Level::warning, "no inotify: the config is looked at every few seconds only");
    watch_limit_file(limit_loaded_.text);
    watch_clock();
}

bool Reload::only_polls() const {
    return running_.reload.watch == "poll";
}

std::shared_ptr<Reload::Watched> Reload::watch(const std::string& path, std::string_view loaded,
                                               config::FileWatcher::Read read) {
    using Events = config::FileWatcher::Events;
    auto watched = std::make_shared<Watched>(path, loaded, only_polls() ? Events::none : Events::inotify,
                                             std::move(read));
    // A descriptor of its own for Asio, if there is one left to be had.
    const int events = ::fcntl(watched->file.fd(), F_DUPFD_CLOEXEC, 0);
    if (events >= 0) {
        watched->events.emplace(io_, events);
        watch_events(watched);
    }
    return watched;
}

void Reload::watch_limit_file(std::string_view loaded) {
    if (limit_file_ && limit_file_->events) limit_file_->events->close();  // ends its watch_events
    const std::string& path = running_.admission.max_concurrency_file;
    // Missing and unreadable are news as well.
    const auto read = [](const std::string& at) { return std::optional(config::read_limit_file(at).text); };
    limit_file_ = path.empty() ? nullptr : watch(path, loaded, read);
}

void Reload::warn_of(const config::LimitFile& file) {
    if (!file.warning.empty()) log_.event(Level::warning, file.warning);
}

void Reload::watch_events(const std::shared_ptr<Watched>& watched) {
    watched->events->async_wait(asio::posix::stream_descriptor::wait_read,
                                [this, watched](const boost::system::error_code& error) {
                                    if (error) return;
                                    if (watched->file.drain_events()) {
                                        schedule_.on_event(std::chrono::steady_clock::now());
                                        watch_clock();
                                    }
                                    watch_events(watched);
                                });
}

void Reload::watch_clock() {
    timer_.expires_at(schedule_.next());
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (error) return;  // set anew
        schedule_.on_look(std::chrono::steady_clock::now());
        look();
        watch_clock();
    });
}

/// A file that is gone is a mistake like any other: told once, and the old config goes on.
bool Reload::is_newly_gone() {
    std::error_code unknown;
    if (std::filesystem::exists(*sources_.file(), unknown) || unknown) {
        gone_since_.reset();
        gone_told_ = false;
        return false;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!gone_since_) gone_since_ = now;
    return now - *gone_since_ >= k_gone && !std::exchange(gone_told_, true);
}

void Reload::look() {
    if (is_newly_gone()) {
        now();
        return;
    }
    auto text = config_file_->file.changed_content();
    const bool is_new_limit = limit_file_ && limit_file_->file.changed_content();
    if (text) {
        take(config::load(sources_, std::move(*text)));
    } else if (is_new_limit) {
        now();
    }
    if (limit_file_ && limit_file_->file.wants_second_look())
        schedule_.on_event(std::chrono::steady_clock::now());
}

ReloadResult Reload::now() {
    config::Resolved resolved = config::load(sources_);
    if (config_file_) config_file_->file.remember(resolved.file_text);
    if (limit_file_) limit_file_->file.remember(resolved.limit_file.text);
    return take(std::move(resolved));
}

ReloadResult Reload::take(config::Resolved resolved) {
    // Files that went bad under unchanged keys keep nobody from tuning a limit; TlsReload tells of them.
    if (resolved.ok() && !same_tls(running_, *resolved.config)) check_tls_files(resolved);
    warn_of(resolved.limit_file);
    ReloadResult result;
    result.ok = resolved.ok();
    for (const config::Mistake& mistake : resolved.mistakes)
        result.errors.push_back(mistake.to_string());
    if (resolved.ok() && sources_.file() && config::says_nothing(resolved.file_text))
        note(Level::warning, config::k_empty_file);
    if (resolved.ok()) {
        for (const config::Change& change : config::diff(running_, *resolved.config)) {
            result.changes.push_back(change.to_string());
            if (change.restart_required) result.restart_required.push_back(change.key);
        }
        const std::string limit_file = running_.admission.max_concurrency_file;
        running_ = config::apply_live(running_, *resolved.config);
        if (running_.admission.max_concurrency_file != limit_file) watch_limit_file(resolved.limit_file.text);
        apply_(running_);
        stronger_ = stronger_than_file(resolved);
        overruled_ = overruled_in(resolved);
        for (const std::string& key : overruled_)
            note(Level::info, key);
    }
    report(result);
    return last_;
}

void Reload::report(const ReloadResult& result) {
    const std::string notes = std::exchange(notes_, {});
    last_ = result;
    last_at_ = metrics::rfc3339_now().str();
    telemetry_.config_reload(result.ok, std::chrono::system_clock::now());
    if (!result.ok) {
        last_.message = "the config has mistakes; the old one goes on";
        for (const std::string& error : result.errors)
            log_.event(Level::error, "config mistake", {{"mistake", error}});
        log_.event(Level::error, last_.message);
        return;
    }
    last_.message = !result.changes.empty() ? "the config is taken over"
                    : notes.empty()         ? "the config is good; nothing changed"
                                            : "the config is good";
    last_.message += notes;
    telemetry_.config_restart_required(!result.restart_required.empty());
    for (const std::string& change : result.changes)
        log_.event(Level::info, "config changed", {{"change", change}});
    if (result.changes.empty()) log_.event(Level::info, last_.message);
}

void Reload::note(Level level, const std::string& text) {
    log_.event(level, text);
    notes_.append("; ").append(text);
}

void Reload::describe(Status& status) const {
    status.config_file = sources_.file().value_or(std::string());
    status.stronger = stronger_;
    status.last_reload_ok = last_.ok;
    status.last_reload_at = last_at_;
    status.last_reload_errors = last_.errors;
    status.restart_required = last_.restart_required;
}

}  // namespace noren::proxy
