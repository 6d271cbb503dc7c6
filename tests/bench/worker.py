"""One system with one model in one process.

    worker.py SYSTEM DIRECTORY THREADS [LIBRARY]

Speaks in lines of JSON. First what the first run gave, {"max_rel_error": …},
or {"error": …}. Then for each line "SECONDS" on stdin one object with the
times of as many runs as fit, {"ms": […], "cpu_ms": […]}; with the LIBRARY
that counts additions also {"additions_per_second": […]}, see core.py.
"""

import json
import os
import sys
import time

import numpy as np

import core
import systems

# What libraries print is not for the one who reads our standard output.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(**answer):
    print(json.dumps(answer), file=answers, flush=True)


def peak_rss_mb():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024


def error_of(result, reference):
    """max |y - ref| / max |ref|"""
    result = np.asarray(result).astype("float64").reshape(reference.shape)
    return float(np.abs(result - reference).max() / np.abs(reference).max())


def measure(run, seconds, additions=None):
    run()
    ms, cpu_ms, rates = [], [], []
    start = time.perf_counter()
    before = additions and additions()
    while time.perf_counter() - start < seconds or len(ms) < 3:
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        ms.append((time.perf_counter() - wall) * 1e3)
        cpu_ms.append((time.process_time() - cpu) * 1e3)
        if additions:
            after = additions()
            rates.append(min(before, after))
            before = after
    times = {"ms": ms, "cpu_ms": cpu_ms}
    return dict(times, additions_per_second=rates) if additions else times


def main():
    system, directory, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    additions = core.additions(sys.argv[4]) if len(sys.argv) > 4 else None
    inputs = dict(np.load(os.path.join(directory, "input.npz")))
    # Of several outputs the first.
    reference = next(iter(np.load(os.path.join(directory, "reference.npz")).values()))
    try:
        cpu = time.process_time()
        run = systems.SYSTEMS[system].load(directory, inputs, threads)
        result = np.array(run())
        say(load_cpu_s=time.process_time() - cpu,
            max_rel_error=error_of(result, reference), peak_rss_mb=peak_rss_mb())
    except Exception as error:  # of any of the libraries: it is reported
        say(error=f"{type(error).__name__}: {error}")
        return
    for line in sys.stdin:
        say(**measure(run, float(line), additions))
    # Some libraries wait for their threads.
    os._exit(0)


if __name__ == "__main__":
    main()
