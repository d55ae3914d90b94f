/* A disk that forgets what was not synced. Preloaded into every process of an episode: after each fsync or fdatasync
   of a file under CHAOS_DISK, its content is copied to the same name under CHAOS_SYNCED. A power cut is then a kill of
   everything, and putting the copies in the place of the files. CHAOS_SLOW_US makes the disk slow, so that a promise
   which is given before the sync is over is likely to be caught. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void remember(int fd)
{
    const char *disk = getenv("CHAOS_DISK"), *synced = getenv("CHAOS_SYNCED");
    char link[64], path[PATH_MAX], copy[PATH_MAX], draft[PATH_MAX + 32], buffer[65536];
    if (!disk || !synced)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (strncmp(path, disk, strlen(disk)) || !name || strncmp(name, "/holdfast.db", 12))
        return;
    snprintf(copy, sizeof copy, "%s%s", synced, name);
    snprintf(draft, sizeof draft, "%s.%d.%d", copy, (int)getpid(), fd);
    int out = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t got = out < 0 ? -1 : 0;
    off_t at = 0;
    /* Through the descriptor that was synced: to close another one of the same file would drop SQLite's locks on it. */
    for (; got >= 0 && (got = pread(fd, buffer, sizeof buffer, at)) > 0; at += got)
        if (write(out, buffer, (size_t)got) != got)
            got = -1;
    if (out >= 0)
        close(out);
    if (got == 0)
        rename(draft, copy);
    else
        unlink(draft);
}

/* One copy at a time: of two, the older could be put in the place of the newer. */
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

static int synced(const char *name, int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *slow = getenv("CHAOS_SLOW_US");
    if (slow)
        usleep((useconds_t)atoi(slow));
    int result = real(fd);
    if (result == 0) {
        pthread_mutex_lock(&copying);
        remember(fd);
        pthread_mutex_unlock(&copying);
    }
    return result;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
