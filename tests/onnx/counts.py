"""What operators inside a model make of values whose extent depends on the data: each with some of the places used, with none, and with all. Cases of tests/onnx/recent."""
import numpy as np
from onnx import TensorProto, helper

CASES, REFUSED = [], []
TABLE = np.random.default_rng(8).standard_normal((8, 3)).astype(np.float32)
OTHER = np.random.default_rng(9).standard_normal((8, 3)).astype(np.float32)
MARKS = {"some": np.array([0, 3, 0, 2, 0, 5, 7, 0], np.float32), "none": np.zeros(8, np.float32), "all": np.arange(1, 9, dtype=np.float32)}
NUMBERS = {"zero": 0, "one": 1, "minus": -1, "two": 2, "l0": [0], "l1": [1], "l2": [2], "l3": [3], "l4": [4], "m1": [-1], "m2": [-2], "m9": [-99], "end": [2**62], "flat": [-1, 3], "pairs": [-1, 2], "box": [-1, 1, 3], "four": [-1, 1, 2, 2], "cut": [1, 1], "l6": [6], "w432": [4, 3, 2], "w324": [3, 2, 4], "w122": [1, 2, 2], "l112": [1, 1, 2], "p000102": [0, 0, 1, 0, 0, 2], "p010010": [0, 1, 0, 0, 1, 0], "p000002": [0, 0, 0, 0, 0, 2],
           "p010102": [0, 1, 1, 0, 1, 2]}
FOUND = ["NonZero marks -> z", "Squeeze z l0 -> p", "Gather table p -> g"]  # rows of the table where marks are: g [n, 3]


def written(text, names):
    """"Op a b -> c | axis=0": a step of a case; names of inputs are those of folders.py."""
    call, _, attrs = text.partition("|")
    op, *rest = call.split()
    at = rest.index("->")
    return op, {k: eval(v) for k, _, v in (one.partition("=") for one in attrs.split())}, [names.get(n, "" if n == "_" else n) for n in rest[:at]], [names.get(n, n) for n in rest[at + 1:]]


def model(name, steps, data, outputs, variants, opset=17):
    """data: inputs that change from variant to variant; all other words without a step are constants of NUMBERS, or the table."""
    steps = FOUND + steps if any(" g " in f" {s} " or " p " in f" {s} " for s in steps) and "marks" in data else steps
    made = {n for s in steps for n in s.partition("|")[0].partition("->")[2].split()}
    used = [n for s in steps for n in s.partition("->")[0].split()[1:] if n not in made and n not in data and n != "_"]
    fixed = {n: TABLE if n == "table" else OTHER if n == "other" else np.asarray(NUMBERS[n], np.int64) for n in dict.fromkeys(used)}
    names = {n: f"x{i}" for i, n in enumerate(list(data) + list(fixed))}
    for variant, values in variants.items():
        yield (f"counts_{name}_{variant}", opset, [written(s, names) for s in steps], list(values) + list(fixed.values()), outputs(*values) if outputs else [np.float32(0)],
               set(range(len(data), len(names))), {})


def case(name, steps, outputs, over="some none all", opset=17):
    """outputs: of the places that are used."""
    CASES.extend(model(name, steps, ["marks"], lambda marks: outputs(np.flatnonzero(marks)), {v: [MARKS[v]] for v in over.split()}, opset))


def refused(name, steps, words):
    REFUSED.append((next(model("refused_" + name, steps, ["marks"], None, {"some": [MARKS["some"]]})), words))


def rows(p):
    return TABLE[p].astype(float)


def exp(x, axis):
    e = np.exp(x - (x.max(axis, keepdims=True) if x.size else 0))
    return e / e.sum(axis, keepdims=True)


# ---- over the places: what is not used stands for nothing ----
case("sum", ["ReduceSum g l0 -> y0 | keepdims=0", "ReduceSumSquare g -> y1 | axes=[0] keepdims=1", "ReduceL1 g -> y2 | axes=[0,1] keepdims=0", "ReduceL2 g -> y3 | axes=[0] keepdims=0", "ReduceProd g -> y4 | axes=[0] keepdims=0"],
     lambda p: [rows(p).sum(0), (rows(p)**2).sum(0, keepdims=True), abs(rows(p)).sum(), np.sqrt((rows(p)**2).sum(0)), rows(p).prod(0)])
