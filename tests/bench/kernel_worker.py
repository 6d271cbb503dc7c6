"""One kernel in one system in one process.

    kernel_worker.py SYSTEM KERNEL THREADS

Speaks as worker.py does. Times are those of one call without what a call of
next to nothing takes, which is measured beside it.
"""

import os
import statistics
import sys
import time

import numpy as np

import kernel_systems
from worker import error_of, say


def timed(run, count):
    """Milliseconds of a call, by the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return wall * 1e3 / count, cpu * 1e3 / count


def measure(run, call, seconds):
    # So many calls that the clock can tell their time.
    counts = [max(1, int(2 / max(timed(f, 3)[0], 1e-4))) for f in (run, call)]
    rows, calls = [], []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(rows) < 3:
        rows.append(timed(run, counts[0]))
        calls.append(timed(call, counts[1]))
    way = [statistics.median(column) for column in zip(*calls)]
    return {"ms": [row[0] - way[0] for row in rows],
            "cpu_ms": [row[1] - way[1] for row in rows]}


def main():
    system, kernel, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    entry = kernel_systems.KERNELS[kernel]
    make = kernel_systems.keratin if system == "keratin" else \
        kernel_systems.SYSTEMS[system].make
    try:
        x, weights = entry.arrays()
        run = make(entry.op, x, weights, threads)
        call = make(entry.op, *entry.arrays(small=True), threads)
        call()
        result, reference = np.array(run()), kernel_systems.expected(
            entry.op, x, weights)
        if result.shape != reference.shape:  # channels first
            result = result.transpose(0, 2, 3, 1)
        say(max_rel_error=error_of(result, reference))
    except Exception as error:  # of any of the libraries: it is reported
        say(error=f"{type(error).__name__}: {error}")
        return
    for line in sys.stdin:
        say(**measure(run, call, float(line)))
    # Some libraries wait for their threads.
    os._exit(0)


main()
