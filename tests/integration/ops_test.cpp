// The ops endpoint beside a working data path: it delays nobody, and it notices a worker that hangs.

#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::NorenUnderTest;
using test::Peer;

/// A thread of this process by its name.
int thread_called(const std::string& name) {
    int found = 0;
    DIR* const threads = ::opendir("/proc/self/task");
    REQUIRE(threads);
    while (const dirent* entry = ::readdir(threads)) {
        const std::string id = entry->d_name;
        std::string called;
        std::getline(std::ifstream("/proc/self/task/" + id + "/comm"), called);
        if (called == name) found = std::stoi(id);
    }
    ::closedir(threads);
    return found;
}

sem_t g_released;

/// What a thread does that hangs: here in a signal handler, so that any thread can be made to.
void hang(int) {
    while (::sem_wait(&g_released) != 0)
        ;
}

class HangingThread {
  public:
    explicit HangingThread(int thread) {
        ::sem_init(&g_released, 0, 0);
        struct sigaction action{};
        action.sa_handler = hang;
        action.sa_flags = SA_RESTART;
        ::sigaction(SIGUSR1, &action, &before_);
        REQUIRE(::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1) == 0);
    }
    ~HangingThread() {
        release();
        ::sigaction(SIGUSR1, &before_, nullptr);
    }
    void release() { ::sem_post(&g_released); }

  private:
    struct sigaction before_{};
};

bool healthy_says(const NorenUnderTest& noren, const std::string& beginning) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!test::get(noren.ops_port(), "/-/healthy").starts_with(beginning)) {
        if (std::chrono::steady_clock::now() > give_up) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

}  // namespace

TEST_CASE("end to end: clients that never read /metrics delay neither a stream nor a probe") {
    sim::Engine engine(test::quick_engine());
    engine.start();
    NorenUnderTest noren(engine.url());
    std::string many_scrapes;
    for (int i = 0; i < 500; ++i)
        many_scrapes += "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n";
    std::vector<Peer> deaf;
    for (int i = 0; i < 16; ++i) {
        deaf.push_back(Peer::connect(noren.ops_port()));
        deaf.back().send(many_scrapes);
    }
    Peer client = Peer::connect(noren.port());
    client.send(test::chat(300));
    for (int i = 0; i < 20; ++i)
        CHECK(test::get(noren.ops_port(), "/-/healthy") == "healthy\n");
    CHECK(client.receive_until("data: [DONE]\n\n").find("data: [DONE]") != std::string::npos);
    CHECK(noren.reaches("noren_output_tokens_total{model=\"m\",source=\"events\"}", 300));
}

TEST_CASE("end to end: a worker that hangs fails liveness by name, and is forgiven when it turns again") {
    sim::Engine engine(test::quick_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) { config.workers = 2; }, {5ms, 200});
    CHECK(healthy_says(noren, "healthy"));
    HangingThread worker(thread_called("noren-w1"));
    CHECK(healthy_says(noren, "worker 1 has not turned for "));
    worker.release();
    CHECK(healthy_says(noren, "healthy"));
}
