"""Sinter's answers and times beside ONNX Runtime's: what bench/published and bench/exported share. See bench/README.md."""
import argparse
import json
import os
import subprocess
import sys

import environment
from sides import LIMIT_S, Side

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOLERANCE, LEAST = 1e-3, 1e-6  # of the largest value, and at all: answers of 1e-8 are what a sigmoid's rounding leaves


def options_of(doc):
    """The options of both; those that go on to Sinter are in `flags`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl:pocl", help="the first is timed")
    parser.add_argument("--only", default="", help="models with one of these in their name")
    parser.add_argument("--no-times", dest="times", action="store_false")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--block-ms", type=float, default=200)
    parser.add_argument("--limit-s", type=int, default=LIMIT_S, help="for an answer, and to be ready")
    parser.add_argument("--markdown", help="a file for the table; else standard output")
    parser.add_argument("--sinter", default=os.path.join(ROOT, "build", "release", "sinter"))
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "bench-venv"))
    parser.set_defaults(flags=[])
    return parser


def enter(options, needs, script):
    """Continues `script` where its packages are."""
    environment.enter(options.venv, needs, script)
    os.environ.setdefault("POCL_AFFINITY", "1")


def wanted(options, name):
    return not options.only or any(part in name for part in options.only.split(","))


def difference(got, want):
    """Of the largest value; infinite where shapes or NaN differ."""
    import numpy as np
    if got.shape != want.shape:
        return float("inf")
    if not want.size:
        return 0.0
    if want.dtype.kind in "biu":
        return float((got != want).mean())
    got, want = got.astype("f8"), want.astype("f8")
    if (np.isnan(got) != np.isnan(want)).any():
        return float("inf")
    apart, largest = np.nan_to_num(np.abs(got - want), nan=0.0, posinf=0.0).max(), np.nan_to_num(np.abs(want), nan=0.0, posinf=0.0).max()
    return 0.0 if apart <= LEAST else float(apart / largest)


def apart(got, want):
    """The share of rows, those of all answers beside each other, without an equal one on the other side: the order of what is found is open where scores are nearly equal."""
    import numpy as np
    if any(g.shape[1:] != w.shape[1:] for g, w in zip(got, want)) or not want[0].size or not got[0].size:
        return float(any(g.shape != w.shape for g, w in zip(got, want)))
    sides = [np.concatenate([a.reshape(len(a), -1) / max(np.abs(w).max(), LEAST) for a, w in zip(side, want)], 1) for side in (got, want)]
    off = np.abs(sides[0][:, None] - sides[1][None]).max(2) > TOLERANCE
    return max(float(off.all(axis).mean()) for axis in (0, 1))


def used(command, got, want, name, file):
    """What is used of an output that is computed at the most it can be, along the one axis where it is longer: NAME.count says how much."""
    import numpy as np
    longer = [axis for axis, (a, b) in enumerate(zip(got.shape, want.shape)) if a > b] if got.ndim == want.ndim else []
    if len(longer) != 1 or subprocess.run(command + ["--output", f"{name}.count={file}"], capture_output=True, check=False).returncode:
        return got
    return np.take(got, range(int(np.load(file))), longer[0])


def ask(options, device, path, feeds, names, want, rows=False):
    """What a device says: (difference, None) or (None, why). rows: the answers are rows in an order that is open."""
    import numpy as np
    command = [options.sinter, "run", path, "--device", device, "--quiet"] + options.flags
    for port in feeds:
        command += ["--input", f"{port}={path}.{port}.npy"]
    outputs = [f"{path}.out{i}.npy" for i in range(len(names))]
    for name, file in zip(names, outputs):
        command += ["--output", f"{name}={file}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit_s, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {options.limit_s} s"
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["ended without a word"])[-1]
    got = [used(command, np.load(f), w, name, f"{path}.count.npy") for f, w, name in zip(outputs, want, names)]
    return apart(got, want) if rows else max(map(difference, got, want)), None


def measure(options, device, path, feeds):
    """Interleaved blocks of Sinter and of ONNX Runtime with as many threads."""
    import statistics_of_blocks as st
    inputs = [f"{port}={path}.{port}.npy" for port in feeds]
    command = [options.sinter, "bench", path, "--device", device, "--serve", "--quiet"] + options.flags
    ours = Side("sinter", command + [x for i in inputs for x in ("--input", i)], options.limit_s)
    peer = Side("ort", [sys.executable, os.path.join(ROOT, "bench", "peer.py"), "ort", path, os.path.join(os.path.dirname(path), "peer.npy")] + inputs, options.limit_s)
    blocks = {ours: [], peer: []}
    for side in blocks:
        side.settle(options.block_ms)
    for turn in range(options.blocks):
        for side in list(blocks) if turn % 2 == 0 else list(blocks)[::-1]:
            blocks[side].append(side.block(side.runs))
    for side in blocks:
        side.close()
    if ours.why or peer.why:
        return {"why": ours.why or peer.why}
    interval = st.ratio_interval(blocks[peer], blocks[ours])
    return {"ours": min(map(min, blocks[ours])), "ort": min(map(min, blocks[peer])), "interval": interval, "verdict": st.verdict(interval), "noise": st.noise(blocks[ours]),
            "kernels": json.loads(ours.first).get("kernels")}


def compare(options, row, path, feeds, names, want, rows=False):
    """The row with its inputs' shapes, each device's answers and the first device's times; the inputs lie beside the model, as PATH.PORT.npy."""
    row["inputs"] = ", ".join("x".join(map(str, v.shape)) or "1" for v in feeds.values())
    for device in options.device.split(","):
        row[device] = ask(options, device, path, feeds, names, want, rows)
    device = options.device.split(",")[0]
    if options.times and row[device][0] is not None:
        row["times"] = measure(options, device, path, feeds)
    return row


def markdown(rows, columns):
    """The rows as a table; a column has answers, (difference, None) or (None, why)."""
    import statistics_of_blocks as st
    lines = ["| model | inputs | " + " | ".join(columns) + " | ort ms | **Sinter** ms | ort / Sinter [90 %] |  | A/A | kernels |", "|---" * (8 + len(columns)) + "|"]
    for row in rows:
        said = [("%.0e" % row[c][0] if row[c][0] is not None else row[c][1][:60]) if c in row else "-" for c in columns]
        t = row.get("times")
        times = ["-"] * 6
        if t and "why" in t:
            times[2] = t["why"][:60]
        elif t:
            i = t["interval"]
            times = ["%.3g" % t["ort"], "**%.3g**" % t["ours"], "%.2f [%.2f, %.2f]" % (i["ratio"], i["low"], i["high"]), t["verdict"], "%.0f %%" % (100 * t["noise"]), str(t["kernels"])]
        lines.append("| " + " | ".join([row["model"], row.get("inputs", row.get("skipped", ""))] + said + times) + " |")
    ratios = [min(4, r["times"]["interval"]["ratio"]) for r in rows if r.get("times", {}).get("interval")]
    return "\n".join(lines) + (f"\n\n{len(ratios)} timed, geometric mean of the ratios, each at most 4: {st.geometric_mean(ratios):.2f}\n" if ratios else "\n")


def publish(options, rows, within, columns=()):
    """Writes the table, `columns` before the devices'; the exit code, `within` being what models may be off by that need more than others."""
    devices = options.device.split(",")
    text = markdown(rows, list(columns) + devices)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        print(text, end="")
    answers = [(row[d][0], within.get(row["model"], TOLERANCE)) for row in rows for d in devices if d in row]
    return 1 if any(off is None or off > most for off, most in answers) else 0
