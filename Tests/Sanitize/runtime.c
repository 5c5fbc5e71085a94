/* What the sanitizers ask the program that they run in; linked into programs by scripts/sanitize only. */
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

int __lsan_is_turned_off(void);

static pid_t process;

static void *end_at_once(void *argument) {
    return argument;
}

/* With the first thread the one for threads starts another, of its own: from here on it is there, and cases count it in. */
__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    process = getpid();
    if (pthread_create(&thread, NULL, end_at_once, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

/* To a forked child what the parent's threads hold is lost. */
int __lsan_is_turned_off(void) {
    return getpid() != process;
}
