"""Makes a model file with one mistake and runs keratinc on it.

    refuse.py MISTAKE MODELS DIR

writes DIR/MISTAKE.keras (or .h5) from a good file in MODELS, and prints what
keratinc says. Exits with 0 if keratinc refused as it should: exit code 1, no
signal, nothing on stdout, and an end in sight. The lit tests beside this file
check the lines. Only Python's standard library is needed.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile

SECONDS = 120  # when there is no end in sight, even with sanitizers


class Model:
    """The members of a .keras file, to change."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.members = {n: archive.read(n) for n in archive.namelist()}
        self.config = json.loads(self.members["config.json"])

    def layer(self, name):
        for layer in self.config["config"]["layers"]:
            if layer["config"].get("name") == name:
                return layer
        raise KeyError(name)

    def write(self, path, text=None, compress=zipfile.ZIP_STORED):
        text = json.dumps(self.config) if text is None else text
        self.members["config.json"] = text
        with zipfile.ZipFile(path, "w", compress) as archive:
            for name, content in self.members.items():
                archive.writestr(name, content)


def mistake(function):
    MISTAKES[function.__name__.replace("_", "-")] = function
    return function


MISTAKES = {}


def mlp(models):
    return Model(os.path.join(models, "mlp_sequential.keras"))


def siamese(models):
    return Model(os.path.join(models, "siamese_shared.keras"))


def tensor(name, shape, call=0, output=0):
    return {
        "class_name": "__keras_tensor__",
        "config": {
            "shape": shape,
            "dtype": "float32",
            "keras_history": [name, call, output],
        },
    }


# Configurations.


@mistake
def negative_units(models, path):
    model = mlp(models)
    model.layer("dense")["config"]["units"] = -1
    model.write(path)


@mistake
def overflowing_units(models, path):
    model = mlp(models)
    model.layer("dense")["config"]["units"] = 2**62
    model.write(path)


@mistake
def overflowing_input(models, path):
    model = mlp(models)
    shape = [None] + [2**31 - 1] * 3
    model.layer("x")["config"]["batch_shape"] = shape
    model.write(path)


@mistake
def overflowing_repeat(models, path):
    model = mlp(models)
    layers = model.config["config"]["layers"]
    layers[3] = {
        "module": "keras.layers",
        "class_name": "RepeatVector",
        "config": {"name": "repeat", "n": 2**31},
    }
    model.write(path)


@mistake
def lambda_layer(models, path):
    model = mlp(models)
    layer = model.layer("dropout")
    layer["class_name"] = "Lambda"
    layer["config"] = {
        "name": "twice",
        "function": {
            "class_name": "__lambda__",
            "config": {"code": "4wEAAAA", "defaults": None, "closure": None},
        },
    }
    model.write(path)


@mistake
def unknown_layer(models, path):
    model = mlp(models)
    model.layer("dropout")["class_name"] = "Hologram"
    model.write(path)


@mistake
def unknown_activation(models, path):
    model = mlp(models)
    model.layer("dense_1")["config"]["activation"] = "wobble"
    model.write(path)


@mistake
def stateful_rnn(models, path):
    model = Model(os.path.join(models, "rnn_masked.keras"))
    model.layer("gru")["config"]["stateful"] = True
    model.write(path)


@mistake
def window_beyond_steps(models, path):
    model = Model(os.path.join(models, "conv_recurrent.keras"))
    model.layer("conv_lstm2d_1")["config"]["kernel_size"] = [8, 2]
    model.write(path)


@mistake
def wrong_weight_shape(models, path):
    model = mlp(models)
    model.layer("dense_1")["config"]["units"] = 17
    model.write(path)


@mistake
def unused_weights(models, path):
    model = mlp(models)
    model.layer("dense_1")["config"]["use_bias"] = False
    model.write(path)


@mistake
def several_problems(models, path):
    model = siamese(models)
    model.layer("encoder")["config"]["layers"][2]["class_name"] = "Hologram"
    model.layer("multiply")["class_name"] = "Lambda"
    model.layer("score")["config"]["units"] = "two"
    model.layer("score")["config"]["use_bias"] = "perhaps"
    model.write(path)


@mistake
def sparse_input(models, path):
    model = siamese(models)
    model.layer("b")["config"]["sparse"] = True
    model.write(path)


# Graphs.


@mistake
def cycle(models, path):
    model = siamese(models)
    call = model.layer("multiply")["inbound_nodes"][0]
    call["args"][0][0] = tensor("score", [None, 2])
    model.write(path)


@mistake
def dangling_reference(models, path):
    model = siamese(models)
    call = model.layer("score")["inbound_nodes"][0]
    call["args"][0] = tensor("nowhere", [None, 4])
    model.write(path)


@mistake
def call_out_of_range(models, path):
    model = siamese(models)
    call = model.layer("score")["inbound_nodes"][0]
    call["args"][0] = tensor("multiply", [None, 4], call=7)
    model.write(path)


