"""Configuration of the lit tests: every .mlir and .test file below here.

ctest passes the build tree; by hand, `lit-22 tests/passes` takes `build`.
"""

import os
import re
import shutil

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = lit_config.params.get("build", os.path.join(root, "build"))
llvm_tools = lit_config.params.get("llvm_tools", "/usr/lib/llvm-22/bin")
cc = lit_config.params.get("cc", "clang-22")
cxx = lit_config.params.get("cxx", "clang++-22")
aarch64_cc = shutil.which("aarch64-linux-gnu-gcc")
qemu_aarch64 = shutil.which("qemu-aarch64-static")
qemu_x86_64 = shutil.which("qemu-x86_64-static")
shared_models = os.path.join(os.path.dirname(root), "shared", "models")
warnings = "-Wall -Wextra -Wpedantic -Werror"

config.name = "keratin"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "tests")

# Programs go by their names: keratin-opt, FileCheck, llvm-nm, split-file ...
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), llvm_tools, os.environ["PATH"]]
)
config.environment["KERATIN_CACHE_DIR"] = ""
for name in ("HOME", "KERAS_HOME", "CCACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# The debug preset: who links the runtime links the sanitizers as well.
runtime = os.path.join(build, "lib", "libkeratin_rt.a")
sanitizers = ""
with open(os.path.join(build, "CMakeCache.txt")) as cache:
    found = re.search(r"^LLVM_USE_SANITIZER:\w+=(.+)$", cache.read(), re.M)
if found:
    sanitizers = "-fsanitize=" + found.group(1).replace(";", ",").lower()
    runtime += " " + sanitizers
    leaks = os.path.join(config.test_source_root, "leaks.supp")
    config.environment["LSAN_OPTIONS"] = (
        f"suppressions={leaks}:print_suppressions=0"
    )
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
    # No memory is a refusal of ours.
    config.environment["ASAN_OPTIONS"] = "allocator_may_return_null=1"
    config.available_features.add("sanitizers")

config.substitutions += [
    ("%root", root),
    ("%runtime", runtime),
    ("%sanitizers", sanitizers),
    ("%build", build),
    ("%models", os.path.join(root, "tests", "models")),
    ("%shared_models", shared_models),
    ("%include", os.path.join(root, "runtime", "include")),
    ("%llvm_include", os.path.join(os.path.dirname(llvm_tools), "include")),
    ("%python", "/usr/bin/python3"),
    # C and C++ as a strict user compiles them.
    ("%c_compiler", cc),
    ("%cxx_compiler", cxx),
    ("%cc", f"{cc} -std=c11 {warnings} -I{root}/runtime/include"),
    ("%cxx", f"{cxx} -std=c++17 {warnings} -I{root}/runtime/include"),
    (
        "%aarch64_cc",
        f"{aarch64_cc} -std=c11 {warnings} -I{root}/runtime/include",
    ),
    ("%qemu_x86_64", qemu_x86_64 or "qemu-x86_64-static"),
    ("%qemu_aarch64", f"{qemu_aarch64} -L /usr/aarch64-linux-gnu"),
]

if qemu_x86_64 and os.uname().machine == "x86_64":
    config.available_features.add("qemu-x86_64")
# Whether code in the shape of a larger machine runs here, see DEBUGGING.md.
if os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo") as cpus:
        if {"avx2", "bmi2", "f16c", "fma", "movbe"} <= set(cpus.read().split()):
            config.available_features.add("x86-64-v3")
if aarch64_cc and qemu_aarch64:
    config.available_features.add("qemu-aarch64")
# Larger models than a repository should hold, where they lie beside it.
if os.path.isdir(shared_models):
    config.available_features.add("shared-models")
