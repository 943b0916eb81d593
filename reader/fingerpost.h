/* Fingerpost from C and from whatever can call C: resolve a tenant from the segment that this host's
 * syncer serves. C99. The library is libfingerpost.so.0; what each call does is what the C++ API of
 * reader/reader.h does.
 *
 * Conventions
 *  1. A reader is opened once per process, shared by all its threads, kept across fork, closed once.
 *     Every function may be called from any thread at any time, but for fingerpost_close: after it,
 *     and while it runs, nobody may use the handle or a text that came through it.
 *  2. A function returns FINGERPOST_OK or another fingerpost_status, unless it says otherwise. What it
 *     gives is stored through its last pointers, and only with FINGERPOST_OK.
 *  3. Pointers are checked: a null where it is not allowed, or a struct_size that is too small, is
 *     FINGERPOST_INVALID_ARGUMENT, and nothing is stored.
 *  4. A struct that may grow begins with struct_size. The caller sets it to sizeof its own struct
 *     before every call. The library fills as much as both know, and sets the rest of a larger one
 *     to zero.
 *  5. Bytes go in as pointer and length; no zero ends them, any bytes are safe to ask. Texts that come
 *     out are pointer and length too; they lie in the mapping, or are constant, and live as long as
 *     the reader. `message`, where there is one, may be null; it gets up to message_size bytes, ended
 *     by a zero, that say what was wrong and where.
 *  6. fingerpost_resolve and its relatives are wait-free: no lock, no allocation, no system call (but
 *     for the one that first meets a superseded segment, which opens the successor). The waits sleep
 *     in the kernel; a signal ends none of them.
 *  7. Times are nanoseconds. Nothing unknown is ever 0.
 *  8. No exception crosses this interface. Only the functions declared here are exported.
 *  9. Functions and the values of enums are only ever added to libfingerpost.so.0. A value that a
 *     program does not know is to be treated like a miss (answer) or as not writable (state).
 */
#ifndef FINGERPOST_H
#define FINGERPOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fingerpost_status {
  FINGERPOST_OK = 0,
  FINGERPOST_INVALID_ARGUMENT = 1, /* the caller's mistake */
  FINGERPOST_ABSENT = 2,           /* no such segment: try again */
  FINGERPOST_NOT_PERMITTED = 3,
  FINGERPOST_WRONG_OWNER = 4,
  FINGERPOST_NOT_READY = 5, /* half made, or of an earlier boot: try again */
  FINGERPOST_OTHER_LAYOUT = 6,
  FINGERPOST_NO_SPACE = 7, /* it cannot be mapped */
  FINGERPOST_REFUSED = 8,  /* not a name; not a tenant id */
  FINGERPOST_CORRUPT = 9,
  FINGERPOST_TIMEOUT = 10,
  FINGERPOST_OTHER_HISTORY = 11, /* the directory's history changed during a wait */
  FINGERPOST_UNKNOWN = 12,       /* it is not known */
  FINGERPOST_IO_ERROR = 13,
  FINGERPOST_INTERNAL = 14
} fingerpost_status;

typedef enum fingerpost_answer {
  FINGERPOST_FOUND = 0,
  FINGERPOST_NO_TENANT = 1, /* unknown */
  FINGERPOST_DELETED = 2,
  FINGERPOST_SPLIT = 3,       /* has no single shard: ask with an object */
  FINGERPOST_NOT_AN_ID = 4,   /* refused */
  FINGERPOST_UNDETERMINED = 5 /* disturbed at every attempt: treat it like a miss, never as a guess */
} fingerpost_answer;

/* Which rule answered. */
typedef enum fingerpost_source {
  FINGERPOST_SOURCE_NONE = 0,
  FINGERPOST_SOURCE_OVERRIDE = 1,
  FINGERPOST_SOURCE_BUCKET = 2,
  FINGERPOST_SOURCE_PART = 3,
  FINGERPOST_SOURCE_HASH = 4
} fingerpost_source;

typedef enum fingerpost_state {
  FINGERPOST_STATE_NONE = 0,
  FINGERPOST_STATE_ACTIVE = 1,
  FINGERPOST_STATE_MIGRATING = 2,
  FINGERPOST_STATE_FROZEN = 3, /* no writes now: let the client try again, or wait */
  FINGERPOST_STATE_DELETED = 4,
  FINGERPOST_STATE_UNRECOGNISED = 5,
  FINGERPOST_STATE_SPLIT = 6
} fingerpost_state;

typedef struct fingerpost_reader fingerpost_reader;

typedef struct fingerpost_text {
  const char* data;
  size_t length;
} fingerpost_text;

/* The answer to one lookup: 32 bytes, for ever. A value, to be kept as long as you like; its shards
 * can be asked for as long as the reader lives. */
typedef struct fingerpost_route {
  const void* segment; /* the library's */
  uint64_t epoch;      /* the directory version that last changed it: send it along to the shard */
  uint16_t shard;      /* the library's */
  uint16_t target;     /* the library's */
  uint16_t parts;      /* of a split tenant, and of a part of one; else 0 */
  uint8_t answer;      /* fingerpost_answer */
  uint8_t source;      /* fingerpost_source */
  uint8_t state;       /* fingerpost_state */
  uint8_t writable;    /* 1: writes may go to the shard now. Without a check at the shard this is advice */
  uint8_t zeros[6];
} fingerpost_route;