case("extremes", ["ReduceMax g -> y0 | axes=[0] keepdims=0", "ReduceMin g -> y1 | keepdims=0", "ReduceMean g -> y2 | axes=[0] keepdims=0", "ReduceLogSumExp g -> y3 | axes=[0] keepdims=0", "ArgMax g -> y4 | axis=0 keepdims=0",
                  "ArgMin g -> y5 | axis=0", "ReduceMax p -> y6 | keepdims=0", "ReduceMin p -> y7 | keepdims=0", "Abs g -> a", "ReduceMin a -> y8 | axes=[0] keepdims=0", "Neg a -> b", "ReduceMax b -> y9 | axes=[0] keepdims=0"],
     lambda p: [rows(p).max(0), rows(p).min(), rows(p).mean(0), np.log(np.exp(rows(p)).sum(0)), rows(p).argmax(0), rows(p).argmin(0)[None], p.max(), p.min(), abs(rows(p)).min(0), -abs(rows(p)).min(0)], "some all")
case("rows", ["Softmax g -> y0 | axis=0", "LogSoftmax g -> y1 | axis=0", "Hardmax g -> y2 | axis=0", "Softmax g -> y3 | axis=1"],
     lambda p: [exp(rows(p), 0), np.log(exp(rows(p), 0)), np.equal(np.arange(len(p))[:, None], rows(p).argmax(0) if len(p) else np.zeros(3)).astype(float), exp(rows(p), 1)])
case("scans", ["CumSum g zero -> y0", "CumSum g zero -> y1 | reverse=1", "CumSum g one -> y2 | reverse=1"],
     lambda p: [rows(p).cumsum(0), rows(p)[::-1].cumsum(0)[::-1], rows(p)[:, ::-1].cumsum(1)[:, ::-1]])
case("products", ["Transpose g -> t | perm=[1,0]", "MatMul t g -> y0", "Gemm g g -> y1 | transA=1", "Transpose other -> o | perm=[1,0]", "MatMul g o -> y2"],
     lambda p: [rows(p).T @ rows(p), rows(p).T @ rows(p), rows(p) @ OTHER.T.astype(float)])
# ---- how much there is, as a number ----
case("shape", ["Shape g -> y0", "Size g -> y1", "Gather y0 zero -> n", "Cast n -> f | to=1", "ReduceSum g l0 -> s | keepdims=0", "Mul s f -> y2", "Greater n two -> y3", "Mul n two -> y4"],
     lambda p: [np.array([len(p), 3]), np.int64(3 * len(p)), rows(p).sum(0) * len(p), np.array(len(p) > 2), np.int64(2 * len(p))])
case("made", ["Shape p -> s", "Squeeze s l0 -> n", "Range zero n one -> y0", "ConstantOfShape s -> y1", "Concat s l2 -> wide | axis=0", "ConstantOfShape wide -> y2", "Expand one wide -> y3", "Range one n two -> y4", "Add y0 p -> y5", "Sub n one -> before",
              "Range zero before one -> y6"],
     lambda p: [np.arange(len(p)), np.zeros(len(p), np.float32), np.zeros((len(p), 2), np.float32), np.ones((len(p), 2), np.int64), np.arange(1, len(p), 2), np.arange(len(p)) + p, np.arange(max(len(p) - 1, 0))])
# ---- the first, the last, the best of them ----
case("slices", ["Slice g l0 l2 l0 -> y0", "Slice g m2 end l0 -> y1", "Slice g l0 end l0 l2 -> y2", "Slice g l1 m1 l0 -> y3", "Slice g m1 m9 l0 m1 -> y4", "Slice g m1 m9 l1 m1 -> y5", "Slice g l0 m1 l0 -> y6"],
     lambda p: [rows(p)[:2], rows(p)[-2:], rows(p)[::2], rows(p)[1:-1], rows(p)[::-1], rows(p)[:, ::-1], rows(p)[:-1]])
