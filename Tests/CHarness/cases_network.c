/* The option network_watch and bird_client_network_hint(). What a change of the network does is tested in network namespaces. */
#include "harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static uint64_t messages_sent(world *w) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w->client, &statistics), BIRD_OK);
    return statistics.messages_sent;
}

static uint64_t network_changes(world *w) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w->client, &statistics), BIRD_OK);
    return statistics.network_changes;
}

static int count_netlink_sockets(void) {
    int count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        int domain = -1;
        socklen_t size = sizeof domain;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK) {
            count++;
        }
    }
    return count;
}

CASE(network_hint_before_connect_starts_nothing) {
    world w = {.delivery = BIRD_DELIVERY_THREAD};
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    w.client = client_from(options, NULL);
    const int fds = count_fds(), threads = count_threads();
    for (int32_t hint = BIRD_NETWORK_UP; hint <= BIRD_NETWORK_RESUMED; hint++) {
        CHECK_STATUS(bird_client_network_hint(w.client, hint), BIRD_OK);
    }
    CHECK_STATUS(bird_client_network_hint(w.client, 0), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_network_hint(w.client, 4), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_network_hint(w.client, INT32_MIN), BIRD_ERR_ARGUMENT);
    CHECK_INT(network_changes(&w), 0);
    CHECK_INT(count_fds(), fds);
    CHECK_INT(count_threads(), threads);
    CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
}

MODE_CASE(network_hint_has_the_connection_checked) {
    world w = world_open(harness_mode());
    world_connect(&w);
    const uint64_t before = messages_sent(&w);
    CHECK_STATUS(bird_client_network_hint(w.client, BIRD_NETWORK_UP), BIRD_OK);
    CHECK_STATUS(bird_client_network_hint(w.client, BIRD_NETWORK_DOWN), BIRD_OK);
    UNTIL(&w, network_changes(&w) == 2);
    UNTIL(&w, messages_sent(&w) == before + 1);
    world_settle(&w);
    CHECK_INT(client_state(w.client), BIRD_STATE_CONNECTED);
    world_close(&w);
}

static world open_world(int32_t delivery, const char *is_watching) {
    bird_options *options = world_options(delivery);
    set_option(options, "network_watch", is_watching);
    world w = world_open_with(delivery, options);
    world_grant_requests(w.client);
    return w;
}

MODE_CASE(network_watch_takes_one_socket_while_somebody_wants_it) {
    world without = open_world(harness_mode(), "0");
    world_connect(&without);
    CHECK_INT(count_netlink_sockets(), 0);
    if (without.delivery == DELIVERY_HOST) { /* its loop is its own */
        world_close(&without);
        world alone = open_world(DELIVERY_HOST, "1");
        CHECK_INT(count_netlink_sockets(), 0);
        world_connect(&alone);
        CHECK_INT(count_netlink_sockets(), 1);
        world_close(&alone);
    } else {
        world one = open_world(harness_mode(), "1"), two = open_world(harness_mode(), "1");
        CHECK_INT(count_netlink_sockets(), 0);
        world_connect(&one);
        world_connect(&two);
        CHECK_INT(count_netlink_sockets(), 1);
        world_close(&one);
        CHECK_INT(count_netlink_sockets(), 1);
        world_close(&two);
        CHECK_INT(count_netlink_sockets(), 0);
        world_close(&without);
    }
    CHECK_INT(count_netlink_sockets(), 0);
}

/* As a sandbox may do it. Threads started from now on are in it too. */
static void forbid_netlink(void) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)), /* little-endian: the low half */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    CHECK(socket(AF_NETLINK, SOCK_RAW, 0) == -1 && errno == EPERM);
}

static atomic_int warnings, changes_told;

static void count_entry(const bird_log_entry *entry, void *user_data) {
    (void)user_data;
    if (entry->area == BIRD_LOG_AREA_NETWORK) {
        atomic_fetch_add(entry->level == BIRD_LOG_WARN ? &warnings : &changes_told, 1);
    }
}

MODE_CASE(network_watch_that_is_forbidden_does_no_harm) {
    forbid_netlink();
    bird_options *options = world_options(harness_mode());
    CHECK_STATUS(bird_options_set_log(options, count_entry, NULL, NULL), BIRD_OK);
    set_option(options, "log_level", "info");
    world w = world_open_with(harness_mode(), options);
    world_grant_requests(w.client);
    world_connect(&w);
    CHECK_INT(count_netlink_sockets(), 0);
    CHECK_INT(atomic_load(&warnings), 1);
    const uint64_t before = messages_sent(&w);
    CHECK_STATUS(bird_client_network_hint(w.client, BIRD_NETWORK_RESUMED), BIRD_OK);
    UNTIL(&w, messages_sent(&w) == before + 1);
    world_settle(&w);
    CHECK_INT(atomic_load(&changes_told), 1);
    world_close(&w);
}