/* A shard as topology describes it now. */
typedef struct fingerpost_shard {
  size_t struct_size;
  fingerpost_text name;
  fingerpost_text primary; /* "host:port", or whatever the directory says */
  fingerpost_text region;
  uint32_t replica_count;
  uint32_t attribute_count;
} fingerpost_shard;

typedef struct fingerpost_options {
  size_t struct_size;
  /* Whose segments to believe besides root's, one's own and the folder owner's: a user's name, a uid
   * or "any". Null: the environment's FINGERPOST_OWNER. */
  const char* owner;
} fingerpost_options;

typedef struct fingerpost_readiness {
  size_t struct_size;
  int32_t ready;          /* 1: caught up once, or served from data young enough */
  int32_t stale;          /* 1: older than the syncer calls fresh, or of unknown age */
  fingerpost_text reason; /* why not ready, or why stale; empty if neither */
} fingerpost_readiness;

/* The library's version, "0.1.0". Zero-terminated, constant. */
const char* fingerpost_library_version(void);
/* A status' name, "not permitted"; "unknown status" for a value that is none. Zero-terminated. */
const char* fingerpost_status_text(int32_t status);

/* Maps the segment of `name` (as fingerpostd was given it; looked for in FINGERPOST_RUNDIR,
 * /run/fingerpost and /dev/shm) or of a path, zero-terminated. `options` may be null. The reader is
 * closed by fingerpost_close. ABSENT, NOT_PERMITTED, WRONG_OWNER, NOT_READY, OTHER_LAYOUT, NO_SPACE,
 * REFUSED, CORRUPT, IO_ERROR. */
int32_t fingerpost_open(const char* name, const fingerpost_options* options,
                        fingerpost_reader** reader, char* message, size_t message_size);
/* Null is allowed. */
void fingerpost_close(fingerpost_reader* reader);

/* The route of a tenant. OK whatever the answer. */
int32_t fingerpost_resolve(const fingerpost_reader* reader, const char* id, size_t id_length,
                           fingerpost_route* route);
/* The same for one object: of a split tenant its part answers, for any other tenant the object is
 * ignored, so that it may always be passed. */
int32_t fingerpost_resolve_object(const fingerpost_reader* reader, const char* id,
                                  size_t id_length, const char* object, size_t object_length,
                                  fingerpost_route* route);
/* `count` tenants into as many routes; their lookups overlap in memory. */
int32_t fingerpost_resolve_many(const fingerpost_reader* reader, const fingerpost_text* ids,
                                size_t count, fingerpost_route* routes);
/* Where all of a tenant's data is, at one moment: the parts of a split tenant in order, or the one
 * route of any other. Stores how many there are, and as many of them as fit into `capacity`; 1,024
 * always fit. `routes` may be null if `capacity` is 0. */
int32_t fingerpost_resolve_all(const fingerpost_reader* reader, const char* id, size_t id_length,
                               fingerpost_route* routes, size_t capacity, size_t* count);

/* The owner of a found route; where a migrating tenant is going. UNKNOWN: there is none. */
int32_t fingerpost_route_shard(const fingerpost_route* route, fingerpost_shard* shard);
int32_t fingerpost_route_target(const fingerpost_route* route, fingerpost_shard* shard);
/* Replica or attribute `index` of a found route's owner. UNKNOWN: it has no such one. */
int32_t fingerpost_route_replica(const fingerpost_route* route, uint32_t index,
                                 fingerpost_text* address);
int32_t fingerpost_route_attribute(const fingerpost_route* route, uint32_t index,
                                   fingerpost_text* key, fingerpost_text* value);

/* Call it once a second or so, from any thread: follows a segment that was replaced, and looks whether
 * that is due. 1: the reader moved, 0: it did not; negative: a null pointer. */
int32_t fingerpost_poll(const fingerpost_reader* reader);
/* The directory version that is served. */
int32_t fingerpost_served_version(const fingerpost_reader* reader, uint64_t* version);
/* Nanoseconds since the last successful read of the directory. UNKNOWN: there was none. Polls. */
int32_t fingerpost_age(const fingerpost_reader* reader, int64_t* age_ns);
/* How far to trust what is served. Polls. */
int32_t fingerpost_judge(const fingerpost_reader* reader, fingerpost_readiness* readiness);
/* Lookups of all threads that ended undetermined: worth a gauge, always 0 so far. */
int32_t fingerpost_undetermined_count(const fingerpost_reader* reader, uint64_t* count);

/* Sleeps until the served version is at least `version`, at most `timeout_ns`. TIMEOUT,
 * OTHER_HISTORY. */
int32_t fingerpost_wait_version(const fingerpost_reader* reader, uint64_t version,
                                int64_t timeout_ns, char* message, size_t message_size);
/* Sleeps until writes may go to the tenant's shard, and gives the route that said so; `object` may be
 * null. TIMEOUT, OTHER_HISTORY, REFUSED. */
int32_t fingerpost_wait_writable(const fingerpost_reader* reader, const char* id, size_t id_length,
                                 const char* object, size_t object_length, int64_t timeout_ns,
                                 fingerpost_route* route, char* message, size_t message_size);
/* The same until the route's epoch is above `epoch`. */
int32_t fingerpost_wait_newer(const fingerpost_reader* reader, const char* id, size_t id_length,
                              const char* object, size_t object_length, uint64_t epoch,
                              int64_t timeout_ns, fingerpost_route* route, char* message,
                              size_t message_size);

#ifdef __cplusplus
}
#endif

#endif /* FINGERPOST_H */
