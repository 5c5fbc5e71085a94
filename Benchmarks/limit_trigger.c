/* The limit of client events: each is put together and masked by hand, and written as soon as the buffer is full. */
#include "limit_connection.h"
#include "trigger.h"

enum { FRAME_BYTES_MAX = 2048, BUFFER_BYTES = 64 * 1024 };

struct output {
    int fd;
    size_t length;
    char bytes[BUFFER_BYTES];
};

static void flush(struct output *output) {
    send_all(output->fd, output->bytes, output->length);
    output->length = 0;
}

static void trigger(struct output *output, const char *event, const char *data) {
    static const unsigned char key[4] = {0x12, 0x34, 0x56, 0x78};
    char payload[FRAME_BYTES_MAX];
    int length =
        snprintf(payload, sizeof payload, "{\"event\":\"%s\",\"channel\":\"private-bench\",\"data\":%s}", event, data);
    if (sizeof output->bytes - output->length < FRAME_BYTES_MAX)
        flush(output);
    unsigned char *at = (unsigned char *)output->bytes + output->length;
    memcpy(at, (unsigned char[]){0x81, 0x80 | 126, (unsigned char)(length >> 8), (unsigned char)length}, 4);
    memcpy(at + 4, key, sizeof key);
    for (int i = 0; i < length; i++)
        at[8 + i] = (unsigned char)payload[i] ^ key[i % 4];
    output->length += 8 + (size_t)length;
}

int main(int argc, char **argv) {
    struct trigger_arguments arguments = parse_trigger(argc, argv);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    char *data = make_trigger_data(arguments.bytes);
    static struct output output;
    output.fd = connect_and_subscribe(arguments.port);

    measurement_begin(&measurement);
    double call_seconds = thread_seconds();
    for (uint64_t i = 0; i < arguments.events; i++)
        trigger(&output, "client-event", data);
    trigger(&output, "client-last", data);
    flush(&output);
    call_seconds = thread_seconds() - call_seconds;
    char answer[1024];
    size_t length = receive(output.fd, (unsigned char *)answer, sizeof answer - 1);
    measurement_end(&measurement);
    answer[length] = '\0';
    const char *count = strstr(answer, "\"data\":\"");
    check_count(arguments, count != NULL ? count + 8 : "");
    print_trigger(&measurement, call_seconds);
    free(data);
    close(output.fd);
}
