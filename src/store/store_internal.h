/* What the files of the store share. spk_db is one SQLite connection with its statements: the file, or a database in memory with the
 * same schema that holds what the file cannot take. Functions on it return SQLite's codes, or one of the negative ones below. */
#ifndef SPK_STORE_STORE_INTERNAL_H
#define SPK_STORE_STORE_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/class_key.h"
#include "store/store.h"

enum {
    SPK_STORE_APPLICATION = 0x73706b31, /* SQLite's application_id: tells our files from those of other programs */
    SPK_STORE_VERSION = 2,              /* user_version: the number of migrations */
    SPK_STORE_BUSY_MS = 5000,
    SPK_STORE_READ_MS = 1000, /* of a read: whoever plans waits no longer, and does without */
    SPK_STORE_NEARS = 256,
    SPK_STORE_SIZES_KEPT = 32,
    SPK_STORE_CLASSES = 20000, /* the oldest beyond this many go */
    SPK_STORE_LOCKS = 64,      /* classes that the threads of one process may tune at once */
    SPK_STORE_PENDING = 4,
    SPK_STORE_MAX_CANDIDATES = 100000 /* of one class: more is damage */
};

enum {
    SPK_DB_ABSENT = -1,  /* there is no file, or this process does not use it */
    SPK_DB_FOREIGN = -2, /* a database of another program */
    SPK_DB_NEWER = -3,   /* written by a newer sparsek */
    SPK_DB_STRANGE = -5, /* it says it is ours, and has other tables, views or triggers: damage */
    SPK_DB_OLDER = -6,   /* written by an older sparsek, and not writable */
    SPK_DB_STOPPED = -4  /* the job met an error of its own: nothing is wrong with the database */
};

typedef enum spk_statement {
    SPK_SQL_DECISION,
    SPK_SQL_FAMILY,
    SPK_SQL_SIZES,
    SPK_SQL_LOAD,
    SPK_SQL_WRONG,
    SPK_SQL_AGE,
    SPK_SQL_LIST,
    SPK_SQL_ADD_FAMILY,
    SPK_SQL_ADD_CLASS,
    SPK_SQL_ADD_CANDIDATE,
    SPK_SQL_ERASE,
    SPK_SQL_EVICT,
    SPK_SQL_TIDY,
    SPK_SQL_CLEAR,
    SPK_SQL_COUNT
} spk_statement;

typedef struct spk_db {
    sqlite3 *sql;
    sqlite3_stmt *statements[SPK_SQL_COUNT];
    int busy_ms; /* how long a lock of another process is waited for */
    double wait_begun_us;
    const atomic_int *interrupted; /* may be NULL */
    bool patient;                  /* the present job is not ended by an interruption at once */
    int64_t steps;                 /* thousands of operations of the present job */
    int system_error;              /* errno behind the last code of spk_db_true_code */
    struct spk_db *next_inherited;
} spk_db;

/* store_db.c. path NULL: in memory. On failure *db is untouched and reason (never NULL) says why. */
int spk_db_open(const char *path, int busy_ms, const atomic_int *interrupted, spk_db **db, char *reason, size_t reason_size);
void spk_db_close(spk_db **db); /* accepts NULL */
int spk_db_statement(spk_db *db, spk_statement which, sqlite3_stmt **statement);
/* Resets a statement of a finished query and passes its code on: SQLITE_DONE and SQLITE_ROW become SQLITE_OK. */
int spk_db_finish(sqlite3_stmt *statement, int code);
int spk_db_exec(spk_db *db, const char *sql);
/* One integer out of a one-row query; SQLITE_CORRUPT where there is no row. */
int spk_db_integer(spk_db *db, const char *sql, int64_t *value);
/* job in a write transaction: all of it or nothing. */
int spk_db_transaction(spk_db *db, int (*job)(spk_db *db, void *arg), void *arg);
void spk_db_reason(spk_db *db, int code, char *reason, size_t reason_size);
bool spk_db_is_busy(int code); /* another process has the file */
bool spk_db_is_damage(int code);
int spk_db_true_code(spk_db *db, int code);  /* SQLITE_IOERR_READ where damage is but a failure of the system */
void spk_db_begin(spk_db *db, bool patient); /* before each job; a job that begins after an interruption is patient in any case */