case("sliced_by_count", ["Shape p -> n", "Slice other l0 n l0 -> y0", "Slice other n end l0 -> y1", "Slice g l0 n l0 -> y2"], lambda p: [OTHER[:len(p)], OTHER[len(p):], rows(p)])
case("picked", ["Gather g minus -> y0 | axis=0", "Gather g m2 -> y1 | axis=0", "Reshape m1 cut -> c", "GatherElements g c -> y2 | axis=0", "GatherND g c -> y3", "Gather g one -> y4 | axis=1"],
     lambda p: [rows(p)[-1], rows(p)[-2:-1], rows(p)[-1:, :1], rows(p)[-1:], rows(p)[:, 1]], "some all")
case("best", ["Gather g zero -> c | axis=1", "Shape c -> s", "Concat l3 s -> both | axis=0", "ReduceMin both -> k | keepdims=1", "TopK c k -> y0 y1", "Gather p y1 -> y2", "TopK c k -> y3 y4 | largest=0", "TopK g l2 -> y5 y6 | axis=1", "TopK c s -> y7 y8"],
     lambda p: (lambda c, k: [c[np.argsort(-c)[:k]], np.argsort(-c)[:k], p[np.argsort(-c)[:k]], c[np.argsort(c)[:k]], np.argsort(c)[:k], -np.sort(-rows(p), 1)[:, :2], np.argsort(-rows(p), 1)[:, :2], -np.sort(-c), np.argsort(-c)])(rows(p)[:, 0], min(3, len(p))))
# ---- beside each other: places move together ----
case("joined", ["Less table other -> l", "Cast l -> lf | to=1", "Gather lf one -> m2 | axis=1", "NonZero m2 -> z2", "Squeeze z2 l0 -> p2", "Gather other p2 -> h", "Concat g h table g -> y0 | axis=0", "Concat g g -> y1 | axis=1", "Concat table g -> y2 | axis=0",
                "ReduceSum y0 l0 -> y3 | keepdims=0", "Shape y0 -> y4"],
     lambda p: (lambda j: [j, np.concatenate([rows(p), rows(p)], 1), np.concatenate([TABLE, rows(p)]), j.sum(0), np.array(j.shape)])(np.concatenate([rows(p), OTHER[TABLE[:, 1] < OTHER[:, 1]], TABLE, rows(p)])))
case("shapes", ["Reshape g m1 -> y0", "Reshape y0 flat -> y1", "Unsqueeze g l1 -> u", "Squeeze u l1 -> y2", "Flatten u -> y3", "Shape y0 -> y4", "Reshape g box -> y5", "ReduceMax y5 -> y6 | axes=[2] keepdims=0", "Shape g -> s", "Reshape y0 s -> y7", "Transpose g -> t | perm=[1,0]", "Unsqueeze t l0 -> y8"],
     lambda p: [rows(p).reshape(-1), rows(p), rows(p), rows(p), np.array([3 * len(p)]), rows(p)[:, None], rows(p).max(1)[:, None] if len(p) else np.zeros((0, 1)), rows(p), rows(p).T[None]])
case("met", ["NonZero marks -> z2", "Squeeze z2 l0 -> p2", "Gather other p2 -> h", "Add g h -> y0", "Less g h -> y1", "Where y1 g h -> y2", "Clip y0 -> y3", "Max g h y0 -> y4"],
     lambda p: [rows(p) + OTHER[p], rows(p) < OTHER[p], np.minimum(rows(p), OTHER[p]), rows(p) + OTHER[p], np.maximum(np.maximum(rows(p), OTHER[p]), rows(p) + OTHER[p])])
# ---- written to where they are ----
case("scattered", ["Gather other p -> h", "Unsqueeze p l1 -> q", "ScatterND table q h -> y0", "ScatterND table q h -> y1 | reduction='add'", "Shape g -> s", "Expand q s -> e", "ScatterElements table e h -> y2 | axis=0", "ScatterElements table e h -> y3 | axis=0 reduction='max'", "Gather table one -> column | axis=1", "Gather h one -> hc | axis=1", "ScatterElements column p hc -> y4 | axis=0"],
     lambda p: (lambda put, add, best: [put, add, put, best, put[:, 1] if len(p) else TABLE[:, 1]])(*[f(TABLE.astype(float).copy(), p) for f in (lambda t, p: (t.__setitem__(p, OTHER[p]), t)[1], lambda t, p: (np.add.at(t, p, OTHER[p]), t)[1], lambda t, p: (np.maximum.at(t, p, OTHER[p]), t)[1])]))
