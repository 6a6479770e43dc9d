"""PyTorch's side of bench/device: for each workload of the JSON on standard input a line {name: microseconds of a call}, the least of several times many calls
one behind the other, on a GPU as a graph of them, by the device's clock: what its kernels take, not what asks for them. usage: python bench/device_torch.py cuda|cpu. Inputs are those that the graph names, by letters in their order, from one seed."""
import json
import re
import sys
import time

import torch
import torch.nn.functional as F

TYPES = {"f32": torch.float32, "f16": torch.float16, "i8": torch.int8}
BLOCKS, CALLS, SECONDS = 7, 20, 0.2


def inputs(graph, device):
    head = graph[graph.index("(") + 1:graph.index(")")]
    made = []
    for dtype, shape in re.findall(r"%\w+: (\w+)\[([\d,]+)\]", head):
        extents = [int(e) for e in shape.split(",")]
        values = torch.randint(-100, 100, extents) if dtype == "i8" else torch.randn(extents)
        made.append(values.to(TYPES[dtype]).to(device))
    return dict(zip("abcdefgh", made))


def replayed(call):
    """Of a CUDA graph of the calls."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    best = None
    for _ in range(BLOCKS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        took = begin.elapsed_time(end) / 1e3 / CALLS
        best = took if best is None or took < best else best
    return 1e6 * best


def least(call):
    call()
    best = None
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for count in range(1, CALLS + 1):
            call()
            if time.perf_counter() - begin > SECONDS:
                break
        took = (time.perf_counter() - begin) / count
        best = took if best is None or took < best else best
    return 1e6 * best


def main():
    device = sys.argv[1]
    torch.manual_seed(1)
    name = torch.cuda.get_device_name() if device == "cuda" else "the processor"
    print(json.dumps({"what": f"PyTorch {torch.__version__} on {name}, without tf32: the least of {BLOCKS} times {CALLS} calls one behind the other."}), flush=True)
    for work in json.load(sys.stdin):
        code = compile(work["torch"], work["name"], "eval")
        try:
            with torch.inference_mode():
                given = inputs(work["graph"], device)
                us = (replayed if device == "cuda" else least)(lambda: eval(code, {"torch": torch, "F": F}, given))
            print(json.dumps({work["name"]: us}), flush=True)
        except RuntimeError as error:
            print(f"{work['name']}: {error}", file=sys.stderr, flush=True)


main()
