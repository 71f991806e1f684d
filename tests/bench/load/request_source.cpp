#include "tests/bench/load/request_source.hpp"

#include <istream>
#include <stdexcept>

#include <boost/json.hpp>

namespace load {
namespace {

namespace json = boost::json;

std::string words(std::mt19937_64& random, std::uint32_t count) {
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i)
        text += (i ? " w" : "w") + std::to_string(random() % 1000);
    return text;
}

std::optional<Prompt> prompt_of(const std::string& line) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    if (error || !value.is_object()) return std::nullopt;
    const json::object& object = value.get_object();
    if (const json::value* prompt = object.if_contains("prompt"); prompt && prompt->is_string())
        return Prompt{std::string(prompt->get_string()), false};
    const json::value* body = object.if_contains("body");
    if (!body) return std::nullopt;
    return Prompt{body->is_string() ? std::string(body->get_string()) : json::serialize(*body), true};
}

}  // namespace

std::uint32_t RequestSource::within(const Range& range) {
    return std::uniform_int_distribution<std::uint32_t>(range.least, range.most)(random_);
}

bool RequestSource::chance(double probability) {
    return std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

Request RequestSource::next() {
    const std::uint64_t number = issued_++;
    const Prompt* given =
        options_.prompts.empty() ? nullptr : &options_.prompts[number % options_.prompts.size()];
    Ask ask;
    ask.model = options_.model;
    ask.stream = options_.stream;
    ask.max_tokens = within(options_.max_tokens);
    if (given) {
        ask.prompt = given->text;
    } else {
        ask.prompt = words(random_, within(options_.prompt_words));
    }
    Request request;
    request.id = "load-" + std::to_string(options_.seed) + "-" + std::to_string(number);
    request.path = path_of(options_.api, ask);
    if (given && given->is_body) {
        request.body = given->text;
    } else {
        request.body = body_of(options_.api, ask);
        request.tokens = ask.max_tokens;
    }
    if (chance(options_.leave))
        request.leave_after = std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(
            0, std::chrono::microseconds(options_.leave_within).count())(random_));
    request.slow = chance(options_.slow);
    return request;
}

std::chrono::nanoseconds Arrivals::next_gap() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(gap_(random_)));
}

std::vector<Prompt> read_prompts(std::istream& in, const std::string& name) {
    std::vector<Prompt> prompts;
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        auto prompt = prompt_of(line);
        if (!prompt)
            throw std::runtime_error(name + ":" + std::to_string(number) +
                                     ": expected {\"prompt\": \"...\"} or {\"body\": {...}}");
        prompts.push_back(std::move(*prompt));
    }
    if (prompts.empty()) throw std::runtime_error(name + ": holds no prompt");
    return prompts;
}

}  // namespace load
