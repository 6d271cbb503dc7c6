"""What programs share that measure one thing after the other beside other
systems: kernels.py and training.py."""

import argparse
import json
import pathlib
import sys
import time

import peers
import report


def arguments_of(description, kind, names, systems, by_default, rounds, seconds):
    """The arguments of a program; `--kind` chooses among `names`."""
    parser = argparse.ArgumentParser(
        description=description.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("build", type=pathlib.Path,
                        help="build tree with the Python package")
    parser.add_argument(f"--{kind}", dest="names", nargs="+", choices=names,
                        default=list(names), metavar="NAME")
    parser.add_argument("--systems", nargs="*", choices=systems,
                        default=by_default,
                        help=f"of {', '.join(systems)}", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds,
                        help="of each system in each round")
    parser.add_argument("--out", type=pathlib.Path,
                        help="directory of results; else BUILD/peers")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.out = arguments.out or arguments.build / "peers"
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def measure(arguments, name, log, worker, ours, systems):
    """What each system gave: its facts, and `rounds`, or an `error`.

    `worker` is the program that each runs, `ours` the Python and the variables
    of Keratin, `systems` those that there are.
    """
    results, ready = {}, []

    def start(system, python, variables={}):
        try:
            ready.append(peers.Peer(system, python, name, arguments.threads,
                                    log, worker, variables))
            results[system] = dict(ready[-1].facts, rounds=[])
        except peers.Failure as failure:
            results[system] = {"error": str(failure)}

    start("keratin", *ours)
    for system in arguments.systems:
        start(system, peers.environment(str(arguments.build),
                                        systems[system].environment))
    peers.measure_rounds(arguments, ready, results)
    return results


def best_peer(results, name):
    """The cells of the fastest of the others and of its ratio to us."""
    ratios = [(report.ratio(results, name, system), system)
              for system in results["systems"] if system != "keratin"]
    best = min((r for r in ratios if r[0] is not None), default=None)
    return [best[1], f"{best[0]:.2f}"] if best else ["–", "–"]


def row(cells):
    return "| " + " | ".join(cells) + " |"


def run(arguments, title, unit, last, measured, line):
    """Measures all and prints a table; the exit status.

    `title` names the files of results, `last` heads the column of errors,
    `measured(name, log)` gives what `measure` does, and `line(results, name)` a
    row and whether its results are right.
    """
    results = {"threads": arguments.threads, "date": time.strftime("%F %R"),
               "cpu": report.cpu_name(), "models": {},
               "systems": ["keratin", *arguments.systems]}
    print(row([unit, *results["systems"], "best peer", "× keratin", last]))
    print("|---" * (len(results["systems"]) + 4) + "|")
    right = True
    with open(arguments.out / f"{title}.log", "ab") as log:
        for name in arguments.names:
            results["models"][name] = measured(name, log)
            text, is_right = line(results, name)
            right &= is_right
            print(text, flush=True)
            for system, facts in results["models"][name].items():
                if "error" in facts:
                    print(f"{name}: {system}: {facts['error']}", file=sys.stderr)
    (arguments.out / f"{title}.json").write_text(json.dumps(results, indent=1))
    return 0 if right else 1
