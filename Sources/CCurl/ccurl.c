#include "ccurl.h"

CURLcode birdcurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_body(CURL *easy, const void *bytes, long length) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, length);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, bytes);
}

CURLcode birdcurl_set_write(CURL *easy, birdcurl_data_function function, void *user_data) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, function);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_WRITEDATA, user_data);
}

CURLcode birdcurl_set_header(CURL *easy, birdcurl_data_function function, void *user_data) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, function);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_HEADERDATA, user_data);
}

CURLcode birdcurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLcode birdcurl_get_socket(CURL *easy, curl_socket_t *value) {
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value);
}

CURLcode birdcurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLMcode birdcurl_multi_set_callbacks(CURLM *multi, birdcurl_socket_function on_socket,
                                       birdcurl_timer_function on_timer, void *user_data) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    if (code == CURLM_OK) {
        code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, user_data);
    }
    if (code == CURLM_OK) {
        code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    }
    if (code == CURLM_OK) {
        code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, user_data);
    }
    return code;
}
