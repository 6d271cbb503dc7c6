//===- cache.h - the cache of compiled code ---------------------*- C++ -*-===//
//
// A function that is called in this process is compiled once for each structure
// and shapes: what another function, or another process of this user, has
// compiled before is used again. Functions are of one structure when they
// differ in names only; values of variables that are constants of the code
// count.
//
// Pieces of it, which are some kernels each, are kept as well, by what they
// compute and nothing else: of a function in which one layer has changed the
// code of that layer alone is compiled, and where nothing but the values of
// weights has, none is. So it is of what Function::save and keratinc compile.
//
// The code is kept in memory and in files of a directory: set_cache_directory,
// or $KERATIN_CACHE_DIR, or `"keratin": {"cache": …}` in keras.json, or
// $XDG_CACHE_HOME/keratin, or ~/.cache/keratin, the first of these that there
// is. An empty variable and a null in keras.json are no directory. A directory
// that other users can write to is not used. Entries of another build of the
// compiler or for another machine are not found; damaged ones are written anew.
// Any thread may call these functions.
//
//===----------------------------------------------------------------------===//
#ifndef KERATIN_CACHE_H
#define KERATIN_CACHE_H

#include <cstdint>
#include <optional>
#include <string>

namespace keratin::backend {

/// Where compiled code is kept; none when it is in memory only. Throws Error
/// when keras.json is not valid.
std::optional<std::string> cache_directory();

/// From now on here; none for memory only. About `limit` bytes of files are
/// kept, those that were used last.
void set_cache_directory(std::optional<std::string> directory,
                         uint64_t limit = uint64_t(1) << 30);

/// Makes cache_directory() unless it is there. If no code can be kept in it, as
/// it cannot be made or other users can write to it, says so in a sentence for
/// the user; kept in memory only, code has no such problem.
std::optional<std::string> cache_directory_problem();

/// Since the start of the process or the last reset.
struct CompileCacheStatistics {
  uint64_t memoryHits = 0; ///< code that was in this process
  uint64_t diskHits = 0;   ///< code that was in a file
  uint64_t misses = 0;     ///< what was compiled
  uint64_t unitHits = 0;   ///< pieces of code that were in a file
  uint64_t unitMisses = 0; ///< pieces of code that were compiled and kept
  uint64_t bypassed = 0;   ///< compiled for profiles, dumps or times
  double compileMs = 0;    ///< of misses and what bypassed
  double lookupMs = 0;     ///< spent on keys and files, and on loading hits
};
/// What the cache has done since the start of the process or the last reset:
/// code found in memory and in files, compiled, and compiled without a look
/// into the cache; milliseconds of compilation and of looking up.
CompileCacheStatistics compile_cache_statistics();
/// Counts from 0 again.
void reset_compile_cache_statistics();

/// Forgets the code in memory that no function uses. Files stay.
void clear_compile_cache();

} // namespace keratin::backend

#endif // KERATIN_CACHE_H
