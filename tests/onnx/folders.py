"""Test folders as ONNX's own: model.onnx of one or a few operators, and test_data_set_0 with what goes in and what should come out."""
import os

import numpy as np
from onnx import helper, numpy_helper


def write(folder, name, opset, op, inputs, outputs, constants, attrs, domain="", version=1):
    """inputs and outputs: arrays, None: left out; op: a name, or a list of (name, attributes[, inputs, outputs]) one after another; constants: numbers
    of inputs that are initialisers; domain: that of the operators, in `version`, beside ONNX's own of version `opset`."""
    data = os.path.join(folder, name, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    # what is computed in double precision is rounded once
    outputs = [v if v is None else np.asarray(v, np.float32) if np.asarray(v).dtype == float else np.asarray(v) for v in outputs]

    def info(text, v):
        shape = np.asarray(v).shape if text != "x0" or "_open_" not in name else [f"n{k}" for k in range(np.asarray(v).ndim)]
        return helper.make_tensor_value_info(text, helper.mapping.NP_TYPE_TO_TENSOR_TYPE[np.asarray(v).dtype], shape)

    given = [i for i, v in enumerate(inputs) if v is not None and i not in constants]
    if isinstance(op, list):  # one after another
        ends = [names[0]] + [f"t{i}" for i in range(len(op) - 1)] + ["y0"]
        nodes = []
        for i, (one, own, *ports) in enumerate(op):  # ports: names of inputs and of outputs, if not one after another
            start, end = ports or ([ends[i]] + (names[1:] if i == 0 else []), [ends[i + 1]])
            nodes.append(helper.make_node(one, start, end, name=f"node{i}", domain=domain, **own))
    else:
        nodes = [helper.make_node(op, names, ["" if v is None else f"y{i}" for i, v in enumerate(outputs)], name="node", domain=domain, **attrs)]
    graph = helper.make_graph(nodes, name, [info(names[i], inputs[i]) for i in given], [info(f"y{i}", v) for i, v in enumerate(outputs) if v is not None],
                              [numpy_helper.from_array(np.asarray(inputs[i]), names[i]) for i in sorted(constants)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, version)] if domain else []), ir_version=8)
    with open(os.path.join(folder, name, "model.onnx"), "wb") as out:
        out.write(model.SerializeToString())
    wanted = [i for i, v in enumerate(outputs) if v is not None]
    for kind, arrays in [("input", [inputs[i] for i in given]), ("output", [outputs[i] for i in wanted])]:
        for i, v in enumerate(arrays):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as out:
                out.write(numpy_helper.from_array(np.ascontiguousarray(v).reshape(np.asarray(v).shape), names[given[i]] if kind == "input" else f"y{wanted[i]}").SerializeToString())
