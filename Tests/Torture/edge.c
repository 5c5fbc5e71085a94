/*
 * The edge of the torture: one thread, one port of 127.0.0.1. It speaks the Bird protocol and does at random what edges, proxies, networks and
 * authorizers do to clients: refuses, resets, keeps silent, answers with garbage, splits and coalesces, closes with every kind of code.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../Benchmarks/server_side.h"
#include "torture.h"

enum {
    PEERS_MAX = 64,
    INPUT_BYTES_MAX = 65536,
    OUTPUT_BYTES_MAX = 262144,
    NAME_BYTES_MAX = 64,
    JOINED_MAX = 8,
    TURN_MS = 2,
    FRAME_BYTES_MAX = 1024,
};

typedef struct peer {
    int fd;
    bool is_upgraded, is_silent, splits, ends;
    int joined_count;
    char joined[JOINED_MAX][NAME_BYTES_MAX];
    size_t input_bytes, output_bytes;
    char input[INPUT_BYTES_MAX];
    char output[OUTPUT_BYTES_MAX];
} peer;

static peer *peers[PEERS_MAX];
static int listener, port;
static pthread_t thread;
static atomic_bool is_stopped, is_good;
static chance luck;
static int64_t ticks;
atomic_ullong edge_connections, edge_upgrades;

int edge_port(void) {
    return port;
}

void edge_heal(void) {
    atomic_store(&is_good, true);
}

/* What goes wrong once in so many times; nothing does once the edge is good. */
static bool mishap(uint64_t times) {
    return !atomic_load(&is_good) && once_in(&luck, times);
}

/* ----------------------------------------------------------------------------------------------------- output ------ */

static void add(peer *p, const void *bytes, size_t length) {
    if (p->output_bytes + length <= OUTPUT_BYTES_MAX) {
        memcpy(p->output + p->output_bytes, bytes, length);
        p->output_bytes += length;
    }
}

static void add_text(peer *p, const char *text) {
    add(p, text, strlen(text));
}

static void add_frame(peer *p, int opcode, const char *payload, size_t length) {
    char header[SERVER_HEADER_BYTES_MAX];
    add(p, header, put_header(header, opcode, length));
    add(p, payload, length);
}

__attribute__((format(printf, 2, 3))) static void say(peer *p, const char *format, ...) {
    char text[FRAME_BYTES_MAX];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0 && length < FRAME_BYTES_MAX) {
        add_frame(p, OPCODE_TEXT, text, (size_t)length);
    }
}

static void add_close(peer *p) {
    static const int codes[] = {1000, 1001, 1006, 1011, 1015, 3000, 4000, 4004,
                                4009, 4100, 4150, 4200, 4201, 4299, 4300, 4999};
    const int code = ONE_OF(&luck, codes);
    const char payload[] = {(char)(code >> 8), (char)code, 'b', 'y', 'e'};
    add_frame(p, OPCODE_CLOSE, payload, sizeof payload);
    p->ends = true;
}

/* False: the connection is over. */
static bool flush(peer *p) {
    if (p->output_bytes == 0) {
        return !p->ends;
    }
    const size_t turn = p->splits ? 1 + below(&luck, 7) : p->output_bytes;
    const ssize_t sent = send(p->fd, p->output, turn < p->output_bytes ? turn : p->output_bytes, MSG_NOSIGNAL);
    if (sent < 0) {
        return errno == EAGAIN;
    }
    p->output_bytes -= (size_t)sent;
    memmove(p->output, p->output + sent, p->output_bytes);
    return p->output_bytes > 0 || !p->ends;
}

/* ------------------------------------------------------------------------------------------------------ input ------ */

static void take_subscribe(peer *p, const char *name) {
    if (p->joined_count < JOINED_MAX) {
        snprintf(p->joined[p->joined_count++], NAME_BYTES_MAX, "%s", name);
    }
    const char *data = strncmp(name, "presence-", 9) == 0
                           ? "{\"presence\":{\"ids\":[\"m_1\",2],\"hash\":{\"m_1\":{\"a\":1},\"2\":null},\"count\":2}}"
                           : "{}";
    if (mishap(10)) {
        say(p, "{\"event\":\"bird:error\",\"data\":{\"code\":%d,\"message\":\"no\"}}", 4300 + (int)below(&luck, 10));
    } else if (!mishap(10)) {
        const int times = mishap(16) ? 2 : 1;
        for (int i = 0; i < times; i++) {
            say(p, "{\"event\":\"bird_internal:subscription_succeeded\",\"channel\":\"%s\",\"data\":%s}", name, data);
        }
    }
}

