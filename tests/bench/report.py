"""Tables from the results of peers.py."""

import argparse
import json
import signal
import statistics

from systems import SYSTEMS


def cpu_name():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def is_keratin(system):
    return system not in SYSTEMS


def compared(results):
    """The number compared: time of other programs' making is in one of them."""
    return "cpu_ms" if results["threads"] == 1 else "ms"


def time_of(results, model, system):
    """Milliseconds, the median of the rounds; None without a measurement."""
    rounds = results["models"][model].get(system, {}).get("rounds")
    if not rounds:
        return None
    return statistics.median(r[compared(results)] for r in rounds)


def ratio(results, model, system, ours="keratin"):
    """How many times longer `system` takes: the median of the rounds' ratios."""
    key, systems = compared(results), results["models"][model]
    pairs = zip(systems.get(system, {}).get("rounds", []),
                systems.get(ours, {}).get("rounds", []))
    ratios = [theirs[key] / mine[key] for theirs, mine in pairs]
    return statistics.median(ratios) if ratios else None


def alone_ratio(results, model, system, ours="keratin"):
    """`ratio` of the runs that nobody disturbed, if half of the rounds have
    some of both."""
    systems = results["models"][model]
    pairs = list(zip(systems.get(system, {}).get("rounds", []),
                     systems.get(ours, {}).get("rounds", [])))
    key = "alone_cpu_ms"
    ratios = [theirs[key] / mine[key] for theirs, mine in pairs
              if key in theirs and key in mine]
    return statistics.median(ratios) if 2 * len(ratios) >= max(len(pairs), 1) \
        else None


def alone_share(results, model, system):
    """The share of the runs that nobody disturbed, or None."""
    shares = [r["alone"] for r in
              results["models"][model].get(system, {}).get("rounds", [])
              if "alone" in r]
    return statistics.mean(shares) if shares else None


def best_peer(results, model, ours="keratin"):
    """(ratio, system) of the fastest other system in float32, or None."""
    ratios = [(ratio(results, model, system, ours), system)
              for system in results["models"][model]
              if not is_keratin(system) and SYSTEMS[system].is_f32]
    return min((r for r in ratios if r[0] is not None), default=None)


def number(value, digits=3):
    if value is None:
        return "–"
    return f"{value:.{digits}g}" if value < 10 ** digits else f"{value:.0f}"


def table(rows):
    """Markdown, the first row being the headings."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines)


def columns(results):
    systems = {}
    for model in results["models"].values():
        systems.update(dict.fromkeys(model))
    return list(systems)


def times_table(results):
    systems = columns(results)
    rows = [["ms", *systems, "best peer", "× keratin", "× undisturbed",
             "runs undisturbed %"]]
    for model, measured in results["models"].items():
        cells = []
        for system in systems:
            failed = "error" in measured.get(system, {})
            cells.append("failed" if failed
                         else number(time_of(results, model, system)))
        best = best_peer(results, model)
        rows.append([model, *cells, *(
            [best[1], f"{best[0]:.2f}", *undisturbed(results, model, best[1])]
            if best else ["–"] * 4)])
    return table(rows)


def undisturbed(results, model, peer):
    """Cells: the ratio, and the shares of Keratin's runs and of the peer's."""
    alone = alone_ratio(results, model, peer)
    shares = [alone_share(results, model, s) for s in ("keratin", peer)]
    return ["–" if alone is None else f"{alone:.2f}",
            "–" if None in shares else
            ", ".join(f"{100 * share:.0f}" for share in shares)]


def floor_of(results, model):
    """(ms measured by kernel, ms of their floors) of Keratin's kernels."""
    kernels = results["models"][model]["keratin"]["profile"]["kernels"]
    return sum(k["ms"] for k in kernels), sum(k["floor_ms"] for k in kernels)


def facts_table(results):
    rows = [["", "of floor %", "max rel error", "best peer's error",
             "compile CPU s", "compile MB", "library MB", "weights MB",
             "arena MB", "run MB", "cold start ms"]]
    for model, measured in results["models"].items():
        ours = measured.get("keratin", {})
        if "profile" not in ours:
            continue
        ms, floor = floor_of(results, model)
        best = best_peer(results, model)
        rows.append([
            model, number(100 * floor / ms), f"{ours['max_rel_error']:.1e}",
            f"{measured[best[1]]['max_rel_error']:.1e}" if best else "–",
            number(ours["compile_cpu_s"]), number(ours["compile_peak_rss_mb"]),
            number(ours["library_bytes"] / 1e6), number(ours["weights_bytes"] / 1e6),
            number(ours["arena_bytes"] / 1e6),
            number(ours["peak_rss_mb"]), number(ours["cold_start_ms"])])
    return table(rows)


