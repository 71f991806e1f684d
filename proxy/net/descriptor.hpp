#pragma once
// A file descriptor that is closed when nobody has taken it over.

#include <unistd.h>

#include <utility>

namespace noren::proxy::net {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            close();
            number_ = other.release();
        }
        return *this;
    }
    ~Descriptor() { close(); }

    int number() const { return number_; }
    bool is_open() const { return number_ >= 0; }
    int release() { return std::exchange(number_, -1); }
    void close() {
        if (const int open = release(); open >= 0) ::close(open);
    }

  private:
    int number_ = -1;
};

}  // namespace noren::proxy::net
