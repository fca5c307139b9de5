/* Records what a process does to the files below one folder, in order.
 *
 * Loaded into the process with LD_PRELOAD. RECORDER_ROOT names the folder, RECORDER_LOG
 * the file that records are appended to; `trace.rs` reads them. What is written to the
 * standard output is recorded as well, so that what was said has its place between the
 * writes. A change is made and recorded under one lock: the order of the records is the
 * order of the changes. A sync is recorded when it begins and when it has ended, because
 * only what was written before it began is sure to be on the disk when it ends.
 *
 * Nothing is really synced. What a disk would hold is worked out from the records, and a
 * recording does not have to wait for the disk of the machine it is made on.
 *
 * What cannot be recorded ends the process: a hole in the records would be taken for
 * something that never happened.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A record: kind (1), first number (8), second number (8), two texts with their lengths (4). */
enum { OPENED = 1, WRITTEN, RESIZED, SYNC_BEGUN, SYNC_ENDED, RENAMED, UNLINKED, FOLDER_MADE, FOLDER_REMOVED, SAID };
/* The second number of OPENED. */
enum { CREATED = 1, EMPTIED = 2, FOLDER = 4 };

/* Descriptors from here on are not followed; processes that are recorded have a few dozen. */
#define DESCRIPTORS_MAX 4096
/* How long a sync takes, so that other threads write meanwhile, as they would. */
#define SYNC_MICROSECONDS 150

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_len;
static int log_descriptor = -1;
static uint64_t next_sync = 1;
/* The inode behind a descriptor, 0 when it is none of ours; and whether it appends. */
static uint64_t inodes[DESCRIPTORS_MAX];
static char appends[DESCRIPTORS_MAX];

static void give_up(const char *what) {
    dprintf(2, "recorder: %s cannot be recorded\n", what);
    syscall(SYS_kill, getpid(), SIGKILL);
    __builtin_unreachable();
}

/* Ends the process between two records: in the middle of one, it would be cut off. */
void abort(void) {
    pthread_mutex_lock(&lock);
    syscall(SYS_kill, getpid(), SIGKILL);
    __builtin_unreachable();
}

__attribute__((constructor)) static void start(void) {
    const char *folder = getenv("RECORDER_ROOT"), *log = getenv("RECORDER_LOG");
    if (!folder || !log || strlen(folder) >= sizeof root) give_up("a process without a folder and a log");
    strcpy(root, folder);
    root_len = strlen(root);
    log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_descriptor < 0) give_up("anything without a log");
}

static int is_ours(const char *path) {
    return root_len > 0 && strncmp(path, root, root_len) == 0 && (path[root_len] == '/' || path[root_len] == 0);
}

static uint64_t inode_of(int descriptor) {
    return descriptor >= 0 && descriptor < DESCRIPTORS_MAX ? inodes[descriptor] : 0;
}

static void record(unsigned char kind, uint64_t a, uint64_t b, const void *one, size_t one_len, const void *two, size_t two_len) {
    uint32_t one_size = (uint32_t)one_len, two_size = (uint32_t)two_len;
    struct iovec parts[] = {
        {&kind, 1}, {&a, 8}, {&b, 8}, {&one_size, 4}, {(void *)one, one_len}, {&two_size, 4}, {(void *)two, two_len},
    };
    ssize_t expected = 25 + (ssize_t)one_len + (ssize_t)two_len;
    if (syscall(SYS_writev, log_descriptor, parts, 7) != expected) give_up("this much");
}

static void record_path(unsigned char kind, uint64_t a, uint64_t b, const char *path) {
    record(kind, a, b, path, strlen(path), "", 0);
}

