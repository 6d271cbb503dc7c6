# Thin: a target is a command or two. CMake knows how to build, ctest how to
# test, .ci/packages which Debian packages both need.
BUILD := build
JOBS  := $(shell nproc)

# Without it ccache does not take what was compiled with a precompiled header.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros,include_file_mtime,include_file_ctime

.PHONY: build demo test bench bench-peers lint docs install wheel ulp zoo keras2-tests deps clean

build: $(BUILD)/build.ninja
	cmake --build --preset release

# From a model file to numbers printed by a C program that links it.
demo: build
	docs/demo/run $(BUILD)

test: build
	rm -rf $(BUILD)/test-results
	mkdir $(BUILD)/test-results
	ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS) \
	  --output-junit test-results/ctest.xml || true
	python3 tests/count.py $(BUILD)/test-results

# Times kernels and models on this machine; not part of the tests.
bench: build
	$(BUILD)/bin/keratin-bench

# Models of the zoo beside other systems, which it installs. Needs the network,
# some GB of disk, and half an hour; docs/BENCHMARKS.md.
bench-peers: build
	python3 tests/bench/peers.py $(BUILD) --plot

# Errors of the vector mathematics over all floats. Takes half an hour.
ulp: build
	$(BUILD)/bin/keratin-ulp

# Large models built by real Keras, compared with float64 references. Needs
# the network and a few GB of disk.
zoo: build
	tests/zoo/run $(BUILD)

# All tests of Keras 2.3.1 on the Python package, with old and with present-day
# versions of what Keras needs. Needs the network; takes minutes.
keras2-tests: build
	python3 tests/keras2/run.py $(BUILD) pinned
	python3 tests/keras2/run.py $(BUILD) modern

lint: deps-lint build # whose precompiled headers clang-tidy reads
	git ls-files '*.c' '*.cpp' '*.h' | xargs clang-format-22 --dry-run --Werror
	git ls-files '*.cpp' ':!tests/tools/consumer' | xargs -P$(JOBS) -n1 clang-tidy-22 --quiet --warnings-as-errors='*' -p $(BUILD)

docs: $(BUILD)/build.ninja
	cmake --build --preset release --target docs

PREFIX ?= /usr/local
install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

# The Python package alone, as pip builds it: in a tree of its own.
wheel: deps
	python3 -m pip wheel . --no-deps --wheel-dir $(BUILD)/wheel

$(BUILD)/build.ninja: CMakePresets.json | deps
	cmake --fresh --preset release

.PHONY: deps-lint
deps:
	@.ci/packages build
deps-lint:
	@.ci/packages lint

clean:
	rm -rf $(BUILD)
