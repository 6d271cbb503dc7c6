"""Inputs of a saved model, and what it computes of them.

    reference.py DIRECTORY      model.keras -> input.npz, reference.npz

Inputs are random, normal ones or whole numbers below the least input_dim of an
embedding (or 8), one sample where the batch is open. A file input.npz that is
there already is left. The outputs are computed in float64 from the same
weights, or, where TensorFlow has an op for float32 alone, as the model says.
"""

import json
import os
import sys
import zipfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import ops


def random_inputs(model):
    """By name, in the order of the model's inputs."""
    random = np.random.default_rng(3)
    sizes = [layer.input_dim for layer in model.layers
             if isinstance(layer, keras.layers.Embedding)]
    inputs = {}
    for tensor in model.inputs:
        if None in tensor.shape[1:]:
            raise SystemExit(f"input '{tensor.name}' is {tensor.shape}: only the "
                             "batch may be open; write input.npz yourself")
        shape = (tensor.shape[0] or 1, *tensor.shape[1:])
        if "int" in tensor.dtype:
            x = random.integers(0, min(sizes, default=8), shape)
        elif tensor.dtype == "bool":
            x = random.integers(0, 2, shape)
        else:
            x = random.normal(0, 1, shape)
        inputs[tensor.name] = x.astype(tensor.dtype)
    return inputs


def in_float64(config):
    """A configuration with float64 wherever it says float32."""
    if isinstance(config, dict):
        return {key: in_float64(value) for key, value in config.items()}
    if isinstance(config, list):
        return [in_float64(value) for value in config]
    return "float64" if config == "float32" else config


def outputs_of(model, arrays):
    return model(arrays[0] if len(arrays) == 1 else arrays, training=False)


def main():
    directory = sys.argv[1]
    path = os.path.join(directory, "model.keras")
    model = keras.saving.load_model(path, compile=False)
    inputs = os.path.join(directory, "input.npz")
    if not os.path.exists(inputs):
        np.savez(inputs, **random_inputs(model))
    arrays = list(np.load(inputs).values())

    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json"))
    keras.config.set_floatx("float64")
    exact = keras.saving.deserialize_keras_object(in_float64(config))
    exact.set_weights(model.get_weights())
    try:
        outputs = outputs_of(exact, [x.astype("float64") if x.dtype == np.float32
                                     else x for x in arrays])
    except tf.errors.InvalidArgumentError as error:
        print("the reference is computed in float32:",
              error.message.splitlines()[0], file=sys.stderr)
        outputs = outputs_of(model, arrays)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    np.savez(os.path.join(directory, "reference.npz"),
             **{f"out_{i}": ops.convert_to_numpy(y) for i, y in enumerate(outputs)})


main()