static int open_and_record(int folder, const char *path, int flags, mode_t mode) {
    if (!is_ours(path)) {
        if (path[0] != '/' && folder != AT_FDCWD && inode_of(folder)) give_up("a path relative to a folder");
        return (int)syscall(SYS_openat, folder, path, flags, mode);
    }
    if ((flags & O_TMPFILE) == O_TMPFILE) give_up("a file without a name");
    pthread_mutex_lock(&lock);
    int existed = access(path, F_OK) == 0;
    int descriptor = (int)syscall(SYS_openat, folder, path, flags, mode);
    int error = errno;
    struct stat found;
    if (descriptor >= 0) {
        if (descriptor >= DESCRIPTORS_MAX || fstat(descriptor, &found) != 0) give_up("so many open files");
        inodes[descriptor] = found.st_ino;
        appends[descriptor] = (flags & O_APPEND) != 0;
        uint64_t how = (existed ? 0 : CREATED) | (flags & O_TRUNC ? EMPTIED : 0) | (S_ISDIR(found.st_mode) ? FOLDER : 0);
        record_path(OPENED, found.st_ino, how, path);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return descriptor;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags) return open_and_record(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_and_record(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags) return open_and_record(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags) return open_and_record(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_and_record(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open_and_record(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int descriptor) {
    pthread_mutex_lock(&lock);
    if (inode_of(descriptor)) inodes[descriptor] = 0;
    int done = (int)syscall(SYS_close, descriptor), error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

static int duplicate_and_record(int descriptor, int command, void *argument) {
    int done = (int)syscall(SYS_fcntl, descriptor, command, argument);
    if (done >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC) && inode_of(descriptor)) {
        if (done >= DESCRIPTORS_MAX) give_up("so many open files");
        inodes[done] = inodes[descriptor];
        appends[done] = appends[descriptor];
    }
    return done;
}

#define ARGUMENT(command) \
    va_list rest; va_start(rest, command); void *argument = va_arg(rest, void *); va_end(rest);

int fcntl(int descriptor, int command, ...) { ARGUMENT(command) return duplicate_and_record(descriptor, command, argument); }
int fcntl64(int descriptor, int command, ...) { ARGUMENT(command) return duplicate_and_record(descriptor, command, argument); }

/* Where the next write of a descriptor goes. */
static uint64_t position_of(int descriptor) {
    struct stat found;
    if (appends[descriptor]) return fstat(descriptor, &found) == 0 ? (uint64_t)found.st_size : 0;
    return (uint64_t)lseek(descriptor, 0, SEEK_CUR);
}

ssize_t write(int descriptor, const void *bytes, size_t len) {
    uint64_t inode = inode_of(descriptor);
    if (!inode && descriptor != 1) return syscall(SYS_write, descriptor, bytes, len);
    pthread_mutex_lock(&lock);
    uint64_t position = inode ? position_of(descriptor) : 0;
    ssize_t done = syscall(SYS_write, descriptor, bytes, len);
    int error = errno;
    if (done > 0) record(inode ? WRITTEN : SAID, inode, position, bytes, (size_t)done, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

static ssize_t write_at(int descriptor, const void *bytes, size_t len, off64_t position) {
    uint64_t inode = inode_of(descriptor);
    if (!inode) return syscall(SYS_pwrite64, descriptor, bytes, len, position);
    pthread_mutex_lock(&lock);
    ssize_t done = syscall(SYS_pwrite64, descriptor, bytes, len, position);
    int error = errno;
    if (done > 0) record(WRITTEN, inode, (uint64_t)position, bytes, (size_t)done, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t len, off_t position) { return write_at(descriptor, bytes, len, position); }
ssize_t pwrite64(int descriptor, const void *bytes, size_t len, off64_t position) { return write_at(descriptor, bytes, len, position); }

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!inode_of(descriptor) && descriptor != 1) return syscall(SYS_writev, descriptor, parts, count);
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len > 0) return write(descriptor, parts[part].iov_base, parts[part].iov_len);
    return 0;
}

static int resize(int descriptor, off64_t len) {
    uint64_t inode = inode_of(descriptor);
    pthread_mutex_lock(&lock);
    int done = (int)syscall(SYS_ftruncate, descriptor, len), error = errno;
    if (done == 0 && inode) record(RESIZED, inode, (uint64_t)len, "", 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int ftruncate(int descriptor, off_t len) { return resize(descriptor, len); }
int ftruncate64(int descriptor, off64_t len) { return resize(descriptor, len); }

static int sync_and_record(int descriptor) {
    uint64_t inode = inode_of(descriptor);
    if (!inode) return (int)syscall(SYS_fsync, descriptor);
    pthread_mutex_lock(&lock);
    uint64_t number = next_sync++ << 32 | (uint32_t)getpid();
    record(SYNC_BEGUN, inode, number, "", 0, "", 0);
    pthread_mutex_unlock(&lock);
    usleep(SYNC_MICROSECONDS);
    pthread_mutex_lock(&lock);
    record(SYNC_ENDED, inode, number, "", 0, "", 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int descriptor) { return sync_and_record(descriptor); }
int fdatasync(int descriptor) { return sync_and_record(descriptor); }

#define CHANGE_NAME(call, ours, what) \
    if (!(ours)) return call; \
    pthread_mutex_lock(&lock); \
    int done = call, error = errno; \
    if (done == 0) what; \
    pthread_mutex_unlock(&lock); \
    errno = error; \
    return done;

int rename(const char *from, const char *to) {
    CHANGE_NAME((int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), is_ours(from) || is_ours(to),
                record(RENAMED, 0, 0, from, strlen(from), to, strlen(to)))
}

int unlink(const char *path) {
    CHANGE_NAME((int)syscall(SYS_unlinkat, AT_FDCWD, path, 0), is_ours(path), record_path(UNLINKED, 0, 0, path))
}

int mkdir(const char *path, mode_t mode) {
    CHANGE_NAME((int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), is_ours(path), record_path(FOLDER_MADE, 0, 0, path))
}

int rmdir(const char *path) {
    CHANGE_NAME((int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR), is_ours(path), record_path(FOLDER_REMOVED, 0, 0, path))
}

/* What neither the engine nor the store does today. */
#define REFUSE_DESCRIPTOR(descriptor, what) if (inode_of(descriptor)) give_up(what)

int unlinkat(int folder, const char *path, int flags) {
    if (inode_of(folder) || is_ours(path)) give_up("unlinkat");
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int link(const char *from, const char *to) {
    if (is_ours(from) || is_ours(to)) give_up("link");
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int truncate64(const char *path, off64_t len) {
    if (is_ours(path)) give_up("truncate");
    return (int)syscall(SYS_truncate, path, len);
}

int posix_fallocate64(int descriptor, off64_t offset, off64_t len) {
    REFUSE_DESCRIPTOR(descriptor, "fallocate");
    return syscall(SYS_fallocate, descriptor, 0, offset, len) == 0 ? 0 : errno;
}

int fallocate64(int descriptor, int mode, off64_t offset, off64_t len) {
    REFUSE_DESCRIPTOR(descriptor, "fallocate");
    return (int)syscall(SYS_fallocate, descriptor, mode, offset, len);
}

int sync_file_range(int descriptor, off64_t offset, off64_t len, unsigned flags) {
    REFUSE_DESCRIPTOR(descriptor, "sync_file_range");
    return (int)syscall(SYS_sync_file_range, descriptor, offset, len, flags);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t len, unsigned flags) {
    REFUSE_DESCRIPTOR(to, "copy_file_range");
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags);
}

void *mmap64(void *address, size_t len, int protection, int flags, int descriptor, off64_t offset) {
    if (descriptor >= 0 && (protection & PROT_WRITE) && (flags & MAP_SHARED)) REFUSE_DESCRIPTOR(descriptor, "a writable mapping");
    return (void *)syscall(SYS_mmap, address, len, protection, flags, descriptor, offset);
}
