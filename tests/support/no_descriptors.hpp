#pragma once
// A process that has no file descriptor left.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

namespace test {

/// For as long as this lives, the process gets no new descriptor. What other threads give back is taken
/// within a millisecond.
class NoDescriptors {
  public:
    NoDescriptors() {
        // Runs before there are none: UBSan takes some to look at an object that it sees for the first time.
        taking_ = std::jthread([this](const std::stop_token& over) {
            runs_ = true;
            while (!over.stop_requested()) {
                if (lowered_) take_all();
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
        while (!runs_)
            std::this_thread::yield();
        ::getrlimit(RLIMIT_NOFILE, &before_);
        taken_.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const rlimit none{static_cast<rlim_t>(taken_.back()), before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
        take_all();
        lowered_ = true;
    }
    ~NoDescriptors() {
        taking_.request_stop();
        taking_.join();
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
    std::atomic<bool> runs_{false};
    std::atomic<bool> lowered_{false};  ///< from here on taken_ is the thread's
    std::jthread taking_;
};

}  // namespace test