def put_even(x, n):
    x[::2] = OTHER[:n:2]
    return x


case("scattered_into", ["Shape p -> n", "Squeeze n l0 -> n0", "Range zero n0 two -> even", "Unsqueeze even l1 -> e1", "Gather other even -> h", "ScatterND g e1 h -> y0", "ReduceSum y0 l0 -> y1 | keepdims=0"],
     lambda p: [put_even(rows(p), len(p)), put_even(rows(p), len(p)).sum(0)])
# ---- found again ----
case("found_again", ["Gather g one -> c | axis=1", "Cast zero -> f0 | to=1", "Greater c f0 -> b", "NonZero b -> z2", "Squeeze z2 l0 -> p2", "Gather g p2 -> y0 | axis=0", "Gather p p2 -> y1", "Compress g b -> y2 | axis=0", "NonZero g -> y3"],
     lambda p: [rows(p)[rows(p)[:, 1] > 0], p[rows(p)[:, 1] > 0], rows(p)[rows(p)[:, 1] > 0], np.stack(np.nonzero(rows(p)))])


def boxes_of(p):
    return np.stack([np.arange(8) % 3 * 1.0, np.arange(8) % 2 * 2.0, np.arange(8) % 3 + 2.5, np.arange(8) % 2 * 2 + 3.5], 1).astype(np.float32)[p]


def suppressed(boxes, scores, most):
    left, kept = list(np.argsort(-scores, kind="stable")), []
    while left and len(kept) < most:
        i = left.pop(0)
        kept.append(i)
        side = np.maximum(0, np.minimum(boxes[i, 2:], boxes[left, 2:]) - np.maximum(boxes[i, :2], boxes[left, :2]))
        both = side.prod(1)
        area = lambda b: (b[..., 2:] - b[..., :2]).prod(-1)
        left = [j for j, b, a in zip(left, both, area(boxes[left])) if b / (area(boxes[i]) + a - b) <= 0.3]
    return np.array([[0, 0, i] for i in kept], np.int64).reshape(-1, 3)


for variant, marks in MARKS.items():
    picked = np.flatnonzero(marks)
    boxes, scores = boxes_of(np.arange(8)), np.array([3, 1, 4, 1.5, 9, 2.5, 6, 5], np.float32)
    image = np.random.default_rng(11).standard_normal((1, 2, 6, 6)).astype(np.float32)
    kept = suppressed(boxes[picked].astype(float), scores[picked], 8)
    detect = ["NonZero x0 -> z", "Squeeze z x1 -> p", "Gather x2 p -> b", "Gather x3 p -> s", "Unsqueeze b x1 -> b3", "Unsqueeze s x4 -> s3", "NonMaxSuppression b3 s3 x5 x6 -> y0", "Gather y0 x7 -> k1 | axis=1", "Squeeze k1 x8 -> k", "Gather b k -> y1", "Gather s k -> y2",
              "Slice k x1 x9 x1 -> first", "Gather b first -> y3"]
    CASES.append((f"counts_suppressed_{variant}", 17, [written(s, {}) for s in detect],
                  [marks, np.array([0]), boxes, scores, np.array([0, 1]), np.array([2**62]), np.array([0.3], np.float32), np.array([2]), np.array([1]), np.array([2])],
                  [kept, boxes[picked][kept[:, 2]], scores[picked][kept[:, 2]], boxes[picked][kept[:2, 2]]], {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}))
    # only the first two are read, of one class and of two
    some = ["Gather r x7 -> k1 | axis=1", "Squeeze k1 x8 -> k", "Slice k x1 x9 x1 -> first", "Gather b first -> y0"]
    CASES.append((f"counts_suppressed_first_{variant}", 17, [written(s, {}) for s in detect[:6] + ["NonMaxSuppression b3 s3 x5 x6 -> r"] + some],
                  [marks, np.array([0]), boxes, scores, np.array([0, 1]), np.array([2**62]), np.array([0.3], np.float32), np.array([2]), np.array([1]), np.array([2])],
                  [boxes[picked][kept[:2, 2]]], {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}))
    # cells of one sample each, where it lies on a whole position: the pixel itself
    low = np.stack([picked % 4, picked % 3, picked % 4 + 2, picked % 3 + 2], 1).astype(np.float32).reshape(-1, 4)
    cells = np.array([[[[image[0, c, int(b[1]) + i, int(b[0]) + j] for j in range(2)] for i in range(2)] for c in range(2)] for b in low + 0.0], np.float32).reshape(-1, 2, 2, 2)
    align = ["NonZero x0 -> z", "Squeeze z x1 -> p", "Gather x2 p -> b", "Shape p -> s", "ConstantOfShape s -> zeros", "Cast zeros -> n | to=7",
             "RoiAlign x3 b n -> y0 | output_height=2 output_width=2 sampling_ratio=1 coordinate_transformation_mode='half_pixel'", "ReduceSum y0 x1 -> y1 | keepdims=0"]
    every = np.stack([np.arange(8) % 4, np.arange(8) % 3, np.arange(8) % 4 + 2, np.arange(8) % 3 + 2], 1).astype(np.float32)
    CASES.append((f"counts_aligned_{variant}", 17, [written(s, {}) for s in align], [marks, np.array([0]), every, image], [cells, cells.astype(float).sum(0)], {1, 2, 3}, {}))
