"""Runs every model of a folder that has outputs of Keras beside it.

    run_all.py FOLDER [OPTION...]

A model is NAME.keras or NAME.h5; its data are NAME.npz. Options are for
keratin-run, once; without, models run in three ways.
"""

import pathlib
import subprocess
import sys

REFUSED = {"nested_shared"}  # has a custom layer


WAYS = ("-O0", "-O2", "-O2 --batch 1")


def main(folder, *given):
    models = [
        path
        for path in sorted(pathlib.Path(folder).iterdir())
        if path.suffix in (".keras", ".h5")
        and path.with_suffix(".npz").exists()
        and path.stem not in REFUSED
    ]
    if not models:
        sys.exit(f"{folder} holds no models")
    wrong = []
    for model in models:
        data = model.with_suffix(".npz")
        command = ["keratin-run", model, "--inputs", data, "--expect", data]
        for options in [" ".join(given)] if given else WAYS:
            if subprocess.run(command + options.split()).returncode != 0:
                wrong.append(f"{model.name} {options}")
    if wrong:
        sys.exit("differ from Keras: " + ", ".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
