#include "proxy/tls_files.hpp"

#include <array>
#include <optional>
#include <utility>

#include <openssl/evp.h>

#include "config/address.hpp"
#include "config/document.hpp"
#include "config/read_file.hpp"
#include "config/value.hpp"

namespace noren::proxy {
namespace {

using Part = net::TlsProblem::Part;

/// The keys of one side, by the part of a context that their file is.
struct Side {
    std::string_view certificate, key, ca;

    std::string_view of(Part part) const {
        if (part == Part::certificate) return certificate;
        return part == Part::key ? key : ca;
    }
};
constexpr Side k_downstream = {"tls.certificate", "tls.key", "tls.client_ca"};
constexpr Side k_upstream = {"upstream.tls.certificate", "upstream.tls.key", "upstream.tls.ca"};

bool with_clients(const config::Config& config) {
    return !config.tls.certificate.empty();
}
bool with_engine(const config::Config& config) {
    const auto engine = config::parse_upstream(config.upstream.url).address;
    return engine && engine->tls;
}

std::string digest(const std::string& text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    unsigned size = 0;
    EVP_Digest(text.data(), text.size(), sum.data(), &size, EVP_sha256(), nullptr);
    return {sum.begin(), sum.begin() + size};
}

std::variant<std::string, config::Mistake> content_of(const std::string& path) {
    auto content = config::read_file(path);
    const auto* text = std::get_if<std::string>(&content);
    if (text && text->size() > config::k_max_document)
        return config::Mistake{path, 0, "", "more than 1MiB", "PEM"};
    return content;
}

/// Makes contexts, and notes of each file the first thing that is wrong with it.
class Maker {
  public:
    Maker(const TlsFiles& files, std::vector<TlsMistake>& mistakes) : files_(files), mistakes_(mistakes) {}

    /// Empty where no file is named, or it cannot be read.
    std::string text(std::string_view key) {
        const TlsFiles::File* file = files_.find(key);
        if (!file) return {};
        if (const auto* text = std::get_if<std::string>(&file->content)) return *text;
        const auto& mistake = std::get<config::Mistake>(file->content);
        note(key, mistake.found, mistake.expected);
        return {};
    }

    template <typename Material, typename Make>
    std::shared_ptr<const net::TlsContext> make(const Side& side, const Material& material,
                                                Make&& context_of) {
        net::TlsProblems problems;
        auto context = context_of(material, problems);
        for (const net::TlsProblem& problem : problems)
            note(side.of(problem.part), problem.found, problem.expected);
        return context;
    }

  private:
    void note(std::string_view key, const std::string& found, const std::string& expected) {
        for (const TlsMistake& mistake : mistakes_)
            if (mistake.key == key) return;
        const TlsFiles::File* file = files_.find(key);
        mistakes_.push_back({key, config::quote(file ? file->path : std::string()) + ": " + found, expected});
    }

    const TlsFiles& files_;
    std::vector<TlsMistake>& mistakes_;
};

}  // namespace

TlsFiles TlsFiles::read(const config::Config& config) {
    TlsFiles read;
    const auto add = [&read](std::string_view key, const std::string& path) {
        if (!path.empty()) read.files_.insert({key, {path, content_of(path)}});
    };
    if (with_clients(config)) {
        add(k_downstream.certificate, config.tls.certificate);
        add(k_downstream.key, config.tls.key);
        add(k_downstream.ca, config.tls.client_ca);
    }
    if (with_engine(config)) {
        add(k_upstream.certificate, config.upstream.tls.certificate);
        add(k_upstream.key, config.upstream.tls.key);
        add(k_upstream.ca, config.upstream.tls.ca);
    }
    return read;
}

std::string TlsFiles::fingerprint() const {
    std::string all;
    for (const auto& [key, file] : files_) {
        const auto* text = std::get_if<std::string>(&file.content);
        all.append(key).append(digest(text ? *text : std::get<config::Mistake>(file.content).found));
    }
    return digest(all);
}

const TlsFiles::File* TlsFiles::find(std::string_view key) const {
    const auto file = files_.find(key);
    return file == files_.end() ? nullptr : &file->second;
}

TlsLoad TlsLoad::from(const config::Config& config, const TlsFiles& files) {
    TlsLoad load;
    Maker maker(files, load.mistakes);
    if (with_clients(config)) {
        const net::TlsContext::Server material{maker.text(k_downstream.certificate),
                                               maker.text(k_downstream.key), maker.text(k_downstream.ca),
                                               config.tls.min_version == "1.3"};
        load.contexts.downstream = maker.make(k_downstream, material, net::TlsContext::server);
    }
    if (with_engine(config)) {
        const config::UpstreamTls& tls = config.upstream.tls;
        const std::string host = config::parse_upstream(config.upstream.url).address->host;
        const net::TlsContext::Client material{tls.server_name.empty() ? host : tls.server_name,
                                               maker.text(k_upstream.ca), maker.text(k_upstream.certificate),
                                               maker.text(k_upstream.key), tls.verify == "on"};
        load.contexts.upstream = maker.make(k_upstream, material, net::TlsContext::client);
    }
    return load;
}

bool same_tls(const config::Config& a, const config::Config& b) {
    return a.tls == b.tls && a.upstream.tls == b.upstream.tls;
}

void check_tls_files(config::Resolved& loaded) {
    if (!loaded.ok()) return;
    const TlsLoad load = TlsLoad::from(*loaded.config, TlsFiles::read(*loaded.config));
    for (const TlsMistake& mistake : load.mistakes)
        loaded.add_mistake(mistake.key, mistake.found, mistake.expected);
    if (!loaded.mistakes.empty()) loaded.config.reset();
}

}  // namespace noren::proxy
