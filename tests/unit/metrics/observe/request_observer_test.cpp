#include "metrics/observe/request_observer.hpp"

#include <string>
#include <string_view>

#include <catch2/catch.hpp>

using namespace noren::metrics;

namespace {

RequestFacts facts_of(std::string_view body, std::string_view content_type = "application/json",
                      std::size_t piece = 1 << 20) {
    RequestObserver observer(content_type);
    for (std::size_t at = 0; at < body.size(); at += piece)
        observer.feed(body.substr(at, piece));
    return observer.facts();
}

bool says(const RequestFacts& facts, std::string_view model, std::optional<bool> stream) {
    return facts.model.value_or("") == model && facts.stream == stream;
}

}  // namespace

TEST_CASE("request: model, stream, n and max_tokens, in any order and however cut") {
    for (const std::string_view body :
         {R"({"model":"m","stream":true,"n":2,"max_tokens":64,"messages":[]})",
          R"({"max_tokens":64,"n":2,"messages":[{"role":"user","content":"x"}],"stream":true,"model":"m"})",
          " {\n \"n\" : 2 ,\"stream\":true,\r\n\t\"max_tokens\": 64, \"model\" : \"m\" } "}) {
        for (const std::size_t piece : {1UL, 2UL, 7UL, 1000UL}) {
            const RequestFacts facts = facts_of(body, "application/json", piece);
            INFO(body << " in pieces of " << piece);
            CHECK(says(facts, "m", true));
            CHECK(facts.choices == 2);
            CHECK(facts.max_tokens == 64);
        }
    }
}

TEST_CASE("request: a byte order mark in front says nothing, half of one is no JSON") {
    for (const std::size_t piece : {1UL, 2UL, 3UL, 4UL, 1000UL}) {
        INFO("in pieces of " << piece);
        const auto facts = [piece](std::string_view body) {
            return facts_of(body, "application/json", piece);
        };
        CHECK(says(facts("\xef\xbb\xbf{\"model\":\"m\",\"stream\":true}"), "m", true));
        CHECK(says(facts("\xef\xbb\xbf {\"model\":\"m\xef\xbb\xbf\"}"), "m\xef\xbb\xbf", std::nullopt));
        for (const std::string_view body :
             {"\xef\xbb{\"model\":\"m\"}", "\xef{\"model\":\"m\"}", "\xbb\xbf{\"model\":\"m\"}",
              "\xef\xbb\xbf\xef\xbb\xbf{\"model\":\"m\"}", " \xef\xbb\xbf{\"model\":\"m\"}"})
            CHECK(says(facts(body), "", std::nullopt));
    }
}

TEST_CASE("request: only the top level counts") {
    const RequestFacts facts = facts_of(
        R"({"messages":[{"model":"no","stream":true,"n":9}],"metadata":{"model":"no","max_tokens":1},)"
        R"("tools":[[{"model":"no"}]],"prompt":"\"model\":\"no\",\"stream\":true","model":"m"})");
    CHECK(says(facts, "m", std::nullopt));
    CHECK_FALSE(facts.choices);
    CHECK_FALSE(facts.max_tokens);
}

TEST_CASE("request: how many tokens at most, in the words of each API") {
    CHECK(facts_of(R"({"max_completion_tokens":5,"max_tokens":9})").max_tokens == 5);
    CHECK(facts_of(R"({"max_output_tokens":5})").max_tokens == 5);
    CHECK(facts_of(R"({"max_new_tokens":5})").max_tokens == 5);
    CHECK(facts_of(R"({"n_predict":5})").max_tokens == 5);
    CHECK(facts_of(R"({"parameters":{"max_new_tokens":5}})").max_tokens == 5);
    CHECK(facts_of(R"({"options":{"num_predict":5}})").max_tokens == 5);
    CHECK(facts_of(R"({"sampling_params":{"max_new_tokens":5}})").max_tokens == 5);
    CHECK_FALSE(facts_of(R"({"max_tokens":null})").max_tokens);
    CHECK_FALSE(facts_of(R"({"max_tokens":"5"})").max_tokens);
    CHECK_FALSE(facts_of(R"({"max_tokens":1e3})").max_tokens);
    CHECK_FALSE(facts_of(R"({"max_tokens":99999999999999999999})").max_tokens);
}