BOXES, SCORES = boxes_of(np.arange(8)), np.array([[9, 1, 4, 1.5, 3, 2.5, 6, 5], [1, 2, 3, 4, 5, 6, 7, 8]], np.float32)
SUPPRESS = [BOXES[None], SCORES[None], np.array([8]), np.array([0.3], np.float32), np.array([0]), np.array([3])]
KEPT = np.concatenate([suppressed(BOXES.astype(float), SCORES[c], 8) + [0, c, 0] for c in range(2)])
CASES.append(("counts_suppressed_first_of_classes", 17, [written(s, {}) for s in ["NonMaxSuppression x0 x1 x2 x3 -> r", "Slice r x4 x5 x4 -> y0"]], SUPPRESS, [KEPT[:3]], {2, 3, 4, 5}, {}))
CASES.append(("counts_suppressed_second_on", 17, [written(s, {}) for s in ["NonMaxSuppression x0 x1 x2 x3 -> r", "Slice r x6 x5 x4 -> y0"]], SUPPRESS + [np.array([1])], [KEPT[1:3]], {2, 3, 4, 5, 6}, {}))
CIRCLE = ["NonMaxSuppression x0 x1 x2 x3 -> r", "Identity r -> q", "Identity q -> r", "Slice q x4 x5 x4 -> y0"]
CIRCLES = CIRCLE[:1] + ["Identity r -> r"] * 60 + ["Slice r x4 x5 x4 -> y0"]  # of which twice as many ways lead through each
REFUSED.append((("counts_refused_circle", 17, [written(s, {}) for s in CIRCLE], SUPPRESS, [np.float32(0)], {2, 3, 4, 5}, {}), "(Identity): two values are named r"))
REFUSED.append((("counts_refused_circles", 17, [written(s, {}) for s in CIRCLES], SUPPRESS, [np.float32(0)], {2, 3, 4, 5}, {}), "(Identity): two values are named r"))
# a batch of as many as there are
KERNEL = np.random.default_rng(10).standard_normal((2, 1, 2, 2)).astype(np.float32)
MAPS = np.random.default_rng(12).standard_normal((8, 1, 2, 2)).astype(np.float32)
for variant, marks in MARKS.items():
    p = np.flatnonzero(marks)
    want = np.einsum("nchw,ochw->no", MAPS[p].astype(float), KERNEL.astype(float))
    CASES.append((f"counts_batch_{variant}", 17, [written(s, {}) for s in ["NonZero x0 -> z", "Squeeze z x1 -> p", "Gather x2 p -> g", "Conv g x3 -> c", "Flatten c -> y0", "MaxPool g -> m | kernel_shape=[2,2]", "GlobalAveragePool g -> a", "Squeeze a x4 -> y1"]],
                  [marks, np.array([0]), MAPS, KERNEL, np.array([1, 2, 3])], [want, MAPS[p].astype(float).mean((1, 2, 3))], {1, 2, 3, 4}, {}))
