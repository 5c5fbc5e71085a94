#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scale.h"

extern char **environ;

enum { BUSY_WINDOW_MS = 100 };

struct edge {
    int port;
    pid_t pid;
    FILE *commands, *answers;
};

struct edges {
    const char *program;
    int activity_timeout_s;
    size_t count;
    struct edge *all;
};

static void start(const struct edges *edges, struct edge *edge) {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        fail("no pipe");
    char port[16], timeout[16];
    snprintf(port, sizeof port, "%d", edge->port);
    snprintf(timeout, sizeof timeout, "%d", edges->activity_timeout_s);
    char program[] = "scale_edge";
    char *arguments[] = {program, port, timeout, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    if (posix_spawn(&edge->pid, edges->program, &actions, NULL, arguments, environ) != 0)
        fail("%s cannot be started", edges->program);
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]);
    close(output[1]);
    edge->commands = fdopen(input[1], "w");
    edge->answers = fdopen(output[0], "r");
}

static void start_all(struct edges *edges) {
    for (size_t i = 0; i < edges->count; i++)
        start(edges, &edges->all[i]);
    for (size_t i = 0; i < edges->count; i++) {
        char line[16];
        if (fgets(line, sizeof line, edges->all[i].answers) == NULL)
            fail("no edge on port %d", edges->all[i].port);
    }
}

struct edges *edges_start(const char *program, const int *ports, size_t count, int activity_timeout_s) {
    struct edges *edges = malloc(sizeof *edges);
    struct edge *all = calloc(count, sizeof *all);
    if (edges == NULL || all == NULL)
        fail("out of memory");
    for (size_t i = 0; i < count; i++)
        all[i].port = ports[i];
    *edges = (struct edges){program, activity_timeout_s, count, all};
    start_all(edges);
    return edges;
}

static void kill_all(struct edges *edges) {
    for (size_t i = 0; i < edges->count; i++)
        kill(edges->all[i].pid, SIGKILL);
    for (size_t i = 0; i < edges->count; i++) {
        waitpid(edges->all[i].pid, NULL, 0);
        fclose(edges->all[i].commands);
        fclose(edges->all[i].answers);
    }
}

void edges_restart(struct edges *edges) {
    kill_all(edges);
    start_all(edges);
}

void edges_command(struct edges *edges, size_t which, const char *line) {
    for (size_t i = 0; i < edges->count; i++) {
        if (which != SIZE_MAX && which != i)
            continue;
        fprintf(edges->all[i].commands, "%s\n", line);
        if (fflush(edges->all[i].commands) != 0)
            fail("the edge on port %d has gone", edges->all[i].port);
    }
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

struct arrivals edges_arrivals(struct edges *edges) {
    uint64_t *times = NULL;
    size_t count = 0;
    edges_command(edges, SIZE_MAX, "arrivals");
    for (size_t i = 0; i < edges->count; i++) {
        char *line = NULL, *rest;
        size_t size = 0;
        if (getline(&line, &size, edges->all[i].answers) < 0)
            fail("the edge on port %d has gone", edges->all[i].port);
        for (char *word = strtok_r(line, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
            if (count % 4096 == 0 && (times = realloc(times, (count + 4096) * sizeof *times)) == NULL)
                fail("out of memory");
            times[count++] = strtoull(word, NULL, 10);
        }
        free(line);
    }
    struct arrivals arrivals = {.accepted = count};
    if (count > 0) {
        qsort(times, count, sizeof *times, compare);
        arrivals.first_ms = times[0];
        arrivals.median_ms = times[count / 2];
        arrivals.last_ms = times[count - 1];
    }
    for (size_t first = 0, last = 0; last < count; last++) {
        while (times[last] - times[first] >= BUSY_WINDOW_MS)
            first++;
        if (last - first + 1 > arrivals.busiest)
            arrivals.busiest = last - first + 1;
    }
    free(times);
    return arrivals;
}

void edges_stop(struct edges *edges) {
    kill_all(edges);
    free(edges->all);
    free(edges);
}
