#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

const char *birdlinux_secure_getenv(const char *name) {
    return secure_getenv(name);
}

int birdlinux_is_connected(int fd) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

int birdlinux_bytes_waiting(int fd) {
    int count = 0;
    return ioctl(fd, FIONREAD, &count) < 0 ? -1 : count;
}

int birdlinux_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    /* The thread inherits the mask: the host's handlers must never run on it. */
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error != 0) {
        return error;
    }
    error = pthread_create(thread, NULL, body, argument);
    if (error == 0) {
        pthread_setname_np(*thread, name);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int birdlinux_cond_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) {
        error = pthread_cond_init(condition, &attributes);
    }
    pthread_condattr_destroy(&attributes);
    return error;
}

int birdlinux_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    return pthread_atfork(prepare, parent, child);
}

static _Thread_local int callback_depth;

void birdlinux_callback_depth_add(int change) {
    callback_depth += change;
}

int birdlinux_callback_depth(void) {
    return callback_depth;
}

/* The Swift runtime refers to hypotf, which got a new symbol version in glibc 2.35; with it the library would not load on 2.34. */
float hypotf(float x, float y) {
    return (float)__builtin_sqrt((double)x * (double)x + (double)y * (double)y);
}
