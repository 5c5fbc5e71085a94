/* What the sanitizers ask the program that they run in; linked into the C harness by scripts/sanitize only. */
#include <sys/types.h>
#include <unistd.h>

const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);
const char *__tsan_default_options(void);

static pid_t process;

__attribute__((constructor)) static void note_process(void) {
    process = getpid();
}

/* Freed memory is kept for a short while only: some cases watch how the process grows. */
const char *__asan_default_options(void) {
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:detect_leaks=1";
}

/* The runtime of Swift stores the address of the table of a weak reference shifted, where no leak checker finds it. */
const char *__lsan_default_suppressions(void) {
    return "leak:swift::RefCounts\n";
}

/* To a forked child what the parent's threads hold is lost. */
int __lsan_is_turned_off(void) {
    return getpid() != process;
}

/* Two locks in either order by design would be a fault; a thread left at the end of a case is the program's own. */
const char *__tsan_default_options(void) {
    return "detect_deadlocks=1:second_deadlock_stack=1:report_thread_leaks=0:halt_on_error=1:exitcode=66";
}
