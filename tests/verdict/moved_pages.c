/* Preloaded: what an operating system with NUMA balancing shows a program.

   The file of the setting is the one that NUMA_BALANCING_FILE names, and pages that are asked for
   again were moved to domain 1 meanwhile. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static FILE* opened(const char* call, const char* path, const char* mode) {
  FILE* (*real)(const char*, const char*) =
      (FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, call);
  return real(
      strcmp(path, "/proc/sys/kernel/numa_balancing") == 0 ? getenv("NUMA_BALANCING_FILE") : path,
      mode);
}

FILE* fopen(const char* path, const char* mode) { return opened("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return opened("fopen64", path, mode); }

long syscall(long number, ...) {
  static const void* seen[1024];
  static int count;
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  const long result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  /* move_pages(pid, count, pages, nodes, status, flags) that only asks */
  if (number == SYS_move_pages && a[1] > 0 && a[3] == 0) {
    const void* first = ((const void**)a[2])[0];
    for (int i = 0; i < count; ++i) {
      if (seen[i] == first) ((int*)a[4])[0] = 1;
    }
    if (count < 1024) seen[count++] = first;
  }
  return result;
}
