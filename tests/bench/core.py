"""Whether the core that something is measured on is ours alone.

Another program, or another virtual machine, that has the second hyperthread of
a core takes up to half of its speed, and no clock tells. Integer additions do,
of which a core alone does twice as many: they are counted for some 0.05 ms
before and after each run. docs/BENCHMARKS.md.
"""

import ctypes
import statistics

# Of the additions that a core did at best; clocks change by less.
ENOUGH = 0.8
# Fewer runs have no median worth showing.
FEWEST = 3


def additions(library):
    """The function that measures additions a second; tools/Machine.h."""
    function = ctypes.CDLL(library).keratin_additions
    function.restype = ctypes.c_double
    return function


class Core:
    """Tells the runs apart, of all systems by the same rate."""

    def __init__(self, library):
        self.library = library
        count = additions(library)
        self.most = max(count() for _ in range(100))

    def round(self, runs):
        """Medians of all of `runs`, and of those that nobody disturbed."""
        result = medians(runs)
        rates = runs["additions_per_second"]
        self.most = max(self.most, *rates)
        alone = [cpu for cpu, rate in zip(runs["cpu_ms"], rates)
                 if rate >= ENOUGH * self.most]
        result["alone"] = len(alone) / len(rates)
        if len(alone) >= FEWEST:
            result["alone_cpu_ms"] = statistics.median(alone)
        return result


def medians(runs):
    return {key: statistics.median(runs[key]) for key in ("ms", "cpu_ms")}
