/*
 * curl_host HOST:PORT CA_FILE before|after: a host that uses libcurl, and OpenSSL in it, itself. It initialises libcurl before or after the
 * library does, and cleans up while the library has connections. The server speaks TLS and lets the library connect.
 */
#include <birdrealtime.h>

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS 30000
#define ROUNDS 20

static const char *server, *ca_file;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _Exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static bird_client *connected(void) {
    bird_options *options = NULL;
    bird_client *client = NULL;
    CHECK(bird_options_create(&options) == BIRD_OK);
    CHECK(bird_options_set(options, "app_key", "pk_host", NULL) == BIRD_OK);
    CHECK(bird_options_set(options, "ws_host", server, NULL) == BIRD_OK);
    CHECK(bird_options_set(options, "ca_file", ca_file, NULL) == BIRD_OK);
    CHECK(bird_client_create(options, &client, NULL) == BIRD_OK);
    bird_options_destroy(options);
    CHECK(bird_client_connect(client, NULL) == BIRD_OK);
    CHECK(bird_client_wait(client, BIRD_STATE_CONNECTED, WAIT_MS) == BIRD_OK);
    return client;
}

/* A TLS session of the host's, on this thread, while the library's threads have theirs. */
static void use_curl(void) {
    char url[256];
    snprintf(url, sizeof url, "https://%s/", server);
    CURL *easy = curl_easy_init();
    CHECK(easy != NULL);
    CHECK(curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK);
    CHECK(curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file) == CURLE_OK);
    CHECK(curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK);
    CHECK(curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK);
    CHECK(curl_easy_perform(easy) == CURLE_OK);
    curl_easy_cleanup(easy);
}

static void check_is_connected(bird_client *client) {
    int32_t state;
    CHECK(bird_client_state(client, &state) == BIRD_OK);
    CHECK(state == BIRD_STATE_CONNECTED);
}

int main(int count, char **values) {
    if (count != 4) {
        fprintf(stderr, "usage: curl_host HOST:PORT CA_FILE before|after\n");
        return 2;
    }
    server = values[1];
    ca_file = values[2];
    const int is_first = values[3][0] == 'b';
    if (is_first) {
        CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    }
    bird_client *client = connected();
    if (!is_first) {
        CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    }
    for (int round = 0; round < ROUNDS; round++) {
        bird_client *other = connected();
        use_curl();
        CHECK(bird_client_destroy(other) == BIRD_OK);
    }
    check_is_connected(client);
    curl_global_cleanup();
    check_is_connected(client);
    CHECK(bird_client_destroy(connected()) == BIRD_OK); /* TLS still works */
    check_is_connected(client);
    CHECK(bird_client_destroy(client) == BIRD_OK);
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    use_curl();
    curl_global_cleanup();
    return 0;
}
