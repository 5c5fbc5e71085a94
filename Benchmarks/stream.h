/* The bytes of a connection that the flood server has accepted: over TCP alone (stream_plain.c) or over TLS (stream_tls.c), as the server
   was linked. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <sys/types.h>

struct stream;

/* Before anything else. NULL, or what is wrong. */
const char *stream_prepare(void);
/* Owns the non-blocking socket from now on. NULL: out of memory. */
struct stream *stream_accept(int fd);
/* Like recv and send: -1 with errno EAGAIN when nothing can be done now. */
ssize_t stream_receive(struct stream *stream, void *bytes, size_t length);
ssize_t stream_send(struct stream *stream, const void *bytes, size_t length);
/* True: some of what stream_send has taken is not in the socket yet, but will be after another stream_send, of any length. */
bool stream_is_pending(const struct stream *stream);
/* Nothing more is sent. */
void stream_finish(struct stream *stream);
void stream_close(struct stream *stream);

#endif
