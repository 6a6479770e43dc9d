"""The workloads: where each one's .snt text is, its seeded weights and inputs, and the same function as ONNX (opset 17).

The .snt text is the one description of shapes: weights are its `const data="FILE"` lines, inputs its ports. A builder below adds the operators.
Needs numpy and onnx, so only the peers' environment imports it.
"""
import os
import re
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BENCH = os.path.dirname(os.path.abspath(__file__))
WEIGHT = re.compile(r'%(\w+): f32\[([\d,]+)\] = const data="([^"]+)"')
PORT = re.compile(r"%(\w+): f32\[([\w,]+)\]")


class Net:
    """A small ONNX builder: every method adds a node and returns the name of its result."""

    def __init__(self, name, inputs, weights):
        self.name, self.nodes = name, []
        self.inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in inputs.items()]
        self.inits = [numpy_helper.from_array(v, k) for k, v in weights.items()]

    def const(self, array):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def scalar(self, value):
        return self.const(np.array(value, np.float32))

    def op(self, kind, *args, **attrs):
        args = [self.scalar(a) if isinstance(a, float) else a for a in args]
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, args, [out], **attrs))
        return out

    def save(self, out, path):
        self.nodes.append(helper.make_node("Identity", [out], ["y"]))
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.inits)
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
        onnx.checker.check_model(model)
        onnx.save(model, path)


def chain10(n):
    y = n.op("Relu", n.op("Add", n.op("Mul", "x", 0.9), 0.1))
    y = n.op("Abs", n.op("Sub", n.op("Mul", y, y), 0.3))
    y = n.op("Max", n.op("Min", n.op("Mul", y, 1.5), 4.0), -4.0)
    return n.op("Add", y, "x")


def postprocess(n):
    g = np.exp(-0.5 * (np.arange(-4, 5) / 2.0) ** 2)
    g = (g / g.sum()).astype(np.float32)
    across, down = n.const(np.tile(g.reshape(1, 1, 1, 9), (3, 1, 1, 1))), n.const(np.tile(g.reshape(1, 1, 9, 1), (3, 1, 1, 1)))
    b = n.op("Max", n.op("Sub", "x", 0.8), 0.0)
    b = n.op("Conv", b, across, kernel_shape=[1, 9], pads=[0, 4, 0, 4], group=3)
    b = n.op("Conv", b, down, kernel_shape=[9, 1], pads=[4, 0, 4, 0], group=3)
    c = n.op("Add", "x", n.op("Mul", b, 0.6))
    num = n.op("Mul", c, n.op("Add", n.op("Mul", c, 2.51), 0.03))
    den = n.op("Add", n.op("Mul", c, n.op("Add", n.op("Mul", c, 2.43), 0.59)), 0.14)
    t = n.op("Sqrt", n.op("Clip", n.op("Div", num, den), 0.0, 1.0))
    k = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32).reshape(1, 1, 3, 3)
    s = n.op("Conv", t, n.const(np.tile(k, (3, 1, 1, 1))), kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=3)
    return n.op("Clip", s, 0.0, 1.0)


def matmul_1024(n):
    return n.op("MatMul", "x", "w")


def mlp_gelu(n):
    h = n.op("Add", n.op("MatMul", "x", "w"), "b")
    return n.op("Mul", n.op("Mul", h, n.op("Add", n.op("Erf", n.op("Mul", h, 0.7071067811865476)), 1.0)), 0.5)


def softmax(n):
    return n.op("Softmax", "x", axis=-1)


def layernorm_residual(n):
    return n.op("LayerNormalization", n.op("Add", "x", "r"), "gamma", "beta", axis=-1, epsilon=1e-5)


def conv_bn_relu(n):
    c = n.op("Conv", "x", "w", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return n.op("Relu", n.op("Add", n.op("BatchNormalization", c, "gamma", "beta", "mean", "variance", epsilon=1e-5), "x"))


def attention(n):
    s = n.op("Mul", n.op("MatMul", "x", n.op("Transpose", "k", perm=[0, 1, 3, 2])), 0.125)
    return n.op("MatMul", n.op("Softmax", s, axis=-1), "v")


# name: (builder, folder of the .snt, extents of its symbols)
WORKLOADS = {
    "chain10": (chain10, "../examples", {}),
    "postprocess": (postprocess, "../examples", {"h": 1080, "w": 1920}),
    "matmul_1024": (matmul_1024, "models", {}),
    "mlp_gelu": (mlp_gelu, "models", {}),
    "softmax": (softmax, "models", {}),
    "layernorm_residual": (layernorm_residual, "models", {}),
    "conv_bn_relu": (conv_bn_relu, "models", {}),
    "attention": (attention, "models", {}),
}


def weight(rng, name, shape):
    if name in ("gamma", "variance"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    terms = shape[0] if len(shape) == 2 else int(np.prod(shape[1:])) if len(shape) > 2 else 100
    return (rng.standard_normal(shape) / np.sqrt(terms)).astype(np.float32)


def write(name, out):
    """Writes OUT/NAME.snt with its weights beside it, NAME.onnx, and NAME.PORT.npy for each input. Returns the command's arguments and the inputs."""
    build, folder, dims = WORKLOADS[name]
    text_path = shutil.copy(os.path.join(BENCH, folder, name + ".snt"), out)
    with open(text_path) as f:
        text = f.read()
    rng = np.random.default_rng(1)
    weights, inputs = {}, {}
    for value, shape, file in WEIGHT.findall(text):
        weights[value] = weight(rng, value, [int(d) for d in shape.split(",")])
        weights[value].tofile(os.path.join(out, file))
    head = re.search(r"graph @\w+\((.*?)\) \{", text).group(1)
    arguments = [text_path] + [a for k, v in dims.items() for a in ("--dim", f"{k}={v}")]
    for port, shape in PORT.findall(head):
        inputs[port] = rng.uniform(-1, 1, [dims[d] if d in dims else int(d) for d in shape.split(",")]).astype(np.float32)
        path = os.path.join(out, f"{name}.{port}.npy")
        np.save(path, inputs[port])
        arguments += ["--input", f"{port}={path}"]
    net = Net(name, inputs, weights)
    net.save(build(net), os.path.join(out, name + ".onnx"))
    return arguments, inputs
