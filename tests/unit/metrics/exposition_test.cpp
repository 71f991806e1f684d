// The text that Prometheus reads, and the histogram behind it.

#include "metrics/exposition.hpp"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/text_serializer.h>

#include "metrics/family.hpp"
#include "metrics/histogram.hpp"

namespace noren::metrics {
namespace {

std::string text_of(const prometheus::Collectable& source) {
    std::string text;
    append_exposition(text, source.Collect());
    return text;
}

TEST_CASE("exposition: a counter, a gauge and a histogram") {
    Family<prometheus::Counter> counter("bowls_total", "Bowls served");
    counter.Add({{"kind", "shio"}}).Increment(3);
    counter.Add({{"kind", "miso"}, {"size", "big"}}).Increment(0.5);
    CHECK(text_of(counter) ==
          "# HELP bowls_total Bowls served\n# TYPE bowls_total counter\n"
          "bowls_total{kind=\"shio\"} 3\nbowls_total{kind=\"miso\",size=\"big\"} 0.5\n");

    Family<prometheus::Gauge> gauge("guests", "Guests");
    gauge.Add({}).Set(-2);
    CHECK(text_of(gauge) == "# HELP guests Guests\n# TYPE guests gauge\nguests -2\n");

    Family<Histogram> histogram("wait_seconds", "Waiting");
    Histogram& wait = histogram.Add({{"seat", "bar"}}, Buckets{0.1, 2.5});
    wait.Observe(0.1);  // a bound belongs to its bucket
    wait.Observe(0.25);
    wait.Observe(7);
    CHECK(text_of(histogram) ==
          "# HELP wait_seconds Waiting\n# TYPE wait_seconds histogram\n"
          "wait_seconds_count{seat=\"bar\"} 3\nwait_seconds_sum{seat=\"bar\"} 7.35\n"
          "wait_seconds_bucket{seat=\"bar\",le=\"0.1\"} 1\nwait_seconds_bucket{seat=\"bar\",le=\"2.5\"} 2\n"
          "wait_seconds_bucket{seat=\"bar\",le=\"+Inf\"} 3\n");
}

TEST_CASE("exposition: numbers have the digits it takes, and no others") {
    Family<prometheus::Gauge> gauge("g", "g");
    prometheus::Gauge& value = gauge.Add({});
    const auto shown = [&](double number) {
        value.Set(number);
        const std::string text = text_of(gauge);
        const std::size_t from = text.rfind("g ") + 2;
        return text.substr(from, text.size() - from - 1);
    };
    CHECK(shown(0.1) == "0.1");
    CHECK(shown(1e-05) == "1e-05");
    CHECK(shown(12345678901234.0) == "12345678901234");
    CHECK(shown(1.0 / 3) == "0.3333333333333333");
    CHECK(shown(std::numeric_limits<double>::infinity()) == "+Inf");
    CHECK(shown(-std::numeric_limits<double>::infinity()) == "-Inf");
    CHECK(shown(std::nan("")) == "NaN");
    for (const double number : {1.7976931348623157e308, 5e-324, 123456.789, 1e15, 1e21}) {
        INFO(number);
        CHECK(std::strtod(shown(number).c_str(), nullptr) == number);
    }
}

TEST_CASE("exposition: label values are escaped") {
    Family<prometheus::Gauge> gauge("g", "g");
    gauge.Add({{"l", "a\"b\\c\nd"}});
    CHECK(text_of(gauge).find("g{l=\"a\\\"b\\\\c\\nd\"} 0\n") != std::string::npos);
}

TEST_CASE("exposition: the library's own serializer says the same") {
    Family<prometheus::Counter> counter("c_total", "Counts");
    counter.Add({{"a", "x\"y\\z\nw"}, {"b", ""}}).Increment(12345);
    Family<Histogram> histogram("h", "Bounds");
    Histogram& some = histogram.Add({{"a", "1"}}, Buckets{.00001, .0025, 1, 1048576});
    histogram.Add({}, Buckets{1});
    for (const double value : {0.00002, 0.5, 3.0, 2e6})
        some.Observe(value);
    for (const prometheus::Collectable* family : {static_cast<const prometheus::Collectable*>(&counter),
                                                  static_cast<const prometheus::Collectable*>(&histogram)})
        CHECK(text_of(*family) == prometheus::TextSerializer().Serialize(family->Collect()));
}

TEST_CASE("histogram: observed one by one, or many at once") {
    Histogram one(Buckets{1, 2}), many(Buckets{1, 2});
    for (const double value : {0.5, 0.5, 1.5, 9.0})
        one.Observe(value);
    many.Observe(0.5, 2);
    many.Observe(1.5);
    many.Observe(9.0);
    for (const Histogram* histogram : {&one, &many}) {
        const auto seen = histogram->Collect().histogram;
        CHECK(seen.sample_count == 4);
        CHECK(seen.sample_sum == 11.5);
        CHECK(seen.bucket.at(0).cumulative_count == 2);
        CHECK(seen.bucket.at(1).cumulative_count == 3);
        CHECK(seen.bucket.at(2).cumulative_count == 4);
    }
}

TEST_CASE("histogram and family: observed and added to while they are read") {
    Family<Histogram> family("h", "h");
    Histogram& shared = family.Add({{"n", "0"}}, Buckets{1, 2, 3});
    std::atomic<bool> done{false};
    std::thread reader([&] {
        std::uint64_t last = 0;
        do {
            const auto read = family.Collect().front();
            const auto& first = read.metric.front().histogram;
            if (first.sample_count < last || first.sample_count != first.bucket.back().cumulative_count)
                std::abort();
            last = first.sample_count;
        } while (!done);
    });
    std::vector<std::thread> writers;
    for (int t = 1; t <= 3; ++t)
        writers.emplace_back([&, t] {
            for (int i = 0; i < 5000; ++i) {
                shared.Observe(i % 5);
                if (i % 100 == 0)
                    family.Add({{"n", std::to_string(t) + "-" + std::to_string(i)}}, Buckets{1}).Observe(1);
            }
        });
    for (std::thread& writer : writers)
        writer.join();
    done = true;
    reader.join();
    CHECK(family.Collect().front().metric.size() == 151);
    CHECK(shared.Collect().histogram.sample_count == 15'000);
    CHECK(shared.Collect().histogram.sample_sum == 30'000);
}

}  // namespace
}  // namespace noren::metrics
