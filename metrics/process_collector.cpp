#include "metrics/process_collector.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <prometheus/client_metric.h>

namespace noren::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily single(const char* name, const char* help, MetricType type, double value) {
    MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    prometheus::ClientMetric metric;
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family.metric.push_back(metric);
    return family;
}

/// Fields of /proc/self/stat behind the command name, which may hold blanks; [0] is field 3 of proc(5).
std::vector<std::string> stat_fields() {
    std::ifstream file("/proc/self/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t close = text.rfind(')');
    if (close == std::string::npos) return {};
    std::istringstream rest(text.substr(close + 1));
    return {std::istream_iterator<std::string>(rest), {}};
}

double field(const std::vector<std::string>& fields, std::size_t number_in_proc5) {
    const std::size_t index = number_in_proc5 - 3;
    return index < fields.size() ? std::strtod(fields[index].c_str(), nullptr) : 0.0;
}

double boot_time() {
    std::ifstream file("/proc/stat");
    for (std::string word; file >> word;) {
        double seconds = 0;
        if (word == "btime" && file >> seconds) return seconds;
    }
    return 0;
}

double open_descriptors() {
    DIR* directory = ::opendir("/proc/self/fd");
    if (!directory) return 0;
    double count = -3;  // ".", ".." and the directory's own descriptor
    while (::readdir(directory))
        ++count;
    ::closedir(directory);
    return count;
}

double max_descriptors() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

std::vector<MetricFamily> ProcessCollector::Collect() const {
    const auto fields = stat_fields();
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
    return {
        single("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
               MetricType::Counter, (field(fields, 14) + field(fields, 15)) / ticks),
        single("process_open_fds", "Number of open file descriptors.", MetricType::Gauge, open_descriptors()),
        single("process_max_fds", "Maximum number of open file descriptors.", MetricType::Gauge,
               max_descriptors()),
        single("process_virtual_memory_bytes", "Virtual memory size in bytes.", MetricType::Gauge,
               field(fields, 23)),
        single("process_resident_memory_bytes", "Resident memory size in bytes.", MetricType::Gauge,
               field(fields, 24) * page),
        single("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
               MetricType::Gauge, boot_time() + field(fields, 22) / ticks),
        single("process_threads", "Number of OS threads in the process.", MetricType::Gauge,
               field(fields, 20)),
    };
}

}  // namespace noren::metrics
