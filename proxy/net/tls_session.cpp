#include "proxy/net/tls_session.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace noren::proxy::net {

/// The descriptor as OpenSSL sees it. Its own socket BIO would raise SIGPIPE, and would ask the kernel again
/// after a short read, which the readiness already answers.
struct TlsSession::Wire {
    int fd;
    Readiness& readiness;
    std::optional<unsigned char> first_byte = std::nullopt;  ///< that the peer ever sent

    static Wire& of(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

    static int read(BIO* bio, char* into, int size) {
        Wire& wire = of(bio);
        BIO_clear_retry_flags(bio);
        ssize_t n = -1;
        if (wire.readiness.readable) {
            n = ::recv(wire.fd, into, static_cast<std::size_t>(size), 0);
            if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
            if (n < 0 || (n < size && !wire.readiness.hung_up)) wire.readiness.readable = false;
        }
        if (n < 0) BIO_set_retry_read(bio);
        if (n > 0 && !wire.first_byte) wire.first_byte = static_cast<unsigned char>(*into);
        return static_cast<int>(n);
    }

    static int write(BIO* bio, const char* from, int size) {
        Wire& wire = of(bio);
        BIO_clear_retry_flags(bio);
        ssize_t n = -1;
        if (wire.readiness.writable) {
            n = ::send(wire.fd, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
            if (n < size) wire.readiness.writable = false;
        }
        if (n < 0) BIO_set_retry_write(bio);
        return static_cast<int>(n);
    }

    static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

    static const BIO_METHOD* method() {
        static BIO_METHOD* const all = [] {
            BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "noren");
            BIO_meth_set_read(made, read);
            BIO_meth_set_write(made, write);
            BIO_meth_set_ctrl(made, control);
            return made;
        }();
        return all;
    }
};

void TlsSession::Freer::operator()(ssl_st* session) const {
    SSL_free(session);
}

TlsSession::TlsSession(const TlsContext& context, int fd, Readiness& readiness)
    : wire_(std::make_unique<Wire>(fd, readiness)), ssl_(SSL_new(context.handle())) {
    BIO* bio = BIO_new(Wire::method());
    if (!ssl_ || !bio) {
        BIO_free(bio);
        throw std::bad_alloc();
    }
    BIO_set_data(bio, wire_.get());
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (!context.sni().empty()) SSL_set_tlsext_host_name(ssl_.get(), context.sni().c_str());
    context.is_server() ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
}

TlsSession::~TlsSession() = default;

TlsSession::Status TlsSession::handshake() {
    if (ended_) return *ended_;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) {
        established_ = true;
        return Status::ok;
    }
    const Status status = judge(result);
    if (status == Status::broken && spoke_plain_text()) failure_ = {TlsFault::plain_text, {}};
    return status == Status::closed ? end(Status::broken, tls_hang_up(ssl_.get())) : status;
}

TlsSession::Result TlsSession::read(std::span<char> into) {
    if (ended_) return {*ended_, 0};
    Result done;
    while (done.bytes < into.size()) {
        const std::span<char> rest = into.subspan(done.bytes);
        std::size_t size = 0;
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_.get(), rest.data(), rest.size(), &size);
        if (result != 1) {
            done.status = judge(result);
            return done;
        }
        done.bytes += size;
    }
    return done;
}

TlsSession::Result TlsSession::write(std::string_view first, std::string_view second) {
    if (write_broken_ || ended_ == Status::broken) return {Status::broken, 0};
    Result done;
    while (done.bytes < first.size() + second.size()) {
        // One record at a time. A head and the body that follows share one, as they would share a segment.
        std::string_view record = first.substr(std::min(done.bytes, first.size()));
        std::array<char, SSL3_RT_MAX_PLAIN_LENGTH> joined;
        if (record.empty()) {
            record = second.substr(done.bytes - first.size());
        } else if (record.size() < joined.size() && !second.empty()) {
            const std::string_view more = second.substr(0, joined.size() - record.size());
            std::memcpy(joined.data(), record.data(), record.size());
            std::memcpy(joined.data() + record.size(), more.data(), more.size());
            record = {joined.data(), record.size() + more.size()};
        }
        record = record.substr(0, joined.size());
        std::size_t size = 0;
        ERR_clear_error();
        const int result = SSL_write_ex(ssl_.get(), record.data(), record.size(), &size);
        if (result != 1) {
            // A peer that takes no more may have answered all the same: reading goes on after a failed send.
            if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_SYSCALL) {
                write_broken_ = true;
                done.status = Status::broken;
            } else {
                done.status = judge(result);
            }
            return done;
        }
        done.bytes += size;
    }
    return done;
}

TlsSession::Status TlsSession::close_notify() {
    if (!established_ || notified_ || write_broken_ || ended_ == Status::broken) return Status::ok;
    ERR_clear_error();
    const int result = SSL_shutdown(ssl_.get());
    if (result < 0 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_WRITE) return Status::wants_write;
    notified_ = true;
    return Status::ok;
}

bool TlsSession::disturbed() {
    wire_->readiness.readable = true;
    char byte = 0;
    std::size_t size = 0;
    ERR_clear_error();
    const int result = SSL_peek_ex(ssl_.get(), &byte, 1, &size);
    return result == 1 || SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ ||
           SSL_has_pending(ssl_.get()) == 1;
}

TlsSession::Status TlsSession::judge(int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            return Status::wants_read;
        case SSL_ERROR_WANT_WRITE:
            return Status::wants_write;
        case SSL_ERROR_ZERO_RETURN:
            return end(Status::closed, {});
        case SSL_ERROR_SSL:
            return end(Status::broken, tls_failure_of(ssl_.get()));
        default:  // the connection ended or broke below TLS
            return end(Status::broken, established_ ? TlsFailure{} : tls_hang_up(ssl_.get()));
    }
}

TlsSession::Status TlsSession::end(Status status, const TlsFailure& failure) {
    ended_ = status;
    failure_ = failure;
    return status;
}

/// A method's first letter; the record of a handshake begins with 22 (RFC 8446 5.1).
bool TlsSession::spoke_plain_text() const {
    const auto& first = wire_->first_byte;
    return SSL_is_server(ssl_.get()) && first && *first >= 'A' && *first <= 'Z';
}

}  // namespace noren::proxy::net
