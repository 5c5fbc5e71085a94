// A host in C++ whose handlers throw (docs/embedding.md). usage: throwing_host HOST:PORT thread|queue|loop|host caught|uncaught, the first for
// an edge that floods "bench" with events.
#include <atomic>
#include <birdrealtime.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

constexpr int events_wanted = 1000;

void check(bird_status status) {
    if (status != BIRD_OK) {
        std::fprintf(stderr, "throwing_host: %s\n", bird_status_name(status));
        std::exit(1);
    }
}

// What handlers have thrown, until the program looks.
class Thrown {
  public:
    void keep(std::exception_ptr exception) {
        const std::lock_guard<std::mutex> hold(mutex);
        first = first ? first : exception;
        count++;
    }
    void look() {
        const std::lock_guard<std::mutex> hold(mutex);
        if (first) {
            std::rethrow_exception(std::exchange(first, nullptr));
        }
    }
    std::atomic<int> count{0};

  private:
    std::mutex mutex;
    std::exception_ptr first;
};

Thrown thrown;

using Handler = std::function<void(const bird_record &)>;

// No exception may leave a handler: between it and the program lie frames of the library, which know nothing of them.
void call(const bird_record *record, void *user_data) noexcept {
    try {
        (*static_cast<Handler *>(user_data))(*record);
    } catch (...) {
        thrown.keep(std::current_exception());
    }
}

// Without the try, the program ends at the handler (std::terminate).
void call_unguarded(const bird_record *record, void *user_data) noexcept {
    (*static_cast<Handler *>(user_data))(*record);
}

void destroy(void *user_data) noexcept {
    delete static_cast<Handler *>(user_data);
}

bird_options *options_for(const char *host, const std::string &mode) {
    bird_options *options = nullptr;
    check(bird_options_create(&options));
    check(bird_options_set(options, "app_key", "pk_host", nullptr));
    check(bird_options_set(options, "ws_host", host, nullptr));
    check(bird_options_set(options, "allow_insecure", "1", nullptr));
    if (mode == "loop" || mode == "host") {
        check(bird_options_set(options, "delivery", "loop", nullptr));
    }
    return options;
}

} // namespace

int main(int count, char **values) {
    if (count != 4) {
        std::fputs("usage: throwing_host HOST:PORT thread|queue|loop|host caught|uncaught\n", stderr);
        return 2;
    }
    const std::string mode = values[2];
    bird_queue *queue = nullptr;
    bird_loop *loop = nullptr;
    bird_options *options = options_for(values[1], mode);
    if (mode == "queue") {
        check(bird_queue_create(&queue));
        check(bird_options_set_queue(options, queue));
    }
    if (mode == "host") {
        check(bird_loop_create(&loop));
        check(bird_options_set_loop(options, loop));
    }
    bird_client *client = nullptr;
    bird_channel *channel = nullptr;
    check(bird_client_create(options, &client, nullptr));
    bird_options_destroy(options);
    check(bird_client_subscribe(client, "bench", 0, &channel, nullptr));
    auto handler = std::make_unique<Handler>([](const bird_record &) { throw std::runtime_error("on purpose"); });
    const bool is_caught = std::string(values[3]) == "caught";
    check(bird_channel_bind(channel, "tick", is_caught ? call : call_unguarded, handler.release(), destroy, nullptr,
                            nullptr));
    check(bird_client_connect(client, nullptr));
    int caught = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (thrown.count < events_wanted && std::chrono::steady_clock::now() < end) {
        if (queue != nullptr) {
            bird_queue_wait(queue, 5);
            check(bird_queue_dispatch(queue, 100, nullptr));
        } else if (loop != nullptr) {
            check(bird_loop_run_once(loop, 5));
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        try {
            thrown.look();
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    bird_channel_release(channel);
    check(bird_client_destroy(client));
    check(bird_queue_destroy(queue));
    check(bird_loop_destroy(loop));
    std::printf("thrown: %s, caught: %s\n", thrown.count >= events_wanted ? "every time" : "too few",
                caught > 0 ? "yes" : "no");
    return 0;
}
