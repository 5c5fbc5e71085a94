#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stream.h"

struct stream {
    int fd;
};

const char *stream_prepare(void) {
    return NULL;
}

struct stream *stream_accept(int fd) {
    struct stream *stream = malloc(sizeof *stream);
    if (stream != NULL)
        stream->fd = fd;
    return stream;
}

ssize_t stream_receive(struct stream *stream, void *bytes, size_t length) {
    return recv(stream->fd, bytes, length, 0);
}

ssize_t stream_send(struct stream *stream, const void *bytes, size_t length) {
    return send(stream->fd, bytes, length, MSG_NOSIGNAL);
}

bool stream_is_pending(const struct stream *stream) {
    (void)stream;
    return false;
}

void stream_finish(struct stream *stream) {
    shutdown(stream->fd, SHUT_WR);
}

void stream_close(struct stream *stream) {
    close(stream->fd);
    free(stream);
}
