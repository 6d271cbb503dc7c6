"""What keras.json configures, and the cache of compiled code."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from keratin import backend as K


def run(home, code, **variables):
    """What a process with its own configuration prints."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KERAS_BACKEND", "KERATIN_CACHE_DIR", "KTN_NUM_THREADS")
    }
    return subprocess.run(
        [sys.executable, "-c", "from keratin import backend as K\n" + code],
        env={**environment, "KERAS_HOME": str(home), **variables},
        capture_output=True,
        text=True,
    )


def configure(home, section, **keys):
    (home / "keras.json").write_text(json.dumps({"keratin": section, **keys}))


@pytest.mark.parametrize("name, value, words", [
    ("KTN_NUM_THREADS", "many", "a number of at least 1"),
    ("KTN_NUM_THREADS", "0", "a number of at least 1"),
    ("KTN_NUM_THREADS", "-2", "a number of at least 1"),
    ("KERATIN_CACHE_DIR", "here", "an absolute path, or empty for none"),
])
def test_tells_what_is_wrong_with_a_variable(tmp_path, name, value, words):
    result = run(tmp_path, "K.eval(K.variable([1.0]) + 1)", **{name: value})
    assert f"${name} is '{value}' but must be {words}" in result.stderr


def test_a_cache_stays_where_it_was_set(tmp_path):
    code = ("import os; K.set_cache_directory('here'); os.chdir('/')\n"
            "print(K.cache_directory())")
    start = f"import os; os.chdir({str(tmp_path)!r})\n"
    assert run(tmp_path, start + code).stdout.split() == [str(tmp_path / "here")]


def test_empty_variables_are_none(tmp_path):
    code = "print(K.cache_directory(), K.eval(K.variable([1.0]) + 1))"
    result = run(tmp_path, code, KTN_NUM_THREADS="", KERATIN_CACHE_DIR="")
    assert result.stdout.split() == ["None", "[2.]"]


def test_reads_target_threads_and_cache(tmp_path):
    cache = str(tmp_path / "cache")
    configure(tmp_path, {"target": "x86-64-v2", "threads": 3, "cache": cache},
              backend="keratin.keras2", floatx="float64")
    code = (
        "print(K.compile_target(), K.num_threads(), K.cache_directory(), K.floatx(),"
        " K.backend())\n"
        "K.eval(K.variable([1.0]) + 1)"
    )
    result = run(tmp_path, code)
    assert result.stdout.split() == ["x86-64-v2", "3", cache, "float64", "keratin.keras2"]
    assert any(path.suffix == ".ktn" for path in pathlib.Path(cache).iterdir())


@pytest.mark.parametrize(
    "section, words",
    [
        ({"target": "vax"}, ['keratin.target is "vax"', "expected native"]),
        ({"precision": "f8"}, ["keratin.precision is 'f8'", "'f32', 'bf16' or 'f16'"]),
        ({"precision": 16}, ["keratin.precision is 16", "'f32', 'bf16' or 'f16'"]),
        ({"threads": 0}, ["keratin.threads is 0", "a number from 1 to"]),
        ({"cache": "here"}, ['keratin.cache is "here"', "an absolute path or null"]),
        ({"thread": 2}, ["'thread'", "'target', 'precision', 'threads' and 'cache'"]),
        ([], ["keratin is []", "an object"]),
    ],
)
def test_tells_what_is_wrong_with_a_value(tmp_path, section, words):
    configure(tmp_path, section)
    result = run(tmp_path, "K.compile_target()")
    last = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1 and last.startswith("ValueError: ")
    for word in [str(tmp_path / "keras.json"), *words]:
        assert word in last


def test_names_a_file_that_cannot_be_one(tmp_path):
    (tmp_path / "keras.json").mkdir()
    result = run(tmp_path, "K.compile_target()")
    assert result.stderr.strip().endswith(f"{tmp_path / 'keras.json'}: is a directory, not a file")


def test_keras_chooses_its_backend_by_the_environment_first(tmp_path):
    configure(tmp_path, {}, backend="keratin.keras2")
    assert run(tmp_path, "print(K.backend())", KERAS_BACKEND="keratin").stdout == "keratin\n"
    assert run(tmp_path, "print(K.backend())", KERAS_BACKEND="").stdout == "keratin.keras2\n"
    (tmp_path / "keras.json").unlink()
    assert run(tmp_path, "print(K.backend())").stdout == "keratin\n"


def test_sets_what_the_file_does_not():
    threads = K.num_threads()
    try:
        K.set_num_threads(1)
        assert K.num_threads() == 1
        K.set_compile_target("x86-64-v3")
        assert K.compile_target() == "x86-64-v3"
        with pytest.raises(ValueError, match="unknown target 'z80'"):
            K.set_compile_target("z80")
        with pytest.raises(ValueError, match="num_threads is -1"):
            K.set_num_threads(-1)
        assert K.compile_target() == "x86-64-v3" and K.num_threads() == 1
    finally:
        K.set_num_threads(0)
        K.set_compile_target("")
    assert K.num_threads() == threads and K.compile_target() == "native"


def test_rounds_factors_as_the_file_says_or_a_program_does(tmp_path):
    # 1 + 2^-9 is no number of bf16.
    code = (
        "x = K.placeholder((1, 2))\n"
        "for precision in ('', 'f32', 'bf16'):\n"
        "    K.set_compute_precision(precision)\n"
        "    f = K.function([x], [K.dot(x, K.constant([[1.0], [2.0]]))])\n"
        "    print(K.compute_precision(), f([[[1 + 2**-9, 0.5]]])[0].item())\n"
    )
    configure(tmp_path, {"precision": "bf16"})
    lines = run(tmp_path, code).stdout.split("\n")
    assert lines[:3] == ["bf16 2.0", "f32 2.001953125", "bf16 2.0"]


def test_rounds_weights_to_f16(tmp_path):
    # 1 + 2^-11 is no number of f16, 70000 larger than any: such weights stay.
    code = (
        "x = K.placeholder((1, 2))\n"
        "for last in (2.0, 70000.0):\n"
        "    w = K.constant([[1 + 2**-11], [last]])\n"
        "    f = K.function([x], [K.dot(x, w)])\n"
        "    print(K.compute_precision(), f([[[1 + 2**-11, 0.0]]])[0].item())\n"
    )
    configure(tmp_path, {"precision": "f16"})
    lines = run(tmp_path, code).stdout.split("\n")
    exact = (1 + 2**-11) ** 2
    assert lines[:2] == ["f16 1.00048828125", f"f16 {exact}"]


def test_counts_what_the_cache_does(tmp_path):
    def compute():
        x = K.placeholder((2,))
        return K.function([x], [x * 3 + 0.625])([[1.0, 2.0]])[0]

    before = K.cache_directory()
    try:
        K.set_cache_directory(str(tmp_path / "code"))
        assert K.cache_directory() == str(tmp_path / "code")
        K.clear_compile_cache()
        K.reset_compile_cache_statistics()
        first, second = compute(), compute()
        np.testing.assert_array_equal(first, second)
        counted = K.compile_cache_statistics()
        assert (counted["misses"], counted["memory_hits"], counted["disk_hits"]) == (1, 1, 0)
        assert counted["compile_ms"] > 0 and counted["lookup_ms"] > 0
        K.clear_compile_cache()
        compute()
        assert K.compile_cache_statistics()["disk_hits"] == 1
        K.reset_compile_cache_statistics()
        assert not any(K.compile_cache_statistics().values())
        K.set_cache_directory(None)
        assert K.cache_directory() is None
    finally:
        K.set_cache_directory(before)
