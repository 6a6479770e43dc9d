"""One architecture written as ONNX, in a process of its own: a row of architectures.py with random weights of one seed, through an exporter of PyTorch.

usage: export.py NAME dynamo|torchscript small|real MODEL.onnx
Beside the model: MODEL.onnx.PORT.npy, its inputs; MODEL.onnx.wantN.npy, what ONNX Runtime answers; at last MODEL.onnx.json: the answers' names, which extents are open, and
how far ONNX Runtime is from PyTorch, or why there is none. The model is made of inputs of two and asked with one: what an exporter writes down of the example shows.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnxruntime
import torch

import architectures
import beside


class Flat(torch.nn.Module):
    """A call of a model from inputs by their places to a tuple of tensors."""

    def __init__(self, model, call, ports):
        super().__init__()
        self.model, self.call, self.ports = model, [call], ports  # the call in a list: a part of the model is not to be its part twice

    def forward(self, *args):
        return tuple(tensors(self.call[0](**dict(zip(self.ports, args)))))


def tensors(value):
    """All tensors of what a model returned, in its order; caches are none."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for each in value for t in tensors(each)] if isinstance(value, (tuple, list)) else []


def stir(model, flat, example):
    """What starts as one number everywhere (biases, norms, the scales of layers) gets values of its own: a kernel that drops it is to show. Weights too small for their few
    channels are scaled, batch norms learn what they see, so that answers hang on the inputs."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            fan = (tensor.numel() / len(tensor)) ** 0.5 if tensor.dim() > 1 else 0
            if fan > 1 and 0 < tensor.std() < 0.5 / fan:
                tensor.mul_(1 / (fan * tensor.std()))
            elif tensor.min() == tensor.max():
                tensor.copy_(0.1 * torch.randn_like(tensor) + (tensor if name.endswith("bias") or tensor.abs().max() > 0.1 else 0.5))
        norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_var is not None]
        for part in norms:
            part.momentum = 1.0
            part.weight.uniform_(0.7, 1.3) if part.affine else None
            part.train()
        try:
            flat(*example) if norms else None
        except ValueError:  # one value a channel has no variance
            pass
        for part in norms:
            part.eval()
            part.running_var.clamp_(min=1e-3)


def write(model, args, ports, opened, exporter, path, answers):
    """The file, with the extents of `opened` ({port: {axis: name}}) open."""
    names = {"input_names": ports, "output_names": [f"y{i}" for i in range(answers)]}
    if exporter == "dynamo":
        torch.onnx.export(model, args, path, dynamo=True, verbose=False, dynamic_shapes=(tuple(opened[p] for p in ports),) if any(opened.values()) else None, **names)
    else:
        torch.onnx.export(model, args, path, dynamo=False, dynamic_axes={p: axes for p, axes in opened.items() if axes}, **names)


def ends_with(error):
    """The first cause, in a line."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return (type(error).__name__ + ": " + " ".join(str(error).split()))[:300]


def attempt(name, exporter, size, path, free):
    """What the json says, of a model whose extents of names in `free` are open."""
    torch.manual_seed(7)
    model, call = architectures.build(name, size)
    feeds, two = [architectures.feeds(name, size, {"batch": n}) for n in (1, 2)]
    eight = architectures.feeds(name, size, {"batch": 8, "seed": 7})
    many = two if "batch" in free else feeds
    flat = Flat(model, call, list(feeds)).eval()
    stir(model, flat, tuple(map(torch.from_numpy, eight.values())))
    with torch.no_grad():
        right = [t.numpy() for t in flat(*map(torch.from_numpy, feeds.values()))]
        opened = {port: {axis: each for axis, each in enumerate(shape) if each in free} for port, shape in architectures.shapes(name).items()}
        write(flat, tuple(map(torch.from_numpy, many.values())), list(feeds), opened, exporter, path, len(right))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ports = [port.name for port in session.get_inputs()]  # what the model does not read is gone
    answers = [port.name for port in session.get_outputs()]
    want = session.run(answers, {port: feeds[port] for port in ports})
    for port in ports:
        np.save(f"{path}.{port}.npy", np.asarray(feeds[port], order="C"))
    for i, value in enumerate(want):
        np.save(f"{path}.want{i}.npy", np.asarray(value, order="C"))
    off = max(map(beside.difference, want, right)) if len(want) == len(right) else None
    return {"ports": ports, "answers": answers, "open": sorted({n for axes in opened.values() for n in axes.values()}), "torch": off}


def main():
    name, exporter, size, path = sys.argv[1:5]
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(4)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    why = []
    for free in (architectures.OPEN, {"batch"}, set()):
        try:
            made = attempt(name, exporter, size, path, free)
            break
        except Exception as error:  # whatever an exporter says
            why.append(ends_with(error))
            made = {"why": why[-1]}
    with open(path + ".json", "w", encoding="utf-8") as f:
        json.dump(dict(made, row=architectures.facts(name, size), tried=why), f, indent=1)


if __name__ == "__main__":
    main()
