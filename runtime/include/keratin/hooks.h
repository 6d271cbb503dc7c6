/* hooks.h - what a program may replace in compiled models */
/* Every object of a model defines these functions weakly, with the default
   told here; the definition of the program or of libkeratin_rt takes their
   place. Models share them. Their types never change: a hook with other
   parameters would have another name.
   Every generated header carries this text behind that of status.h. */
#ifndef KERATIN_HOOKS_H
#define KERATIN_HOOKS_H

#ifndef KERATIN_STATUS_H
#include "keratin/status.h"
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Does the parts begin..end-1 of a piece of work. */
typedef void (*ktn_task_t)(void *work, int64_t begin, int64_t end);

/** Calls `task` so that each of the parts 0..count-1 of `work` is done exactly
    once, and returns when all are. Calls may be of any size, in any order, on
    any thread and at the same time; results do not depend on it. Models call
    this where there is enough to do for more than one thread, from the thread
    that runs the model.
    Default: task(work, 0, count). libkeratin_rt: a pool of threads. */
void ktn_parallel_for(ktn_task_t task, void *work, int64_t count);

/** Memory for NAME_create: at least `bytes` bytes, a multiple of `alignment`,
    aligned to it; null when there is none. `heap` is aligned_alloc.
    Default: heap(alignment, bytes). */
void *ktn_allocate(size_t alignment, size_t bytes,
                   void *(*heap)(size_t alignment, size_t bytes));

/** Takes back what ktn_allocate gave, never null. `heap` is free.
    Default: heap(memory). */
void ktn_release(void *memory, void (*heap)(void *memory));

/** Is told of every status but KTN_OK before `function`, such as
    "digits_predict", returns it. Default: does nothing. */
void ktn_error(const char *function, ktn_status_t status);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* KERATIN_HOOKS_H */
