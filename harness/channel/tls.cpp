// The pre-shared key, and OpenSSL's calls as states.
#include "harness/channel/tls.h"

#include "harness/core/error.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace assay {

namespace {

constexpr const char* ciphersuite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char ciphersuite_id[] = {0x13, 0x01};
constexpr std::string_view identity = "assay";

// The oldest of OpenSSL's errors in words; empties its queue.
std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  const char* text = code != 0 ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return text ? text : "unknown error";
}

// SHA-256 of a label and the token, so that no other use of the token shares the key.
std::string key_of(std::string_view token) {
  const std::string text = fmt::format("assay channel {}", token);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    throw Error(fmt::format("no key for the channel: {}", openssl_error()));
  return {reinterpret_cast<const char*>(digest.data()), size};
}

// Null if OpenSSL has no memory; the caller owns it.
SSL_SESSION* session_of(SSL* connection) {
  const auto& key = *static_cast<const std::string*>(SSL_get_app_data(connection));
  const SSL_CIPHER* cipher = SSL_CIPHER_find(connection, ciphersuite_id);
  SSL_SESSION* session = SSL_SESSION_new();
  if (session && cipher &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()), key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int use_key(SSL* connection, const EVP_MD*, const unsigned char** id, std::size_t* id_size, SSL_SESSION** session) {
  *session = session_of(connection);
  *id = reinterpret_cast<const unsigned char*>(identity.data());
  *id_size = identity.size();
  return *session ? 1 : 0;
}

int find_key(SSL* connection, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
  const bool ours = std::string_view(reinterpret_cast<const char*>(id), id_size) == identity;
  *session = ours ? session_of(connection) : nullptr;
  return !ours || *session ? 1 : 0;
}

// A socket as OpenSSL's own, but a peer that is gone is an error, not SIGPIPE.
int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int write_socket(BIO* bio, const char* bytes, int size) {
  const auto sent = static_cast<int>(::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL));
  BIO_clear_retry_flags(bio);
  if (sent <= 0 && BIO_sock_should_retry(sent)) BIO_set_retry_write(bio);
  return sent;
}

int read_socket(BIO* bio, char* bytes, int size) {
  const auto received = static_cast<int>(::recv(socket_of(bio), bytes, static_cast<std::size_t>(size), 0));
  BIO_clear_retry_flags(bio);
  if (received < 0 && BIO_sock_should_retry(received)) BIO_set_retry_read(bio);
  if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return received;
}

long control_socket(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* make_socket_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quiet socket");
  if (!method || BIO_meth_set_write(method, write_socket) != 1 || BIO_meth_set_read(method, read_socket) != 1 ||
      BIO_meth_set_ctrl(method, control_socket) != 1)
    throw Error(fmt::format("no TLS for the channel: {}", openssl_error()));
  return method;
}

// Null if OpenSSL has no memory. The socket stays open when the BIO ends.
BIO* socket_bio(int fd) {
  static const BIO_METHOD* const method = make_socket_method();
  BIO* bio = BIO_new(method);
  if (bio) BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  return bio;
}

SSL_CTX* make_context(bool server) {
  // Threads may still use a connection when the process exits, and a machine's configuration of OpenSSL must not decide
  // whether its hosts can talk.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  SSL_CTX* context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, ciphersuite) != 1)
    throw Error(fmt::format("no TLS for the channel: {}", openssl_error()));
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  if (server) {
    SSL_CTX_set_psk_find_session_callback(context, find_key);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, use_key);
    // A server that shows a certificate instead of using the key is refused: nobody is trusted to sign one.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

SSL_CTX* context_of(TlsConnection::End end) {
  static SSL_CTX* const client = make_context(false);
  static SSL_CTX* const server = make_context(true);
  return end == TlsConnection::End::server ? server : client;
}

}  // namespace

void TlsConnection::Free::operator()(ssl_st* connection) const { SSL_free(connection); }

TlsConnection::TlsConnection(End end, int fd, std::string_view token)
    : fd_(fd), key_(key_of(token)), connection_(SSL_new(context_of(end))) {
  BIO* bio = connection_ ? socket_bio(fd) : nullptr;
  if (!bio) throw Error(fmt::format("no TLS for the channel: {}", openssl_error()));
  SSL_set_bio(connection_.get(), bio, bio);
  SSL_set_app_data(connection_.get(), &key_);
  end == End::server ? SSL_set_accept_state(connection_.get()) : SSL_set_connect_state(connection_.get());
}

TlsConnection::~TlsConnection() = default;

TlsConnection::State TlsConnection::state_of(int result) {
  const int error = errno;
  switch (SSL_get_error(connection_.get(), result)) {
    case SSL_ERROR_NONE: return State::done;
    case SSL_ERROR_WANT_READ: return State::wants_read;
    case SSL_ERROR_WANT_WRITE: return State::wants_write;
    case SSL_ERROR_ZERO_RETURN: why_ = "the connection was closed"; return State::closed;
    case SSL_ERROR_SYSCALL:
      why_ = error != 0 ? std::strerror(error) : "the connection was closed";
      ERR_clear_error();
      return State::closed;
    default: why_ = openssl_error(); return State::failed;
  }
}

TlsConnection::State TlsConnection::shake_hands() {
  const std::lock_guard lock(mutex_);
  ERR_clear_error();
  errno = 0;
  const State state = state_of(SSL_do_handshake(connection_.get()));
  // Any other way to a finished handshake would prove nothing about the other end.
  if (state == State::done && !token_shown()) {
    why_ = "the other end did not use the token";
    return State::failed;
  }
  return state;
}

bool TlsConnection::token_shown() const { return SSL_session_reused(connection_.get()) == 1; }

bool TlsConnection::wait(State state, std::chrono::steady_clock::time_point until) const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now()).count();
  if (left <= 0) return false;
  pollfd ready{fd_, static_cast<short>(state == State::wants_write ? POLLOUT : POLLIN), 0};
  return ::poll(&ready, 1, static_cast<int>(left)) >= 0 || errno == EINTR;
}

TlsConnection::State TlsConnection::read(char* to, std::size_t size, std::size_t& got) {
  const std::lock_guard lock(mutex_);
  ERR_clear_error();
  errno = 0;
  return state_of(SSL_read_ex(connection_.get(), to, size, &got));
}

TlsConnection::State TlsConnection::write(std::string_view& bytes) {
  const std::lock_guard lock(mutex_);
  ERR_clear_error();
  errno = 0;
  std::size_t sent = 0;
  const State state = state_of(SSL_write_ex(connection_.get(), bytes.data(), bytes.size(), &sent));
  if (state == State::done) bytes.remove_prefix(sent);
  return state;
}

}  // namespace assay
