"""The fourteen workloads of bench/table as ONNX (opset 17), with seeded weights: WORKLOADS has a builder each, SHAPES the sizes it is built in.

`base` are the sizes that the published figures of others were taken on; `odd` has extents that no tile divides, `batch4` four times the work.
Needs numpy and onnx.   usage: table_models.py OUTDIR [NAME..]   writes NAME.onnx, NAME.odd.onnx and NAME.batch4.onnx
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """An ONNX builder: every method adds nodes and returns the name of the result."""

    def __init__(self, name):
        self.name, self.nodes, self.inits, self.inputs = name, [], [], []
        self.rng = np.random.default_rng(0)

    def input(self, name, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def const(self, array):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def weight(self, *shape, scale=None):
        scale = scale or 1.0 / np.sqrt(max(int(np.prod(shape[1:])), 1))
        return self.const((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind, *args, **attrs):
        args = [self.const(np.array(a, np.float32)) if isinstance(a, float) else a for a in args]
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, args, [out], **attrs))
        return out

    def gelu(self, x):
        e = self.op("Erf", self.op("Mul", x, 0.7071067811865476))
        return self.op("Mul", self.op("Mul", x, self.op("Add", e, 1.0)), 0.5)

    def layernorm(self, x, width):
        return self.op("LayerNormalization", x, self.const(np.ones(width, np.float32)), self.const(np.zeros(width, np.float32)), axis=-1, epsilon=1e-5)

    def linear(self, x, a, b):
        return self.op("Add", self.op("MatMul", x, self.weight(a, b, scale=0.03)), self.weight(b, scale=0.02))

    def conv(self, x, cin, cout, k, stride=1, group=1, act="Relu"):
        """Convolution and batch norm, then the activation if one is named."""
        r, pad = self.rng, k // 2
        y = self.op("Conv", x, self.weight(cout, cin // group, k, k), kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group)
        scale, variance = (r.uniform(0.5, 1.5, cout).astype(np.float32) for _ in range(2))
        bias, mean = (r.standard_normal(cout).astype(np.float32) * 0.1 for _ in range(2))
        y = self.op("BatchNormalization", y, *(self.const(v) for v in (scale, bias, mean, variance)))
        if act == "Relu6":
            return self.op("Clip", y, 0.0, 6.0)
        return self.op(act, y) if act else y

    def save(self, out, path):
        self.nodes.append(helper.make_node("Identity", [out], ["y"]))
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.inits)
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
        onnx.checker.check_model(model)
        onnx.save(model, path)


# ---- elementwise, rows ----

def chain10(n, shape):
    x = n.input("x", *shape)
    y = n.op("Relu", n.op("Add", n.op("Mul", x, 0.9), 0.1))
    y = n.op("Abs", n.op("Sub", n.op("Mul", y, y), 0.3))
    y = n.op("Max", n.op("Min", n.op("Mul", y, 1.5), 4.0), -4.0)
    return n.op("Add", y, x)


def chain10_transcendental(n, shape):
    x = n.input("x", *shape)
    y = n.op("Sigmoid", n.op("Add", n.op("Tanh", n.op("Mul", x, 0.9)), x))
    y = n.op("Log", n.op("Add", n.op("Exp", n.op("Mul", y, x)), 1.0))
    return n.op("Sub", n.op("Erf", y), x)


def softmax(n, shape):
    return n.op("Softmax", n.input("x", *shape), axis=-1)


def layernorm_residual(n, shape):
    return n.layernorm(n.op("Add", n.input("x", *shape), n.input("r", *shape)), shape[-1])


def postprocess(n, size):
    x = n.input("x", size[0], 3, size[1], size[2])
    g = np.exp(-0.5 * (np.arange(-4, 5) / 2.0) ** 2)
    g = (g / g.sum()).astype(np.float32)
    across, down = n.const(np.tile(g.reshape(1, 1, 1, 9), (3, 1, 1, 1))), n.const(np.tile(g.reshape(1, 1, 9, 1), (3, 1, 1, 1)))
    b = n.op("Max", n.op("Sub", x, 0.8), 0.0)
    b = n.op("Conv", b, across, kernel_shape=[1, 9], pads=[0, 4, 0, 4], group=3)
    b = n.op("Conv", b, down, kernel_shape=[9, 1], pads=[4, 0, 4, 0], group=3)
    c = n.op("Add", x, n.op("Mul", b, 0.6))
    over = n.op("Mul", c, n.op("Add", n.op("Mul", c, 2.51), 0.03))
    under = n.op("Add", n.op("Mul", c, n.op("Add", n.op("Mul", c, 2.43), 0.59)), 0.14)
    t = n.op("Sqrt", n.op("Clip", n.op("Div", over, under), 0.0, 1.0))
    k = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32).reshape(1, 1, 3, 3)
    s = n.op("Conv", t, n.const(np.tile(k, (3, 1, 1, 1))), kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=3)
    return n.op("Clip", s, 0.0, 1.0)


# ---- products ----

def matmul_1024(n, size):
    m, k, cols = size
    return n.op("MatMul", n.input("x", m, k), n.weight(k, cols, scale=0.03))


def mlp_gelu(n, size):
    m, k, cols = size
    y = n.op("MatMul", n.input("x", m, k), n.weight(k, cols, scale=0.03))
    return n.gelu(n.op("Add", y, n.weight(cols, scale=0.1)))


def swiglu(n, size):
    m, k, cols = size
    x = n.input("x", m, k)
    g, u = (n.op("MatMul", x, n.weight(k, cols, scale=0.03)) for _ in range(2))
    return n.op("Mul", n.op("Mul", g, n.op("Sigmoid", g)), u)


def attention(n, size):
    q, k, v = (n.input(s, *size) for s in ("x", "k", "v"))
    s = n.op("Mul", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), 1.0 / float(np.sqrt(size[-1])))
    return n.op("MatMul", n.op("Softmax", s, axis=-1), v)


# ---- convolutions and networks ----

def conv_bn_relu(n, size):
    batch, channels, edge = size
    x = n.input("x", batch, channels, edge, edge)
    return n.op("Relu", n.op("Add", n.conv(x, channels, channels, 3, act=None), x))


def depthwise(n, size):
    batch, channels, edge, out = size
    y = n.conv(n.input("x", batch, channels, edge, edge), channels, channels, 3, group=channels, act="Relu6")
    return n.conv(y, channels, out, 1, act=None)


def encoder_layer(n, x, batch, tokens, width, heads, inner):
    def split(t):
        shape = n.const(np.array([batch, tokens, heads, width // heads], np.int64))
        return n.op("Transpose", n.op("Reshape", t, shape), perm=[0, 2, 1, 3])
    q, k, v = (split(n.linear(x, width, width)) for _ in range(3))
    s = n.op("Div", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), float(np.sqrt(width // heads)))
    o = n.op("Transpose", n.op("MatMul", n.op("Softmax", s, axis=-1), v), perm=[0, 2, 1, 3])
    o = n.linear(n.op("Reshape", o, n.const(np.array([batch, tokens, width], np.int64))), width, width)
    x = n.layernorm(n.op("Add", o, x), width)
    h = n.linear(n.gelu(n.linear(x, width, inner)), inner, width)
    return n.layernorm(n.op("Add", h, x), width)


def minilm(n, size):
    batch, tokens = size
    x = n.input("x", batch, tokens, 384)
    for _ in range(6):
        x = encoder_layer(n, x, batch, tokens, 384, 12, 1536)
    return x


def classify(n, x, cin, scale):
    x = n.op("Flatten", n.op("GlobalAveragePool", x))
    return n.op("Gemm", x, n.weight(cin, 1000, scale=scale), n.weight(1000, scale=0.01))


def mobilenet_v2(n, size):
    batch, edge = size
    x, cin = n.conv(n.input("x", batch, 3, edge, edge), 3, 32, 3, 2, act="Relu6"), 32
    for t, c, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(count):
            s, skip, mid = (stride if i == 0 else 1), x, cin * t
            y = n.conv(x, cin, mid, 1, act="Relu6") if t != 1 else x
            y = n.conv(n.conv(y, mid, mid, 3, s, group=mid, act="Relu6"), mid, c, 1, act=None)
            x = n.op("Add", y, skip) if s == 1 and cin == c else y
            cin = c
    return classify(n, n.conv(x, 320, 1280, 1, act="Relu6"), 1280, 0.03)


def resnet50(n, size):
    batch, edge = size
    x = n.conv(n.input("x", batch, 3, edge, edge), 3, 64, 7, 2)
    x, cin = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for width, count, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(count):
            s, skip = (stride if i == 0 else 1), x
            y = n.conv(n.conv(n.conv(x, cin, width, 1), width, width, 3, s), width, width * 4, 1, act=None)
            if i == 0:
                skip = n.conv(x, cin, width * 4, 1, s, act=None)
            x, cin = n.op("Relu", n.op("Add", y, skip)), width * 4
    return classify(n, x, 2048, 0.02)


WORKLOADS = {f.__name__: f for f in (chain10, chain10_transcendental, softmax, layernorm_residual, matmul_1024, mlp_gelu, swiglu, conv_bn_relu, depthwise,
                                     attention, postprocess, minilm, mobilenet_v2, resnet50)}
SHAPES = {  # name: base, odd, batch4
    "chain10": [(16, 1024, 1024), (13, 1021, 1009), (64, 1024, 1024)],
    "chain10_transcendental": [(4, 1024, 1024), (3, 1021, 1009), (16, 1024, 1024)],
    "softmax": [(4096, 1024), (4093, 1021), (16384, 1024)],
    "layernorm_residual": [(4096, 1024), (4093, 1021), (16384, 1024)],
    "matmul_1024": [(1024, 1024, 1024), (1021, 1019, 1013), (4096, 1024, 1024)],
    "mlp_gelu": [(512, 768, 3072), (509, 761, 3067), (2048, 768, 3072)],
    "swiglu": [(256, 768, 2048), (251, 761, 2039), (1024, 768, 2048)],
    "conv_bn_relu": [(1, 64, 56), (1, 61, 53), (4, 64, 56)],
    "depthwise": [(1, 96, 112, 24), (1, 93, 109, 23), (4, 96, 112, 24)],
    "attention": [(1, 12, 512, 64), (1, 11, 509, 61), (4, 12, 512, 64)],
    "postprocess": [(1, 1080, 1920), (1, 1077, 1913), (4, 1080, 1920)],
    "minilm": [(1, 128), (1, 101), (4, 128)],
    "mobilenet_v2": [(1, 224), (1, 197), (4, 224)],
    "resnet50": [(1, 224), (1, 197), (4, 224)],
}
VARIANTS = ("base", "odd", "batch4")


def write(name, variant, out):
    """Writes the model unless it is there; returns its path and the inputs, seeded, in [-1, 1)."""
    size = SHAPES[name][VARIANTS.index(variant)]
    path = os.path.join(out, name + ("" if variant == "base" else "." + variant) + ".onnx")
    net = Net(name)
    if not os.path.exists(path):
        net.save(WORKLOADS[name](net, size), path)
    rng = np.random.default_rng(1)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in onnx.load(path).graph.input}
    return path, {port: rng.uniform(-1, 1, shape).astype(np.float32) for port, shape in shapes.items()}


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for wanted in sys.argv[2:] or WORKLOADS:
        for each in VARIANTS:
            print(write(wanted, each, sys.argv[1])[0])
