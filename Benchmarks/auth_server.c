/* An authorizer that is never the bottleneck: answers every POST with a signature, on connections that stay open. Prints its port.
   Ends with SIGTERM. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_BYTES_MAX = 8192, READY_MAX = 64 };

#define BODY "{\"auth\":\"bench:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}"
_Static_assert(sizeof BODY - 1 == 81, "the length that the answer states");
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 81\r\n\r\n" BODY;

struct connection {
    int fd;
    size_t length;
    char request[REQUEST_BYTES_MAX];
};

static void fail(const char *what) {
    fprintf(stderr, "auth_server: %s\n", what);
    exit(1);
}

/* Bytes of the request at the start of the NUL-terminated input; 0: more is needed. */
static size_t whole_request(const char *input, size_t length) {
    static const char key[] = "\r\ncontent-length:";
    const char *end = strstr(input, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *value = strcasestr(input, key);
    size_t total = (size_t)(end + 4 - input);
    if (value != NULL && value < end)
        total += strtoul(value + sizeof key - 1, NULL, 10);
    return length >= total ? total : 0;
}

/* False: the connection ends. */
static bool serve(struct connection *connection) {
    ssize_t got =
        recv(connection->fd, connection->request + connection->length, REQUEST_BYTES_MAX - 1 - connection->length, 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    connection->length += (size_t)got;
    connection->request[connection->length] = '\0';
    size_t request_bytes;
    while ((request_bytes = whole_request(connection->request, connection->length)) > 0) {
        if (send(connection->fd, answer, sizeof answer - 1, MSG_NOSIGNAL) != sizeof answer - 1)
            return false;
        connection->length -= request_bytes;
        memmove(connection->request, connection->request + request_bytes, connection->length + 1);
    }
    return connection->length < REQUEST_BYTES_MAX - 1;
}

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t address_bytes = sizeof address;
    struct epoll_event event = {.events = EPOLLIN};
    if (listener < 0 || epoll < 0 || bind(listener, (struct sockaddr *)&address, address_bytes) != 0 ||
        listen(listener, SOMAXCONN) != 0 || getsockname(listener, (struct sockaddr *)&address, &address_bytes) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
        fail("cannot listen on 127.0.0.1");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    for (;;) {
        struct epoll_event ready[READY_MAX];
        int count = epoll_wait(epoll, ready, READY_MAX, -1);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            struct connection *connection = ready[i].data.ptr;
            if (connection == NULL) {
                connection = calloc(1, sizeof *connection);
                if (connection == NULL)
                    fail("out of memory");
                connection->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                event.data.ptr = connection;
                if (connection->fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0)
                    fail("a connection could not be accepted");
            } else if (!serve(connection)) {
                close(connection->fd);
                free(connection);
            }
        }
    }
}
