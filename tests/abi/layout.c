/* Prints what programs are compiled against: sizes, offsets and values of fingerpost.h. */
#include <stddef.h>
#include <stdio.h>

#include "fingerpost.h"

#define SIZE(type) printf(#type " %zu bytes\n", sizeof(type))
#define FIELD(type, field) printf(#type "." #field " at %zu, %zu bytes\n", offsetof(type, field), sizeof(((type*)0)->field))
#define VALUE(name) printf(#name " = %d\n", (int)(name))

int main(void) {
  SIZE(fingerpost_text);
  FIELD(fingerpost_text, data);
  FIELD(fingerpost_text, length);
  SIZE(fingerpost_route);
  FIELD(fingerpost_route, segment);
  FIELD(fingerpost_route, epoch);
  FIELD(fingerpost_route, shard);
  FIELD(fingerpost_route, target);
  FIELD(fingerpost_route, parts);
  FIELD(fingerpost_route, answer);
  FIELD(fingerpost_route, source);
  FIELD(fingerpost_route, state);
  FIELD(fingerpost_route, writable);
  FIELD(fingerpost_route, zeros);
  SIZE(fingerpost_shard);
  FIELD(fingerpost_shard, struct_size);
  FIELD(fingerpost_shard, name);
  FIELD(fingerpost_shard, primary);
  FIELD(fingerpost_shard, region);
  FIELD(fingerpost_shard, replica_count);
  FIELD(fingerpost_shard, attribute_count);
  SIZE(fingerpost_options);
  FIELD(fingerpost_options, struct_size);
  FIELD(fingerpost_options, owner);
  SIZE(fingerpost_readiness);
  FIELD(fingerpost_readiness, struct_size);
  FIELD(fingerpost_readiness, ready);
  FIELD(fingerpost_readiness, stale);
  FIELD(fingerpost_readiness, reason);
  VALUE(FINGERPOST_OK);
  VALUE(FINGERPOST_INVALID_ARGUMENT);
  VALUE(FINGERPOST_ABSENT);
  VALUE(FINGERPOST_NOT_PERMITTED);
  VALUE(FINGERPOST_WRONG_OWNER);
  VALUE(FINGERPOST_NOT_READY);
  VALUE(FINGERPOST_OTHER_LAYOUT);
  VALUE(FINGERPOST_NO_SPACE);
  VALUE(FINGERPOST_REFUSED);
  VALUE(FINGERPOST_CORRUPT);
  VALUE(FINGERPOST_TIMEOUT);
  VALUE(FINGERPOST_OTHER_HISTORY);
  VALUE(FINGERPOST_UNKNOWN);
  VALUE(FINGERPOST_IO_ERROR);
  VALUE(FINGERPOST_INTERNAL);
  VALUE(FINGERPOST_FOUND);
  VALUE(FINGERPOST_NO_TENANT);
  VALUE(FINGERPOST_DELETED);
  VALUE(FINGERPOST_SPLIT);
  VALUE(FINGERPOST_NOT_AN_ID);
  VALUE(FINGERPOST_UNDETERMINED);
  VALUE(FINGERPOST_SOURCE_NONE);
  VALUE(FINGERPOST_SOURCE_OVERRIDE);
  VALUE(FINGERPOST_SOURCE_BUCKET);
  VALUE(FINGERPOST_SOURCE_PART);
  VALUE(FINGERPOST_SOURCE_HASH);
  VALUE(FINGERPOST_STATE_NONE);
  VALUE(FINGERPOST_STATE_ACTIVE);
  VALUE(FINGERPOST_STATE_MIGRATING);
  VALUE(FINGERPOST_STATE_FROZEN);
  VALUE(FINGERPOST_STATE_DELETED);
  VALUE(FINGERPOST_STATE_UNRECOGNISED);
  VALUE(FINGERPOST_STATE_SPLIT);
  return 0;
}
