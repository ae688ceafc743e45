/*
 * Moves the wall clock of one process, and of no other: loaded before libc, it adds an offset to what the process
 * reads as the time of day. The offset (int64, microseconds) lies in a file that is mapped into memory, so a test
 * changes it while the process runs by writing eight bytes. The monotonic clocks stay true.
 *
 * The time is fetched by system call, not from the next library in line: looking that up may allocate, and an
 * allocator may ask for the time before it is ready to allocate. For the same reason nothing happens at load.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t no_offset = 0;
static volatile int64_t *cell = NULL;

/* Two threads may both get here first. Both map the same file, so it does not matter whose pointer stays. */
static volatile int64_t *map_offset(void) {
  const char *path = getenv("HOLDFAST_CLOCK_FILE");
  if (path == NULL) return &no_offset;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &no_offset;
  void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return page == MAP_FAILED ? &no_offset : (volatile int64_t *)page;
}

static int64_t offset_us(void) {
  if (cell == NULL) cell = map_offset();
  return *cell;
}

int clock_gettime(clockid_t id, struct timespec *now) {
  long result = syscall(SYS_clock_gettime, id, now);
  if (result != 0 || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return (int)result;
  int64_t us = offset_us();
  now->tv_sec += us / 1000000;
  now->tv_nsec += (us % 1000000) * 1000;
  if (now->tv_nsec >= 1000000000) {
    now->tv_nsec -= 1000000000;
    now->tv_sec += 1;
  } else if (now->tv_nsec < 0) {
    now->tv_nsec += 1000000000;
    now->tv_sec -= 1;
  }
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return (time_t)-1;
  if (out != NULL) *out = exact.tv_sec;
  return exact.tv_sec;
}
