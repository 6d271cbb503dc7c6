"""Training steps of one model in one system in one process.

    training_worker.py SYSTEM MODEL THREADS

Speaks as worker.py does; the first object has the losses of the first steps.
"""

import os
import sys
import time

import training_models
import training_systems
from worker import measure, peak_rss_mb, say


def main():
    system, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    make = training_systems.keratin if system == "keratin" else \
        training_systems.SYSTEMS[system].make
    try:
        cpu = time.process_time()
        step = make(training_models.MODELS[model], threads)
        losses = [float(step()) for _ in range(5)]
        say(load_cpu_s=time.process_time() - cpu, losses=losses,
            peak_rss_mb=peak_rss_mb())
    except Exception as error:  # of any of the libraries: it is reported
        say(error=f"{type(error).__name__}: {error}")
        return
    for line in sys.stdin:
        say(**measure(step, float(line)))
    # Some libraries wait for their threads.
    os._exit(0)


main()
