/* How long dlopen of a library takes and, if it is ours, creating the first client of the process. Prints microseconds.
   usage: load_time LIBRARY */
#include <birdrealtime.h>

#include "measure.h"

int main(int argc, char **argv) {
    if (argc != 2)
        fail("usage: load_time LIBRARY");
    double start = clock_seconds();
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    double loaded = clock_seconds() - start;
    if (library == NULL)
        fail(dlerror());

    bird_status (*options_create)(bird_options **);
    bird_status (*options_set)(bird_options *, const char *, const char *, bird_error **);
    bird_status (*client_create)(bird_options *, bird_client **, bird_error **);
    *(void **)&options_create = dlsym(library, "bird_options_create");
    *(void **)&options_set = dlsym(library, "bird_options_set");
    *(void **)&client_create = dlsym(library, "bird_client_create");
    if (client_create == NULL) {
        printf("{\"load_us\": %.1f, \"create_us\": null}\n", loaded * 1e6);
        return 0;
    }
    bird_options *options = NULL;
    bird_client *client = NULL;
    start = clock_seconds();
    if (options_create(&options) != BIRD_OK || options_set(options, "app_key", "bench", NULL) != BIRD_OK ||
        options_set(options, "ws_host", "edge.test", NULL) != BIRD_OK ||
        client_create(options, &client, NULL) != BIRD_OK)
        fail("no client could be created");
    printf("{\"load_us\": %.1f, \"create_us\": %.1f}\n", loaded * 1e6, (clock_seconds() - start) * 1e6);
}
