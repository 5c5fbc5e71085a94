/* How many requests a second the authorizer answers, as many at once as the library sends. usage: limit_auth PORT REQUESTS */
#include "limit_connection.h"

enum { CONNECTIONS = 8 };

static const char request[] =
    "POST /auth HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nContent-Length: 59\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    "connection_id=1.1&channel_name=private-many-000000000000000";

static void receive_answer(int fd) {
    char answer[1024];
    size_t length = 0;
    do {
        length += receive(fd, (unsigned char *)answer + length, sizeof answer - 1 - length);
        answer[length] = '\0';
    } while (strstr(answer, "\"}") == NULL);
}

int main(int argc, char **argv) {
    int port = argc == 3 ? atoi(argv[1]) : 0, requests = argc == 3 ? atoi(argv[2]) : 0, fds[CONNECTIONS];
    if (port <= 0 || requests <= 0)
        fail("usage: limit_auth PORT REQUESTS");
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    measurement_begin(&measurement);
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = open_socket(port);
    int sent = 0;
    while (sent < requests) {
        for (int i = 0; i < CONNECTIONS; i++)
            send_all(fds[i], request, sizeof request - 1);
        for (int i = 0; i < CONNECTIONS; i++)
            receive_answer(fds[i]);
        sent += CONNECTIONS;
    }
    measurement_end(&measurement);
    measurement_print(&measurement, (uint64_t)sent);
}