# ---- parts whose sizes are data, and put together again: all that there was ----
for variant, sizes in {"some": [3, 0, 5], "none": [0, 0, 8], "all": [8, 0, 0]}.items():
    parts = np.split(TABLE.astype(float), np.cumsum(sizes)[:2])
    made = [parts[0] * 2, parts[1] * 3, parts[2]]
    CASES.append((f"counts_split_{variant}", 17, [written(s, {}) for s in ["Split x1 x0 -> a y1 c | axis=0", "Add a a -> y0", "Identity c -> y2", "Concat y0 y1 c -> y3 | axis=0", "Add y3 x1 -> y4", "ReduceSum a x2 -> y5 | keepdims=0"]],
                  [np.array(sizes), TABLE, np.array([0])], [made[0], parts[1], made[2], np.concatenate([made[0], parts[1], made[2]]), np.concatenate([made[0], parts[1], made[2]]) + TABLE, parts[0].sum(0)], {1, 2}, {}))

# ---- along the places: windows, frames, paddings, resizing, steps of a recurrence ----
def line(p):
    return TABLE[p].T.astype(float)[None]  # [1, 3, n]


def convolved(x, w, low=0, high=0, stride=1, dilation=1):
    x, reach = np.pad(x, ((0, 0), (0, 0), (low, high))), dilation * (w.shape[2] - 1) + 1
    out = [np.einsum("nct,oct->no", x[:, :, i:i + reach:dilation], w) for i in range(0, x.shape[2] - reach + 1, stride)]
    return np.stack(out, 2) if out else np.zeros((1, len(w), 0))


def spread_out(x, w, stride, low=0, high=0, extra=0):
    y = np.zeros((1, w.shape[1], max((x.shape[2] - 1) * stride + w.shape[2] + extra, 0)))
    for i in range(x.shape[2]):
        y[:, :, i * stride:i * stride + w.shape[2]] += np.einsum("nc,cot->not", x[:, :, i], w)
    return y[:, :, low:y.shape[2] - high]


LINE = ["Transpose g -> t | perm=[1,0]", "Unsqueeze t l0 -> x", "Reshape other w432 -> w", "Reshape other w324 -> v"]  # x [1, 3, n]
W432, W324 = OTHER.astype(float).reshape(4, 3, 2), OTHER.astype(float).reshape(3, 2, 4)
WINDOWS = ["Conv x w -> y0 | pads=[1,1]", "Conv x w -> y1 | pads=[2,1] dilations=[2]", "Conv x w -> y2 | pads=[1,2] strides=[2]", "Relu y0 -> r", "ReduceSum r l2 -> y3 | keepdims=0", "Conv x w -> y4 | auto_pad='SAME_UPPER'"]
case("windows", LINE + WINDOWS, lambda p: (lambda x: [convolved(x, W432, 1, 1), convolved(x, W432, 2, 1, dilation=2), convolved(x, W432, 1, 2, 2), convolved(x, W432, 1, 1).clip(0).sum(2), convolved(x, W432, 0, 1)])(line(p)), "some all")
case("no_window", LINE + ["Conv x w -> y0 | pads=[1,1]", "Conv x w -> y1"], lambda p: [convolved(line(p), W432, 1, 1), convolved(line(p), W432)])
case("turned", LINE + ["ConvTranspose x v -> y0 | strides=[2] pads=[1,1]", "ConvTranspose x v -> y1 | strides=[3] output_padding=[2]", "Tanh y0 -> h", "ReduceMean h -> y2 | axes=[2] keepdims=0"],
     lambda p: (lambda x: [spread_out(x, W324, 2, 1, 1), spread_out(x, W324, 3, extra=2), np.tanh(spread_out(x, W324, 2, 1, 1)).mean(2)])(line(p)), "some all")
case("pooled", LINE + ["MaxPool x -> y0 | kernel_shape=[3] pads=[1,1]", "MaxPool x -> y1 | kernel_shape=[2] strides=[2]"],
     lambda p: (lambda x: [np.stack([x[:, :, max(i - 1, 0):i + 2].max(2) for i in range(x.shape[2])], 2), np.stack([x[:, :, i:i + 2].max(2) for i in range(0, x.shape[2] - 1, 2)], 2)])(line(p)), "some all")
