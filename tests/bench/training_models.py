"""Models whose training steps are measured, in what Keras 2.3.1 and Keras 3 share.

Each is a function of Keras and gives a model with a static batch. MODELS says
what they are trained with: the number of classes (1: a probability), the
optimizer and its rate.
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


def normalized_convolution(layers):
    """The function that makes a convolution and its normalization of `layers`."""
    def normalized(x, filters, size, stride=1):
        x = layers.Conv2D(filters, size, strides=stride, padding="same",
                          use_bias=False)(x)
        return layers.BatchNormalization()(x)

    return normalized


def resnet20(keras):
    """He et al., section 4.2, for images of 32 × 32, with a batch of 32."""
    layers, normalized = keras.layers, normalized_convolution(keras.layers)
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


def resnet50(keras):
    """He et al., table 1, with biases only at the end, for 8 images of 112 × 112."""
    layers, normalized = keras.layers, normalized_convolution(keras.layers)
    i = keras.Input(batch_shape=(8, 112, 112, 3))
    x = layers.ReLU()(normalized(i, 64, 7, 2))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        filters = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = layers.ReLU()(normalized(x, filters, 1, stride))
            y = layers.ReLU()(normalized(y, filters, 3))
            y = normalized(y, 4 * filters, 1)
            if not block:
                x = normalized(x, 4 * filters, 1, stride)
            x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(i, layers.Dense(1000, activation="softmax")(x))


def layer_normalization(keras):
    """The layer: Keras 2.3.1 has none."""
    if hasattr(keras.layers, "LayerNormalization"):
        return keras.layers.LayerNormalization(epsilon=1e-12)
    K = keras.backend

    class LayerNormalization(keras.layers.Layer):
        def build(self, shape):
            self.gamma = self.add_weight("gamma", shape[-1:], initializer="ones")
            self.beta = self.add_weight("beta", shape[-1:], initializer="zeros")
            super().build(shape)

        def call(self, x):
            off = x - K.mean(x, axis=-1, keepdims=True)
            variance = K.mean(K.square(off), axis=-1, keepdims=True)
            return off / K.sqrt(variance + 1e-12) * self.gamma + self.beta

    return LayerNormalization()


def bert_mini(keras):
    """Turc et al.: 4 layers of 256, 4 heads; 8 rows of 128 tokens, one label each."""
    layers, width, heads, length, rows = keras.layers, 256, 4, 128, 8
    K = getattr(keras, "ops", keras.backend)
    transpose = getattr(K, "permute_dimensions", K.transpose)

    def multiply(x, y, axes):
        if hasattr(K, "batch_dot"):
            return K.batch_dot(x, y, axes)
        return K.matmul(x, transpose(y, (0, 2, 1)) if axes[1] == 2 else y)

    def split(x):
        x = K.reshape(x, (rows, length, heads, width // heads))
        return K.reshape(transpose(x, (0, 2, 1, 3)), (rows * heads, length, width // heads))

    def attend(inputs):
        q, k, v = map(split, inputs)
        scores = multiply(q, k, (2, 2)) * (width // heads)**-0.5
        y = multiply(K.softmax(scores), v, (2, 1))
        y = K.reshape(y, (rows, heads, length, width // heads))
        return K.reshape(transpose(y, (0, 2, 1, 3)), (rows, length, width))

    def gelu(x):
        return 0.5 * x * (1 + K.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))

    def formula(f, size):
        return layers.Lambda(f, output_shape=(length, size))

    i = keras.Input(batch_shape=(rows, length), dtype="int32")
    x = layer_normalization(keras)(layers.Embedding(TOKENS, width)(i))
    for _ in range(4):
        y = formula(attend, width)([layers.Dense(width)(x) for _ in range(3)])
        x = layer_normalization(keras)(layers.Add()([x, layers.Dense(width)(y)]))
        y = formula(gelu, 4 * width)(layers.Dense(4 * width)(x))
        x = layer_normalization(keras)(layers.Add()([x, layers.Dense(width)(y)]))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(i, layers.Dense(1, activation="sigmoid")(x))


class Training(NamedTuple):
    make: Callable
    classes: int
    optimizer: str
    rate: float


MODELS = {
    "mlp_b128": Training(mlp, 10, "sgd", 1e-3),
    "lenet_b32": Training(lenet, 10, "sgd", 1e-3),
    "lstm_b32": Training(lstm, 1, "adam", 1e-4),
    "resnet20_b32": Training(resnet20, 10, "adam", 1e-4),
    # With larger steps the loss depends on the last bits.
    "resnet50_b8": Training(resnet50, 1000, "sgd", 1e-6),
    "bert_mini_b8": Training(bert_mini, 1, "adam", 1e-4),
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
    if len(shape) == 2 and shape[1] <= 200:
        # All differ: TensorFlow squares the gradients of equal ones one by one.
        x = random.permutation(TOKENS)[:shape[0] * shape[1]]
        x = x.reshape(shape).astype("int32")
    else:
        x = random.normal(0, 1, shape).astype("float32")
    y = random.integers(0, max(classes, 2), shape[0]).astype("int32")
    return x, y.astype("float32")[:, None] if classes == 1 else y
