//===- Cache.cpp - code that was compiled before --------------------------===//
#include "Cache.h"

#include "CacheStore.h"
#include "Config.h"
#include "keratin/cache.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <list>
#include <map>
#include <mutex>

using namespace mlir;

namespace keratin::backend {

namespace {

using Code = std::shared_ptr<const LoadedCode>;

/// Adds the time of its life, in milliseconds.
class Stopwatch {
public:
  explicit Stopwatch(double &sum) : sum(sum) {}
  ~Stopwatch() {
    sum +=
        std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

private:
  using Clock = std::chrono::steady_clock;
  double &sum;
  Clock::time_point start = Clock::now();
};

/// Code of this process. What was used least lately goes first; functions keep
/// what they use.
class MemoryCache {
public:
  Code find(const CacheKey &key) {
    auto found = places.find(key);
    if (found == places.end())
      return nullptr;
    entries.splice(entries.begin(), entries, found->second);
    return entries.front().second;
  }

  void insert(const CacheKey &key, Code code) {
    if (places.count(key)) // another thread was faster
      return;
    weightBytes += code->info().weights_bytes;
    entries.emplace_front(key, std::move(code));
    places[key] = entries.begin();
    while (entries.size() > maxEntries || weightBytes > maxWeightBytes) {
      weightBytes -= entries.back().second->info().weights_bytes;
      places.erase(entries.back().first);
      entries.pop_back();
    }
  }

  void clear() {
    places.clear();
    entries.clear();
    weightBytes = 0;
  }

private:
  // A loaded function takes some tens of kilobytes, besides its weights.
  static constexpr size_t maxEntries = 1024;
  static constexpr int64_t maxWeightBytes = 256 << 20;
  int64_t weightBytes = 0;
  std::list<std::pair<CacheKey, Code>> entries; // the last used first
  std::map<CacheKey, decltype(entries)::iterator> places;
};

/// What the functions of this process share.
struct Shared {
  std::mutex mutex;
  MemoryCache memory;
  CompileCacheStatistics statistics;
  uint64_t limit = uint64_t(1) << 30;
};

Shared &shared() {
  static Shared instance;
  return instance;
}

/// Calls `use` on what is shared, alone.
template <typename Use> auto withShared(Use use) {
  std::lock_guard<std::mutex> lock(shared().mutex);
  return use(shared());
}

void count(uint64_t CompileCacheStatistics::*what, double lookupMs,
           double compileMs) {
  withShared([&](Shared &shared) {
    ++(shared.statistics.*what);
    shared.statistics.lookupMs += lookupMs;
    shared.statistics.compileMs += compileMs;
  });
}

std::optional<CacheStore> openStore() {
  // Without an identity of the compiler, files of another one would be taken
  // for its own.
  if (!compilerIdentity())
    return std::nullopt;
  std::optional<std::string> directory = cache_directory();
  if (!directory)
    return std::nullopt;
  return CacheStore(*directory,
                    withShared([](Shared &shared) { return shared.limit; }));
}

/// Pieces of code in the files of a directory, beside whole functions: the keys
/// of all are different.
class CodeFiles final : public CodeStore {
public:
  explicit CodeFiles(CacheStore files) : files(std::move(files)) {}

  std::unique_ptr<llvm::MemoryBuffer> load(const CacheKey &key) override {
    std::optional<CodeImage> image = files.load(key);
    withShared([&](Shared &shared) {
      ++(image ? shared.statistics.unitHits : shared.statistics.unitMisses);
    });
    return image ? std::move(image->object) : nullptr;
  }

