"""The kernels of kernels.py, and how each system computes one.

A kernel is an input x, weights that are known beforehand, and what is computed
of them, which is told by name. Each system is a function of that name, x, the
weights and a number of threads, and gives a function that computes the result
once. Images are (samples, rows, columns, channels) where the system has that
as its own order, and are put in its order before. Libraries, NumPy too, are
imported where they are used.
"""

import math
from typing import Callable, NamedTuple

import systems

EPSILON = 1e-3
"""Of layer normalization."""


class Kernel(NamedTuple):
    op: str
    shape: tuple
    weights: tuple = ()
    """Their shapes."""
    small: tuple = (1, 16)
    """The shape of x in a call that does next to nothing."""
    small_weights: tuple = ()

    def arrays(self, small=False):
        """x and the list of weights."""
        import numpy as np

        random = np.random.default_rng(7)
        shapes = [self.small, *self.small_weights] if small else \
            [self.shape, *self.weights]
        arrays = [random.standard_normal(s, "float32") for s in shapes]
        return arrays[0], arrays[1:]


KERNELS = {
    "softmax_128x1000": Kernel("softmax", (128, 1000)),
    "layer_norm_128x768": Kernel("layer_norm", (128, 768), ((768,), (768,)),
                                 (1, 16), ((16,), (16,))),
    "gelu_1024x1024": Kernel("gelu", (1024, 1024)),
    "sum_1024x1024": Kernel("sum", (1024, 1024)),
    "matvec_1024x1024": Kernel("matmul", (1, 1024), ((1024, 1024),),
                               (1, 16), ((16, 16),)),
    "depthwise3x3_56x56x144": Kernel("depthwise", (1, 56, 56, 144), ((3, 3, 144),),
                                     (1, 2, 2, 16), ((3, 3, 16),)),
    "matmul_512": Kernel("matmul", (512, 512), ((512, 512),),
                         (1, 16), ((16, 16),)),
    "matmul_64": Kernel("matmul", (64, 64), ((64, 64),), (1, 16), ((16, 16),)),
}


def expected(op, x, weights):
    """The result, by NumPy in float64."""
    import numpy as np

    x, weights = x.astype("float64"), [w.astype("float64") for w in weights]
    if op == "softmax":
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)
    if op == "layer_norm":
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred ** 2).mean(-1, keepdims=True) + EPSILON)
        return centred / scale * weights[0] + weights[1]
    if op == "gelu":
        return x * 0.5 * (1 + np.vectorize(math.erf)(x * 0.5 ** 0.5))
    if op == "sum":
        return x.sum()
    if op == "matmul":
        return x @ weights[0]
    _, rows, columns, _ = x.shape
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    return sum(padded[:, i:i + rows, j:j + columns] * weights[0][i, j]
               for i in range(3) for j in range(3))


def keratin(op, x, weights, threads):
    from keratin import backend as K

    K.set_num_threads(threads)
    place, known = K.placeholder(x.shape), [K.constant(w) for w in weights]
    result = {
        "softmax": lambda: K.softmax(place),
        "layer_norm": lambda: K.layer_normalization(place, *known,
                                                    epsilon=EPSILON),
        "gelu": lambda: K.gelu(place),
        "sum": lambda: K.sum(place),
        "matmul": lambda: K.dot(place, known[0]),
        "depthwise": lambda: K.depthwise_conv2d(
            place, K.expand_dims(known[0], -1), padding="same"),
    }[op]()
    function = K.function([place], [result])
    return lambda: function([x])[0]


def onnx_model(op, x, weights):
    """The bytes of a model of one node; images have their channels first."""
    from onnx import TensorProto, helper, numpy_helper

    node = {
        "softmax": ("Softmax", {"axis": -1}),
        "layer_norm": ("LayerNormalization", {"axis": -1, "epsilon": EPSILON}),
        "gelu": ("Gelu", {}),
        "sum": ("ReduceSum", {"keepdims": 0}),
        "matmul": ("MatMul", {}),
        "depthwise": ("Conv", {"pads": [1] * 4, "group": x.shape[1]}),
    }[op]
    names = [f"w{number}" for number in range(len(weights))]
    graph = helper.make_graph(
        [helper.make_node(node[0], ["x", *names], ["y"], **node[1])], "kernel",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, name) for w, name in zip(weights, names)])
    return helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 20)]).SerializeToString()


def channels_first(op, x, weights):
    import numpy as np

    if op != "depthwise":
        return x, weights
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)), [
        np.ascontiguousarray(weights[0].transpose(2, 0, 1)[:, None])]


def onnxruntime(op, x, weights, threads):
    import onnxruntime as ort

    x, weights = channels_first(op, x, weights)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(onnx_model(op, x, weights), options,
                                   providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def openvino(op, x, weights, threads):
    import openvino as ov

    x, weights = channels_first(op, x, weights)
    core = ov.Core()
    return systems.openvino_run(core, core.read_model(onnx_model(op, x, weights)),
                                {"x": x}, threads, "f32")


def torch(op, x, weights, threads):
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    x, weights = channels_first(op, x, weights)
    x, weights = torch.from_numpy(x), [torch.from_numpy(w) for w in weights]
    compute = {
        "softmax": lambda: F.softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, weights[0].shape, *weights,
                                           eps=EPSILON),
        "gelu": lambda: F.gelu(x),
        "sum": lambda: x.sum(),
        "matmul": lambda: x @ weights[0],
        "depthwise": lambda: F.conv2d(x, weights[0], padding=1,
                                      groups=x.shape[1]),
    }[op]

    def run():
        with torch.inference_mode():
            return compute()

    return run


def jax(op, x, weights, threads):
    import jax
    import jax.numpy as jnp

    def layer_norm(x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred ** 2).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + EPSILON) * gamma + beta

    def depthwise(x, kernel):
        return jax.lax.conv_general_dilated(
            x, kernel[:, :, None], (1, 1), "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1])

    arrays = [jax.device_put(a) for a in (x, *weights)]
    compiled = jax.jit({
        "softmax": jax.nn.softmax,
        "layer_norm": layer_norm,
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "sum": jnp.sum,
        "matmul": jnp.matmul,
        "depthwise": depthwise,
    }[op]).lower(*arrays).compile()
    return lambda: compiled(*arrays).block_until_ready()


class System(NamedTuple):
    environment: str
    """Name of its requirements/*.txt and its virtual environment."""
    make: Callable


SYSTEMS = {
    "onnxruntime": System("ort", onnxruntime),
    "openvino": System("openvino", openvino),
    "torch": System("torch", torch),
    "jax": System("jax", jax),
}
