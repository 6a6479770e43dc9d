"""One peer on one model, in a process that stays: times a block of runs whenever it is told to.

usage: peer.py ort|openvino MODEL.onnx OUTPUT.npy [PORT=FILE.npy ...]
Writes the first result to OUTPUT.npy and says `ready`; then each line N on standard input runs N times and answers with the milliseconds as JSON.
"""
import json
import os
import sys
import time

import numpy as np

THREADS = os.cpu_count()


def make_ort(path, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)[0]


def make_openvino(path, feeds):
    import openvino
    hints = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", hints).create_infer_request()
    for port, value in feeds.items():
        request.set_tensor(port, openvino.Tensor(value))

    def step():
        request.infer()
        return request.get_output_tensor(0).data
    return step


MAKERS = {"ort": make_ort, "openvino": make_openvino}


def main():
    peer, path, output = sys.argv[1:4]
    feeds = {port: np.load(file) for port, file in (a.split("=", 1) for a in sys.argv[4:])}
    step = MAKERS[peer](path, feeds)
    np.save(output, step())
    print("ready", flush=True)
    for line in sys.stdin:
        step()  # warm again after the others' block
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
