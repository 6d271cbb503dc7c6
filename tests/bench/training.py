"""Training steps through Keras 2.3.1 on Keratin, beside other systems.

    training.py BUILD [--models NAME…] [--systems NAME…] [--threads N]

The models are those of training_models.py, the same in every system: same
weights, batch, loss and optimizer. Ours is the function that Keras' model.fit
calls for each batch; the others are Keras 3's layers, compiled as their
backends do. All losses of the first steps must agree, or the numbers would not
compare. Measured and compared as by peers.py. Writes
BUILD/peers/training.json and prints a table.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import peers
import report
from training_models import MODELS
from training_systems import SYSTEMS

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "keras2"), str(HERE.parent / "python")]
import environment  # noqa: E402
import run as keras2  # noqa: E402

TOLERANCE = 2e-3
"""Of the losses of the first five steps, relative."""


def our_environment(build, home):
    """The Python that has what Keras 2.3.1 needs, and the variables to set."""
    folder = build / "keras2"
    python = environment.environment(
        folder / "pinned", HERE.parent / "keras2" / "pinned.txt")
    source = keras2.keras_source(folder, python)
    return python, {
        "KERAS_HOME": home,
        "KERAS_BACKEND": "keratin.keras2",
        "PYTHONPATH": os.pathsep.join([str(build / "python"), str(source)]),
    }


def measure_model(arguments, name, home, log):
    """What each system gave: its facts, and `rounds`, or an `error`."""
    results, ready = {}, []

    def start(system, python, variables={}):
        try:
            ready.append(peers.Peer(system, python, name, arguments.threads,
                                    log, "training_worker.py", variables))
            results[system] = dict(ready[-1].facts, rounds=[])
        except peers.Failure as failure:
            results[system] = {"error": str(failure)}

    start("keratin", *our_environment(arguments.build, home))
    for system in arguments.systems:
        start(system, peers.environment(str(arguments.build),
                                        SYSTEMS[system].environment))
    peers.measure_rounds(arguments, ready, results)
    return results


def disagreement(results):
    """The largest relative difference of a loss from ours."""
    ours = results["keratin"]["losses"]
    return max((abs(a - b) / abs(b) for facts in results.values()
                if "losses" in facts for a, b in zip(facts["losses"], ours)),
               default=0)


def line(results, name):
    """A row of the table; False where the losses differ."""
    found = results["models"][name]
    cells = [name]
    for system in results["systems"]:
        cells.append(report.number(report.time_of(results, name, system)))
    ratios = [(report.ratio(results, name, system), system)
              for system in results["systems"] if system != "keratin"]
    ratios = [r for r in ratios if r[0] is not None]
    best = min(ratios, default=None)
    cells += [best[1], f"{best[0]:.2f}"] if best else ["–", "–"]
    off = None if "error" in found["keratin"] else disagreement(found)
    cells.append("–" if off is None else f"{off:.0e}")
    return "| " + " | ".join(cells) + " |", off is not None and off <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("build", type=pathlib.Path,
                        help="build tree with the Python package")
    parser.add_argument("--models", nargs="+", choices=MODELS,
                        default=list(MODELS), metavar="NAME")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS,
                        default=["tensorflow", "xla", "jax"],
                        help=f"of {', '.join(SYSTEMS)}", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5,
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
    print("| ms | " + " | ".join(results["systems"])
          + " | best peer | × keratin | losses differ by |")
    print("|---" * (len(results["systems"]) + 4) + "|")
    agree = True
    with tempfile.TemporaryDirectory() as home, open(out / "training.log", "ab") as log:
        for name in arguments.models:
            results["models"][name] = measure_model(arguments, name, home, log)
            row, same = line(results, name)
            agree &= same
            print(row, flush=True)
            for system, facts in results["models"][name].items():
                if "error" in facts:
                    print(f"{name}: {system}: {facts['error']}", file=sys.stderr)
    (out / "training.json").write_text(json.dumps(results, indent=1))
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
