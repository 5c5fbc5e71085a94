/* The limit of a WebSocket client over TLS: has OpenSSL decrypt, and finds each frame's header. Trusts the file that the environment
   variable BENCH_CA_FILE names. */
#include <openssl/ssl.h>

#include "walker.h"

static unsigned char buffer[RECEIVE_BUFFER_BYTES];

static size_t tls_receive(SSL *tls, unsigned char *at, size_t size) {
    int got = SSL_read(tls, at, (int)size);
    if (got <= 0)
        fail("the server closed the connection");
    return (size_t)got;
}

static void tls_send(SSL *tls, const void *bytes, size_t length) {
    if (SSL_write(tls, bytes, (int)length) != (int)length)
        fail("the connection broke while sending");
}

static SSL *open_tls(int fd) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    const char *ca_file = getenv("BENCH_CA_FILE");
    if (context == NULL || ca_file == NULL || SSL_CTX_load_verify_locations(context, ca_file, NULL) != 1)
        fail("BENCH_CA_FILE names no file with certificates");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL *tls = SSL_new(context);
    if (tls == NULL || SSL_set_fd(tls, fd) != 1 || SSL_connect(tls) != 1)
        fail("the server's certificate is not trusted, or it speaks no TLS");
    return tls;
}

static void upgrade_and_subscribe(SSL *tls) {
    tls_send(tls, UPGRADE_REQUEST, sizeof UPGRADE_REQUEST - 1);
    char response[1024];
    size_t length = 0;
    do {
        if (length + 1 == sizeof response)
            fail("the answer to the upgrade is too long");
        length += tls_receive(tls, (unsigned char *)response + length, 1);
        response[length] = '\0';
    } while (strstr(response, "\r\n\r\n") == NULL);
    if (strncmp(response, "HTTP/1.1 101 ", 13) != 0)
        fail("the server refused the upgrade");
    tls_send(tls, SUBSCRIBE_FRAME, sizeof SUBSCRIBE_FRAME - 1);
}

static void walk_until(struct walker *walker, SSL *tls, uint64_t frames) {
    while (walker->frames < frames) {
        size_t kept = walker->header_kept;
        walk(walker, buffer, kept + tls_receive(tls, buffer + kept, sizeof buffer - kept));
    }
}

int main(int argc, char **argv) {
    struct arguments arguments = parse_arguments(argc, argv);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    SSL *tls = open_tls(open_socket(arguments.port));
    upgrade_and_subscribe(tls);

    struct walker walker = {0};
    walk_until(&walker, tls, 2 + arguments.warmup); /* the handshake, the answer to the subscribe */
    uint64_t first = walker.frames;
    measurement_begin(&measurement);
    walk_until(&walker, tls, first + arguments.events);
    measurement_end(&measurement);
    measurement_print(&measurement, walker.frames - first);
    close(SSL_get_fd(tls));
}
