/* status.h - what a call into a compiled model came to */
/* Self-contained: every generated header carries this text, so a program
   needs no file of Keratin's. C11 and C++. */
#ifndef KERATIN_STATUS_H
#define KERATIN_STATUS_H

/** What a call came to. No output is written unless it is KTN_OK. */
typedef enum ktn_status_t {
  KTN_OK = 0,
  KTN_INVALID_ARGUMENT = 1,   /**< null pointer, or a model without init */
  KTN_BATCH_OUT_OF_RANGE = 2, /**< not the pinned batch, < 1, or too large */
  KTN_ARENA_TOO_SMALL = 3,    /**< less than NAME_ARENA_BYTES(batch) */
  KTN_ARENA_MISALIGNED = 4,   /**< memory not aligned to 64 bytes */
  KTN_WEIGHTS_MISMATCH = 5,   /**< external weights of other size or content */
  KTN_OUT_OF_MEMORY = 6,
  KTN_IO_ERROR = 7,        /**< a file could not be opened or mapped */
  KTN_STATE_TOO_SMALL = 8, /**< less memory than the state takes */
  KTN_STATE_MISMATCH = 9,  /**< bytes that are not a state of this model */
  KTN_CPU_UNSUPPORTED = 10 /**< the model has no code for this machine */
} ktn_status_t;

/** One line for people; "unknown status" for a value that is none. */
static inline const char *ktn_status_name(ktn_status_t status) {
  switch (status) {
  case KTN_OK:
    return "ok";
  case KTN_INVALID_ARGUMENT:
    return "null pointer, or a model that was not initialised";
  case KTN_BATCH_OUT_OF_RANGE:
    return "batch out of range";
  case KTN_ARENA_TOO_SMALL:
    return "arena too small for this batch";
  case KTN_ARENA_MISALIGNED:
    return "arena, weights or state not aligned to 64 bytes";
  case KTN_WEIGHTS_MISMATCH:
    return "weights are not those the model was compiled with";
  case KTN_OUT_OF_MEMORY:
    return "out of memory";
  case KTN_IO_ERROR:
    return "file could not be opened or mapped";
  case KTN_STATE_TOO_SMALL:
    return "memory too small for the state";
  case KTN_STATE_MISMATCH:
    return "bytes are not a state of this model";
  case KTN_CPU_UNSUPPORTED:
    return "no code for this machine in the model";
  }
  return "unknown status";
}

#endif /* KERATIN_STATUS_H */
