//===- Cpus.c - how many CPUs the process may use ------------------------===//
#define _GNU_SOURCE // sched_getaffinity

#include "Cpus.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { path_bytes = 1024 };

// The start of a small file, as text; 0 when it cannot be read.
static int read_text(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return 0;
  ssize_t bytes = read(file, text, size - 1);
  close(file);
  text[bytes > 0 ? bytes : 0] = 0;
  return bytes > 0;
}

// Whole CPUs in `quota` microseconds of each `period`; 0 for none.
static int whole_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0)
    return 0;
  long long cpus = quota / period;
  return cpus < 1 ? 1 : cpus > 1 << 16 ? 0 : (int)cpus;
}

// Version 2 has "QUOTA PERIOD" or "max PERIOD" in one file, version 1 two
// files, -1 for no quota.
static int limit_of_group(const char *group) {
  char path[path_bytes + 32], text[64];
  snprintf(path, sizeof path, "%s/cpu.max", group);
  if (read_text(path, text, sizeof text)) {
    char *end;
    long long quota = strtoll(text, &end, 10);
    return end == text ? 0 : whole_cpus(quota, strtoll(end, NULL, 10));
  }
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
  if (!read_text(path, text, sizeof text))
    return 0;
  long long quota = strtoll(text, NULL, 10);
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
  return read_text(path, text, sizeof text)
             ? whole_cpus(quota, strtoll(text, NULL, 10))
             : 0;
}

static int smaller_limit(int one, int other) {
  return one == 0 || (other != 0 && other < one) ? other : one;
}

// The smallest limit of a group and those that it is in. A container may see
// the path of its group outside of it: what is missing has no limit.
static int limit_of_path(const char *root, const char *mount,
                         const char *path) {
  char group[path_bytes];
  int length =
      snprintf(group, sizeof group, "%s/sys/fs/cgroup%s%s", root, mount, path);
  size_t top = strlen(root) + strlen("/sys/fs/cgroup") + strlen(mount);
  if (length < 0 || (size_t)length >= sizeof group)
    return 0;
  int limit = 0;
  for (;;) {
    limit = smaller_limit(limit, limit_of_group(group));
    char *slash = strrchr(group, '/');
    if (strlen(group) <= top || !slash || (size_t)(slash - group) < top)
      return limit;
    *slash = 0;
  }
}

// Whether the comma-separated `list` of version 1 has the controller "cpu".
static int has_cpu(const char *list) {
  for (const char *word = list; word; word = strchr(word, ',')) {
    word += *word == ',';
    if (!strncmp(word, "cpu", 3) && (word[3] == 0 || word[3] == ','))
      return 1;
  }
  return 0;
}

int ktn_cgroup_limit(const char *root) {
  char path[path_bytes], text[4096];
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!read_text(path, text, sizeof text))
    return 0;
  int limit = 0;
  // Each line is "NUMBER:CONTROLLERS:PATH", without controllers in version 2.
  for (char *line = text, *next; line; line = next) {
    next = strchr(line, '\n');
    if (next)
      *next++ = 0;
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
      continue;
    *group++ = 0;
    ++controllers;
    if (*controllers == 0)
      limit = smaller_limit(limit, limit_of_path(root, "", group));
    else if (has_cpu(controllers))
      limit = smaller_limit(limit, limit_of_path(root, "/cpu", group));
  }
  return limit;
}

static int affinity(void) {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 0)
    return CPU_COUNT(&cpus);
  // More CPUs than the set has room for.
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < 1 << 16 ? (int)online : 1;
}

int ktn_cpu_limit(void) {
  return smaller_limit(affinity(), ktn_cgroup_limit(""));
}
