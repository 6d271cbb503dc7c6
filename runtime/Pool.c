//===- Pool.c - the threads of ktn_parallel_for --------------------------===//
//
// One pool for the process. A call offers its work to the first few workers, a
// seat for each; they take their seat, then parts of the work, and leave; the
// caller does parts too, withdraws what was offered to who has not come when no
// part is left, and waits for the others. Workers look for work for a while
// before they sleep, for the next kernel of a model comes soon.
//
// Each thread has a range of the parts, the same share of any work: what it
// wrote as the rows of one kernel is still in its cache when it reads them as
// the rows of the next. It takes most of what is left of its range at a time,
// since what a call reads first is in no cache near. Who has none left takes
// from the ends of the others' ranges.
//
// Kernels of a model may take a few microseconds, and a line of a cache some
// 0.1 from core to core: all that a worker is told is in the one line that it
// looks at, and no line is written by all of them.
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
#include <stddef.h>
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
  /// Whose ranges a worker looks at when its own is done; the caller looks at
  /// all.
  neighbours = 8,
  /// Kernels keep panels and rows on the stack.
  stack_bytes = 8 << 20,
  /// What threads write all the time has cache lines of its own, which come in
  /// pairs.
  line = 128
};

// A piece of work, and what threads need to know to share it.
typedef struct {
  ktn_task_t task;
  void *work;
  int64_t count;
  int64_t unit; // of ranges, in parts: 1 but for numbers that they cannot hold
  int threads;
} job_t;

enum { seat_empty, seat_offered, seat_taken, seat_closed };

// The seat of a thread; that of number 0 is the caller's, of which only `left`
// is used. The caller writes a seat while it is empty and offers it. Its worker
// takes it and empties it when it leaves, or somebody else who is at work takes
// back the offer, and does the parts: nobody leaves before that is done.
typedef struct {
  _Alignas(line) _Atomic int state;
  // What is left of the range of the thread, in units: its end in the upper
  // half, its begin in the lower.
  _Atomic uint64_t left;
  job_t job;
} seat_t;
static seat_t seats[KTN_MAX_THREADS];
_Static_assert(offsetof(seat_t, job) + sizeof(job_t) <= 64,
               "what a worker is told is in one line");

static atomic_flag held = ATOMIC_FLAG_INIT; // by a caller
static pthread_t workers[KTN_MAX_THREADS];  // of who holds the pool
static int num_workers;

static _Atomic int32_t wanted_threads; // 0: the default

// For sleeping only. What is waited for changes outside of the lock; whoever
// changes it looks for sleepers afterwards.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t offered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static _Atomic int caller_sleeps;
static _Atomic char sleeps[KTN_MAX_THREADS]; // the worker of a seat

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

static void do_units(const job_t *job, uint64_t from, uint64_t to) {
  int64_t first = (int64_t)from * job->unit, last = (int64_t)to * job->unit;
  job->task(job->work, first, last < job->count ? last : job->count);
}

// Where the range of `thread` begins.
static uint64_t begin_of(const job_t *job, int thread) {
  uint64_t units = (uint64_t)((job->count - 1) / job->unit + 1);
  return units * (uint64_t)thread / (uint64_t)job->threads;
}

// Whether threads do their parts in one call each.
static int is_at_once(const job_t *job) {
  return job->count <= at_once * job->threads;
}

// Does parts of the range of `thread` until none are left: from its begin on if
// it is one's own, and else from its end.
static void do_range(const job_t *job, int thread, int is_own) {
  _Atomic uint64_t *range = &seats[thread].left;
  uint64_t state = atomic_load_explicit(range, memory_order_relaxed);
  for (;;) {
    uint64_t begin = state & UINT32_MAX, end = state >> 32, left = end - begin;
    if (left == 0)
      return;
    uint64_t taken = left * (is_own ? 3 : 2) / 4;
    if (taken == 0)
      taken = 1;
    uint64_t from = is_own ? begin : end - taken;
    uint64_t rest =
        is_own ? range_of(begin + taken, end) : range_of(begin, end - taken);
    if (!atomic_compare_exchange_weak_explicit(
            range, &state, rest, memory_order_relaxed, memory_order_relaxed))
      continue;
    do_units(job, from, from + taken);
    state = atomic_load_explicit(range, memory_order_relaxed);
  }
}

// Takes back the offer of a seat that nobody has taken; false if there is none.
static int withdraw(seat_t *seat) {
  int state = seat_offered;
  return atomic_load_explicit(&seat->state, memory_order_relaxed) ==
             seat_offered &&
         atomic_compare_exchange_strong(&seat->state, &state, seat_empty);
}

// Does all parts of `thread` in one call.
static void do_share(const job_t *job, int thread) {
  do_units(job, begin_of(job, thread), begin_of(job, thread + 1));
}

