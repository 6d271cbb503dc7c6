//===- PoolTest.cpp - the threads of ktn_parallel_for --------------------===//
#include "keratin/runtime.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <pthread.h>
#include <set>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

/// Counts how often each part was done, and by how many threads.
struct Counts {
  explicit Counts(int64_t count) : done(count) {}

  static void task(void *work, int64_t begin, int64_t end) {
    auto &counts = *static_cast<Counts *>(work);
    for (int64_t part = begin; part < end; ++part)
      ++counts.done[part];
    ++counts.calls;
  }
  void run() {
    ktn_parallel_for(task, this, static_cast<int64_t>(done.size()));
  }
  void expectOnceEach() {
    for (std::atomic<int> &number : done)
      EXPECT_EQ(number, 1);
  }

  std::vector<std::atomic<int>> done;
  std::atomic<int> calls = 0;
};

/// Parts that wait for each other: they end only on as many threads.
struct Meeting {
  static void task(void *work, int64_t begin, int64_t end) {
    auto &meeting = *static_cast<Meeting *>(work);
    for (int64_t part = begin; part < end; ++part) {
      ++meeting.arrived;
      while (meeting.arrived < meeting.expected)
        std::this_thread::yield();
    }
  }
  int expected;
  std::atomic<int> arrived = 0;
};

class Pool : public ::testing::Test {
protected:
  void TearDown() override { ktn_set_num_threads(0); }
};

} // namespace

TEST_F(Pool, DoesEveryPartOnce) {
  for (int threads : {1, 2, 3, 8})
    for (int64_t count : {0, 1, 2, 7, 64, 1000}) {
      EXPECT_EQ(ktn_set_num_threads(threads), KTN_OK);
      EXPECT_EQ(ktn_num_threads(), threads);
      Counts counts(count);
      counts.run();
      counts.expectOnceEach();
    }
}

TEST_F(Pool, HasTheThreadsThatWereAskedFor) {
  ktn_set_num_threads(4);
  Meeting meeting{4};
  ktn_parallel_for(Meeting::task, &meeting, 4);
  EXPECT_EQ(meeting.arrived, 4);
}

TEST_F(Pool, HasOneThreadWhenAskedFor) {
  ktn_set_num_threads(4);
  Counts(10).run();
  ktn_set_num_threads(1);
  Counts counts(100);
  counts.run();
  EXPECT_EQ(counts.calls, 1);
}

TEST_F(Pool, RefusesANegativeNumber) {
  ktn_set_num_threads(3);
  EXPECT_EQ(ktn_set_num_threads(-1), KTN_INVALID_ARGUMENT);
  EXPECT_EQ(ktn_num_threads(), 3);
  EXPECT_EQ(ktn_set_num_threads(INT32_MAX), KTN_OK);
  EXPECT_EQ(ktn_num_threads(), KTN_MAX_THREADS);
}

// Who has its own share done helps the others: the first call waits for all
// parts that are not its own, of which some are of the share that it began.
TEST_F(Pool, HelpsWithTheSharesOfOthers) {
  ktn_set_num_threads(2);
  struct Work {
    static void task(void *work, int64_t begin, int64_t end) {
      auto &self = *static_cast<Work *>(work);
      if (begin == 0)
        while (self.done < self.count - end)
          std::this_thread::yield();
      self.done += end - begin;
    }
    int64_t count = 64;
    std::atomic<int64_t> done = 0;
  } work;
  ktn_parallel_for(Work::task, &work, work.count);
  EXPECT_EQ(work.done, work.count);
}

// A share of any work is of the same rows: the thread that calls has the first,
// and workers of a larger number, which earlier work needed, have none.
TEST_F(Pool, StartsWithTheSameShareOfAnyWork) {
  ktn_set_num_threads(8);
  Meeting all{8};
  ktn_parallel_for(Meeting::task, &all, all.expected);
  ktn_set_num_threads(3);
  struct Work {
    static void task(void *work, int64_t begin, int64_t) {
      auto &self = *static_cast<Work *>(work);
      if (self.first < 0 && std::this_thread::get_id() == self.caller)
        self.first = begin;
      ++self.arrived;
      while (self.arrived < 3) // so that each thread has its share
        std::this_thread::yield();
    }
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int64_t> first = -1;
    std::atomic<int> arrived = 0;
  };
  for (int times = 0; times < 100; ++times)
    for (int64_t count : {3, 30, 3000}) {
      Work work;
      ktn_parallel_for(Work::task, &work, count);
      EXPECT_EQ(work.first, 0) << count;
    }
}

