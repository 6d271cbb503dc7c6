"""Builds one large model with real Keras, with random weights.

    make.py NAME DIRECTORY      writes model.keras, input.npz, reference.npz
    make.py                     lists the names

The reference is computed in float64 from the same float32 weights.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import layers as L
from keras import ops


def image(*shape, batch=1):
    return keras.Input(batch_shape=(batch, *shape))


def tokens(length, batch=1):
    return keras.Input(batch_shape=(batch, length), dtype="int32")


def application(name):
    return lambda: getattr(keras.applications, name)(
        weights=None, input_tensor=image(224, 224, 3))


def mlp(batch=1):
    x = i = keras.Input(batch_shape=(batch, 784))
    for _ in range(2):
        x = L.Dense(512, activation="relu")(x)
    return keras.Model(i, L.Dense(10, activation="softmax")(x))


def lenet(batch=1):
    x = i = image(28, 28, 1, batch=batch)
    for filters in (32, 64):
        x = L.MaxPooling2D()(L.Conv2D(filters, 3, activation="relu")(x))
    x = L.Dense(128, activation="relu")(L.Flatten()(x))
    return keras.Model(i, L.Dense(10, activation="softmax")(x))


def normalized(x, layer):
    return L.ReLU()(L.BatchNormalization()(layer(x)))


def unet():
    def block(x, filters):
        for _ in range(2):
            x = normalized(x, L.Conv2D(filters, 3, padding="same", use_bias=False))
        return x

    x = i = image(256, 256, 3)
    skips = []
    for filters in (32, 64, 128):
        x = block(x, filters)
        skips.append(x)
        x = L.MaxPooling2D()(x)
    x = block(x, 256)
    for filters in (128, 64, 32):
        x = L.Conv2DTranspose(filters, 2, strides=2, padding="same")(x)
        x = block(L.Concatenate()([x, skips.pop()]), filters)
    return keras.Model(i, L.Conv2D(1, 1, activation="sigmoid")(x))


def embedded(i, vocabulary, width):
    positions = ops.cumsum(ops.ones_like(i), axis=1) - 1
    return L.Add()([L.Embedding(vocabulary, width)(i),
                    L.Embedding(i.shape[1], width)(positions)])


def feed_forward(x, width):
    return L.Dense(width)(L.Dense(4 * width, activation="gelu")(x))


def attention(width):
    return L.MultiHeadAttention(12, width // 12, flash_attention=False)


def bert(width=768):
    i = tokens(128)
    x = L.LayerNormalization(epsilon=1e-6)(embedded(i, 8192, width))
    for _ in range(12):
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, attention(width)(x, x)]))
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, feed_forward(x, width)]))
    return keras.Model(i, x)


def gpt2(width=768):
    i = tokens(64)
    x = embedded(i, 8192, width)
    for _ in range(12):
        h = L.LayerNormalization(epsilon=1e-5)(x)
        x = L.Add()([x, attention(width)(h, h, use_causal_mask=True)])
        h = L.LayerNormalization(epsilon=1e-5)(x)
        x = L.Add()([x, feed_forward(h, width)])
    x = L.LayerNormalization(epsilon=1e-5)(x)
    return keras.Model(i, L.Dense(8192, use_bias=False)(x))


def lstm(batch=1):
    i = tokens(200, batch)
    x = L.LSTM(128)(L.Embedding(20000, 128)(i))
    return keras.Model(i, L.Dense(1, activation="sigmoid")(x))


def gru():
    i = image(100, 128)
    return keras.Model(i, L.GRU(256, return_sequences=True)(i))


def audio():
    i = image(16000, 1)
    x = normalized(i, L.Conv1D(64, 80, strides=4, padding="same", use_bias=False))
    x = L.MaxPooling1D(4)(x)
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
        x = normalized(x, L.DepthwiseConv1D(9, strides=stride, padding="same",
                                            use_bias=False))
        x = normalized(x, L.Conv1D(filters, 1, use_bias=False))
    x = L.ReLU()(L.SeparableConv1D(256, 9, padding="same")(x))
    x = L.GlobalAveragePooling1D()(x)
    return keras.Model(i, L.Dense(35, activation="softmax")(x))


ZOO = {
    "mlp": mlp,
    "mlp_b128": lambda: mlp(128),
    "lenet": lenet,
    "lenet_b32": lambda: lenet(32),
    "mobilenetv2": application("MobileNetV2"),
    "resnet50": application("ResNet50"),
    "densenet121": application("DenseNet121"),
    "efficientnetb0": application("EfficientNetB0"),
    "vgg16": application("VGG16"),
    "unet": unet,
    "bert_base": bert,
    "gpt2_small": gpt2,
    "lstm": lstm,
    "lstm_b32": lambda: lstm(32),
    "gru": gru,
    "audio": audio,
}


def input_of(model):
    random = np.random.default_rng(3)
    tensor = model.inputs[0]
    if tensor.dtype == "int32":
        return random.integers(0, 8192, tensor.shape).astype("int32")
    return random.normal(0, 1, tensor.shape).astype("float32")


def randomize(model, x):
    """Statistics and biases that training would have left, and logits with a
    standard deviation of 1.5, so that softmax is not saturated."""
    random = np.random.default_rng(7)
    for variable in model.weights:
        name, shape = variable.path.split("/")[-1], tuple(variable.shape)
        if name in ("moving_mean", "beta", "bias"):
            variable.assign(random.normal(0, 0.05, shape).astype("float32"))
        elif name == "moving_variance":
            variable.assign(random.uniform(0.7, 1.3, shape).astype("float32"))
        elif name == "gamma":
            variable.assign(random.uniform(0.8, 1.2, shape).astype("float32"))
    last = model.layers[-1]
    if isinstance(last, L.Dense) and last.units > 1:
        features = keras.Model(model.inputs, last.input)(x, training=False)
        logits = ops.convert_to_numpy(ops.matmul(features, last.kernel))
        last.kernel.assign(last.kernel * (1.5 / max(logits.std(), 1e-9)))


def main():
    if len(sys.argv) != 3:
        print(*ZOO)
        return
    make, directory = ZOO[sys.argv[1]], sys.argv[2]
    os.makedirs(directory, exist_ok=True)
    keras.utils.set_random_seed(1)
    model = make()
    x = input_of(model)
    randomize(model, x)
    model.save(os.path.join(directory, "model.keras"))
    np.savez(os.path.join(directory, "input.npz"), x=x)

    weights = model.get_weights()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    model = make()
    model.set_weights(weights)
    if x.dtype == np.float32:
        x = x.astype("float64")
    y = ops.convert_to_numpy(model(x, training=False))
    np.savez(os.path.join(directory, "reference.npz"), y=y)


main()
