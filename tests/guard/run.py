"""Compiles models and lets `guard` see whether they stay in their memory.

    run.py GUARD MODEL... [OPTION...]

Options are for keratinc.
"""

import pathlib
import subprocess
import sys
import tempfile

REFUSED = {"nested_shared"}  # has a custom layer
# Compiled code leaves only the first axis open.
SHAPES = {"tcn_dynamic_time": ["--input-shape=series=?x23x5"]}


def stays(guard, model, options, folder):
    prefix = folder / model.stem
    compiled = subprocess.run(
        ["keratinc", model, "-o", prefix, "--emit=so", "--weights=external"]
        + SHAPES.get(model.stem, [])
        + options
    )
    if compiled.returncode != 0:
        return False
    weights = prefix.with_suffix(".weights")
    return (
        subprocess.run(
            [guard, prefix.with_suffix(".so")] + [weights] * weights.exists()
        ).returncode
        == 0
    )


def main(guard, *arguments):
    options = [a for a in arguments if a.startswith("-")]
    models = [pathlib.Path(a) for a in arguments if a not in options]
    with tempfile.TemporaryDirectory() as folder:
        wrong = [
            model.name
            for model in models
            if model.stem not in REFUSED
            and not stays(guard, model, options, pathlib.Path(folder))
        ]
    if wrong:
        sys.exit("do not compile, or leave their memory: " + ", ".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
