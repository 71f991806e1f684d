#include "proxy/route.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "config/config.hpp"

namespace noren::proxy {
namespace {

using metrics::ApiEndpoint;

const std::vector<std::string> k_default_paths = config::Admission{}.gated_paths;

}  // namespace

TEST_CASE("every default pattern is gated, and gets the label and dialect of its API") {
    struct Sample {
        std::string_view target;
        ApiEndpoint endpoint;
        Dialect dialect;
    };
    const std::vector<Sample> samples = {
        {"/v1/chat/completions", ApiEndpoint::chat_completions, Dialect::openai},
        {"/chat/completions", ApiEndpoint::chat_completions, Dialect::openai},
        {"/v1/completions", ApiEndpoint::completions, Dialect::openai},
        {"/v1/responses?stream=1", ApiEndpoint::responses, Dialect::openai},
        {"/v1/messages", ApiEndpoint::messages, Dialect::anthropic},
        {"/v1/messages?beta=true", ApiEndpoint::messages, Dialect::anthropic},
        {"/v1/embeddings", ApiEndpoint::embeddings, Dialect::openai},
        {"/embed", ApiEndpoint::embeddings, Dialect::openai},
        {"/pooling", ApiEndpoint::embeddings, Dialect::openai},
        {"/v2/rerank", ApiEndpoint::rerank, Dialect::openai},
        {"/score", ApiEndpoint::rerank, Dialect::openai},
        {"/classify", ApiEndpoint::rerank, Dialect::openai},
        {"/v1/audio/transcriptions", ApiEndpoint::completions, Dialect::openai},
        {"/completion", ApiEndpoint::completions, Dialect::openai},
        {"/infill", ApiEndpoint::completions, Dialect::openai},
        {"/generate", ApiEndpoint::completions, Dialect::tgi},
        {"/generate_stream", ApiEndpoint::completions, Dialect::tgi},
        {"/", ApiEndpoint::completions, Dialect::tgi},
        {"/api/generate", ApiEndpoint::completions, Dialect::ollama},
        {"/api/chat", ApiEndpoint::chat_completions, Dialect::ollama},
        {"/api/embed", ApiEndpoint::embeddings, Dialect::ollama},
        {"/v2/models/llama/generate_stream", ApiEndpoint::completions, Dialect::openai},
        {"/v2/models/llama/versions/3/infer", ApiEndpoint::completions, Dialect::openai},
        {"/v1/chat/completions/batch", ApiEndpoint::chat_completions, Dialect::openai},
        {"/v1/audio/translations", ApiEndpoint::completions, Dialect::openai},
        {"/v1/audio/speech", ApiEndpoint::completions, Dialect::openai},
        {"/audio/transcriptions", ApiEndpoint::completions, Dialect::openai},
        {"/v1/images/generations", ApiEndpoint::completions, Dialect::openai},
        {"/invocations", ApiEndpoint::completions, Dialect::openai},
        {"/inference/v1/generate", ApiEndpoint::completions, Dialect::openai},
        {"/vertex", ApiEndpoint::completions, Dialect::openai},
        {"/vertex_generate", ApiEndpoint::completions, Dialect::openai},
        {"/responses", ApiEndpoint::responses, Dialect::openai},
        {"/v2/chat", ApiEndpoint::chat_completions, Dialect::openai},
        {"/v2/embed", ApiEndpoint::embeddings, Dialect::openai},
        {"/embedding", ApiEndpoint::embeddings, Dialect::openai},
        {"/embed_all", ApiEndpoint::embeddings, Dialect::openai},
        {"/embed_sparse", ApiEndpoint::embeddings, Dialect::openai},
        {"/encode", ApiEndpoint::embeddings, Dialect::openai},
        {"/v1/reranking", ApiEndpoint::rerank, Dialect::openai},
        {"/reranking", ApiEndpoint::rerank, Dialect::openai},
        {"/v1/classify", ApiEndpoint::rerank, Dialect::openai},
        {"/generative_scoring", ApiEndpoint::rerank, Dialect::openai},
        {"/similarity", ApiEndpoint::rerank, Dialect::openai},
        {"/predict", ApiEndpoint::rerank, Dialect::openai},
    };
    const RouteTable table(k_default_paths);
    for (const Sample& sample : samples) {
        INFO(sample.target);
        const Route route = table.find("POST", sample.target);
        CHECK(route.gated);
        CHECK(route.endpoint == sample.endpoint);
        CHECK(route.dialect == sample.dialect);
    }
    for (std::string pattern : k_default_paths) {
        for (std::size_t star = 0; (star = pattern.find('*')) != std::string::npos;)
            pattern.replace(star, 1, "x");
        INFO(pattern);
        CHECK(table.find("POST", pattern).gated);
        CHECK_FALSE(table.find("GET", pattern).gated);
    }
}

TEST_CASE("what does not generate passes ungated") {
    const RouteTable table(k_default_paths);
    for (const std::string_view target :
         {"/metrics", "/health", "/v1/models", "/tokenize", "/v1", "/v1/chat", "/v1/chat/completions/x",
          "/x/v1/chat/completions", "/v1/messages/count_tokens", "/v1/responses/input_tokens",
          "/v1/chat/completions/render", "/v1/responses/r_1/cancel", "/detokenize", "/v2/models/llama",
          "/v2/models/llama/load", "/v2/models/a/b/generate", "/v2/models//generate",
          "/health?x=/v1/chat/completions", "/v1/models/v1/completions"}) {
        INFO(target);
        const Route route = table.find("POST", target);
        CHECK_FALSE(route.gated);
        CHECK(route.endpoint == ApiEndpoint::passthrough);
    }
    for (const std::string_view method : {"GET", "HEAD", "OPTIONS", "DELETE", "get"})
        CHECK_FALSE(table.find(method, "/v1/chat/completions").gated);
}

// SGLang serves PUT /generate as it serves POST.
TEST_CASE("a gated path is gated whatever the method, reading and deleting aside") {
    const RouteTable table(k_default_paths);
    for (const std::string_view method : {"POST", "post", "PUT", "Put", "PATCH", "QUERY", "MKCOL", "X"}) {
        INFO(method);
        const Route route = table.find(method, "/generate");
        CHECK(route.gated);
        CHECK(route.endpoint == ApiEndpoint::completions);
        CHECK_FALSE(table.find(method, "/health").gated);
    }
}

TEST_CASE("no way of writing a gated path leads around the gate") {
    const RouteTable table(k_default_paths);
    for (const std::string_view target : {"/v1/chat/completions/",
                                          "/v1/chat/completions//",
                                          "//v1/chat/completions",
                                          "/v1//chat///completions",
                                          "/./v1/chat/completions",
                                          "/v1/./chat/./completions/.",
                                          "/v1/x/../chat/completions",
                                          "/../v1/chat/completions",
                                          "/v1/chat/%63ompletions",
                                          "/v1/chat/completion%73",
                                          "/v1/chat%2fcompletions",
                                          "/v1%2Fchat%2Fcompletions",
                                          "/%2e%2E/v1/chat/completions",
                                          "/v1/%2e/chat/completions",
                                          "/V1/Chat/COMPLETIONS",
                                          "/v1/chat/completions?",
                                          "/v1/chat/completions?a/../../b",
                                          "/%76%31/chat/completions",
                                          "/v2/models/org%2Fllama/generate",
                                          "/v2/models/a%2Fb%2Fc/versions/1/infer",
                                          "/v2/./models/org%2fllama/generate",
                                          "/%2e/",
                                          "//"}) {
        INFO(target);
        CHECK(table.find("POST", target).gated);
    }
    CHECK(table.find("post", "/v1/chat/completions").gated);
    // An escape that is none stays what it is.
    CHECK_FALSE(table.find("POST", "/v1/chat/completions%").gated);
    CHECK_FALSE(table.find("POST", "/v1/chat/completions%7").gated);
    CHECK_FALSE(table.find("POST", "/v1/chat/completion%zz").gated);
    CHECK_FALSE(table.find("POST", "/v1/chat%252fcompletions").gated);  // unescaped once, as servers do
}

TEST_CASE("patterns are the configured ones, written in any way") {
    const RouteTable table({"/My/Path/", "/a/*/c", "//d%65"});
    CHECK(table.find("POST", "/my/path").gated);
    CHECK(table.find("POST", "/a/anything/c").gated);
    CHECK_FALSE(table.find("POST", "/a/c").gated);
    CHECK_FALSE(table.find("POST", "/a/b/b/c").gated);
    CHECK(table.find("POST", "/de").gated);
    CHECK_FALSE(table.find("POST", "/v1/chat/completions").gated);
    CHECK_FALSE(table.find("POST", "/").gated);
    CHECK_FALSE(RouteTable({}).find("POST", "/v1/chat/completions").gated);
}

TEST_CASE("errors of ungated calls speak their API's dialect too") {
    const RouteTable table(k_default_paths);
    CHECK(table.find("POST", "/v1/messages/count_tokens").dialect == Dialect::anthropic);
    CHECK(table.find("POST", "/messages").dialect == Dialect::anthropic);
    CHECK(table.find("GET", "/v1/threads/t_1/messages").dialect == Dialect::openai);
    CHECK(table.find("GET", "/api/tags").dialect == Dialect::ollama);
    CHECK(table.find("GET", "/v1/models").dialect == Dialect::openai);
    CHECK(table.find("OPTIONS", "*").dialect == Dialect::openai);
}

TEST_CASE("the path is the target without its query") {
    CHECK(path_of("/a/b?c=d?e") == "/a/b");
    CHECK(path_of("/a") == "/a");
    CHECK(path_of("/?") == "/");
}

}  // namespace noren::proxy