static void take_message(peer *p, const char *text) {
    size_t length = 0;
    const char *name = channel_in(text, &length);
    if (strstr(text, "\"event\":\"bird:ping\"") != NULL) {
        if (!mishap(16)) {
            say(p, "{\"event\":\"bird:pong\",\"data\":{}}");
        }
    } else if (strstr(text, "\"event\":\"bird:signin\"") != NULL) {
        if (!mishap(6)) {
            say(p, "{\"event\":\"bird:signin_success\",\"data\":{\"member_data\":\"{\\\"member_id\\\":%s}\"}}",
                once_in(&luck, 2) ? "\\\"m_1\\\"" : "12");
        }
    } else if (name != NULL && length < NAME_BYTES_MAX) {
        char channel[NAME_BYTES_MAX];
        snprintf(channel, sizeof channel, "%.*s", (int)length, name);
        if (strstr(text, "\"event\":\"bird:subscribe\"") != NULL) {
            take_subscribe(p, channel);
        } else if (strstr(text, "\"event\":\"client-") != NULL) {
            say(p, "{\"event\":\"client-heard\",\"channel\":\"%s\",\"data\":\"1\"}", channel);
        }
    }
}

static void drop_input(peer *p, size_t length) {
    p->input_bytes -= length;
    memmove(p->input, p->input + length, p->input_bytes);
}

static bool take_frames(peer *p) {
    struct client_frame frame;
    int found;
    while ((found = next_client_frame(p->input, p->input_bytes, &frame)) == 1) {
        static char payload[INPUT_BYTES_MAX + 1];
        memcpy(payload, frame.payload, frame.payload_bytes);
        payload[frame.payload_bytes] = '\0';
        drop_input(p, frame.total_bytes);
        if (frame.opcode == OPCODE_CLOSE) {
            if (!mishap(4)) {
                add_frame(p, OPCODE_CLOSE, payload, frame.payload_bytes < 2 ? 0 : 2);
            }
            p->ends = !mishap(4);
        } else if (frame.opcode == OPCODE_PING && !mishap(8)) {
            add_frame(p, OPCODE_PONG, payload, frame.payload_bytes);
        } else if (frame.opcode == OPCODE_TEXT) {
            take_message(p, payload);
        }
    }
    return found == 0;
}

static void respond(peer *p, const char *status, const char *headers, const char *body) {
    char text[FRAME_BYTES_MAX];
    snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status, headers,
             strlen(body), body);
    add_text(p, text);
    p->ends = true;
}

static void refuse(peer *p) {
    switch (below(&luck, 6)) {
    case 0:
        respond(p, "503 Service Unavailable", "Retry-After: 1\r\n", "later");
        break;
    case 1:
        respond(p, "403 Forbidden", "", "{}");
        break;
    case 2:
        respond(p, "302 Found", "Location: http://elsewhere.test/\r\n", "");
        break;
    case 3:
        respond(p, "200 OK", "Content-Type: text/html\r\n", "<html>");
        break;
    case 4:
        add_text(p, "\x16\x03\x01garbage\r\n\r\n");
        p->ends = true;
        break;
    default:
        p->is_silent = true;
    }
}

static void take_post(peer *p) {
    const char *end = strstr(p->input, "\r\n\r\n");
    const char *length = strcasestr(p->input, "\r\nContent-Length:");
    const size_t body = length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if ((size_t)(end + 4 - p->input) + body > p->input_bytes) {
        return;
    }
    p->input_bytes = 0;
    if (mishap(3)) {
        refuse(p);
    } else {
        respond(p, "200 OK", "",
                "{\"auth\":\"key:signature\",\"member_data\":\"{\\\"member_id\\\":\\\"m_1\\\"}\","
                "\"shared_secret\":\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"}");
    }
}

static void establish(peer *p) {
    atomic_fetch_add(&edge_upgrades, 1);
    if (mishap(16)) {
        p->is_silent = true;
    } else if (mishap(16)) {
        say(p, "{\"event\":\"bird:connection_established\",\"data\":%s}", once_in(&luck, 2) ? "{" : "7");
    } else if (mishap(16)) {
        add_close(p);
    } else {
        say(p,
            "{\"event\":\"bird:connection_established\",\"data\":\"{\\\"connection_id\\\":\\\"%llu.7\\\","
            "\\\"activity_timeout\\\":%d}\"}",
            (unsigned long long)atomic_load(&edge_upgrades), 1 + (int)below(&luck, 120));
    }
}

static bool take_request(peer *p) {
    p->input[p->input_bytes] = '\0';
    if (strstr(p->input, "\r\n\r\n") == NULL) {
        return true;
    }
    if (strncmp(p->input, "POST", 4) == 0) {
        take_post(p);
        return true;
    }
    char answer[UPGRADE_ANSWER_BYTES_MAX];
    const ssize_t length = answer_upgrade(p->input, answer);
    if (length < 0) {
        return false;
    }
    drop_input(p, (size_t)length);
    if (mishap(8)) {
        refuse(p);
        return true;
    }
    if (mishap(32)) {
        *strstr(answer, "Accept: ") = 'x';
    }
    add_text(p, answer);
    p->is_upgraded = true;
    establish(p);
    return true;
}