# What is found, and behind it as many places as make six of it, or one in front, too (YOLO's exporters end so); where more was found it is cut off.
case("filled_up", ["Shape p -> n", "Sub l6 n -> more", "Concat l0 l0 more l0 -> pads | axis=0", "Pad g pads -> y0", "Cast two -> f2 | to=1", "Pad g pads f2 -> y1", "Concat l1 l0 more l0 -> pads1 | axis=0", "Pad g pads1 -> y2", "ReduceSum y1 l0 -> y3 | keepdims=0"],
     lambda p: (lambda zeros, twos: [zeros[:6], twos[:6], np.concatenate([np.zeros((1, 3)), zeros[:6]]), twos[:6].sum(0)])(*[np.concatenate([rows(p), np.full((6, 3), v)]) for v in (0., 2.)]))
case("padded", LINE + ["Pad x p000102 -> y0", "Pad x p000102 -> y1 | mode='reflect'", "Pad x p000102 -> y2 | mode='edge'", "Cast two -> f2 | to=1", "Pad x p010010 f2 -> y3", "Pad x p000002 f2 -> y4", "Pad x p010102 -> y5 | mode='reflect'"],
     lambda p: (lambda x: [np.pad(x, ((0, 0), (0, 0), (1, 2))), np.pad(x, ((0, 0), (0, 0), (1, 2)), "reflect"), np.pad(x, ((0, 0), (0, 0), (1, 2)), "edge"), np.pad(x, ((0, 0), (1, 1), (0, 0)), constant_values=2),
                           np.pad(x, ((0, 0), (0, 0), (0, 2)), constant_values=2), np.pad(x, ((0, 0), (1, 1), (1, 2)), "reflect")])(line(p)), "some all")
