"""What a file says of many parts one after another, joined at the end: each step with an axis in front, and what is not alike. Cases of tests/onnx/recent."""
import numpy as np
from counts import written

PARTS = 9  # more than are left as they are
CASES = []
X = np.round(8 * np.random.default_rng(20).standard_normal((4, PARTS + 1, 6))).astype(np.float32) / 8  # sums are exact
Y = np.round(8 * np.random.default_rng(21).standard_normal((4, 6))).astype(np.float32) / 8
AT = np.array([[3, 0, 2, 5], [1, 1, 4, 0]], np.int64)
NUMBERS = {"half": np.float32(0.5), "nil": np.float32(0), "no": np.int64(0), "l0": np.array([0]), "l1": np.array([1]), "l2": np.array([2]), "l3": np.array([3]), "l6": np.array([6]),
           "back": np.array([1, 1, 0, 1]), "flat": np.array([-1]), "two": np.array([2, -1]), "wide": np.array([3, 4, 6])}


def case(name, steps, of, axis=0, first=None, last=None, before=()):
    """steps of part i: "{h}", "{i}" and "{j}" are i - 1, i and i + 1, "{b}" counts down, names with a dot are its own; first, last: those of the first and the last one; before: of all of them.
    of: its value, by its slice [4, 6] and its number."""
    data = {"x": X, "y": Y, "at": AT}
    data.update({n: v for n, v in NUMBERS.items() if any(f" {n} " in f" {s} " for s in steps)})
    data.update({f"k{i}": np.int64(i + 1) for i in range(PARTS)} if any("k{" in s for s in steps) else {})
    data.update({f"s{i}": np.array([i]) for i in range(PARTS + 1)} if any("s{i}" in s for s in steps) else {})
    names = {n: f"x{i}" for i, n in enumerate(data)}
    lines = list(before) + [s.format(h=i - 1, i=i, j=i + 1, b=PARTS - 1 - i) for i in range(PARTS) for s in (first if first and i == 0 else last if last and i == PARTS - 1 else steps)]
    lines.append("Concat " + " ".join(f"r.{i}" for i in range(PARTS)) + f" -> y0 | axis={axis}")
    CASES.append((f"alike_{name}", 17, [written(s, names) for s in lines], list(data.values()), [np.concatenate([of(X[:, i + 1].astype(float), i) for i in range(PARTS)], axis)], set(range(3, len(data))), {}))


def order(v):
    return np.argsort(-v, -1, kind="stable")


PICK = "Gather x k{i} -> v.{i} | axis=1"  # [4, 6]
case("steps", [PICK, "Mul v.{i} half -> a.{i}", "Add a.{i} y -> b.{i}", "Greater b.{i} nil -> c.{i}", "Where c.{i} b.{i} v.{i} -> r.{i}"], lambda v, i: np.where(v / 2 + Y > 0, v / 2 + Y, v))
case("backwards", ["Gather x k{b} -> v.{i} | axis=1", "Exp v.{i} -> r.{i}"], lambda v, i: np.exp(X[:, PARTS - i].astype(float)))
case("beside", [PICK, "Exp v.{i} -> r.{i}"], lambda v, i: np.exp(v), 1)
case("numbers", [PICK, "Cast k{i} -> n.{i} | to=1", "Mul v.{i} n.{i} -> a.{i}", "ConstantOfShape l3 -> b.{i}", "Add b.{i} n.{i} -> c.{i}", "ReduceMax a.{i} -> d.{i} | axes=[0,1] keepdims=0", "Add c.{i} d.{i} -> r.{i}"],
     lambda v, i: np.full(3, i + 1 + (v * (i + 1)).max()))
