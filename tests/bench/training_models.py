"""Models whose training steps are measured, in what Keras 2.3.1 and Keras 3 share.

Each is a function of Keras and gives a model with a static batch. MODELS says
what they are trained with: the number of classes (1: a probability) and the
optimizer.
"""

from typing import Callable, NamedTuple

TOKENS = 20000


def mlp(keras):
    layers = keras.layers
    x = i = keras.Input(batch_shape=(128, 784))
    for _ in range(2):
        x = layers.Dense(512, activation="relu")(x)
    return keras.Model(i, layers.Dense(10, activation="softmax")(x))


def lenet(keras):
    layers = keras.layers
    x = i = keras.Input(batch_shape=(32, 28, 28, 1))
    for filters in (32, 64):
        x = layers.Conv2D(filters, 3, activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Dense(128, activation="relu")(layers.Flatten()(x))
    return keras.Model(i, layers.Dense(10, activation="softmax")(x))


def lstm(keras):
    layers = keras.layers
    i = keras.Input(batch_shape=(32, 200), dtype="int32")
    x = layers.LSTM(128)(layers.Embedding(TOKENS, 128)(i))
    return keras.Model(i, layers.Dense(1, activation="sigmoid")(x))


def resnet20(keras):
    """He et al., section 4.2, for images of 32 × 32, with a batch of 32."""
    layers = keras.layers

    def normalized(x, filters, size, stride=1):
        x = layers.Conv2D(filters, size, strides=stride, padding="same",
                          use_bias=False)(x)
        return layers.BatchNormalization()(x)

    i = keras.Input(batch_shape=(32, 32, 32, 3))
    x = layers.ReLU()(normalized(i, 16, 3))
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(3):
            stride = 2 if stage and not block else 1
            y = layers.ReLU()(normalized(x, filters, 3, stride))
            y = normalized(y, filters, 3)
            if stride != 1:
                x = normalized(x, filters, 1, stride)
            x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(i, layers.Dense(10, activation="softmax")(x))


class Training(NamedTuple):
    make: Callable
    classes: int
    optimizer: str


RATES = {"sgd": 1e-3, "adam": 1e-4}
MODELS = {
    "mlp_b128": Training(mlp, 10, "sgd"),
    "lenet_b32": Training(lenet, 10, "sgd"),
    "lstm_b32": Training(lstm, 1, "adam"),
    "resnet20_b32": Training(resnet20, 10, "adam"),
}


def set_weights(model):
    """The same numbers in every system."""
    import numpy as np

    random = np.random.default_rng(7)
    weights = []
    for old in model.get_weights():
        if old.ndim == 1:  # biases, scales and statistics stay what they are
            weights.append(old)
            continue
        deviation = np.sqrt(1 / np.prod(old.shape[:-1]))
        weights.append(random.normal(0, deviation, old.shape).astype("float32"))
    model.set_weights(weights)


def batch(model, classes):
    """An input, and a label for each row: [rows, 1] of float32 or [rows] of int32."""
    import numpy as np

    random = np.random.default_rng(3)
    shape = model.inputs[0].shape
    shape = tuple(int(extent) for extent in shape)
    if len(shape) == 2 and shape[1] == 200:
        x = random.integers(0, TOKENS, shape).astype("int32")
    else:
        x = random.normal(0, 1, shape).astype("float32")
    y = random.integers(0, max(classes, 2), shape[0]).astype("int32")
    return x, y.astype("float32")[:, None] if classes == 1 else y
