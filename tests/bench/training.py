"""Training steps through Keras 2.3.1 on Keratin, beside other systems.

    training.py BUILD [--models NAME…] [--systems NAME…] [--threads N]

The models are those of training_models.py, the same in every system: same
weights, batch, loss and optimizer. Ours is the function that Keras' model.fit
calls for each batch; the others are Keras 3's layers, compiled as their
backends do. All losses of the first steps must agree, or the numbers would not
compare. Measured and compared as by peers.py. Writes
BUILD/peers/training.json and prints a table.
"""

import os
import pathlib
import sys
import tempfile

import report
import side_by_side
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
    cells += side_by_side.best_peer(results, name)
    off = None if "error" in found["keratin"] else disagreement(found)
    cells.append("–" if off is None else f"{off:.0e}")
    return side_by_side.row(cells), off is not None and off <= TOLERANCE


def main():
    arguments = side_by_side.arguments_of(
        __doc__, "models", MODELS, SYSTEMS, ["tensorflow", "xla", "jax"],
        rounds=5, seconds=0.5)
    with tempfile.TemporaryDirectory() as home:
        ours = our_environment(arguments.build, home)
        return side_by_side.run(
            arguments, "training", "ms", "losses differ by",
            lambda name, log: side_by_side.measure(
                arguments, name, log, "training_worker.py", ours, SYSTEMS), line)


if __name__ == "__main__":
    sys.exit(main())
