"""Draws the results of peers.py beside them.

    plot.py RESULTS.json

models.svg: how many times longer each system takes than Keratin. kernels.svg:
each kernel of each model under the roofs of the machine.
"""

import json
import os
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import report


def plot_models(results, path):
    models = [m for m in results["models"] if report.best_peer(results, m)]
    systems = [s for s in report.columns(results) if not report.is_keratin(s)]
    figure, axes = plt.subplots(figsize=(1.5 + 0.8 * len(models), 4),
                                layout="constrained")
    width = 0.8 / max(1, len(systems))
    for index, system in enumerate(systems):
        ratios = [report.ratio(results, model, system) or 0 for model in models]
        axes.bar([place + index * width for place in range(len(models))], ratios,
                 width, label=system)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(models))],
                    models, rotation=45, ha="right")
    axes.set_ylabel("time, keratin = 1")
    axes.legend()
    figure.savefig(path)


def plot_kernels(results, path):
    profiles = {model: systems["keratin"]["profile"]
                for model, systems in results["models"].items()
                if "profile" in systems.get("keratin", {})}
    figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
    axes.set_prop_cycle(color=matplotlib.colormaps["tab20"].colors)
    for model, profile in profiles.items():
        kernels = [k for k in profile["kernels"]
                   if k["ms"] > 0 and k["flops"] > 0 and k["bytes"] > 0]
        axes.scatter([k["flops"] / k["bytes"] for k in kernels],
                     [k["flops"] / k["ms"] / 1e6 for k in kernels],
                     s=12, alpha=0.6, label=model)
    machine = next(iter(profiles.values()))["machine"]
    intensities = [2 ** (power / 4) for power in range(-16, 41)]
    for roof in (machine["bandwidths"][0], machine["bandwidths"][-1]):
        axes.plot(intensities,
                  [min(machine["flops"], i * roof["bytes_per_second"]) / 1e9
                   for i in intensities], color="black", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="FLOP/byte", ylabel="GFLOP/s")
    axes.legend(fontsize="small")
    figure.savefig(path)


def main():
    directory = os.path.dirname(sys.argv[1])
    with open(sys.argv[1]) as file:
        results = json.load(file)
    plot_models(results, os.path.join(directory, "models.svg"))
    plot_kernels(results, os.path.join(directory, "kernels.svg"))


main()