TEST_CASE("request: how many sequences, in the words of each API") {
    const auto choices = [](std::string_view body) {
        for (std::size_t cut = 0; cut <= body.size(); ++cut)
            REQUIRE(facts_of(body, "application/json", cut + 1).choices == facts_of(body).choices);
        return facts_of(body).choices;
    };
    CHECK(choices(R"({"prompt":["a","b","c","d"]})") == 4);
    CHECK(choices(R"({"n":3,"prompt":["a","b"]})") == 6);
    CHECK(choices(R"({"prompt":[[1,2,3],[4]],"n":2})") == 4);
    CHECK(choices(R"({"prompt":[1,2,3,4]})") == 1);
    CHECK(choices(R"({"prompt":["é",[1],{"prompt_string":"x","n":[1,2]}, "a,b]"]})") == 4);
    CHECK(choices(R"({"prompt":["a",12,"b"]})") == 1);  // llama.cpp: one prompt of text and ids
    CHECK(choices(R"({"prompt":["a"]})") == 1);
    CHECK(choices(R"({"prompt":[]})") == 1);
    CHECK(choices(R"({"prompt_embeds":["QUJD","REVG"]})") == 2);
    CHECK(choices(R"({"text":["a","b"],"sampling_params":{"n":2}})") == 4);
    CHECK(choices(R"({"text":["a","b"],"sampling_params":[{"n":2},{"n":2}]})") == 4);
    CHECK(choices(R"({"input_ids":[[1],[2],[3]]})") == 3);
    CHECK(choices(R"({"input_ids":[1,2,3]})") == 1);
    CHECK(choices(R"({"token_ids":[1,2],"sampling_params":{"n":4}})") == 4);
    CHECK(choices(R"({"inputs":"a","parameters":{"best_of":3}})") == 3);
    CHECK(choices(R"({"best_of":3,"n":2})") == 3);
    CHECK(choices(R"({"n_cmpl":2})") == 2);
    CHECK(choices(R"({"n":0})") == 1);
    CHECK(choices(R"({"n":99999999999})") == 1'000'000);
    CHECK_FALSE(choices(R"({"prompt":"a","text":{"a":[1,2]}})"));
    CHECK_FALSE(choices(R"({"messages":[{"text":["a","b"]}],"n":null})"));
}

TEST_CASE("request: how many sequences of each prompt") {
    CHECK(facts_of(R"({"prompt":["a","b"]})").of_each_prompt == 1);
    CHECK(facts_of(R"({"prompt":["a","b"],"n":3})").of_each_prompt == 3);
    CHECK(facts_of(R"({"text":["a","b"],"sampling_params":[{"n":2},{"n":2}]})").of_each_prompt == 2);
    CHECK(facts_of(R"({"inputs":"a","parameters":{"best_of":3}})").of_each_prompt == 3);
    CHECK(facts_of("{}").of_each_prompt == 1);
}

TEST_CASE("request: of a list of prompts only its length is kept") {
    std::string body = R"({"prompt":[[0)";
    for (int i = 0; i < 200'000; ++i)
        body += "," + std::to_string(i);
    const RequestFacts facts = facts_of(body + R"(],"x"],"stream":true,"model":"m"})");
    CHECK(facts.choices == 2);
    CHECK(says(facts, "m", true));
}

TEST_CASE("request: a big prompt before the model, and none of it is kept") {
    std::string body = R"({"messages":[{"role":"user","content":")";
    for (int i = 0; i < 100'000; ++i)
        body += R"(What is a noren?\n\"model\":\"no\" \u30e9)";
    body += R"("}],"stream":false,"model":"m"})";
    for (const std::size_t piece : {1000UL, 65'536UL, body.size()})
        CHECK(says(facts_of(body, "application/json", piece), "m", false));
}

TEST_CASE("request: what is known before the body is whole") {
    RequestObserver observer("application/json");
    CHECK_FALSE(observer.facts().model);
    observer.feed(R"({"mod)");
    observer.feed(R"(el":"m","stream":tr)");
    CHECK(says(observer.facts(), "m", std::nullopt));
    observer.feed(R"(ue,"messages":[)");
    CHECK(says(observer.facts(), "m", true));
    observer.feed("]}");
    CHECK(says(observer.facts(), "m", true));
}

TEST_CASE("request: of what came in the last call nothing is referred to later") {
    RequestObserver observer("application/json");
    {
        std::string piece = R"({"model":"qwen","stream":true,"x":")";
        observer.feed(piece);
        piece.assign(piece.size(), '#');
    }
    CHECK(says(observer.facts(), "qwen", true));
}