// Does the parts of `thread`, then those of the next threads, as many as
// `others`: what is left of their ranges, or all, of who has not come.
static void do_parts(const job_t *job, int thread, int others) {
  int together = is_at_once(job);
  if (together)
    do_share(job, thread);
  else
    do_range(job, thread, /*is_own=*/1);
  for (int next = 1; next < job->threads && next <= others; ++next) {
    int other = (thread + next) % job->threads;
    if (!together)
      do_range(job, other, /*is_own=*/0);
    else if (withdraw(&seats[other]))
      do_share(job, other);
  }
}

// Takes the seat if it is offered. Workers try that in place of looking, so
// that the line comes once, for writing.
static int try_to_take(seat_t *seat) {
  int state = seat_offered;
  return atomic_compare_exchange_strong(&seat->state, &state, seat_taken);
}

// Takes the seat when it is offered; false when it is closed.
static int wait_for_offer(seat_t *seat) {
  struct timespec since;
  int look = 0;
  do {
    if (try_to_take(seat))
      return 1;
  } while (atomic_load_explicit(&seat->state, memory_order_relaxed) !=
               seat_closed &&
           look_again(look++, &since));
  pthread_mutex_lock(&lock);
  atomic_store(&sleeps[seat - seats], 1);
  int taken;
  while (taken = try_to_take(seat),
         !taken && atomic_load(&seat->state) != seat_closed)
    pthread_cond_wait(&offered, &lock);
  atomic_store(&sleeps[seat - seats], 0);
  pthread_mutex_unlock(&lock);
  return taken;
}

static void leave(seat_t *seat) {
  atomic_store(&seat->state, seat_empty);
  if (!atomic_load(&caller_sleeps))
    return;
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&left);
  pthread_mutex_unlock(&lock);
}

static void *worker_main(void *own) {
  seat_t *seat = own;
  int thread = (int)(seat - seats);
  in_task = 1; // what a task calls runs here
  while (wait_for_offer(seat)) {
    do_parts(&seat->job, thread, neighbours);
    leave(seat);
  }
  return NULL;
}

// In the child of a fork there are no workers, and nobody holds anything.
static void forget_workers(void) {
  num_workers = 0;
  for (int thread = 0; thread < KTN_MAX_THREADS; ++thread) {
    atomic_store(&seats[thread].state, seat_empty);
    atomic_store(&sleeps[thread], 0);
  }
  atomic_store(&caller_sleeps, 0);
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
  while (num_workers < number &&
         pthread_create(&workers[num_workers], &attributes, worker_main,
                        &seats[num_workers + 1]) == 0)
    ++num_workers;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

// Wakes those of the first threads that sleep.
static void wake_workers(int threads) {
  int thread = 1;
  while (thread < threads &&
         !atomic_load_explicit(&sleeps[thread], memory_order_relaxed))
    ++thread;
  if (thread == threads)
    return;
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&offered);
  pthread_mutex_unlock(&lock);
}

// Ends the threads before the code that they run can be unloaded.
__attribute__((destructor)) static void stop_workers(void) {
  if (in_task || atomic_flag_test_and_set(&held))
    return;
  for (int worker = 1; worker <= num_workers; ++worker)
    atomic_store(&seats[worker].state, seat_closed);
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&offered);
  pthread_mutex_unlock(&lock);
  for (; num_workers > 0; --num_workers) {
    pthread_join(workers[num_workers - 1], NULL);
    atomic_store(&seats[num_workers].state, seat_empty);
  }
  atomic_flag_clear(&held);
}

//===----------------------------------------------------------------------===//
// Callers
//===----------------------------------------------------------------------===//

static void open_range(const job_t *job, int thread) {
  uint64_t begin = begin_of(job, thread), end = begin_of(job, thread + 1);
  atomic_store_explicit(&seats[thread].left, range_of(begin, end),
                        memory_order_relaxed);
}

static void offer(const job_t *job, int thread) {
  seats[thread].job = *job;
  atomic_store_explicit(&seats[thread].state, seat_offered,
                        memory_order_release);
}

// Waits until the worker of a seat has left, if it has come: no part is left.
static void wait_for(seat_t *seat) {
  if (withdraw(seat))
    return;
  struct timespec since;
  int look = 0;
  do {
    if (atomic_load(&seat->state) == seat_empty)
      return;
  } while (look_again(look++, &since));
  pthread_mutex_lock(&lock);
  atomic_store(&caller_sleeps, 1);
  while (atomic_load(&seat->state) != seat_empty)
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
  job_t job = {task, work, count, (count - 1) / UINT32_MAX + 1, (int)threads};
  // No range is empty: there are no more threads than units.
  for (int thread = 0; thread < job.threads && !is_at_once(&job); ++thread)
    open_range(&job, thread);
  for (int thread = 1; thread < job.threads; ++thread)
    offer(&job, thread);
  // Who sleeps has seen the offers, or is seen.
  atomic_thread_fence(memory_order_seq_cst);
  wake_workers(job.threads);

  in_task = 1;
  do_parts(&job, 0, job.threads);
  for (int thread = 1; thread < job.threads; ++thread)
    wait_for(&seats[thread]);
  in_task = 0;
  atomic_flag_clear(&held);
}
