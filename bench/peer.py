"""One peer on one model, in a process that stays: times a block of runs whenever it is told to.

usage: peer.py NAME MODEL.onnx OUTPUT.npy [PORT=FILE.npy ...]      NAME: a key of MAKERS
Writes the first result to OUTPUT.npy and says `ready SECONDS`; then each line N on standard input runs N times and answers with the milliseconds as JSON.
"""
import json
import os
import subprocess
import sys
import time

import numpy as np

THREADS = os.cpu_count()


def make_ort(path, feeds, fused=True):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    if not fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
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


def make_torch(path, feeds, compiled=False):
    import onnx
    import torch
    from onnx2torch import convert
    torch.set_num_threads(THREADS)
    model = convert(onnx.load(path)).eval()
    args = [torch.from_numpy(v) for v in feeds.values()]
    function = torch.compile(model, options={"freezing": True}) if compiled else model

    def step():
        with torch.inference_mode():
            return function(*args).numpy()
    return step


def make_torch_on(device, path, feeds, compiled=False):
    """On a GPU, in f32 without tf32; compiled: with CUDA graphs. A step ends when the GPU has the result."""
    import onnx
    import torch
    from onnx2torch import convert
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = convert(onnx.load(path)).eval().to(device)
    args = [torch.from_numpy(v).to(device) for v in feeds.values()]
    function = torch.compile(model, mode="reduce-overhead") if compiled else model

    def step():
        with torch.inference_mode():
            result = function(*args)
            torch.accelerator.synchronize()
            return result
    return step


def compile_iree(path, flags, suffix):
    """The compiled module, kept beside the model: IREE takes up to minutes for a network."""
    from iree.compiler.tools.binaries import find_tool
    module = path[:-5] + suffix
    if not os.path.exists(module):
        text = path[:-5] + ".mlir"
        subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", path, "-o", text, "--opset-version", "17"], check=True, capture_output=True)
        done = subprocess.run([find_tool("iree-compile"), text, "-o", module + ".part", "--iree-input-type=onnx", "--iree-opt-level=O3"] + flags,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-800:])
        os.rename(module + ".part", module)
    return module


IREE_FLAGS = {
    "local-task": ["--iree-llvmcpu-target-cpu=host", "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"],
    "vulkan": ["--iree-hal-target-device=vulkan", "--iree-vulkan-target=" + os.environ.get("IREE_VULKAN_TARGET", "vp_android_baseline_2022")],
}


def make_iree(path, feeds, driver):
    import iree.runtime as runtime
    device = runtime.get_device(driver)
    config = runtime.Config(device=device)
    with open(compile_iree(path, IREE_FLAGS[driver], f".{driver}.vmfb"), "rb") as file:
        module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, file.read()), config)
    args = [runtime.asdevicearray(device, v) for v in feeds.values()]
    name = [n for n in module.vm_module.function_names if "async" not in n and "__init" not in n][0]
    return lambda: Staged(device, module[name](*args))  # comes back when the device has finished


class Staged:
    """IREE's own way to the host imports host memory, which fails on Vulkan unless it lies on pages: this one copies into memory of the device's."""

    def __init__(self, device, array):
        self.device, self.array = device, array

    def to_host(self):
        import iree.runtime as runtime
        view = self.array._buffer_view
        source = view.get_buffer()
        visible = int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE)
        usage = int(runtime.BufferUsage.TRANSFER_TARGET | runtime.BufferUsage.MAPPING_SCOPED)
        target = self.device.allocator.allocate_buffer(memory_type=visible, allowed_usage=usage, allocation_size=source.byte_length())
        done = self.device.create_semaphore(0)
        self.device.queue_copy(source, target, wait_semaphores=runtime.HalFence.create_at(done, 0), signal_semaphores=runtime.HalFence.create_at(done, 1))
        runtime.HalFence.create_at(done, 1).wait()
        return np.array(target.map().asarray(view.shape, self.array.dtype))


def make_tinygrad(path, feeds):
    os.environ.setdefault("DEV", "CL")
    os.environ.setdefault("CL", "1")
    from tinygrad import Device, Tensor, TinyJit
    from tinygrad.nn.onnx import OnnxRunner
    runner = OnnxRunner(path)
    args = {k: Tensor(v).realize() for k, v in feeds.items()}

    @TinyJit
    def function(**kw):
        return next(iter(runner(kw).values())).realize()
    for _ in range(3):
        function(**args)

    def step():
        out = function(**args)
        Device[Device.DEFAULT].synchronize()
        return out
    return step


def make_ncnn(path, feeds, vulkan):
    import ncnn
    stem = path[:-5].replace(".", "_")
    if not os.path.exists(stem + ".ncnn.param"):
        link = stem + ".onnx"  # the converter names its files after the model, dots turned to underscores
        if link != path and not os.path.exists(link):
            os.symlink(path, link)
        tool = os.path.join(os.path.dirname(sys.executable), "pnnx")
        shapes = ",".join("[" + ",".join(str(d) for d in v.shape) + "]" for v in feeds.values())
        done = subprocess.run([tool, os.path.basename(link), "inputshape=" + shapes, "fp16=0"], cwd=os.path.dirname(link), capture_output=True, text=True, check=False)
        if not os.path.exists(stem + ".ncnn.param"):
            raise RuntimeError("pnnx: " + (done.stderr or done.stdout)[-300:])
    net = ncnn.Net()
    net.opt.num_threads = THREADS
    net.opt.use_vulkan_compute = vulkan
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    net.load_param(stem + ".ncnn.param")
    net.load_model(stem + ".ncnn.bin")
    mats = [ncnn.Mat(np.ascontiguousarray(v[0] if v.ndim > 3 or v.shape[0] == 1 else v)) for v in feeds.values()]

    def step():
        extractor = net.create_extractor()
        for name, mat in zip(net.input_names(), mats):
            extractor.input(name, mat)
        return np.array(extractor.extract(net.output_names()[0])[1])[None]
    return step


MAKERS = {
    "ort": make_ort,
    "ort-unfused": lambda path, feeds: make_ort(path, feeds, False),
    "openvino": make_openvino,
    "torch": make_torch,
    "inductor": lambda path, feeds: make_torch(path, feeds, True),
    "torch-cuda": lambda path, feeds: make_torch_on("cuda", path, feeds),
    "inductor-cuda": lambda path, feeds: make_torch_on("cuda", path, feeds, True),
    "iree-cpu": lambda path, feeds: make_iree(path, feeds, "local-task"),
    "iree-vulkan": lambda path, feeds: make_iree(path, feeds, "vulkan"),
    "tinygrad": make_tinygrad,
    "ncnn": lambda path, feeds: make_ncnn(path, feeds, False),
    "ncnn-vulkan": lambda path, feeds: make_ncnn(path, feeds, True),
}


def to_host(value):
    for way in ("to_host", "cpu", "numpy"):
        if hasattr(value, way):
            return getattr(value, way)()
    return np.asarray(value)


def main():
    peer, path, output = sys.argv[1:4]
    feeds = {port: np.load(file) for port, file in (a.split("=", 1) for a in sys.argv[4:])}
    answers = os.fdopen(os.dup(1), "w")  # what packages print goes to standard error
    os.dup2(2, 1)
    start = time.perf_counter()
    step = MAKERS[peer](path, feeds)
    first = step()
    ready = time.perf_counter() - start
    np.save(output, to_host(first))
    print(f"ready {ready:.3f}", file=answers, flush=True)
    for line in sys.stdin:
        step()  # warm again after the others' block
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), file=answers, flush=True)


if __name__ == "__main__":
    main()
