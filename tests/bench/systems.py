"""The other systems: how each loads a model of the zoo and runs it.

Each is a function of the model's directory, its inputs by name, in order, and
a number of threads, and gives a function that computes the first output once.
The input of a model that has one may have any name. Libraries are imported
where they are used: each system has a virtual environment of its own.
"""

import os
from typing import Callable, NamedTuple


def fed(names, inputs):
    """What a system calls `names` takes of `inputs`."""
    if len(names) == 1:
        return dict(zip(names, inputs.values()))
    return {name: inputs[name] for name in names}


def onnxruntime(directory, inputs, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(os.path.join(directory, "model.onnx"), options,
                                   providers=["CPUExecutionProvider"])
    feed = fed([node.name for node in session.get_inputs()], inputs)
    return lambda: session.run(None, feed)[0]


def openvino(directory, inputs, threads, precision="f32"):
    import openvino as ov

    core = ov.Core()
    model = core.read_model(os.path.join(directory, "model.onnx"))
    feed = fed([node.get_any_name() for node in model.inputs], inputs)
    model.reshape({name: list(x.shape) for name, x in feed.items()})
    return openvino_run(core, model, feed, threads, precision)


def openvino_run(core, model, feed, threads, precision):
    """Runs a model of OpenVINO for inputs by name."""
    import openvino as ov

    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    })
    request = compiled.create_infer_request()
    tensors = {name: ov.Tensor(x, shared_memory=True) for name, x in feed.items()}

    def run():
        request.infer(tensors)
        return request.get_output_tensor(0).data

    return run


def openvino_bf16(directory, inputs, threads):
    return openvino(directory, inputs, threads, "bf16")


def litert(directory, inputs, threads):
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(os.path.join(directory, "model.tflite"), num_threads=threads)
    # Keras names an input serving_default_NAME:0.
    sources = {node["name"].removeprefix("serving_default_").removesuffix(":0"):
               node["index"] for node in model.get_input_details()}
    result = model.get_output_details()[0]["index"]
    feed = fed(list(sources), inputs)
    for name, x in feed.items():
        model.resize_tensor_input(sources[name], x.shape)
    model.allocate_tensors()
    for name, x in feed.items():
        model.set_tensor(sources[name], x)

    def run():
        model.invoke()
        return model.tensor(result)()

    return run


def load_keras(directory, backend):
    os.environ["KERAS_BACKEND"] = backend
    import keras

    path = os.path.join(directory, "model.keras")
    return keras.saving.load_model(path, compile=False)


def first(outputs):
    return outputs[0] if isinstance(outputs, (list, tuple)) else outputs


def first_or_all(inputs):
    """As a model is called."""
    return inputs[0] if len(inputs) == 1 else inputs


def tensorflow(directory, inputs, threads, jit=False):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = load_keras(directory, "tensorflow")
    function = tf.function(lambda xs: first(model(xs, training=False)), jit_compile=jit)
    tensors = first_or_all([tf.constant(x) for x in inputs.values()])
    return lambda: function(tensors).numpy()


def xla(directory, inputs, threads):
    return tensorflow(directory, inputs, threads, jit=True)


def torch(directory, inputs, threads):
    import torch

    torch.set_num_threads(threads)
    model = load_keras(directory, "torch")
    tensors = first_or_all([torch.from_numpy(x) for x in inputs.values()])

    def run():
        with torch.inference_mode():
            return first(model(tensors, training=False))

    return run


class System(NamedTuple):
    environment: str
    """Name of its requirements/*.txt and its virtual environment."""
    load: Callable
    is_f32: bool = True


SYSTEMS = {
    "onnxruntime": System("ort", onnxruntime),
    "openvino": System("openvino", openvino),
    "openvino_bf16": System("openvino", openvino_bf16, is_f32=False),
    "litert": System("litert", litert),
    "tensorflow": System("export", tensorflow),
    "xla": System("export", xla),
    "torch": System("torch", torch),
}
