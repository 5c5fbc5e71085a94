/* Linux interfaces that the Swift overlay of the C library leaves out or imports badly. */
#ifndef BIRD_CLINUX_H
#define BIRD_CLINUX_H

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* NULL in a program that has more rights than the one who set its environment. */
const char *birdlinux_secure_getenv(const char *name);
/* 1 while the socket has a peer. */
int birdlinux_is_connected(int fd);
/* Bytes that wait in the socket's receive buffer, -1 on error. */
int birdlinux_bytes_waiting(int fd);
/* Starts a joinable thread with every signal blocked; returns an errno value. */
int birdlinux_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument);
/* A condition variable whose timed waits use CLOCK_MONOTONIC. */
int birdlinux_cond_init(pthread_cond_t *condition);
/* How many handlers of the program's are on this thread's stack; add 1 or -1. */
void birdlinux_callback_depth_add(int change);
int birdlinux_callback_depth(void);
/* Runs before, and after in parent and child, each fork. */
int birdlinux_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif
