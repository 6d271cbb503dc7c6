//===- Pool.c - the threads of ktn_parallel_for --------------------------===//
//
// One pool for the process. A call offers its work to the first few workers, a
// seat for each; they take their seat, then parts of the work, and leave; the
// caller does parts too, withdraws the offer when no part is left, and waits
// for those who have a seat. Workers look for work for a while before they
// sleep, for the next kernel of a model comes soon.
//
// Each thread has a range of the parts, the same share of any work: what it
// wrote as the rows of one kernel is still in its cache when it reads them as
// the rows of the next. It takes most of what is left of its range at a time,
// since what a call reads first is in no cache near. Who has none left takes
// from the ends of the others' ranges.
//
// Nobody waits for the pool: a call from inside of a task, or while another
// thread has the pool, does its work itself. There are never more threads at
// work than callers and one pool.
//
//===----------------------------------------------------------------------===//
#define _POSIX_C_SOURCE 200809L

#include "Cpus.h"
#include "keratin/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
  /// How long a worker looks for work before it sleeps: the small kernels of a
  /// model, which the caller does itself, are over by then. First it looks as
  /// often as it can, then it lets others have the CPU in between.
  looks = 1000,
  patience_nanoseconds = 1000000,
  /// Where a thread has no more parts than these, it does them in one call.
  at_once = 2,
  /// Kernels keep panels and rows on the stack.
  stack_bytes = 8 << 20,
  /// What threads write all the time has a cache line of its own.
  line = 64
};

// What is offered: the number of the offer in the upper half, so that no two
// look alike, then the workers that it is for, 1 to this number, then the seats
// taken. Each takes one seat at most: its range is that of its own number. A
// change of the offer's number is what workers wait for.
static _Alignas(line) _Atomic uint64_t offer;
static const uint64_t one_offer = (uint64_t)1 << 32, one_worker = 1 << 16,
                      one_taken = 1;
static uint32_t number_of(uint64_t state) { return (uint32_t)(state >> 32); }
static uint32_t workers_of(uint64_t state) { return state >> 16 & 0xFFFF; }
static uint32_t taken_of(uint64_t state) { return state & 0xFFFF; }

// The work of the offer. Written by who holds the pool while no seat is taken.
static _Alignas(line) struct {
  ktn_task_t task;
  void *work;
  int64_t count;
  int64_t unit; // of ranges, in parts: 1 but for numbers that they cannot hold
  int threads;
} job;

// What is left of the range of each thread, in units: its end in the upper
// half, its begin in the lower.
static struct {
  _Alignas(line) _Atomic uint64_t left;
} ranges[KTN_MAX_THREADS];
static _Alignas(line) _Atomic int open_ranges; // that are not empty

static atomic_flag held = ATOMIC_FLAG_INIT; // by a caller
static pthread_t workers[KTN_MAX_THREADS];  // of who holds the pool
static int num_workers;
static _Atomic int stopping;

static _Atomic int32_t wanted_threads; // 0: the default

// For sleeping only. What is waited for changes outside of the lock; whoever
// changes it looks for sleepers afterwards.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t offered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static _Atomic int sleeping_workers, caller_sleeps;

static _Thread_local int in_task;

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

// Passes some time between two looks, of which the first has the number 0;
// false when it is time to sleep.
static int look_again(int look, struct timespec *since) {
  if (look < looks) {
    relax();
    return 1;
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (look == looks)
    *since = now;
  sched_yield();
  return (now.tv_sec - since->tv_sec) * 1000000000LL + now.tv_nsec -
             since->tv_nsec <
         patience_nanoseconds;
}

//===----------------------------------------------------------------------===//
// Number of threads
//===----------------------------------------------------------------------===//

static int32_t at_most(int64_t number) {
  return (int32_t)(number > KTN_MAX_THREADS ? KTN_MAX_THREADS : number);
}

static int32_t default_threads(void) {
  const char *text = getenv("KTN_NUM_THREADS");
  if (text && *text >= '0' && *text <= '9') {
    char *end;
    long number = strtol(text, &end, 10);
    if (*end == 0 && number >= 1)
      return at_most(number);
  }
  return at_most(ktn_cpu_limit());
}

ktn_status_t ktn_set_num_threads(int32_t number) {
  if (number < 0)
    return KTN_INVALID_ARGUMENT;
  atomic_store(&wanted_threads, at_most(number));
  return KTN_OK;
}

int32_t ktn_num_threads(void) {
  static _Atomic int32_t by_default;
  int32_t number = atomic_load(&wanted_threads);
  if (number == 0)
    number = atomic_load(&by_default);
  if (number == 0) {
    number = default_threads();
    atomic_store(&by_default, number);
  }
  return number;
}

//===----------------------------------------------------------------------===//
// Workers
//===----------------------------------------------------------------------===//

static uint64_t range_of(uint64_t begin, uint64_t end) {
  return end << 32 | begin;
}

static void open_all_ranges(void) {
  uint64_t units = (uint64_t)((job.count - 1) / job.unit + 1);
  uint64_t threads = (uint64_t)job.threads;
  atomic_store_explicit(&open_ranges, job.threads, memory_order_relaxed);
  // No range is empty: there are no more threads than units.
  for (uint64_t thread = 0; thread < threads; ++thread)
    atomic_store_explicit(
        &ranges[thread].left,
        range_of(units * thread / threads, units * (thread + 1) / threads),
        memory_order_relaxed);
}

// Does parts of the range of `thread` until none are left: from its begin on if
// it is one's own, and else from its end.
static void do_range(int thread, int is_own) {
  _Atomic uint64_t *range = &ranges[thread].left;
  uint64_t state = atomic_load_explicit(range, memory_order_relaxed);
  for (;;) {
    uint64_t begin = state & UINT32_MAX, end = state >> 32, left = end - begin;
    if (left == 0)
      return;
    uint64_t taken = is_own ? left * 3 / 4 : left / 2;
    if (is_own && job.count <= at_once * job.threads)
      taken = left;
    if (taken == 0)
      taken = 1;
    uint64_t from = is_own ? begin : end - taken;
    uint64_t rest =
        is_own ? range_of(begin + taken, end) : range_of(begin, end - taken);
    if (!atomic_compare_exchange_weak_explicit(
            range, &state, rest, memory_order_relaxed, memory_order_relaxed))
      continue;
    if (taken == left)
      atomic_fetch_sub_explicit(&open_ranges, 1, memory_order_relaxed);
    int64_t first = (int64_t)from * job.unit;
    int64_t last = (int64_t)(from + taken) * job.unit;
    job.task(job.work, first, last < job.count ? last : job.count);
    state = atomic_load_explicit(range, memory_order_relaxed);
  }
}

static void do_parts(int thread) {
  int threads = job.threads;
  for (int other = 0; other < threads; ++other) {
    if (atomic_load_explicit(&open_ranges, memory_order_relaxed) == 0)
      return;
    do_range((thread + other) % threads, other == 0);
  }
}

// The state of an offer that is not the one of number `seen`.
static uint64_t wait_for_offer(uint32_t seen) {
  uint64_t state;
  struct timespec since;
  int look = 0;
  do {
    state = atomic_load(&offer);
    if (number_of(state) != seen)
      return state;
  } while (look_again(look++, &since));
  pthread_mutex_lock(&lock);
  atomic_fetch_add(&sleeping_workers, 1);
  while (state = atomic_load(&offer), number_of(state) == seen)
    pthread_cond_wait(&offered, &lock);
  atomic_fetch_sub(&sleeping_workers, 1);
  pthread_mutex_unlock(&lock);
  return state;
}

static void leave_seat(void) {
  uint64_t state = atomic_fetch_sub(&offer, one_taken) - one_taken;
  if (taken_of(state) != 0 || workers_of(state) != 0 ||
      !atomic_load(&caller_sleeps))
    return;
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&left);
  pthread_mutex_unlock(&lock);
}

// What a worker starts with.
typedef struct {
  int thread;    // its number; that of callers is 0
  uint32_t seen; // the offer that it did not see
} start_t;
static start_t starts[KTN_MAX_THREADS];

static void *worker_main(void *start) {
  int thread = ((const start_t *)start)->thread;
  uint32_t seen = ((const start_t *)start)->seen;
  in_task = 1; // what a task calls runs here
  for (;;) {
    uint64_t state = wait_for_offer(seen);
    if (atomic_load(&stopping))
      return NULL;
    seen = number_of(state);
    while (number_of(state) == seen && (uint32_t)thread <= workers_of(state))
      if (atomic_compare_exchange_weak(&offer, &state, state + one_taken)) {
        do_parts(thread);
        leave_seat();
        break;
      }
  }
}

// In the child of a fork there are no workers, and nobody holds anything.
static void forget_workers(void) {
  num_workers = 0;
  atomic_store(&offer, 0);
  atomic_store(&sleeping_workers, 0);
  atomic_store(&caller_sleeps, 0);
  atomic_store(&stopping, 0);
  lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  offered = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  left = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  atomic_flag_clear(&held);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_workers); }

// Starts workers until there are `number`, or as many as the system allows.
static void start_workers(int number) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (num_workers >= number)
    return;
  pthread_once(&once, watch_forks);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  // Signals are the business of the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  uint32_t seen = number_of(atomic_load(&offer));
  while (num_workers < number) {
    start_t *start = &starts[num_workers];
    *start = (start_t){num_workers + 1, seen};
    if (pthread_create(&workers[num_workers], &attributes, worker_main,
                       start) != 0)
      break;
    ++num_workers;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

static void wake_workers(void) {
  if (atomic_load(&sleeping_workers) == 0)
    return;
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&offered);
  pthread_mutex_unlock(&lock);
}

// Ends the threads before the code that they run can be unloaded.
__attribute__((destructor)) static void stop_workers(void) {
  if (in_task || atomic_flag_test_and_set(&held))
    return;
  atomic_store(&stopping, 1);
  atomic_fetch_add(&offer, one_offer);
  wake_workers();
  while (num_workers > 0)
    pthread_join(workers[--num_workers], NULL);
  atomic_store(&stopping, 0);
  atomic_flag_clear(&held);
}

//===----------------------------------------------------------------------===//
// Callers
//===----------------------------------------------------------------------===//

static void wait_for_taken_seats(void) {
  struct timespec since;
  int look = 0;
  do {
    if (taken_of(atomic_load(&offer)) == 0)
      return;
  } while (look_again(look++, &since));
  pthread_mutex_lock(&lock);
  atomic_store(&caller_sleeps, 1);
  while (taken_of(atomic_load(&offer)) != 0)
    pthread_cond_wait(&left, &lock);
  atomic_store(&caller_sleeps, 0);
  pthread_mutex_unlock(&lock);
}

void ktn_parallel_for(ktn_task_t task, void *work, int64_t count) {
  if (count <= 0)
    return;
  int64_t threads = ktn_num_threads();
  if (threads > count)
    threads = count;
  if (in_task || threads == 1 || atomic_flag_test_and_set(&held)) {
    task(work, 0, count);
    return;
  }
  start_workers((int)threads - 1);
  job.task = task;
  job.work = work;
  job.count = count;
  job.unit = (count - 1) / UINT32_MAX + 1;
  job.threads = (int)threads;
  open_all_ranges();
  uint64_t number = number_of(atomic_load(&offer)) + (uint64_t)1;
  atomic_store(&offer,
               number * one_offer + (uint64_t)(threads - 1) * one_worker);
  wake_workers();

  in_task = 1;
  do_parts(0);
  in_task = 0;
  atomic_fetch_and(&offer, ~((uint64_t)0xFFFF * one_worker));
  wait_for_taken_seats();
  atomic_flag_clear(&held);
}