  void store(const CacheKey &key, llvm::StringRef object) override {
    auto view = [](llvm::StringRef bytes) {
      return llvm::MemoryBuffer::getMemBuffer(bytes, /*BufferName=*/"",
                                              /*RequiresNullTerminator=*/false);
    };
    files.store(key, CodeImage{view(object), view("")});
  }

private:
  CacheStore files;
};

/// The name of the code's symbols: not one of the user's, which differ between
/// functions of one structure.
constexpr llvm::StringLiteral codeName = "function";

Code load(CodeImage image, Location loc) {
  llvm::Expected<std::unique_ptr<LoadedCode>> code =
      loadImage(std::move(image), codeName);
  if (code)
    return std::move(*code);
  emitError(loc) << llvm::toString(code.takeError());
  return nullptr;
}

/// One look for code, and what it took.
class Lookup {
public:
  Lookup(OwningOpRef<ModuleOp> module, const CompileOptions &options)
      : loc(module->getLoc()), module(std::move(module)), options(options) {}

  Code run() {
    if (options.profile || options.timePasses || !options.dumpAfter.empty()) {
      what = &CompileCacheStatistics::bypassed;
      return compile(/*store=*/nullptr);
    }
    FailureOr<std::string> fingerprint = compilationFingerprint(loc, options);
    if (failed(fingerprint))
      return nullptr;
    std::optional<CacheStore> store;
    if (Code code = find(*fingerprint, store))
      return code;
    Code code = compile(store ? &*store : nullptr);
    if (code)
      withShared([&](Shared &shared) { shared.memory.insert(key, code); });
    return code;
  }

  void countResult() { count(what, lookupMs, compileMs); }

private:
  Code find(llvm::StringRef fingerprint, std::optional<CacheStore> &store) {
    Stopwatch watch(lookupMs);
    key = cacheKey(
        *module, (compilerIdentity().value_or("") + "\n" + fingerprint).str());
    if (Code code = withShared(
            [&](Shared &shared) { return shared.memory.find(key); })) {
      what = &CompileCacheStatistics::memoryHits;
      return code;
    }
    store = openStore();
    std::optional<CodeImage> image;
    if (store)
      image = store->load(key);
    if (!image)
      return nullptr;
    llvm::Expected<std::unique_ptr<LoadedCode>> loaded =
        loadImage(std::move(*image), codeName);
    if (!loaded) { // compiled anew, it shall say what is wrong
      llvm::consumeError(loaded.takeError());
      return nullptr;
    }
    what = &CompileCacheStatistics::diskHits;
    Code code = std::move(*loaded);
    withShared([&](Shared &shared) { shared.memory.insert(key, code); });
    return code;
  }

  Code compile(const CacheStore *store) {
    Stopwatch watch(compileMs);
    if (store)
      options.store = std::make_shared<CodeFiles>(*store);
    options.name = codeName;
    FailureOr<CodeImage> image = compileImage(std::move(module), options);
    if (failed(image))
      return nullptr;
    if (store)
      store->store(key, *image);
    return load(std::move(*image), loc);
  }

  Location loc;
  OwningOpRef<ModuleOp> module;
  CompileOptions options;
  CacheKey key = {};
  uint64_t CompileCacheStatistics::*what = &CompileCacheStatistics::misses;
  double lookupMs = 0, compileMs = 0;
};

} // namespace

std::shared_ptr<const LoadedCode> compileCached(OwningOpRef<ModuleOp> module,
                                                const CompileOptions &options) {
  Lookup lookup(std::move(module), options);
  Code code = lookup.run();
  if (code)
    lookup.countResult();
  return code;
}

std::shared_ptr<CodeStore> codeStore() {
  std::optional<CacheStore> files = openStore();
  return files ? std::make_shared<CodeFiles>(std::move(*files)) : nullptr;
}

void set_cache_directory(std::optional<std::string> directory, uint64_t limit) {
  overrideCacheDirectory(directory);
  withShared([&](Shared &shared) { shared.limit = limit; });
}

std::optional<std::string> cache_directory_problem() {
  std::optional<CacheStore> store = openStore();
  return store ? store->problem() : std::nullopt;
}

CompileCacheStatistics compile_cache_statistics() {
  return withShared([](Shared &shared) { return shared.statistics; });
}

void reset_compile_cache_statistics() {
  withShared([](Shared &shared) { shared.statistics = {}; });
}

void clear_compile_cache() {
  withShared([](Shared &shared) { shared.memory.clear(); });
}

} // namespace keratin::backend