case("resized", LINE + ["Cast l112 -> up | to=1", "Reciprocal up -> down", "Resize x _ up -> y0 | mode='nearest' nearest_mode='floor' coordinate_transformation_mode='asymmetric'", "Resize x _ up -> y1 | mode='linear'", "Resize x _ down -> y2 | mode='linear'"],
     lambda p: (lambda x, at: [np.repeat(x, 2, 2), x[:, :, at[0]] * (1 - at[2]) + x[:, :, at[1]] * at[2], (x[:, :, :len(p) // 2 * 2:2] + x[:, :, 1::2]) / 2])(line(p), (lambda s: (np.clip(np.floor(s), 0, len(p) - 1).astype(int), np.clip(np.floor(s) + 1, 0, len(p) - 1).astype(int), s - np.floor(s)))((np.arange(2 * len(p)) + 0.5) / 2 - 0.5)), "some all")


def gated(x, w, r):  # h of an RNN over x [n, 1, 3]
    h, out = np.zeros((1, w.shape[0])), []
    for row in x:
        h = np.tanh(row @ w.T + h @ r.T)
        out.append(h)
    return np.stack(out)


RNN = [OTHER.astype(float)[:2], OTHER.astype(float)[2:6, 0].reshape(2, 2)]
case("recurrent", ["Unsqueeze g l1 -> x", "Slice other l0 l2 l0 -> w2", "Unsqueeze w2 l0 -> w", "Slice other l2 l6 l0 -> r6", "Slice r6 l0 l1 l1 -> r1", "Reshape r1 w122 -> r", "Concat w w -> wb | axis=0", "Concat r r -> rb | axis=0", "RNN x w r -> y0 y1 | hidden_size=2", "RNN x wb rb -> y2 y3 | hidden_size=2 direction='bidirectional'"],
     lambda p: (lambda f, b: [f[:, None], f[-1:], np.stack([f, b], 1), np.stack([f[-1], b[0]])])(gated(rows(p)[:, None], *RNN), gated(rows(p)[::-1, None], *RNN)[::-1]), "some all")


def in_bytes(x):
    low, high = np.float32(min(x.min(), 0)), np.float32(max(x.max(), 0))
    scale = np.float32((high - low) / np.float32(255))
    zero = np.uint8(np.rint(-low / scale))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, zero


BYTES = ["Cast w -> wf | to=1", "Cast wf -> wi | to=3", "Cast zero -> z8 | to=3", "DynamicQuantizeLinear x -> q s zp", "ConvInteger q wi zp z8 -> y0 | pads=[1,1]", "Identity q -> y1", "Identity zp -> y2"]
case("in_bytes", LINE[:2] + ["Add other other -> o2", "Reshape o2 w432 -> w"] + BYTES,
     lambda p: (lambda q: [convolved(q[0].astype(float) - float(q[2]), np.trunc(2 * OTHER).astype(float).reshape(4, 3, 2), 1, 1).astype(np.int32), q[0], q[2]])(in_bytes(line(p).astype(np.float32))), "some all")
refused("length", ["ReduceSum marks l0 -> s | keepdims=0", "Cast s -> n | to=7", "Range zero n one -> r", "Add r one -> y0"], "input 1 (n) must be a constant, or a whole number whose most is given by that name")
refused("wrap", LINE + ["Pad x p000102 -> y0 | mode='wrap'"], "mode wrap where how much there is depends on the data")
refused("resize_sizes", LINE + ["Concat l1 l3 l4 -> sizes | axis=0", "Resize x _ _ sizes -> y0"], "sizes or corners where how much there is depends on the data")
# ---- beside a known extent it is that ----
case("known", ["Slice other l0 l4 l0 -> known", "Add g known -> y0", "Add y0 known -> y1", "Expand p l4 -> y2", "Shape y0 -> y3"], lambda p: [rows(p) + OTHER[:4], rows(p) + 2.0 * OTHER[:4], p, np.array([4, 3])], "some")
# ---- a branch that the data picks: others, and how many, where there is none ----
for variant, marks in MARKS.items():
    def branch(name, of):
        return helper.make_graph([helper.make_node("Identity", [of], [name])], name, [], [helper.make_tensor_value_info(name, TensorProto.INT64, None)])

    p = np.flatnonzero(marks)
    chosen = p if len(p) else np.array([7, 6, 5])
    CASES.append((f"counts_branch_{variant}", 17, [written(s, {}) for s in ["NonZero x0 -> z", "Squeeze z x1 -> p", "Size p -> n", "Equal n x2 -> empty"]] +
                  [("If", {"then_branch": branch("instead", "x3"), "else_branch": branch("found", "p")}, ["empty"], ["y0"])] + [written(s, {}) for s in ["ReduceSum y0 -> y1 | keepdims=0", "Shape y0 -> y2", "Gather x4 y0 -> y3"]],
                  [marks, np.array([0]), np.int64(0), np.array([7, 6, 5]), TABLE], [chosen, chosen.sum(), np.array(chosen.shape), TABLE[chosen]], {1, 2, 3, 4}, {}))

# ---- what cannot be, in words ----
ALL = "how much of input g there is depends on the data, and all of it would be needed"
refused("norm", ["LpNormalization g -> y0 | axis=0"], "(LpNormalization): " + ALL)
refused("pad", ["Shape p -> n", "Concat n l0 l0 l0 -> pads | axis=0", "Pad table pads -> y0"], "(Pad): its shape depends on the data")
refused("two_axes", ["Shape p -> n", "Concat n n -> nn | axis=0", "ConstantOfShape nn -> y0"], "(ConstantOfShape): two axes whose extents depend on data")
refused("two_axes_met", ["Transpose g -> t | perm=[1,0]", "MatMul g t -> y0"], "(MatMul): " + ALL)
refused("tiled", ["Shape p -> n", "Concat n l1 -> reps | axis=0", "Tile table reps -> y0"], "(Tile): its shape depends on the data")
refused("by_count", ["Shape p -> n", "Concat n m1 -> to | axis=0", "Reshape table to -> y0"], "(Reshape): extent 0 depends on the data, and another is to be found by it")
refused("eye", ["EyeLike g -> y0"], "(EyeLike): " + ALL)
refused("turned", ["Transpose g -> t | perm=[1,0]", "Reshape t flat -> y0"], "(Reshape): how much of input t there is depends on the data, and all of it would be needed")
refused("last_of_equals", ["ArgMax g -> y0 | axis=0 select_last_index=1"], "(ArgMax): " + ALL)
