#pragma once
// What can be told, from any thread, that something it waits for has happened.

namespace noren::proxy::net {

class Notifiable {
  public:
    /// Returns at once, allocates nothing, and calls nobody back inside the call.
    virtual void post() noexcept = 0;

  protected:
    ~Notifiable() = default;
};

}  // namespace noren::proxy::net
