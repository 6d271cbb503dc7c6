"""Writes a model in the forms that other systems read.

    export.py DIRECTORY      model.keras -> model.onnx, model.tflite

What cannot be written is said, and left out; `exported` tells that this ran.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import onnx
from keras import layers as L
from keras import ops
from onnx import helper, numpy_helper


def gelu(x):
    """Keras' own, without erfc, which tf2onnx 1.17 does not know."""
    return 0.5 * x * (1.0 + ops.erf(x * 0.7071067811865476))


class Nodes:
    """A chain of ONNX nodes, each with weights."""

    def __init__(self, model):
        self.model = model
        self.nodes, self.weights, self.current = [], [], "x"

    def weight(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(
            numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op, *weights, inputs=None, outputs=None, **attributes):
        inputs = inputs or [self.current, *map(self.weight, weights)]
        self.current = f"t{len(self.nodes)}"
        outputs = outputs or [self.current]
        self.current = outputs[-1]
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    def save(self, path):
        def tensor(name, like):
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(like.dtype))
            return helper.make_tensor_value_info(name, kind, like.shape)

        graph = helper.make_graph(
            self.nodes, "model", [tensor("x", self.model.inputs[0])],
            [tensor(self.current, self.model.outputs[0])], self.weights)
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def chain_to_onnx(model, path):
    """Of plain chains: tf2onnx needs more than 10 GB for the weights of VGG16."""
    graph = Nodes(model)
    graph.add("Transpose", perm=[0, 3, 1, 2])
    for layer in model.layers[1:]:
        if isinstance(layer, L.Conv2D):
            if layer.kernel_size != (3, 3) or layer.padding != "same" or \
                    layer.strides != (1, 1) or layer.dilation_rate != (1, 1):
                raise TypeError("a convolution that is none of VGG's")
            kernel, bias = layer.get_weights()
            graph.add("Conv", kernel.transpose(3, 2, 0, 1), bias, pads=[1] * 4)
        elif isinstance(layer, L.MaxPooling2D):
            graph.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
        elif isinstance(layer, L.Flatten):
            graph.add("Transpose", perm=[0, 2, 3, 1])
            graph.add("Flatten")
        elif isinstance(layer, L.Dense):
            graph.add("Gemm", *layer.get_weights())
        else:
            raise TypeError(type(layer).__name__)
        name = getattr(getattr(layer, "activation", None), "__name__", "linear")
        if name != "linear":
            graph.add({"relu": "Relu", "softmax": "Softmax"}[name])
    graph.save(path)


def recurrent_to_onnx(model, path):
    """With ONNX's own LSTM and GRU: Keras writes a loop, many times slower."""
    graph = Nodes(model)
    for layer in model.layers[1:]:
        if isinstance(layer, L.Embedding):
            if layer.mask_zero:
                raise TypeError("a mask")
            table = graph.weight(layer.get_weights()[0])
            graph.add("Gather", inputs=[table, graph.current])
        elif isinstance(layer, (L.LSTM, L.GRU)):
            if layer.go_backwards or not getattr(layer, "reset_after", True):
                raise TypeError(layer.name)
            recurrent(graph, layer)
        elif isinstance(layer, L.Dense):
            graph.add("Gemm", *layer.get_weights())
            if layer.activation is not keras.activations.sigmoid:
                raise TypeError(layer.activation.__name__)
            graph.add("Sigmoid")
        else:
            raise TypeError(type(layer).__name__)
    graph.save(path)


def recurrent(graph, layer):
    kernel, recurrent_kernel, bias = layer.get_weights()
    units = layer.units
    # Keras has i f c o, ONNX i o f c; both have z r h.
    is_lstm = isinstance(layer, L.LSTM)
    order = [0, 3, 1, 2] if is_lstm else [0, 1, 2]

    def gates(array):
        return np.concatenate(
            [array[..., g * units:(g + 1) * units] for g in order], -1)

    if is_lstm:
        bias = np.stack([bias, np.zeros_like(bias)])
    bias = np.concatenate([gates(bias[0]), gates(bias[1])])
    graph.add("Transpose", perm=[1, 0, 2])
    weights = [graph.weight(value[None]) for value in
               (gates(kernel).T, gates(recurrent_kernel).T, bias)]
    name = f"r{len(graph.nodes)}"
    attributes = {} if is_lstm else {"linear_before_reset": 1}
    # The outputs are all steps [time, 1, batch, units], then the last one.
    graph.add("LSTM" if is_lstm else "GRU", inputs=[graph.current, *weights],
              outputs=[name] if layer.return_sequences else ["", name],
              hidden_size=units, **attributes)
    axis = 1 if layer.return_sequences else 0
    graph.add("Squeeze", np.array([axis]))
    if layer.return_sequences:
        graph.add("Transpose", perm=[1, 0, 2])


def constants_as_weights(model, path):
    """Keras leaves the constants of Normalization as inputs of the graph."""
    proto = onnx.load(path)
    graph = proto.graph
    layers = [l for l in model.layers if isinstance(l, L.Normalization)]
    for captured in list(graph.input)[len(model.inputs):]:
        if not layers:
            raise TypeError(f"{captured.name} is a constant without a layer")
        value = layers[0].mean if "/Sub/" in captured.name else layers[0].variance
        graph.initializer.append(
            numpy_helper.from_array(np.array(value, "float32"), captured.name))
        graph.input.remove(captured)
    onnx.save(proto, path)


def to_onnx(model, path):
    kinds = {type(layer) for layer in model.layers}
    if kinds & {L.LSTM, L.GRU} and kinds <= {
            L.InputLayer, L.Embedding, L.LSTM, L.GRU, L.Dense}:
        try:
            return recurrent_to_onnx(model, path)
        except TypeError as error:
            print(f"{path}: as a loop, since of {error}", file=sys.stderr)
    if sum(weight.size for weight in model.get_weights()) > 1e8 and kinds <= {
            L.InputLayer, L.Conv2D, L.MaxPooling2D, L.Flatten, L.Dense}:
        return chain_to_onnx(model, path)
    names = ["x"] if len(model.inputs) == 1 else [t.name for t in model.inputs]
    signature = [keras.InputSpec(shape=tensor.shape, dtype=tensor.dtype, name=name)
                 for tensor, name in zip(model.inputs, names)]
    if len(names) > 1:
        signature = [dict(zip(names, signature))]
    model.export(path, format="onnx", verbose=False, input_signature=signature)
    constants_as_weights(model, path)


def to_tflite(model, path):
    model.export(path, format="litert", verbose=False)


def main():
    directory = sys.argv[1]
    model = keras.saving.load_model(
        os.path.join(directory, "model.keras"), compile=False)
    for layer in model.layers:
        if getattr(layer, "activation", None) is keras.activations.gelu:
            layer.activation = gelu

    for name, write in (("model.onnx", to_onnx), ("model.tflite", to_tflite)):
        path = os.path.join(directory, name)
        try:
            write(model, path)
        except Exception as error:
            print(f"{directory}: no {name}: {type(error).__name__}: {error}",
                  file=sys.stderr)
            if os.path.exists(path):
                os.remove(path)
    open(os.path.join(directory, "exported"), "w").close()


main()
