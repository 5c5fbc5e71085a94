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
/* The same open file under a number above 2, close-on-exec: 0, 1 and 2 may be closed, and what the host prints then must not go into a
   file of the library's. Takes the fd over; -1 and errno if there is no other (-1 stays -1). Every fd of the library passes through here. */
int birdlinux_above_stdio(int fd);
/* Around whatever opens fds: has 0, 1 and 2, where they are closed, taken by fds that neither read nor write (EBADF, as before). The last
   of several threads that hold them lets go. */
void birdlinux_hold_stdio(void);
void birdlinux_release_stdio(void);
void birdlinux_lock_stdio_for_fork(void);
/* In a child nobody holds them any more. */
void birdlinux_unlock_stdio_after_fork(int is_child);
/* A number that no other socket ever has; 0: this is no socket, or the kernel is older than 4.12. */
uint64_t birdlinux_socket_cookie(int fd);
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
/* Starts a joinable thread that blocks every signal but those of faults (SEGV, BUS, FPE, ILL, TRAP); returns an errno value. */
int birdlinux_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument);
/* Waits for the end of the thread; one that takes longer is left to itself. */
void birdlinux_thread_join(pthread_t thread, int64_t timeout_ms);
/* Around code of the program on such a thread, which has the signal mask of the thread that started it meanwhile. They nest, and do
   nothing on threads of the host's. */
void birdlinux_handlers_begin(void);
void birdlinux_handlers_end(void);
/* epoll_wait(). On a thread of the library's birdlinux_interrupt() ends it, once in its life: the thread then does `go_on(argument)` and
   ends. For a wait that has lost every other way to be ended, since the host has closed its fds. */
int birdlinux_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms, void (*go_on)(void *),
                   void *argument);
void birdlinux_interrupt(pthread_t thread);
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
