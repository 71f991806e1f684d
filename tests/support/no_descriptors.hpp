#pragma once
// A process that has no file descriptor left.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

namespace test {

/// For as long as this lives, the process gets no new descriptor. What other threads give back is taken
/// within a millisecond; not under AddressSanitizer, whose companion UBSan takes one to look at an object of
/// a type that it has not seen before.
class NoDescriptors {
  public:
    NoDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::close(next);
        const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
#ifndef __SANITIZE_ADDRESS__
        take_all();
        taking_ = std::jthread([this](const std::stop_token& over) {
            while (!over.stop_requested()) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                take_all();
            }
        });
#endif
    }
    ~NoDescriptors() {
        if (taking_.joinable()) {
            taking_.request_stop();
            taking_.join();
        }
        for (const int descriptor : taken_)
            ::close(descriptor);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;

  private:
    void take_all() {
        for (int free; (free = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
            taken_.push_back(free);
    }

    rlimit before_{};
    std::vector<int> taken_;
    std::jthread taking_;
};

}  // namespace test
