"""How long functions of one op take to compile, in process.

    one_op.py BUILD [--ops NAME…] [--repeat N] [--json FILE]

Each function is made, compiled and called once, with shapes that no function
before it had and no directory of the compile cache, so that nothing is found:
graph, passes, LLVM, linking and the first call. Prints milliseconds of wall
clock and of the process' CPU time, the median and the least of N. The first
functions of a process, which load dialects and tables, are not counted.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

OPS = {
    "exp": lambda K, x, w: K.exp(x),
    "add": lambda K, x, w: x + 1.0,
    "relu": lambda K, x, w: K.relu(x),
    "tanh": lambda K, x, w: K.tanh(x),
    "sum": lambda K, x, w: K.sum(x),
    "mean_axis": lambda K, x, w: K.mean(x, axis=(1, 2)),
    "argmax": lambda K, x, w: K.argmax(x, axis=-1),
    "softmax": lambda K, x, w: K.softmax(K.batch_flatten(x)),
    "l2_normalize": lambda K, x, w: K.l2_normalize(x, -1),
    "logsumexp": lambda K, x, w: K.logsumexp(x, axis=-1),
    "cumsum": lambda K, x, w: K.cumsum(x, 1),
    "max_pool_2x2": lambda K, x, w: K.pool2d(x, (2, 2), (2, 2)),
    "max_pool_stride_1": lambda K, x, w: K.pool2d(x, (2, 2)),
    "avg_pool_3x3_same": lambda K, x, w: K.pool2d(
        x, (3, 3), (2, 2), "same", pool_mode="avg"),
    "conv1d": lambda K, x, w: K.conv1d(
        K.reshape(x, (2, -1, 16)), w["conv1d"]),
    "conv2d_same": lambda K, x, w: K.conv2d(x, w["conv2d"], padding="same"),
    "conv2d_stride_2": lambda K, x, w: K.conv2d(x, w["conv2d"], (2, 2)),
    "conv3d": lambda K, x, w: K.conv3d(
        K.expand_dims(x, 1), w["conv3d"], padding="same"),
    "depthwise_conv2d": lambda K, x, w: K.depthwise_conv2d(x, w["depthwise"]),
    "dot": lambda K, x, w: K.dot(x, w["dot"]),
    "batch_dot": lambda K, x, w: K.batch_dot(
        K.reshape(x, (2, -1, 16)), K.reshape(x, (2, -1, 16)), axes=2),
    "bias_add": lambda K, x, w: K.bias_add(x, w["bias"]),
    "batch_normalization": lambda K, x, w: K.batch_normalization(
        x, w["bias"], w["scale"], w["bias"], w["scale"]),
    "transpose": lambda K, x, w: K.permute_dimensions(x, (0, 3, 1, 2)),
    "concatenate": lambda K, x, w: K.concatenate([x, x], axis=-1),
    "gather": lambda K, x, w: K.gather(x, [0]),
    "one_hot": lambda K, x, w: K.one_hot(K.cast(x, "int32"), 10),
    "resize_images": lambda K, x, w: K.resize_images(
        x, 2, 2, "channels_last"),
    "padding": lambda K, x, w: K.spatial_2d_padding(x),
}


def weights(backend, np):
    """Variables that the functions use, of fixed shapes."""
    rng = np.random.RandomState(0)
    shapes = {"conv1d": (3, 16, 32), "conv2d": (3, 3, 16, 32),
              "conv3d": (1, 3, 3, 16, 32), "depthwise": (3, 3, 16, 1),
              "dot": (16, 32), "bias": (16,), "scale": (16,)}
    return {name: backend.variable(np.abs(rng.randn(*shape)) + .1)
            for name, shape in shapes.items()}


def measure(backend, np, build, shape, variables):
    """Milliseconds of wall clock and CPU until the first results."""
    x = backend.placeholder(shape)
    value = np.ones(shape, "float32")
    wall, cpu = time.perf_counter(), time.process_time()
    backend.function([x], [build(backend, x, variables)])([value])
    return ((time.perf_counter() - wall) * 1e3,
            (time.process_time() - cpu) * 1e3)


def summary(times):
    """What is told of some (wall, cpu)."""
    return {f"{name}_{what}": round(of(column), 2)
            for name, column in zip(("wall_ms", "cpu_ms"), zip(*times))
            for what, of in (("median", statistics.median), ("min", min))}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ops", nargs="+", choices=OPS, default=list(OPS),
                        metavar="NAME")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()

    os.environ["KERATIN_CACHE_DIR"] = ""
    sys.path.insert(0, str(given.build / "python"))
    import numpy as np
    import keratin.backend as backend

    variables = weights(backend, np)
    for height in (1, 2):
        measure(backend, np, OPS["exp"], (2, height, 14, 16), variables)
    results = {}
    print(f"{'op':20} {'wall ms':>8} {'least':>8} {'CPU ms':>8} {'least':>8}")
    for name in given.ops:
        # The same shapes for each op: larger ones have more work.
        results[name] = summary([
            measure(backend, np, OPS[name], (2, 14 + turn, 14, 16), variables)
            for turn in range(given.repeat)])
        print(f"{name:20}", *(f"{value:8.1f}"
                              for value in results[name].values()), flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
