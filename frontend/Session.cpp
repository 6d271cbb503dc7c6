//===- Session.cpp - where a thread makes new values ----------------------===//
#include "Graph.h"

#include "keratin/backend.h"

#include <atomic>
#include <random>

namespace keratin::backend {

static thread_local std::vector<std::string> nameScopes;

NameScope::NameScope(std::string_view name) {
  std::string path = current_name_scope();
  path += (path.empty() || name.empty() ? "" : "/") + std::string(name);
  nameScopes.push_back(std::move(path));
}

NameScope::~NameScope() { nameScopes.pop_back(); }

std::string current_name_scope() {
  return nameScopes.empty() ? "" : nameScopes.back();
}

/// Literals of the functions of the API.
static thread_local std::string_view calledFunction;

CalledAs::CalledAs(std::string_view function)
    : outermost(calledFunction.empty()) {
  if (outermost)
    calledFunction = function;
}

CalledAs::~CalledAs() {
  if (outermost)
    calledFunction = {};
}

std::string_view CalledAs::current(std::string_view fallback) {
  return calledFunction.empty() ? fallback : calledFunction;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

static std::mutex sessionMutex;
static std::shared_ptr<Graph> sessionGraph;
/// The graph of the innermost GraphScope of this thread.
static thread_local std::shared_ptr<Graph> scopedGraph;

std::shared_ptr<Graph> Graph::current() {
  if (scopedGraph)
    return scopedGraph;
  std::lock_guard<std::mutex> lock(sessionMutex);
  if (!sessionGraph)
    sessionGraph = std::make_shared<Graph>();
  return sessionGraph;
}

void clear_session() {
  std::shared_ptr<Graph> old;
  if (scopedGraph) {
    old = std::exchange(scopedGraph, std::make_shared<Graph>());
    return;
  }
  std::lock_guard<std::mutex> lock(sessionMutex);
  old = std::move(sessionGraph);
}

GraphScope::GraphScope()
    : previous(std::exchange(scopedGraph, std::make_shared<Graph>())) {}

GraphScope::~GraphScope() { scopedGraph = std::move(previous); }

std::shared_ptr<Graph> Graph::of(const Tensors &tensors) {
  std::shared_ptr<Graph> found;
  for (const Tensor &tensor : tensors) {
    if (!tensor.handle)
      continue;
    if (found && found != tensor.handle->graph)
      throw Error("tensors of two graphs are combined: one was made before "
                  "clear_session() or in another GraphScope");
    found = tensor.handle->graph;
  }
  return found ? found : current();
}

//===----------------------------------------------------------------------===//
// Counts and sources
//===----------------------------------------------------------------------===//

int64_t get_uid(std::string_view prefix) {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return ++graph->uids[std::string(prefix)];
}

std::map<std::string, int64_t> get_uids() {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  return graph->uids;
}

void reset_uids() {
  std::shared_ptr<Graph> graph = Graph::current();
  Graph::Lock lock(graph);
  graph->uids.clear();
}

static std::atomic<bool> manualInitialization = false;

void manual_variable_initialization(bool value) {
  manualInitialization = value;
}

bool is_manual_variable_initialization() { return manualInitialization; }

static std::mutex seedMutex;
static std::shared_ptr<std::function<uint64_t()>> seedSource;

void set_seed_source(std::function<uint64_t()> source) {
  std::lock_guard<std::mutex> lock(seedMutex);
  seedSource.reset();
  if (source)
    seedSource = std::make_shared<std::function<uint64_t()>>(std::move(source));
}

uint64_t draw_seed() {
  // Called outside of the lock: a source may wait for somebody who draws.
  std::shared_ptr<std::function<uint64_t()>> source;
  {
    std::lock_guard<std::mutex> lock(seedMutex);
    source = seedSource;
  }
  if (source)
    return (*source)();
  std::random_device device;
  return (uint64_t(device()) << 32) | device();
}

} // namespace keratin::backend