/* store_schema.c: makes the tables of a blank file, migrates those of an older one, and compares them (a file may hold more than it
 * says). */
int spk_schema_prepare(spk_db *db, bool compare);

/* store_rows.c: classes and candidates of one database. */
int spk_rows_decision(spk_db *db, const char *key, spk_decision *decision, bool *found);
int spk_rows_nearest(spk_db *db, const char *key, spk_decision *decision, double *distance); /* writes both where it finds one nearer */
int spk_rows_sizes(spk_db *db, const char *key, double most, spk_store_sizes *sizes);        /* adds those that are nearer */
/* *report stays NULL where the class is unknown or *bad (its rows make no sense; may be NULL). */
int spk_rows_load(spk_db *db, const spk_mem *mem, const char *key, spk_report **report, bool *bad);
/* Tells visit of each candidate of a class that was found wrong, also where the class makes no sense otherwise. */
int spk_rows_wrong(spk_db *db, const char *key, void (*visit)(void *user, const spk_evidence *wrong), void *user);
int spk_rows_save(spk_db *db, const spk_report *report);
int spk_rows_evict(spk_db *db, int64_t class_limit); /* the oldest beyond the limit */
int spk_rows_erase(spk_db *db, const char *key);
typedef struct spk_age {
    int64_t measured_at; /* INT64_MIN: unknown class */
    bool provisional;
} spk_age;
int spk_rows_age(spk_db *db, const char *key, spk_age *age);
/* Printable ASCII without a bar: what may stand in the store. */
bool spk_rows_text_is_clean(const char *text);
bool spk_rows_evidence_is_sound(const spk_evidence *evidence);
bool spk_rows_error_is_sound(const spk_evidence *e);     /* who is further off than its tolerance is not ok */
bool spk_rows_report_is_sound(const spk_report *report); /* chosen is one of the candidates and ok, numbers are finite */

typedef enum spk_store_warning {
    SPK_WARN_UNUSABLE = 1 << 0,
    SPK_WARN_READ_ONLY = 1 << 1,
    SPK_WARN_FULL = 1 << 2,
    SPK_WARN_BUSY = 1 << 3,
    SPK_WARN_IO = 1 << 4,
    SPK_WARN_ASIDE = 1 << 5, /* told every time */
    SPK_WARN_DAMAGE = 1 << 6,
    SPK_WARN_TIME = 1 << 7,
    SPK_WARN_LEFT_OUT = 1 << 8 /* likewise */
} spk_store_warning;

typedef struct spk_store_hold {
    uint64_t hash; /* of the class key; 0: free */
    int file;      /* open file description that holds the byte; -1: in this process only */
} spk_store_hold;

/* An answer of spk_store_nearest, which looks through all classes of a family: patterns that are new at every step ask again and again. */
typedef struct spk_store_near {
    uint64_t key;    /* hash; 0: free */
    double until_us; /* another process may have written meanwhile */
    bool found;
    spk_decision decision;
} spk_store_near;

/* The same of spk_store_near_sizes. */
typedef struct spk_store_sized {
    uint64_t key;
    double until_us;
    spk_store_sizes sizes;
} spk_store_sized;

typedef struct spk_store_waiting spk_store_waiting;

