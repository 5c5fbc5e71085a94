/* TLS 1.3 of OpenSSL. A certificate and its key are in the file that the environment variable BENCH_SERVER_FILE names. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stream.h"

enum { RECORD_BYTES_MAX = 16 * 1024 };

struct stream {
    int fd;
    SSL *tls;
    size_t pending_bytes; /* of a record that OpenSSL has made and that must be written before anything else */
    char pending[RECORD_BYTES_MAX];
};

static SSL_CTX *context;

const char *stream_prepare(void) {
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    const char *file = getenv("BENCH_SERVER_FILE");
    if (file == NULL)
        return "the environment variable BENCH_SERVER_FILE must name a file with a certificate and its key";
    context = SSL_CTX_new(TLS_server_method());
    if (context == NULL || SSL_CTX_use_certificate_chain_file(context, file) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM) != 1)
        return "BENCH_SERVER_FILE has no certificate with its key";
    /* The least work for each byte that TLS offers on this kind of processor, for every client. */
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return NULL;
}

struct stream *stream_accept(int fd) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->fd = fd;
    stream->tls = SSL_new(context);
    if (stream->tls == NULL || SSL_set_fd(stream->tls, fd) != 1) {
        SSL_free(stream->tls);
        free(stream);
        return NULL;
    }
    SSL_set_accept_state(stream->tls);
    return stream;
}

/* As the calls of the kernel give it. */
static ssize_t result(struct stream *stream, int done) {
    if (done > 0)
        return done;
    int error = SSL_get_error(stream->tls, done);
    ERR_clear_error();
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
    return -1;
}

ssize_t stream_receive(struct stream *stream, void *bytes, size_t length) {
    return result(stream, SSL_read(stream->tls, bytes, (int)length));
}

ssize_t stream_send(struct stream *stream, const void *bytes, size_t length) {
    if (stream->pending_bytes > 0) {
        ssize_t sent = result(stream, SSL_write(stream->tls, stream->pending, (int)stream->pending_bytes));
        if (sent < 0)
            return sent;
        stream->pending_bytes = 0;
    }
    if (length == 0)
        return 0;
    if (length > RECORD_BYTES_MAX)
        length = RECORD_BYTES_MAX;
    ssize_t sent = result(stream, SSL_write(stream->tls, bytes, (int)length));
    if (sent >= 0 || errno != EAGAIN)
        return sent;
    /* OpenSSL insists on the same bytes the next time, when it may be the turn of others. */
    memcpy(stream->pending, bytes, length);
    stream->pending_bytes = length;
    return (ssize_t)length;
}

bool stream_is_pending(const struct stream *stream) {
    return stream->pending_bytes > 0;
}

void stream_finish(struct stream *stream) {
    SSL_shutdown(stream->tls);
    shutdown(stream->fd, SHUT_WR);
}

void stream_close(struct stream *stream) {
    SSL_free(stream->tls);
    close(stream->fd);
    free(stream);
}
