"""Single kernels beside other systems.

    kernels.py BUILD [--kernels NAME…] [--systems NAME…] [--threads N]

The kernels are those of kernel_systems.py: the same numbers in every system,
through its Python interface, weights known beforehand. What a call takes that
computes next to nothing is taken off, so that kernels are compared and not the
ways to them. All results must be those of NumPy in float64, or the numbers
would not compare. Measured and compared as by peers.py. Writes
BUILD/peers/kernels.json and prints a table.
"""

import os
import sys

import peers
import report
import side_by_side
from kernel_systems import KERNELS, SYSTEMS

TOLERANCE = 1e-4
"""max |y - ref| / max |ref|"""


def line(results, name):
    """A row of the table; False where a result is wrong."""
    found = results["models"][name]
    cells = [name]
    for system in results["systems"]:
        ms = report.time_of(results, name, system)
        cells.append(report.number(None if ms is None else ms * 1e3))
    cells += side_by_side.best_peer(results, name)
    errors = [facts["max_rel_error"] for facts in found.values()
              if "max_rel_error" in facts]
    cells.append(f"{max(errors):.0e}" if errors else "–")
    right = "error" not in found["keratin"] and max(errors) <= TOLERANCE
    return side_by_side.row(cells), right


def main():
    arguments = side_by_side.arguments_of(
        __doc__, "kernels", KERNELS, SYSTEMS, list(SYSTEMS), rounds=7, seconds=0.2)
    build = str(arguments.build)
    # All that our package needs is NumPy.
    ours = peers.environment(build, "ort"), {
        "PYTHONPATH": os.path.join(build, "python")}
    return side_by_side.run(
        arguments, "kernels", "µs", "largest error",
        lambda name, log: side_by_side.measure(
            arguments, name, log, "kernel_worker.py", ours, SYSTEMS), line)


if __name__ == "__main__":
    sys.exit(main())
