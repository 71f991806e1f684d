#pragma once
// How many client connections may be open: in all, and of one client, so that a client which opens more and
// more of them is shed and its neighbours are not. Connections to the engine that no permit bounds have a
// few descriptors for themselves, and beyond that take from the same ones.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace noren::proxy::admission {

/// Whom a connection counts for. An IPv4 address as IPv6 maps it (::ffff:a.b.c.d); of an IPv6 address the
/// /64, as that much is given to a single host and costs it nothing to vary.
using ClientKey = std::array<unsigned char, 16>;

struct ConnectionLimits {
    std::uint32_t in_all = 0;
    std::uint32_t descriptors = 0;      ///< that the process can have for them
    std::uint32_t per_client = 0;       ///< 0 = no limit
    std::uint32_t to_engine = 0;        ///< so many without a permit take none of them
    std::uint32_t kept_for_engine = 0;  ///< descriptors besides: for those with a permit, and for these
};

/// Thread-safe: all workers share it. Outlives every place.
class ConnectionQuota {
  public:
    /// An open connection's. Given back on destruction.
    class Place {
      public:
        Place() = default;
        ~Place() { leave(); }
        Place(Place&& other) noexcept
            : quota_(std::exchange(other.quota_, nullptr)), client_(other.client_) {}
        Place& operator=(Place&& other) noexcept {
            if (this != &other) {
                leave();
                quota_ = std::exchange(other.quota_, nullptr);
                client_ = other.client_;
            }
            return *this;
        }
        explicit operator bool() const { return quota_ != nullptr; }

      private:
        friend class ConnectionQuota;
        Place(ConnectionQuota& quota, const std::optional<ClientKey>& client)
            : quota_(&quota), client_(client) {}
        void leave() noexcept {
            if (quota_) std::exchange(quota_, nullptr)->leave(client_);
        }

        ConnectionQuota* quota_ = nullptr;
        std::optional<ClientKey> client_;
    };

    /// Of a connection to the engine, as Place.
    class EnginePlace {
      public:
        EnginePlace() = default;
        ~EnginePlace() { leave(); }
        EnginePlace(const EnginePlace&) = delete;
        EnginePlace& operator=(const EnginePlace&) = delete;
        void leave() noexcept {
            if (quota_) std::exchange(quota_, nullptr)->leave_engine();
        }

      private:
        friend class ConnectionQuota;
        ConnectionQuota* quota_ = nullptr;
    };

    enum class Entry : unsigned char { in, full, no_descriptors, client_full };

    explicit ConnectionQuota(const ConnectionLimits& limits) : limits_(limits) { publish(); }

    /// client: nothing for one without an address. place: an empty one, which with `in` is the connection's.
    /// Throws std::bad_alloc, and then nothing has been counted.
    Entry enter(const std::optional<ClientKey>& client, Place& place);

    /// For a request without a permit. False: what is left of the descriptors is for those with one, for
    /// probes and for noren itself.
    bool enter_engine(EnginePlace& place);

    /// How many connections to the engine have a descriptor, idle ones among them: those that are kept for
    /// them, and what the clients leave. Takes no lock: each request asks.
    std::uint64_t descriptors_for_engine() const { return for_engine_.load(std::memory_order_relaxed); }

    /// Those who are in stay, however many.
    void set_limits(const ConnectionLimits& limits);
    ConnectionLimits limits() const;
    std::uint32_t open() const;
    /// Who was last turned away for having too many; for the log.
    std::optional<ClientKey> last_client_full() const;

  private:
    struct Hash {
        std::size_t operator()(const ClientKey& key) const noexcept;
    };
    void leave(const std::optional<ClientKey>& client) noexcept;
    void leave_engine() noexcept;
    std::uint32_t descriptors_taken() const;
    void publish() noexcept;

    mutable std::mutex mutex_;
    ConnectionLimits limits_;
    std::uint32_t open_ = 0;
    std::uint32_t to_engine_ = 0;                                   ///< without a permit
    std::unordered_map<ClientKey, std::uint32_t, Hash> by_client_;  ///< no entry without a connection
    std::optional<ClientKey> last_client_full_;
    std::atomic<std::uint64_t> for_engine_{0};
};

}  // namespace noren::proxy::admission