// More than half of a word can count.
TEST_F(Pool, DoesVeryManyParts) {
  ktn_set_num_threads(3);
  struct Work {
    static void task(void *work, int64_t begin, int64_t end) {
      auto &self = *static_cast<Work *>(work);
      self.done += end - begin;
      self.sum += static_cast<uint64_t>(end) * static_cast<uint64_t>(end) -
                  static_cast<uint64_t>(begin) * static_cast<uint64_t>(begin);
    }
    std::atomic<int64_t> done = 0;
    std::atomic<uint64_t> sum = 0; // tells parts done twice, modulo 2^64
  } work;
  constexpr int64_t count = (int64_t(1) << 34) + 12345;
  ktn_parallel_for(Work::task, &work, count);
  EXPECT_EQ(work.done, count);
  EXPECT_EQ(work.sum, static_cast<uint64_t>(count) * count);
}

TEST_F(Pool, DoesManySmallPiecesOfWork) {
  ktn_set_num_threads(3);
  for (int turn = 0; turn < 2000; ++turn) {
    Counts counts(5);
    counts.run();
    counts.expectOnceEach();
  }
}

TEST_F(Pool, WakesUpWorkersThatSleep) {
  ktn_set_num_threads(3);
  for (int turn = 0; turn < 5; ++turn) {
    Meeting meeting{3};
    ktn_parallel_for(Meeting::task, &meeting, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A task that calls the pool does the inner work itself: the outer one has the
// threads.
TEST_F(Pool, RunsNestedCallsWhereTheyAre) {
  ktn_set_num_threads(4);
  static std::atomic<int> elsewhere;
  elsewhere = 0;
  auto inner = [](void *caller, int64_t, int64_t) {
    auto id = *static_cast<std::thread::id *>(caller);
    elsewhere += id != std::this_thread::get_id();
  };
  auto outer = [](void *inner, int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      std::thread::id caller = std::this_thread::get_id();
      ktn_parallel_for(*static_cast<ktn_task_t *>(inner), &caller, 10);
    }
  };
  ktn_task_t innerTask = inner;
  ktn_parallel_for(outer, &innerTask, 8);
  EXPECT_EQ(elsewhere, 0);
}

TEST_F(Pool, ServesCallersAtTheSameTime) {
  ktn_set_num_threads(3);
  auto call = [] {
    for (int turn = 0; turn < 300; ++turn) {
      Counts counts(20);
      counts.run();
      counts.expectOnceEach();
    }
  };
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back(call);
  for (std::thread &caller : callers)
    caller.join();
}

TEST_F(Pool, LeavesSignalsToTheProgram) {
  ktn_set_num_threads(2);
  std::atomic<int> blocked = 0;
  auto task = [](void *work, int64_t, int64_t) {
    auto &blocked = *static_cast<std::atomic<int> *>(work);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked += sigismember(&mask, SIGUSR1);
    ++blocked; // two threads: 1 each, 1 more for the worker
    while (blocked < 3)
      std::this_thread::yield();
  };
  ktn_parallel_for(task, &blocked, 2);
  EXPECT_EQ(blocked, 3);
}

// Threads do not survive a fork: the child has a pool of its own.
TEST_F(Pool, WorksInTheChildOfAFork) {
  ktn_set_num_threads(3);
  Counts before(100);
  before.run();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    Meeting meeting{3};
    ktn_parallel_for(Meeting::task, &meeting, 3);
    std::exit(meeting.arrived == 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Counts after(100);
  after.run();
  after.expectOnceEach();
}

// The default is asked for once, so each value needs a process.
TEST_F(Pool, TakesItsDefaultFromTheEnvironment) {
  auto defaultWith = [](const char *value) {
    pid_t child = fork();
    if (child == 0) {
      setenv("KTN_NUM_THREADS", value, 1);
      ktn_set_num_threads(0);
      _exit(ktn_num_threads());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  // Not asked for in this process, or the children would know it.
  EXPECT_EQ(defaultWith("5"), 5);
  unsigned machine = defaultWith("");
  EXPECT_GE(machine, 1u);
  EXPECT_EQ(defaultWith("0"), machine);
  EXPECT_EQ(defaultWith("-3"), machine);
  EXPECT_EQ(defaultWith("3 or so"), machine);
}
