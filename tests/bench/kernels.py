"""Single kernels beside other systems.

    kernels.py BUILD [--kernels NAME…] [--systems NAME…] [--threads N]

The kernels are those of kernel_systems.py: the same numbers in every system,
through its Python interface, weights known beforehand. What a call takes that
computes next to nothing is taken off, so that kernels are compared and not the
ways to them. All results must be those of NumPy in float64, or the numbers
would not compare. Measured and compared as by peers.py. Writes
BUILD/peers/kernels.json and prints a table.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import peers
import report
from kernel_systems import KERNELS, SYSTEMS

TOLERANCE = 1e-4
"""max |y - ref| / max |ref|"""


def measure_kernel(arguments, name, log):
    """What each system gave: its facts, and `rounds`, or an `error`."""
    results, ready = {}, []
    build = str(arguments.build)

    def start(system, python, variables={}):
        try:
            ready.append(peers.Peer(system, python, name, arguments.threads,
                                    log, "kernel_worker.py", variables))
            results[system] = dict(ready[-1].facts, rounds=[])
        except peers.Failure as failure:
            results[system] = {"error": str(failure)}

    # All that our package needs is NumPy.
    start("keratin", peers.environment(build, "ort"),
          {"PYTHONPATH": os.path.join(build, "python")})
    for system in arguments.systems:
        start(system, peers.environment(build, SYSTEMS[system].environment))
    peers.measure_rounds(arguments, ready, results)
    return results


def line(results, name):
    """A row of the table; False where a result is wrong."""
    found = results["models"][name]
    cells = [name]
    for system in results["systems"]:
        ms = report.time_of(results, name, system)
        cells.append(report.number(None if ms is None else ms * 1e3))
    ratios = [(report.ratio(results, name, system), system)
              for system in results["systems"] if system != "keratin"]
    best = min((r for r in ratios if r[0] is not None), default=None)
    cells += [best[1], f"{best[0]:.2f}"] if best else ["–", "–"]
    errors = [facts["max_rel_error"] for facts in found.values()
              if "max_rel_error" in facts]
    cells.append(f"{max(errors):.0e}" if errors else "–")
    right = "error" not in found["keratin"] and max(errors) <= TOLERANCE
    return "| " + " | ".join(cells) + " |", right


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("build", type=pathlib.Path,
                        help="build tree with the Python package")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS,
                        default=list(KERNELS), metavar="NAME")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS,
                        default=list(SYSTEMS),
                        help=f"of {', '.join(SYSTEMS)}", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2,
                        help="of each system in each round")
    parser.add_argument("--out", type=pathlib.Path,
                        help="directory of results; else BUILD/peers")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    out = arguments.out or arguments.build / "peers"
    out.mkdir(parents=True, exist_ok=True)

    results = {"threads": arguments.threads, "date": time.strftime("%F %R"),
               "cpu": report.cpu_name(), "models": {},
               "systems": ["keratin", *arguments.systems]}
    print("| µs | " + " | ".join(results["systems"])
          + " | best peer | × keratin | largest error |")
    print("|---" * (len(results["systems"]) + 4) + "|")
    right = True
    with open(out / "kernels.log", "ab") as log:
        for name in arguments.kernels:
            results["models"][name] = measure_kernel(arguments, name, log)
            row, is_right = line(results, name)
            right &= is_right
            print(row, flush=True)
            for system, facts in results["models"][name].items():
                if "error" in facts:
                    print(f"{name}: {system}: {facts['error']}", file=sys.stderr)
    (out / "kernels.json").write_text(json.dumps(results, indent=1))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
