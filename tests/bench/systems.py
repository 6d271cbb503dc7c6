"""The other systems: how each loads a model of the zoo and runs it.

Each is a function of the model's directory, an input and a number of threads,
and gives a function that computes the outputs once. Libraries are imported
where they are used: each system has a virtual environment of its own.
"""

import os
from typing import Callable, NamedTuple


def onnxruntime(directory, x, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(os.path.join(directory, "model.onnx"), options,
                                   providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})[0]


def openvino(directory, x, threads, precision="f32"):
    import openvino as ov

    core = ov.Core()
    model = core.read_model(os.path.join(directory, "model.onnx"))
    model.reshape(list(x.shape))
    return openvino_run(core, model, x, threads, precision)


def openvino_run(core, model, x, threads, precision):
    """Runs a model of OpenVINO for the one input `x`."""
    import openvino as ov

    compiled = core.compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    })
    request, tensor = compiled.create_infer_request(), ov.Tensor(x, shared_memory=True)

    def run():
        request.infer([tensor])
        return request.get_output_tensor(0).data

    return run


def openvino_bf16(directory, x, threads):
    return openvino(directory, x, threads, "bf16")


def litert(directory, x, threads):
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(os.path.join(directory, "model.tflite"), num_threads=threads)
    source = model.get_input_details()[0]["index"]
    result = model.get_output_details()[0]["index"]
    model.resize_tensor_input(source, x.shape)
    model.allocate_tensors()
    model.set_tensor(source, x)

    def run():
        model.invoke()
        return model.tensor(result)()

    return run


def load_keras(directory, backend):
    os.environ["KERAS_BACKEND"] = backend
    import keras

    path = os.path.join(directory, "model.keras")
    return keras.saving.load_model(path, compile=False)


def tensorflow(directory, x, threads, jit=False):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = load_keras(directory, "tensorflow")
    function = tf.function(lambda x: model(x, training=False), jit_compile=jit)
    tensor = tf.constant(x)
    return lambda: function(tensor).numpy()


def xla(directory, x, threads):
    return tensorflow(directory, x, threads, jit=True)


def torch(directory, x, threads):
    import torch

    torch.set_num_threads(threads)
    model = load_keras(directory, "torch")
    tensor = torch.from_numpy(x)

    def run():
        with torch.inference_mode():
            return model(tensor, training=False)

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