@mistake
def unknown_output(models, path):
    model = siamese(models)
    model.config["config"]["output_layers"] = [["nowhere", 0, 0]]
    model.write(path)


@mistake
def twice_the_same_name(models, path):
    model = siamese(models)
    layers = model.config["config"]["layers"]
    layers.append(json.loads(json.dumps(layers[0])))
    model.write(path)


@mistake
def exponential_models(models, path):
    """Each model calls the one inside of it ten times."""
    inner = {
        "module": "keras.layers",
        "class_name": "Identity",
        "config": {"name": "identity"},
    }
    for depth in range(9):
        first = {
            "module": "keras.layers",
            "class_name": "InputLayer",
            "config": {"name": "x", "batch_shape": [None, 2]},
            "name": "x",
            "inbound_nodes": [],
        }
        name = inner["config"]["name"]
        calls = [{"args": [tensor("x", [None, 2])], "kwargs": {}}]
        calls += [
            {"args": [tensor(name, [None, 2], call=call)], "kwargs": {}}
            for call in range(9)
        ]
        inner = {
            "module": "keras.src.models.functional",
            "class_name": "Functional",
            "config": {
                "name": f"model_{depth}",
                "layers": [
                    first,
                    dict(inner, name=name, inbound_nodes=calls),
                ],
                "input_layers": ["x", 0, 0],
                "output_layers": [name, 9 if depth == 0 else 10, 0],
            },
        }
    model = siamese(models)
    model.config = inner
    model.write(path)


@mistake
def no_layers(models, path):
    model = siamese(models)
    model.config["config"]["layers"] = "none"
    model.write(path)


@mistake
def subclassed_model(models, path):
    model = siamese(models)
    model.config = {
        "module": None,
        "class_name": "Net",
        "config": {"name": "net"},
        "registered_name": "demo>Net",
    }
    model.write(path)


# JSON.


@mistake
def nested_lists(models, path):
    model = mlp(models)
    text = json.dumps(model.config)
    lists = "[" * 100000 + "]" * 100000
    model.write(path, text.replace('"units": 32', f'"units": {lists}'))


@mistake
def not_a_number(models, path):
    model = mlp(models)
    model.layer("dropout")["config"]["rate"] = float("nan")
    model.write(path)


@mistake
def infinity(models, path):
    model = mlp(models)
    model.layer("normalization")["config"]["mean"] = [1.0, float("-inf")]
    model.write(path)


@mistake
def not_json(models, path):
    model = mlp(models)
    text = json.dumps(model.config)
    model.write(path, text[: len(text) // 2])


# Archives.


@mistake
def zip_bomb(models, path):
    model = mlp(models)
    model.members["model.weights.h5"] = bytes(64 << 20)
    model.write(path, compress=zipfile.ZIP_DEFLATED)


@mistake
def outside_of_the_archive(models, path):
    model = mlp(models)
    model.members["../../outside.h5"] = b"x"
    model.write(path)


@mistake
def two_configurations(models, path):
    model = mlp(models)
    model.write(path)
    warnings.simplefilter("ignore")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("config.json", json.dumps(model.config))


@mistake
def no_configuration(models, path):
    model = mlp(models)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", model.members["metadata.json"])


@mistake
def no_weights(models, path):
    model = mlp(models)
    del model.members["model.weights.h5"]
    model.write(path)


@mistake
def truncated_archive(models, path):
    with open(os.path.join(models, "mlp_sequential.keras"), "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content[: len(content) // 2])


@mistake
def corrupt_member(models, path):
    mlp(models).write(path)
    with open(path, "r+b") as file:
        place = file.read().index(b"HDF") + 5000
        file.seek(place)
        file.write(b"damage")


@mistake
def not_a_model(models, path):
    with open(path, "w") as file:
        file.write("just some text\n")


# HDF5.


@mistake
def truncated_weights(models, path):
    model = mlp(models)
    weights = model.members["model.weights.h5"]
    model.members["model.weights.h5"] = weights[: len(weights) // 2]
    model.write(path)


@mistake
def truncated_h5(models, path):
    with gzip.open(os.path.join(models, "mlp_legacy.h5.gz")) as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content[:-1000])


@mistake
def weights_only(models, path):
    model = mlp(models)
    with open(path, "wb") as file:
        file.write(model.members["model.weights.h5"])


@mistake
def weights_of_another_model(models, path):
    model = mlp(models)
    other = siamese(models)
    model.members["model.weights.h5"] = other.members["model.weights.h5"]
    model.write(path)


def main(name, models, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    path = os.path.join(folder, name + ".keras")
    MISTAKES[name](models, path)
    run = subprocess.run(
        ["keratinc", path, "-o", os.path.join(folder, "out")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    sys.stdout.write(run.stderr)
    if run.returncode != 1:
        sys.exit(f"exit code {run.returncode}, expected 1")
    if run.stdout:
        sys.exit("wrote to stdout: " + run.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