def kinds_table(results, fewest_percent=5):
    """How far models are above the sum of their kernels' floors, and what share
    of that the kernels of each kind have."""
    rows = [["", "floor ms", "ms", "of floor %", "who has the rest"]]
    for model, measured in results["models"].items():
        if "profile" not in measured.get("keratin", {}):
            continue
        ms, floor = floor_of(results, model)
        lost = {}
        for kernel in measured["keratin"]["profile"]["kernels"]:
            above = max(kernel["ms"] - kernel["floor_ms"], 0)
            lost[kernel["op"]] = lost.get(kernel["op"], 0) + above
        kinds = sorted(lost, key=lost.get, reverse=True)
        shares = [(kind, 100 * lost[kind] / sum(lost.values()))
                  for kind in kinds if lost[kind] > 0]
        rows.append([
            model, number(floor), number(ms), number(100 * floor / ms),
            ", ".join(f"{kind} {share:.0f} %" for kind, share in shares
                      if share >= fewest_percent)])
    return table(rows)


def kernels_table(results, model, count=12):
    """Where time is lost: the kernels that are farthest above their floors."""
    kernels = results["models"][model]["keratin"]["profile"]["kernels"]
    total = sum(kernel["ms"] for kernel in kernels)
    lost = sorted(kernels, key=lambda k: k["floor_ms"] - k["ms"])
    rows = [["kernel", "op", "ms", "% of model", "floor ms", "of floor %",
             "GFLOP/s", "GB/s"]]
    for k in lost[:count]:
        if k["ms"] > 0:
            rows.append([
                k["name"], k["op"], number(k["ms"]),
                number(100 * k["ms"] / total, 2), number(k["floor_ms"]),
                number(100 * k["floor_ms"] / k["ms"], 2),
                number(k["flops"] / k["ms"] / 1e6), number(k["bytes"] / k["ms"] / 1e6)])
    return table(rows)


def model_line(results, name):
    measured = results["models"][name]
    parts = [f"{system} {'failed' if 'error' in measured[system] else number(time_of(results, name, system))}"
             for system in measured]
    best = best_peer(results, name)
    return f"{name}: " + ", ".join(parts) + (
        f"; {best[1]} takes {best[0]:.2f} ×" if best else "")


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else float("nan")


def print_errors(results):
    """Each error once, its first sentence, with the models that gave it."""
    models = {}
    for model, measured in results["models"].items():
        for system, facts in measured.items():
            if "error" in facts:
                what = facts["error"].split("\n")[0].split(". ")[0]
                models.setdefault((system, what), []).append(model)
    for (system, what), names in models.items():
        print(f"\n{', '.join(names)}: {system}: {what}")


def print_tables(results, kernels=True):
    what = {"cpu_ms": "CPU time", "ms": "time"}[compared(results)]
    print(f"{results['cpu']}, {results['date']}, {results['threads']} thread(s), "
          f"{what} of one inference\n")
    print(times_table(results))
    best = [best_peer(results, model) for model in results["models"]]
    ratios = [b[0] for b in best if b]
    if ratios:
        print(f"\ngeometric mean of × keratin {geometric_mean(ratios):.2f}, "
              f"least {min(ratios):.2f}")
    print("\n" + facts_table(results))
    print("\n" + kinds_table(results))
    print_errors(results)
    for model, measured in results["models"].items():
        if kernels and "profile" in measured.get("keratin", {}):
            print(f"\n### {model}\n\n" + kernels_table(results, model))


def merge(all_results):
    """The models of later results replace those of earlier ones."""
    merged = dict(all_results[-1], models={})
    for results in all_results:
        merged["models"].update(results["models"])
    return merged


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "results",
        nargs="+",
        type=argparse.FileType(encoding="utf-8"),
        metavar="RESULTS.json",
        help="of a model in several files, the last counts",
    )
    print_tables(merge([json.load(file) for file in parser.parse_args().results]))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # report.py … | head
    main()
