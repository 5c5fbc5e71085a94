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
/* host:port of the socket's peer, -1 if it has none. */
int birdlinux_peer_name(int fd, char *text, size_t size);
/* 1 if the fd is open and stays so in a program that is started. */
int birdlinux_is_inherited_by_exec(int fd);
/* write() that raises no SIGPIPE and no SIGXFSZ; on failure -errno. */
long birdlinux_write_quietly(int fd, const void *bytes, size_t count);
/* Starts a joinable thread with every signal blocked; returns an errno value. */
int birdlinux_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument);
/* A condition variable whose timed waits use CLOCK_MONOTONIC. */
int birdlinux_cond_init(pthread_cond_t *condition);
/* How many handlers of the program's are on this thread's stack; add 1 or -1. */
void birdlinux_callback_depth_add(int change);
int birdlinux_callback_depth(void);
/* A socket on which the kernel tells of every change of links, addresses and routes (rtnetlink), and the port that its messages name;
   -1 and errno if there is none to be had. */
int birdlinux_netlink_open(uint32_t *port);
/* Asks for all links, addresses or routes (RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE); -1 and errno on failure. */
int birdlinux_netlink_ask(int fd, uint16_t type, uint32_t sequence);
/* One datagram of the kernel's; 0: it was somebody else's. -1 and errno if there is none (EAGAIN), or if some were lost (ENOBUFS). */
ssize_t birdlinux_netlink_receive(int fd, void *buffer, size_t size);
/* The address of the socket's own end, 4 or 16 bytes, and its family; -1 if it is neither IPv4 nor IPv6. */
int birdlinux_source_address(int fd, uint8_t bytes[16]);
/* Calls of the program's log handler on this thread's stack. */
void birdlinux_log_depth_add(int change);
int birdlinux_log_depth(void);
/* Runs before, and after in parent and child, each fork. */
int birdlinux_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif
