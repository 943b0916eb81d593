/* usage: consumer SEGMENT QUESTIONS: answers each line "ID<tab>OBJECT" of a file; "-" is no object. */
#include <stdio.h>
#include <string.h>

#include "fingerpost.h"

static int fail(const char* what, int32_t status, const char* message) {
  fprintf(stderr, "%s: %s: %s\n", what, fingerpost_status_text(status), message);
  return 1;
}

int main(int argc, char** argv) {
  char message[256] = "", line[1024];
  fingerpost_reader* reader = NULL;
  FILE* questions = argc == 3 ? fopen(argv[2], "r") : NULL;
  if (questions == NULL) return 2;
  int32_t status = fingerpost_open(argv[1], NULL, &reader, message, sizeof message);
  if (status != FINGERPOST_OK) return fail(argv[1], status, message);
  while (fgets(line, sizeof line, questions) != NULL) {
    line[strcspn(line, "\n")] = 0;
    char* object = strchr(line, '\t');
    *object++ = 0;
    fingerpost_route route, waited;
    fingerpost_shard shard = {.struct_size = sizeof shard};
    const int has_object = strcmp(object, "-") != 0;
    status = has_object ? fingerpost_resolve_object(reader, line, strlen(line), object, strlen(object), &route)
                        : fingerpost_resolve(reader, line, strlen(line), &route);
    if (status != FINGERPOST_OK) return fail(line, status, "");
    const int has_shard = fingerpost_route_shard(&route, &shard) == FINGERPOST_OK;
    status = fingerpost_wait_writable(reader, line, strlen(line), has_object ? object : NULL, strlen(object), 0,
                                      &waited, message, sizeof message);
    printf("%s\t%s\t%d\t%d\t%d\t%llu\t%d\t%d\t%.*s\t%.*s\t%s\n", line, object, route.answer, route.source, route.state,
           (unsigned long long)route.epoch, route.parts, route.writable, has_shard ? (int)shard.name.length : 0,
           has_shard ? shard.name.data : "", has_shard ? (int)shard.primary.length : 0,
           has_shard ? shard.primary.data : "", fingerpost_status_text(status));
  }
  fclose(questions);
  fingerpost_close(reader);
  return 0;
}
