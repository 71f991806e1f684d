#include "metrics/engine/page_reader.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::metrics::engine {
namespace {

using Kind = Line::Kind;

Line only_line(std::string_view page) {
    PageReader reader(page);
    const auto line = reader.next();
    REQUIRE(line);
    REQUIRE_FALSE(reader.next());
    return *line;
}

Kind kind_of(std::string_view page) {
    return only_line(page).kind;
}

}  // namespace

TEST_CASE("a page is read line by line") {
    PageReader reader(
        "# HELP vllm:num_requests_waiting Number of requests waiting.\n"
        "# TYPE vllm:num_requests_waiting gauge\n"
        "vllm:num_requests_waiting{engine=\"0\",model_name=\"a/b\"} 3.0\n"
        "\n"
        "# EOF\n"
        "up 1");
    auto line = reader.next();
    CHECK(line->kind == Kind::help);
    CHECK(line->name == "vllm:num_requests_waiting");
    line = reader.next();
    CHECK(line->kind == Kind::type);
    CHECK(line->name == "vllm:num_requests_waiting");
    CHECK(line->value == "gauge");
    line = reader.next();
    CHECK(line->kind == Kind::sample);
    CHECK(line->name == "vllm:num_requests_waiting");
    CHECK(line->labels == "engine=\"0\",model_name=\"a/b\"");
    CHECK(line->value == "3.0");
    CHECK(line->number == 3);
    CHECK(reader.next()->kind == Kind::comment);
    CHECK(reader.next()->kind == Kind::comment);
    line = reader.next();
    CHECK(line->kind == Kind::sample);
    CHECK(line->labels.empty());
    CHECK(line->text == "up 1");
    CHECK_FALSE(reader.next());
    CHECK_FALSE(PageReader("").next());
}

TEST_CASE("samples as the format allows them") {
    CHECK(only_line("a 1").number == 1);
    CHECK(only_line("a\t-2.5e-3").number == -0.0025);
    CHECK(only_line("  a  +7  ").number == 7);
    CHECK(only_line("a 7\r\n").text == "a 7");
    CHECK(only_line("a{} 7").number == 7);
    CHECK(only_line("a {x=\"y\"} 7 1700000000123").number == 7);
    CHECK(only_line("a{x=\"y\"}7").number == 7);
    CHECK(only_line("a{ x = \"y\" , z=\"\" , } 7 -5").number == 7);
    CHECK(only_line("a{x=\"}\\\"{\\\\\\n,\"} 7").labels == "x=\"}\\\"{\\\\\\n,\"");
    CHECK(std::isinf(only_line("a +Inf").number));
    CHECK(only_line("a -inf").number < 0);
    CHECK(std::isnan(only_line("a NaN").number));
    CHECK(only_line("_a:b9 0").name == "_a:b9");
    CHECK(kind_of("a{x=\"\u65e5\u672c\"} 1") == Kind::sample);
}

TEST_CASE("what a Prometheus would not take is malformed, and the next line is read all the same") {
    const std::vector<std::string> malformed = {"a",
                                                "a ",
                                                "a{} ",
                                                "9a 1",
                                                "-a 1",
                                                "a-b 1",
                                                "a 1x",
                                                "a x",
                                                "a 0x1",
                                                "a 1_000",
                                                "a 1e999",
                                                "a +-1",
                                                "a nan(1)",
                                                "a 1 x",
                                                "a 1 2 3",
                                                "a 1 2.5",
                                                "a{x} 1",
                                                "a{x=} 1",
                                                "a{x=y} 1",
                                                "a{x=\"y} 1",
                                                "a{x=\"y\" 1",
                                                "a{x=\"y\"z=\"w\"} 1",
                                                "a{x=\"y\",,} 1",
                                                "a{,} 1",
                                                "a{=\"y\"} 1",
                                                "a{9x=\"y\"} 1",
                                                "a{x:y=\"z\"} 1",
                                                "a{x=\"\\t\"} 1",
                                                "a{x=\"y\\\"} 1",
                                                "a{x=\"1\",x=\"2\"} 1",
                                                "a{__name__=\"b\"} 1",
                                                "{x=\"y\"} 1",
                                                "a}1",
                                                "{\"a\"} 1",
                                                "a{x=\"\xff\"} 1",
                                                "# HELP a \xc3(",
                                                "# TYPE a gauges",
                                                "# TYPE a",
                                                "# TYPE 9a gauge",
                                                "# HELP",
                                                "# HELP a-b c",
                                                "# TYPE a gauge gauge"};
    for (const std::string& line : malformed) {
        INFO(line);
        const std::string page = line + "\nb 2\n";
        PageReader reader(page);
        CHECK(reader.next()->kind == Kind::malformed);
        CHECK(reader.next()->number == 2);
    }
}

TEST_CASE("comments of no meaning are comments") {
    for (const char* line : {"", "#", "# ", "#EOF", "# EOF", "# UNIT a seconds", "#help a b", "   ", "\r"})
        CHECK(PageReader(std::string(line) + "\n").next()->kind == Kind::comment);
    CHECK(kind_of("#TYPE a gauge") == Kind::type);
    CHECK(kind_of("#\tHELP\ta") == Kind::help);
}

TEST_CASE("labels are found by their name") {
    const std::string labels = R"(model="x",request_type="waiting" , version="1\"2",empty="")";
    CHECK(label_value(labels, "model") == "x");
    CHECK(label_value(labels, "request_type") == "waiting");
    CHECK(label_value(labels, "version") == "1\\\"2");
    CHECK(label_value(labels, "empty").empty());
    CHECK(label_value(labels, "type").empty());
    CHECK(label_value("", "a").empty());
    LabelReader reader("a=\"1\",");
    CHECK(reader.next()->name == "a");
    CHECK_FALSE(reader.next());
    CHECK(reader.at_end());
}

TEST_CASE("more labels than a series can have are refused") {
    std::string labels;
    for (int i = 0; i < 64; ++i)
        labels += "l" + std::to_string(i) + "=\"\",";
    CHECK(kind_of("a{" + labels + "} 1") == Kind::sample);
    CHECK(kind_of("a{" + labels + "one_more=\"\"} 1") == Kind::malformed);
}

}  // namespace noren::metrics::engine