case("pieces", ["Slice x s{i} s{j} l1 -> u.{i}", "Reshape u.{i} two -> v.{i}", "Transpose v.{i} -> t.{i} | perm=[1,0]", "Neg t.{i} -> r.{i}"], lambda v, i: -X[:, i].astype(float).reshape(2, -1).T)
case("sums", [PICK, "ReduceSum v.{i} l1 -> a.{i}", "CumSum v.{i} l1 -> b.{i} | reverse=1", "Sub b.{i} a.{i} -> r.{i}"], lambda v, i: v[:, ::-1].cumsum(1)[:, ::-1] - v.sum(1, keepdims=True))
case("sorted", [PICK, "TopK v.{i} l3 -> a.{i} b.{i} | axis=1", "Cast b.{i} -> c.{i} | to=1", "Add a.{i} c.{i} -> r.{i}"], lambda v, i: np.take_along_axis(v, order(v)[:, :3], 1) + order(v)[:, :3])
case("padded", [PICK, "Pad v.{i} back half -> a.{i}", "Abs a.{i} -> r.{i}"], lambda v, i: abs(np.pad(v, ((1, 0), (1, 1)), constant_values=0.5)))
case("joined", [PICK, "Concat v.{i} y -> r.{i} | axis=0"], lambda v, i: np.concatenate([v, Y]))
case("spread", [PICK, "Unsqueeze v.{i} l0 -> a.{i}", "Expand a.{i} wide -> b.{i}", "ReduceSum b.{i} l0 -> r.{i} | keepdims=0"], lambda v, i: 3 * v)
case("looked_up", [PICK, "Gather v.{i} at -> a.{i} | axis=1", "ReduceSum a.{i} l1 -> r.{i} | keepdims=0"], lambda v, i: v[:, AT].sum(1))
case("looking_up", [PICK, "ArgMax v.{i} -> p.{i} | axis=1 keepdims=0", "Gather y p.{i} -> r.{i} | axis=1"], lambda v, i: Y[:, v.argmax(1)].astype(float))
case("own_tables", [PICK, "ArgMin v.{i} -> p.{i} | axis=0 keepdims=0", "Gather v.{i} p.{i} -> r.{i} | axis=0"], lambda v, i: v[v.argmin(0)])
case("own_columns", [PICK, "ArgMax v.{i} -> p.{i} | axis=1 keepdims=0", "Gather v.{i} p.{i} -> r.{i} | axis=1"], lambda v, i: v[:, v.argmax(1)])
case("same", ["Exp y -> r.{i}"], lambda v, i: np.exp(Y.astype(float)), 1)
# and what is not
case("unlike_step", [PICK, "Exp v.{i} -> r.{i}"], lambda v, i: np.exp(v) if i < PARTS - 1 else np.tanh(v), last=[PICK, "Tanh v.{i} -> r.{i}"])
case("unlike_operand", [PICK, "Add v.{i} v.{h} -> r.{i}"], lambda v, i: v + X[:, max(i, 1)].astype(float), first=[PICK, "Add v.{i} v.{i} -> r.{i}"])
case("unlike_number", [PICK, "Cast k{i} -> n.{i} | to=1", "Mul v.{i} n.{i} -> r.{i}"], lambda v, i: v * (i + 1), last=[PICK, "Cast k{i} -> n.{i} | to=1", "Mul n.{i} v.{i} -> r.{i}"])
case("unlike_distance", [PICK, "Exp v.{i} -> r.{i}"], lambda v, i: np.exp(v if i < PARTS - 1 else X[:, 1].astype(float)), last=["Gather x k0 -> v.{i} | axis=1", "Exp v.{i} -> r.{i}"])
case("unlike_chain", [PICK, "Add v.{i} r.{h} -> r.{i}"], lambda v, i: Y + X[:, 1:i + 2].astype(float).sum(1), before=["Identity y -> r.-1"])
# classes: what is found of each, how much being data, and the best of it
SCORES = np.round(np.random.default_rng(22).uniform(0, 1, (PARTS + 1, 12)).astype(np.float32), 3)
BOXES = np.random.default_rng(23).standard_normal((12, 4)).astype(np.float32)


def of_class(least):
    parts = []
    for i in range(PARTS):
        own = np.flatnonzero(SCORES[i + 1] > least)
        own = own[np.argsort(-SCORES[i + 1][own], kind="stable")][:5]
        parts.append((SCORES[i + 1][own], BOXES[own], np.full(len(own), i + 1)))
    return [np.concatenate([p[k] for p in parts]) for k in range(3)]


for variant, least in {"some": 0.7, "none": 2, "all": -1}.items():
    lines = []
    for i in range(PARTS):
        lines += [s.replace("{i}", str(i)) for s in ["Gather x0 k{i} -> s.{i} | axis=0", "Greater s.{i} x2 -> m.{i}", "NonZero m.{i} -> z.{i}", "Transpose z.{i} -> t.{i} | perm=[1,0]", "GatherND s.{i} t.{i} -> f.{i}", "GatherND x1 t.{i} -> g.{i}",
                                                     "Shape f.{i} -> n.{i}", "Concat x3 n.{i} -> c.{i} | axis=0", "ReduceMin c.{i} -> w.{i} | keepdims=1", "TopK f.{i} w.{i} -> a.{i} p.{i} | axis=-1", "Gather g.{i} p.{i} -> b.{i} | axis=0",
                                                     "Shape a.{i} -> h.{i}", "ConstantOfShape h.{i} -> o.{i}", "Cast o.{i} -> q.{i} | to=7", "Add q.{i} k{i} -> l.{i}"]]
    lines += ["Concat " + " ".join(f"{n}.{i}" for i in range(PARTS)) + f" -> {y} | axis=0" for n, y in (("a", "y0"), ("b", "y1"), ("l", "y2"))] + ["Shape y1 -> y3"]
    names = {f"k{i}": f"x{4 + i}" for i in range(PARTS)}
    found = of_class(np.float32(least))
    CASES.append((f"alike_classes_{variant}", 17, [written(s, names) for s in lines], [SCORES, BOXES, np.float32(least), np.array([5])] + [np.int64(i + 1) for i in range(PARTS)], found + [np.array(found[1].shape)], set(range(2, 4 + PARTS)), {}))