/* False: the connection is over. */
static bool take_input(peer *p) {
    const ssize_t got = recv(p->fd, p->input + p->input_bytes, INPUT_BYTES_MAX - 1 - p->input_bytes, 0);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    p->input_bytes += (size_t)got;
    if (p->is_silent || p->ends) {
        p->input_bytes = 0;
        return true;
    }
    return (p->is_upgraded || take_request(p)) && (!p->is_upgraded || take_frames(p)) &&
           p->input_bytes < INPUT_BYTES_MAX - 1;
}

/* -------------------------------------------------------------------------------------------------- by itself ------ */

static void end(peer **slot, bool resets) {
    if (resets) {
        const struct linger now = {.l_onoff = 1};
        setsockopt((*slot)->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    close((*slot)->fd);
    free(*slot);
    *slot = NULL;
}

static void speak(peer *p) {
    const char *channel = p->joined_count > 0 ? p->joined[below(&luck, (uint64_t)p->joined_count)] : "nobody";
    for (uint64_t left = once_in(&luck, 4) ? below(&luck, 20) : 0; left > 0; left--) {
        say(p, "{\"event\":\"tick\",\"channel\":\"%s\",\"data\":\"%lld\"}", channel, (long long)ticks++);
    }
    if (once_in(&luck, 32)) {
        say(p, "{\"event\":\"bird_internal:member_%s\",\"channel\":\"%s\",\"data\":{\"member_id\":\"m_%d\"}}",
            once_in(&luck, 2) ? "added" : "removed", channel, (int)below(&luck, 4));
    }
    if (once_in(&luck, 64)) {
        say(p, "{\"event\":\"bird_internal:connection_count\",\"channel\":\"%s\",\"data\":{\"connection_count\":3}}",
            channel);
    }
    if (once_in(&luck, 64)) {
        say(p,
            "{\"event\":\"bird_internal:watchlist_events\",\"data\":{\"events\":[{\"name\":\"%s\",\"member_ids\":[\"m_"
            "2\"]}]}}",
            once_in(&luck, 2) ? "online" : "offline");
    }
    if (once_in(&luck, 16)) {
        add_frame(p, OPCODE_PING, "p", 1);
    }
    if (mishap(64)) {
        static const char *const nonsense[] = {"{", "[]", "{\"event\":7}", "\"\\ud800\"", "{\"event\":\"tick\"}"};
        say(p, "%s", ONE_OF(&luck, nonsense));
    }
    if (mishap(512)) {
        add_text(p, "\xff\xff\xff\xff no frame at all");
    }
    if (mishap(512)) {
        add_close(p);
    }
    if (mishap(512)) {
        add_text(p, "\x81\x7e\x01"); /* the beginning of a frame */
        p->ends = true;
    }
}

static void take_turn(peer **slot, short events) {
    peer *p = *slot;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !take_input(p)) {
        end(slot, false);
        return;
    }
    if (p->is_upgraded && !p->is_silent && !p->ends) {
        speak(p);
    }
    if (!flush(p)) {
        end(slot, mishap(2));
    } else if (mishap(1000) || (p->is_silent && atomic_load(&is_good))) {
        end(slot, once_in(&luck, 2));
    }
}

static void accept_one(void) {
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    atomic_fetch_add(&edge_connections, 1);
    for (int i = 0; i < PEERS_MAX && !mishap(24); i++) {
        if (peers[i] == NULL) {
            peers[i] = calloc(1, sizeof **peers);
            CHECK(peers[i] != NULL);
            peers[i]->fd = fd;
            peers[i]->splits = mishap(6);
            return;
        }
    }
    close(fd);
}

static void *serve(void *unused) {
    (void)unused;
    while (!atomic_load(&is_stopped)) {
        struct pollfd fds[PEERS_MAX + 1] = {{.fd = listener, .events = POLLIN}};
        for (int i = 0; i < PEERS_MAX; i++) {
            fds[i + 1] = (struct pollfd){.fd = peers[i] != NULL ? peers[i]->fd : -1, .events = POLLIN};
        }
        if (poll(fds, PEERS_MAX + 1, TURN_MS) < 0) {
            continue;
        }
        for (int i = 0; i < PEERS_MAX; i++) {
            if (peers[i] != NULL) {
                take_turn(&peers[i], fds[i + 1].revents);
            }
        }
        if (fds[0].revents != 0) {
            accept_one();
        }
    }
    return NULL;
}

void edge_start(uint64_t seed) {
    luck.state = mix(~seed);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
          listen(listener, SOMAXCONN) == 0 && getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    port = ntohs(address.sin_port);
    CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
}

void edge_stop(void) {
    atomic_store(&is_stopped, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < PEERS_MAX; i++) {
        if (peers[i] != NULL) {
            end(&peers[i], false);
        }
    }
    close(listener);
}
