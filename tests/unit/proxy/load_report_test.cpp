#include "proxy/load_report.hpp"

#include <string>
#include <variant>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "proxy/http/forward.hpp"

namespace noren::proxy {
namespace {

std::optional<LoadFormat> asked(std::string_view value) {
    http::Fields fields;
    fields.add("Endpoint-Load-Metrics-Format", value);
    return load_format_asked(fields);
}

}  // namespace

TEST_CASE("a load report as text: pairs with an equals sign, the named ones with their prefix") {
    CHECK(load_report({3, 2, 4}, LoadFormat::text) ==
          "TEXT application_utilization=1.25, named_metrics.queued=2, named_metrics.running=3");
    CHECK(load_report({0, 0, 4}, LoadFormat::text) ==
          "TEXT application_utilization=0, named_metrics.queued=0, named_metrics.running=0");
    CHECK(load_report({1, 0, 3}, LoadFormat::text) ==
          "TEXT application_utilization=0.3333, named_metrics.queued=0, named_metrics.running=1");
}

TEST_CASE("a load report as JSON is JSON behind its mark") {
    const std::string report = load_report({3, 2, 4}, LoadFormat::json);
    REQUIRE(report.starts_with("JSON "));
    const auto json = boost::json::parse(report.substr(5)).as_object();
    CHECK(json.size() == 2);
    CHECK(json.at("application_utilization").to_number<double>() == 1.25);
    CHECK(json.at("named_metrics").as_object().size() == 2);
    CHECK(json.at("named_metrics").at("queued").to_number<int>() == 2);
    CHECK(json.at("named_metrics").at("running").to_number<int>() == 3);
}

TEST_CASE("without a limit there is no utilization to tell") {
    CHECK(load_report({7, 0, 0}, LoadFormat::text) == "TEXT named_metrics.queued=0, named_metrics.running=7");
    CHECK(load_report({7, 0, 0}, LoadFormat::json) ==
          "JSON {\"named_metrics\": {\"queued\": 0, \"running\": 7}}");
}

TEST_CASE("which format a request asks for") {
    CHECK(asked("TEXT") == LoadFormat::text);
    CHECK(asked("text") == LoadFormat::text);
    CHECK(asked("Json") == LoadFormat::json);
    CHECK_FALSE(asked("BIN"));
    CHECK_FALSE(asked(""));
    CHECK_FALSE(load_format_asked(http::Fields{}));
}

TEST_CASE("any of the engine's own reports is one") {
    for (const char* name :
         {"endpoint-load-metrics", "Endpoint-Load-Metrics-Bin", "endpoint-load-metrics-json"}) {
        http::Fields fields;
        fields.add(name, "x");
        CHECK(has_load_report(fields));
    }
    http::Fields fields;
    fields.add("endpoint-load-metrics-format", "TEXT");
    CHECK_FALSE(has_load_report(fields));
}

TEST_CASE("the report stands in the head, and only where there is one") {
    const auto parsed = http::parse_response_head("HTTP/1.1 200 OK\r\nDate: d\r\n\r\n");
    const auto& head = std::get<http::ResponseHead>(parsed);
    http::Delivery delivery{{http::BodyKind::length, 2}, true, 1, {}};
    const std::string without = http::downstream_head(head, delivery, "i");
    delivery.load_report = "TEXT named_metrics.queued=1";
    const std::string with = http::downstream_head(head, delivery, "i");
    CHECK(without.find("load-metrics") == std::string::npos);
    CHECK(with == without.substr(0, without.size() - 2) +
                      "endpoint-load-metrics: TEXT named_metrics.queued=1\r\n\r\n");
}

}  // namespace noren::proxy
