#include "proxy/tls_reload.hpp"

#include <ctime>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace noren::proxy {
namespace {

std::string text_of(const TlsMistake& mistake) {
    return std::string(mistake.key) + ": found " + mistake.found + ", expected " + mistake.expected;
}

/// RFC 3339; empty where there is no certificate.
std::string expiry_of(const std::shared_ptr<const net::TlsContext>& context) {
    const auto end = context ? context->expiry() : std::nullopt;
    if (!end) return {};
    const std::time_t time = std::chrono::system_clock::to_time_t(*end);
    std::tm utc{};
    ::gmtime_r(&time, &utc);
    std::ostringstream text;
    text << std::put_time(&utc, "%Y-%m-%dT%H:%M:%SZ");
    return text.str();
}

std::string_view engine_word(const TlsContexts& contexts) {
    if (!contexts.upstream) return "none";
    return contexts.upstream->verifies() ? "verified" : "unverified";
}

}  // namespace

TlsReload::TlsReload(asio::io_context& io, const config::Config& config, metrics::Telemetry& telemetry,
                     Log& log, OnChange on_change, std::chrono::milliseconds interval)
    : config_(config),
      telemetry_(telemetry),
      log_(log),
      on_change_(std::move(on_change)),
      interval_(interval),
      timer_(io) {
    const TlsFiles files = TlsFiles::read(config_);
    TlsLoad load = TlsLoad::from(config_, files);
    std::string mistakes;
    for (const TlsMistake& mistake : load.mistakes)
        mistakes.append(mistakes.empty() ? "" : "; ").append(text_of(mistake));
    if (!mistakes.empty()) throw std::runtime_error(mistakes);
    contexts_ = std::move(load.contexts);
    in_force_ = seen_ = files.fingerprint();
    tell(contexts_);
}

void TlsReload::start() {
    look_later();
}

void TlsReload::look_later() {
    timer_.expires_after(interval_);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (error) return;
        look();
        look_later();
    });
}

void TlsReload::look() {
    const TlsFiles files = TlsFiles::read(config_);
    const std::string now = files.fingerprint();
    const bool settled = std::exchange(seen_, now) == now;
    if (now == in_force_) {
        refused_.clear();
        problem_.clear();
    } else if (settled && now != refused_ && take(files)) {
        on_change_();
    }
}

void TlsReload::set(const config::Config& config) {
    const bool same = same_tls(config, config_);
    config_ = config;
    const TlsFiles files = TlsFiles::read(config_);
    seen_ = files.fingerprint();
    if (!same || seen_ != in_force_) take(files);
}

/// False: refused.
bool TlsReload::take(const TlsFiles& files) {
    TlsLoad load = TlsLoad::from(config_, files);
    const bool good = load.mistakes.empty();
    telemetry_.tls_reload(good);
    if (good) {
        contexts_ = std::move(load.contexts);
        in_force_ = files.fingerprint();
        refused_.clear();
        problem_.clear();
        log_.event(Level::info, "the TLS files are taken over",
                   {{"certificate_expires", expiry_of(contexts_.downstream)}});
        tell(contexts_);
        return true;
    }
    refused_ = files.fingerprint();
    problem_ = text_of(load.mistakes.front());
    for (const TlsMistake& mistake : load.mistakes)
        log_.event(Level::error, "TLS file mistake; the files before stay in force",
                   {{"mistake", text_of(mistake)}});
    return false;
}

/// What is allowed and yet nobody should overlook.
void TlsReload::tell(const TlsContexts& contexts) {
    if (contexts.upstream && !contexts.upstream->verifies())
        log_.event(Level::warning, "upstream.tls.verify is off: anybody can pose as the engine");
    const std::pair<std::string_view, const net::TlsContext*> shown[] = {
        {"tls.certificate", contexts.downstream.get()},
        {"upstream.tls.certificate", contexts.upstream.get()}};
    for (const auto& [key, context] : shown) {
        const auto end = context ? context->expiry() : std::nullopt;
        if (end && *end < std::chrono::system_clock::now())
            log_.event(Level::warning, "the certificate has expired", {{"key", std::string(key)}});
    }
}

void TlsReload::describe(Status& status) const {
    status.tls = contexts_.downstream != nullptr;
    status.tls_certificate_expires = expiry_of(contexts_.downstream);
    status.tls_problem = problem_;
    status.engine_tls = engine_word(contexts_);
}

}  // namespace noren::proxy