struct spk_store {
    spk_mem mem;
    spk_log log;
    void *log_user;
    char *path;                    /* absolute, "" in memory */
    const atomic_int *interrupted; /* may be NULL */
    pthread_mutex_t mutex;
    struct spk_store *next; /* of the stores that fork() must know */
    /* guarded by mutex */
    spk_db *disk, *memory; /* opened at first use */
    bool given;            /* the path is the caller's or SPARSEK_STORE: its folder is not made */
    bool disk_off;         /* the file is not ours to use: memory only, see off_reason */
    bool unmade;           /* there was no file, and none could be made; the next save tries again */
    int busy_ms, read_ms;  /* how long a write, and a read, waits for a lock of another process */
    dev_t device;          /* which file it was when it was opened */
    ino_t inode;
    int64_t class_limit;
    int64_t import_bytes; /* of memory that an import may take; 0: half of what is free */
    int64_t asides;       /* damaged files set aside by this handle */
    char off_reason[256];
    unsigned warned;
    int pending_count;
    char pending[SPK_STORE_PENDING][512];
    bool wrote;      /* since spk_store_enter */
    bool comes_back; /* a file that another process has is tried again soon: no word of it */
    bool closing, has_writer;
    spk_store_waiting *waiting; /* store_behind.c: what is in memory and goes to the file; the oldest first */
    pthread_cond_t writer_ended;
    spk_store_hold holds[SPK_STORE_LOCKS];
    spk_store_near nears[SPK_STORE_NEARS]; /* empty after every write */
    spk_store_sized *sized;                /* SPK_STORE_SIZES_KEPT, likewise; NULL until the first */
    spk_store *below, *bundle;             /* store_layers.c; NULL: none */
    bool by_library;                       /* the file may belong to the user whose library this process runs */
    uid_t library_user;
};

/* store.c */
void spk_store_enter(spk_store *store);
/* Unlocks, then hands pending warnings to the log. */
void spk_store_leave(spk_store *store);
__attribute__((format(printf, 3, 4))) void spk_store_warn(spk_store *store, spk_store_warning warning, const char *format, ...);
/* A job on the database in memory, which is made where `make`; SPK_DB_ABSENT where there is none. */
int spk_store_on_memory(spk_store *store, bool make, int (*job)(spk_db *db, void *arg), void *arg);
spk_status spk_store_status(const spk_store *store, int code); /* of a code that must reach the caller */
void spk_store_forget_neighbours(spk_store *store);            /* what was found near to other classes: something is written */

/* store_behind.c */
void spk_store_drop_waiting(spk_store *store); /* under the mutex */
void spk_store_end_writer(spk_store *store);   /* once all is written */

/* store_disk.c: a job on the file, with everything that may be wrong with it. */
/* update: a transaction on a file that is there */
typedef enum spk_disk_mode { SPK_DISK_READ, SPK_DISK_UPDATE, SPK_DISK_WRITE } spk_disk_mode;
int spk_store_on_disk(spk_store *store, spk_disk_mode mode, int (*job)(spk_db *db, void *arg), void *arg);

/* store_rows.c: keeps the nearest in order, each once. */
void spk_sizes_add(spk_store_sizes *sizes, const char *key, double distance);

/* store_layers.c */
void spk_store_close_layers(spk_store *store);

/* store_lock.c */
int spk_store_lock_byte(const spk_store *store, int64_t offset, int *file); /* 0, or errno; EAGAIN: somebody else has it */
void spk_store_unlock_byte(int file, int64_t offset);

/* store_fork.c: after fork() a child has no part in its parent's connection and locks. */
spk_status spk_store_fork_watch(spk_store *store);
void spk_store_fork_forget(spk_store *store);
void spk_store_each(void (*visit)(spk_store *store)); /* every store of the process; visit must open or close none */

/* store_trust.c: whether the file, and what SQLite would play back into it, are this user's or root's and nobody else may write them;
 * reason says why not. */
bool spk_store_trusts(const spk_store *store, const struct stat *about, char *reason, size_t size);

/* store_path.c: the file of a caller's path or of SPARSEK_STORE (*given), else of the default place; "" (with *why) where there is no
 * home. */
/* Whether the file is there, or the next save might make it. Makes nothing. */
bool spk_store_path_usable(const spk_store *store);
spk_status spk_store_path_find(const spk_mem *mem, const char *path, char **out, bool *given, const char **why);

/* store_list.c: every class of file and memory, newest first. */
typedef struct spk_listed {
    size_t key, device, choice; /* places in text */
    double median_us;
    int candidate_count;
    spk_provisional provisional;
    int64_t measured_at;
} spk_listed;
typedef struct spk_listing {
    const spk_mem *mem;
    spk_listed *entries;
    int64_t count, capacity;
    char *text;
    size_t text_used, text_capacity;
} spk_listing;
spk_status spk_store_listing(spk_store *store, spk_listing *listing); /* SPK_ERR_IO where the file cannot be read */
void spk_listing_release(spk_listing *listing);

#endif
