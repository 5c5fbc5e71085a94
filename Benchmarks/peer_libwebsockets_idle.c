/* Idle connections of Debian's libwebsockets: each upgraded, subscribed to a channel of its own and left alone. Prints what the
   process holds. usage: peer_libwebsockets_idle CONNECTIONS PORT,... */
#include <libwebsockets.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../Tests/Scale/scale.h"

enum { PORTS_MAX = 64, AT_ONCE_MAX = 64, MESSAGES_WANTED = 2, DEADLINE_MS = 60000 };

static size_t opened, subscribed;

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    exit(1);
}

static void subscribe(struct lws *socket) {
    unsigned char frame[LWS_PRE + 128];
    int length = snprintf((char *)frame + LWS_PRE, sizeof frame - LWS_PRE,
                          "{\"event\":\"bird:subscribe\",\"data\":{\"channel\":\"idle-%zu\"}}", opened);
    if (lws_write(socket, frame + LWS_PRE, (size_t)length, LWS_WRITE_TEXT) < 0)
        fail("the subscribe could not be written");
}

/* messages: how many this connection has received. */
static int on_event(struct lws *socket, enum lws_callback_reasons reason, void *messages, void *bytes, size_t length) {
    (void)bytes;
    (void)length;
    switch (reason) {
    case LWS_CALLBACK_CLIENT_RECEIVE: {
        int *received = messages;
        subscribed += ++*received == MESSAGES_WANTED;
        break;
    }
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        lws_callback_on_writable(socket);
        break;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        subscribe(socket);
        break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
    case LWS_CALLBACK_CLIENT_CLOSED:
        fail("a connection broke");
    default:
        break;
    }
    return 0;
}

static void open_one(struct lws_context *context, int port) {
    char path[64];
    snprintf(path, sizeof path, "/app/bench?protocol=7&n=%zu", opened++);
    struct lws_client_connect_info target = {.context = context,
                                             .address = "127.0.0.1",
                                             .port = port,
                                             .path = path,
                                             .host = "127.0.0.1",
                                             .origin = "127.0.0.1",
                                             .local_protocol_name = "bench"};
    if (lws_client_connect_via_info(&target) == NULL)
        fail("libwebsockets gave no connection");
}

static size_t parse_ports(char *text, int ports[PORTS_MAX]) {
    size_t count = 0;
    char *rest;
    for (char *word = strtok_r(text, ",", &rest); word != NULL && count < PORTS_MAX; word = strtok_r(NULL, ",", &rest))
        ports[count++] = atoi(word);
    return count;
}

uint64_t clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    int ports[PORTS_MAX];
    size_t count = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, port_count = argc == 3 ? parse_ports(argv[2], ports) : 0;
    if (count == 0 || port_count == 0)
        fail("usage: peer_libwebsockets_idle CONNECTIONS PORT,...");
    raise_file_limit(count + 64);
    lws_set_log_level(LLL_ERR, NULL);
    static const struct lws_protocols protocols[] = {
        {.name = "bench", .callback = on_event, .per_session_data_size = sizeof(int)}, {.name = NULL}};
    struct lws_context_creation_info creation = {.port = CONTEXT_PORT_NO_LISTEN, .protocols = protocols};
    struct lws_context *context = lws_create_context(&creation);
    if (context == NULL)
        fail("libwebsockets gave no context");
    uint64_t deadline = clock_ms() + DEADLINE_MS;
    while (subscribed < count) {
        if (clock_ms() > deadline)
            fail("%zu of %zu connections are subscribed in time", subscribed, count);
        while (opened < count && opened - subscribed < AT_ONCE_MAX)
            open_one(context, ports[opened % port_count]);
        lws_service(context, 0);
    }
    printf("{\"resident_bytes\": %zu, \"anonymous_bytes\": %zu}\n", resident_bytes(), anonymous_bytes());
}