TEST_CASE("request: the last of repeated keys, escaped keys, values of other types") {
    CHECK(says(facts_of(R"({"model":"a","model":"b"})"), "b", std::nullopt));
    CHECK(says(facts_of(R"({"mod\u0065l":"m"})"), "m", std::nullopt));
    CHECK(says(facts_of(R"({"model":"\u006d\n"})"), "m\n", std::nullopt));
    CHECK(says(facts_of(R"({"model":7,"stream":"true"})"), "", std::nullopt));
    CHECK(says(facts_of(R"({"model":""})"), "", std::nullopt));
    CHECK(facts_of(R"({"model":")" + std::string(5000, 'x') + "\"}").model == std::string(256, 'x'));
}

TEST_CASE("request: what is no JSON object says nothing") {
    for (const std::string_view body :
         {"", "[]", "7", "\"model\"", "nonsense", "{\"model\":\"m\",}", "{\"model\":\"m\"}}"}) {
        INFO(body);
        CHECK(says(facts_of(body), "", std::nullopt));
    }
    // Without a type, or with curl's, it is looked at all the same.
    CHECK(says(facts_of(R"({"model":"m"})", ""), "m", std::nullopt));
    CHECK(says(facts_of(R"({"model":"m"})", "application/x-www-form-urlencoded"), "m", std::nullopt));
}

namespace {

constexpr std::string_view k_form = "multipart/form-data; boundary=AaB03x";

std::string part(std::string_view disposition, std::string_view content) {
    return "--AaB03x\r\nContent-Disposition: form-data; " + std::string(disposition) + "\r\n\r\n" +
           std::string(content) + "\r\n";
}

std::string sound_file(std::size_t size) {
    std::string sound;
    for (std::size_t i = 0; sound.size() < size; ++i)
        sound += i % 50 == 0 ? "\r\n--AaB03" : i % 7 == 0 ? "\r\n\r\n" : "\x01riff\xff";
    return part("name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav", sound);
}

}  // namespace

TEST_CASE("request: of a form the model and stream fields, before the file or behind it") {
    const std::string model = part("name=\"model\"", "whisper-1");
    const std::string stream = part("name=\"stream\"", "true");
    const std::string prompt = part("name=\"prompt\"", "name=\"model\"\r\n\r\nno");
    const std::string end = "--AaB03x--\r\n";
    for (const std::string& body :
         {model + stream + sound_file(20'000) + end, sound_file(20'000) + stream + prompt + model + end,
          "preamble\r\n" + prompt + model + part("name=\"empty\"", "") + stream + end}) {
        for (const std::size_t piece : {1UL, 3UL, 50UL, 4096UL, 100'000UL})
            CHECK(says(facts_of(body, k_form, piece), "whisper-1", true));
    }
    CHECK(says(facts_of(part("name=\"stream\"", "false") + end, k_form), "", false));
    CHECK(says(facts_of(part("name=\"model\"", "") + model, k_form), "", std::nullopt));
    CHECK(says(facts_of(model + end, "Multipart/Form-Data; charset=x; boundary=\"AaB03x\""), "whisper-1",
               std::nullopt));
}

TEST_CASE("request: a form that is broken, or means harm") {
    const std::string model = part("name=\"model\"", "m");
    const std::string end = "--AaB03x--\r\n";
    CHECK(says(facts_of(model + end, "multipart/form-data"), "", std::nullopt));
    CHECK(says(facts_of(model + end, "multipart/form-data; boundary=other"), "", std::nullopt));
    CHECK(says(facts_of(model, k_form), "", std::nullopt));  // the field may go on
    CHECK(says(facts_of(part("name=\"model\"; filename=\"x\"", "m") + end, k_form), "", std::nullopt));
    CHECK(facts_of(part("name=\"model\"", std::string(1000, 'x')) + end, k_form).model ==
          std::string(256, 'x'));
    // A field or a head without end is given up, what comes behind is seen.
    CHECK(says(facts_of(part("name=\"model\"", std::string(100'000, 'x')) + end, k_form), "", std::nullopt));
    const std::string endless = "--AaB03x\r\n" + std::string(100'000, 'h') + "\r\n";
    CHECK(says(facts_of(endless + model + end, k_form), "m", std::nullopt));
}
