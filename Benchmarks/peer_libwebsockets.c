/* Debian's libwebsockets with a handler that is given each whole message and parses none. */
#include <libwebsockets.h>
#include <stdbool.h>

#include "measure.h"

static struct arguments arguments;
static struct measurement measurement;
static uint64_t received;
static int answers_due = 2; /* the handshake, the answer to the subscribe */
static bool is_done;

static const char subscribe[] = "{\"event\":\"bird:subscribe\",\"data\":{\"channel\":\"bench\"}}";

static void count_message(size_t length) {
    if (answers_due > 0) {
        answers_due--;
        return;
    }
    if (length < arguments.bytes)
        fail("a message is too short");
    received++;
    if (received == arguments.warmup)
        measurement_begin(&measurement);
    if (received != arguments.warmup + arguments.events)
        return;
    measurement_end(&measurement);
    is_done = true;
}

static int on_event(struct lws *socket, enum lws_callback_reasons reason, void *user, void *bytes, size_t length) {
    static size_t message_bytes;
    unsigned char frame[LWS_PRE + sizeof subscribe];
    (void)user;
    (void)bytes;
    switch (reason) {
    case LWS_CALLBACK_CLIENT_RECEIVE:
        message_bytes = lws_is_first_fragment(socket) ? length : message_bytes + length;
        if (!lws_is_final_fragment(socket) || lws_remaining_packet_payload(socket) > 0)
            break;
        count_message(message_bytes);
        break;
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        lws_callback_on_writable(socket);
        break;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        memcpy(frame + LWS_PRE, subscribe, sizeof subscribe - 1);
        if (lws_write(socket, frame + LWS_PRE, sizeof subscribe - 1, LWS_WRITE_TEXT) < 0)
            fail("the subscribe could not be written");
        break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
    case LWS_CALLBACK_CLIENT_CLOSED:
        if (!is_done)
            fail("the connection broke");
        break;
    default:
        break;
    }
    return 0;
}

int main(int argc, char **argv) {
    arguments = parse_arguments(argc, argv);
    measurement_prepare(&measurement);
    lws_set_log_level(LLL_ERR, NULL);
    static const struct lws_protocols protocols[] = {{.name = "bench", .callback = on_event, .rx_buffer_size = 262144},
                                                     {.name = NULL}};
    const char *ca_file = getenv("BENCH_CA_FILE"); /* of a server with TLS */
    struct lws_context_creation_info creation = {.port = CONTEXT_PORT_NO_LISTEN,
                                                 .protocols = protocols,
                                                 .options = ca_file != NULL ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0,
                                                 .client_ssl_ca_filepath = ca_file};
    struct lws_context *context = lws_create_context(&creation);
    if (context == NULL)
        fail("libwebsockets gave no context");
    struct lws_client_connect_info target = {.context = context,
                                             .address = "127.0.0.1",
                                             .port = arguments.port,
                                             .path = "/app/bench?protocol=7",
                                             .host = "localhost", /* it compares no address with a certificate */
                                             .origin = "localhost",
                                             .ssl_connection = ca_file != NULL ? LCCSCF_USE_SSL : 0,
                                             .local_protocol_name = "bench"};
    if (lws_client_connect_via_info(&target) == NULL)
        fail("libwebsockets gave no connection");
    while (!is_done)
        lws_service(context, 0);
    measurement_print(&measurement, arguments.events);
    lws_context_destroy(context);
}
