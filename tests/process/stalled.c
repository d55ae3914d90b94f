/* A file system that stops answering. Preloaded into a daemon: whoever opens, looks at or reads a link in a folder
   whose name begins with "stalled" waits there for as long as the file named by STALLED exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void stall(const char *path)
{
    const char *flag = getenv("STALLED");
    const struct timespec pause = {0, 10000000};
    if (!flag || !path || !strstr(path, "/stalled"))
        return;
    while (syscall(SYS_faccessat, AT_FDCWD, flag, F_OK) == 0)
        nanosleep(&pause, NULL);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define STAT(name, kind) \
    int name(const char *path, struct kind *found) { stall(path); return NEXT(name)(path, found); }
#define STATAT(name, kind) \
    int name(int at, const char *path, struct kind *found, int flags) \
    { stall(path); return NEXT(name)(at, path, found, flags); }
#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        va_list given; \
        va_start(given, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(given, mode_t) : 0; \
        va_end(given); \
        stall(path); \
        return NEXT(name)(path, flags, mode); \
    }

STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)
OPEN(open)
OPEN(open64)

ssize_t readlink(const char *path, char *into, size_t size)
{
    stall(path);
    return NEXT(readlink)(path, into, size);
}
