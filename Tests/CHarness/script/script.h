/* client_script: one client, driven by lines on stdin, printing one line of JSON for each record and each reply. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <birdrealtime.h>

void print_record(const bird_record *record);
/* The field "roster" of a JSON object: each member's id, \x1f, its info and \x1e. */
void print_roster(const bird_members *members);
/* The fields of an error inside a JSON object; nothing for NULL. */
void print_error(const bird_error *error);
/* Remembers the request for a later command; gives its number. */
uint64_t keep_request(bird_request *request);

#endif
