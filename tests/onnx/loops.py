"""Loops whose end the data decides, and what their results' extents are to those who read them. Cases of tests/onnx/recent; LOOPS_REFUSED: models, and the words for it."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL, "n": TensorProto.INT32}
NUMBERS = {"one": np.int64(1), "two": np.int64(2), "no": np.int64(0), "most": np.int64(12), "end": np.float32(100), "half": np.float32(0.5), "unit": np.float32(1),
           "list1": np.array([1], np.int64), "list0": np.array([0], np.int64), "yes": np.array(True), "nil": np.array([0], np.float32), "fallen": np.float32(-1)}


def ports(text):
    """"v:f3,5 n:i": names, kinds and extents."""
    parts = [p.split(":") for p in text.split()]
    return [helper.make_tensor_value_info(name, KINDS[kind[0]], [int(d) for d in kind[1:].split(",") if d]) for name, kind in parts]


def node(text, **attrs):
    """"Add a b -> c": one node."""
    op, *rest = text.split()
    at = rest.index("->")
    return helper.make_node(op, [n if n != "_" else "" for n in rest[:at]], rest[at + 1:], **attrs)


def body(ins, nodes, outs, **numbers):
    """The graph of a Loop, its number and condition being i and on."""
    made = [node(n) if isinstance(n, str) else node(n[0], **n[1]) for n in nodes]
    used = {name for n in made for name in n.input} | {o.split(":")[0] for o in outs.split()}
    return helper.make_graph(made, "body", ports("i:i on:b " + ins), ports(outs), [numpy_helper.from_array(np.asarray(v), k) for k, v in {**NUMBERS, **numbers}.items() if k in used])


def loop(inputs, outputs, graph):
    return ("Loop", {"body": graph}, inputs.split("|"), outputs.split())


TOP = ["ReduceMax w -> top", {"keepdims": 0}]
DOUBLE = ["Add v v -> w", TOP, "Less top end -> low"]
x = np.array([1, 2, 3], np.float32)
CASES, REFUSED = [], []


def case(name, steps, inputs, outputs, constants=()):
    CASES.append((name, 13, steps, list(inputs), list(outputs), set(constants), {}))


# ---- no count: a counter that the condition compares says how many trips there can be ----
COUNT = ["Add n two -> m", "Less m most -> more", "And low more -> go"]
case("loop_13_ends_by_counter", [loop("||x0|x1", "y0 y1", body("v:f3 n:i", ["Mul v half -> w", TOP, "Less top end -> low"] + COUNT, "go:b w:f3 m:i"))], [x, np.int64(3)],
     [x / 32, np.int64(13)], [1])
case("loop_13_ends_before_counter", [loop("||x0|x1", "y0 y1", body("v:f3 n:i", DOUBLE + COUNT, "go:b w:f3 m:i", most=np.int64(400)))], [x, np.int64(3)], [x * 64, np.int64(15)], [1])
case("loop_13_ends_backwards", [loop("||x0|x1", "y0 y1", body("v:f3 n:i", DOUBLE + ["Sub n two -> m", "LessOrEqual m no -> over", "Not low -> high", "Or over high -> off", "Not off -> go"], "go:b w:f3 m:i"))],
     [x, np.int64(9)], [x * 32, np.int64(-1)], [1])
# as Paddle writes it: the counter goes through floats, the condition through numbers, and everything has a 0 added
PADDLE = [["Cast n -> nf", {"to": 1}], "Add nf unit -> mf", ["Cast mf -> ms", {"to": 7}], ["Cast l -> lf", {"to": 1}], "Add lf unit -> ef", ["Cast ef -> e", {"to": 7}], "Less ms e -> more",
          "And more low -> both", ["Cast both -> bi", {"to": 7}], "Add bi list0 -> bz", ["Cast bz -> go", {"to": 9}], "Unsqueeze ms list0 -> mu", "Add mu list0 -> mz", "Squeeze mz list0 -> m", "Identity l -> k"]
case("loop_13_counter_through_floats", [loop("x3||x0|x1|x2", "y0 y1 y2", body("v:f3 n:i l:i", DOUBLE + PADDLE, "go:b1 w:f3 m:i k:i"))], [x, np.int64(0), np.int64(4), np.int64(2**63 - 1)],
     [x * 32, np.int64(5), np.int64(4)], [1, 2, 3])
# nothing but the counter: as many trips as it says, so that what is kept has a known extent
KEPT = "ReduceSum w -> kept", {"keepdims": 0}
v, sums = x.astype(float), []
for i in range(270):
    v = v * 0.5 + i
    sums.append(v.sum())
FOR = ["Mul v half -> h", ["Cast i -> f", {"to": 1}], "Add h f -> w", list(KEPT), "Add n two -> m", "Less m most -> go"]
case("loop_13_counter_alone", [loop("||x0|x1", "y0 y1 t", body("v:f3 n:i", FOR, "go:b w:f3 m:i kept:f", most=np.int64(540))), ("Mul", {}, ["t", "x2"], ["y2"])],
     [x, np.int64(0), np.arange(270, dtype=np.float32)], [v, np.int64(540), np.array(sums) * np.arange(270)], [1])
case("loop_13_counter_alone_once", [loop("||x0|x1", "y0 y1", body("v:f3 n:i", FOR[:3] + FOR[4:], "go:b w:f3 m:i", most=np.int64(0)))], [x, np.int64(7)], [x * 0.5, np.int64(9)], [1])
# ---- the count is known at run time only, under a counter's bound ----
for most in (4, 0, 11):
    case(f"loop_13_count_by_data_{most}", [("Floor", {}, ["x2"], ["c"]), ("Cast", {"to": 7}, ["c"], ["m"]), loop("m||x0|x1", "y0 y1", body("v:f3 n:i", ["Mul v half -> w", TOP, "Less top end -> low"] + COUNT, "go:b w:f3 m:i"))],
         [x, np.int64(3), np.float32(most + 0.5)], [x / 2 ** min(most, 5), np.int64(3 + 2 * min(most, 5))], [1])
# ---- carried values that change their shape where nobody sees it ----
RANKS = DOUBLE + ["And low f -> lf", "Identity f -> f2", "Reshape low list1 -> g", "Identity lf -> go"]
case("loop_13_flag_gets_an_axis", [loop("x1||x0|x2", "y0 y1", body("v:f3 f:b", DOUBLE + ["Reshape low list1 -> g", "And low f -> l", "Squeeze l -> go"], "go:b w:f3 g:b1"))],
     [x, np.int64(30), np.array(True)], [x * 64, np.array([False])], [1, 2])
case("loop_13_unread", [loop("x1||x0|x2", "y0 y1", body("v:f3 u:f1", DOUBLE + ["Mul w half -> d"], "low:b w:f3 d:f3"))], [x, np.int64(30), np.zeros(1, np.float32)], [x * 64, x * 32], [1, 2])
# ---- loops in loops: the inner one is as long as the outer one's number says, and ends by the data before that, or not at all ----
INNER = body("q:f3", ["Add q q -> w", TOP, "Less top end -> go"], "go:b w:f3")
want = x.copy()
for k in range(5):
    for _ in range(k):
        want = want * 2
        if want.max() >= 100:
            break
    want = want * 0.25
case("loop_13_nested", [loop("x1||x0", "y0", body("v:f3", [["Loop i _ v -> z", {"body": INNER}], "Mul z quarter -> w"], "on:b w:f3", quarter=np.float32(0.25)))], [x, np.int64(5)], [want], [1])
want, made = x.copy(), 0
while made < 9:
    while want.max() < 100:
        want = want * 2
    want, made = want * np.float32(0.3), made + 1
    if want.sum() > 88:
        break
WHILE = body("q:f3", ["Add q q -> w", TOP, "Less top end -> go"], "go:b w:f3")
OUTER = [["ReduceMax v -> first", {"keepdims": 0}], "Less first end -> start", ["Loop twenty start v -> z", {"body": WHILE}], "Mul z third -> w", ["ReduceSum w -> all", {"keepdims": 0}], "LessOrEqual all last -> go"]
case("loop_13_nested_ends", [loop("x1||x0", "y0 y1", body("v:f3", OUTER + ["Identity all -> kept"], "go:b w:f3 kept:f", twenty=np.int64(20), third=np.float32(0.3), last=np.float32(88)))],
     [x, np.int64(9)], [want, np.full(made, want.sum())], [1])
# ---- a decoder: a token a trip, written where the counter is; what was made is cut off behind it and read on ----
table, weights = np.random.default_rng(5).standard_normal((6, 4)).astype(np.float32), np.random.default_rng(6).standard_normal((4, 6)).astype(np.float32)
state, token, rows = np.ones(4), 2, []
for step in range(9):
    state = np.tanh(state * 0.5 + table[token])
    logits = state @ weights
    token = int(logits.argmax())
    rows.append(logits)
    if token == 5 or step == 7:
        break
rows = np.array(rows)
soft = np.exp(rows - rows.max(1, keepdims=True))
soft /= soft.sum(1, keepdims=True)
DECODE = [["Gather table t -> e", {"axis": 0}], "Mul h half -> hh", "Add hh e -> s", "Tanh s -> g", "MatMul g weights -> o", ["ArgMax o -> a", {"axis": 1, "keepdims": 0}], ["Cast a -> k", {"to": 7}],
          "Equal k stop -> st", ["Cast st -> si", {"to": 6}], ["ReduceMax si -> sm", {"keepdims": 0}], ["Cast sm -> over", {"to": 9}], "Not over -> low",
          "Reshape n list1 -> from", "Add n one -> m", "Reshape m list1 -> to", "Shape buffer -> bs", "Gather bs list1 -> rows", "Min rows to -> until", "Slice buffer from until list1 list1 -> part", "Shape part -> ps",
          "Unsqueeze o list1 -> ou", "Expand ou ps -> ex", "Squeeze from -> f0", "Squeeze until -> u0", "Range f0 u0 one -> line", "Reshape line turn -> col", "Concat one1 one1 six -> reps", "Tile col reps -> index",
          ["ScatterElements buffer index ex -> written", {"axis": 1}], "Less m eight -> more", "And low more -> go"]
DECODE = [d if not (isinstance(d, str) and d.startswith("Concat")) else ["Concat one1 one1 six -> reps", {"axis": 0}] for d in DECODE]
graph = body("h:f1,4 t:i1 n:i buffer:f1,9,6", DECODE, "go:b g:f1,4 k:i1 m:i written:f1,9,6", table=table, weights=weights, stop=np.int64(5), turn=np.array([1, -1, 1]), one1=np.array([1]), six=np.array([6]),
             eight=np.int64(8))
after = [("Reshape", {}, ["n2", "x5"], ["n3"]), ("Slice", {}, ["out", "x6", "n3", "x5", "x5"], ["cut"]), ("Softmax", {"axis": -1}, ["cut"], ["y1"])]
case("loop_13_decoder", [loop("||x0|x1|x2|x3", "y0 t2 n2 out", graph)] + after,
     [np.ones((1, 4), np.float32), np.array([2], np.int64), np.int64(0), np.zeros((1, 9, 6), np.float32), np.float32(0), np.array([1], np.int64), np.array([0], np.int64)],
     [state[None].astype(np.float32), soft[None].astype(np.float32)], [2, 3, 4, 5, 6])
# ---- extents of the data: read where each place is computed from the same place ----
SLICES = [loop("x1||x0", "y0 kept", body("v:f3", DOUBLE + ["Mul w unit -> kept"], "low:b w:f3 kept:f3"))]
rows = np.stack([x * 2 ** (k + 1) for k in range(6)])
case("loop_13_slices_read", SLICES + [("Transpose", {}, ["kept"], ["t"]), ("MatMul", {}, ["x2", "t"], ["p"]), ("Tanh", {}, ["p"], ["y1"])], [x, np.int64(20), np.full((2, 3), 0.01, np.float32)],
     [x * 64, np.tanh(rows @ np.full((2, 3), 0.01).T).T], [1, 2])
case("loop_13_slices_summed", SLICES + [("ReduceSum", {"keepdims": 0}, ["kept"], ["y1"]), ("Shape", {}, ["kept"], ["y2"])], [x, np.int64(20)], [x * 64, rows.sum(), np.array(rows.shape)], [1])
case("loop_13_grows_by_trip", [loop("x1||x0", "y0 y1", body("v:f3", DOUBLE + ["Add i one -> m", "Reshape m list1 -> n", ["ConstantOfShape n -> z", {"value": numpy_helper.from_array(np.array([2], np.float32))}], ["ReduceSum z -> kept", {"keepdims": 0}]],
                                                            "low:b w:f3 kept:f"))], [x, np.int64(30)], [x * 64, 2 * np.arange(1, 7, dtype=np.float32)], [1])
found = np.array([0, 3, 0, 2, 0, 0, 7, 1], np.float32)
places = np.flatnonzero(found)
case("nonzero_13_gathers", [("NonZero", {}, ["x0"], ["z"]), ("Gather", {"axis": 0}, ["z", "x1"], ["p"]), ("Gather", {"axis": 0}, ["x2", "p"], ["g"]), ("Softmax", {"axis": 1}, ["g"], ["y0"])],
     [found, np.int64(0), np.arange(24, dtype=np.float32).reshape(8, 3) / 9],
     [(lambda e: e / e.sum(1, keepdims=True))(np.exp(np.arange(24).reshape(8, 3) / 9)[places])], [1])
case("slice_13_ends_by_data", [("Cast", {"to": 7}, ["x1"], ["n"]), ("Reshape", {}, ["n", "x2"], ["e"]), ("Slice", {}, ["x0", "x2", "e", "x2"], ["y0"])],
     [np.arange(20, dtype=np.float32).reshape(2, 10), np.float32(-3), np.array([1], np.int64)], [np.arange(20).reshape(2, 10)[:, 1:7].astype(np.float32)], [2])
case("slice_13_starts_by_data", [("Cast", {"to": 7}, ["x1"], ["n"]), ("Reshape", {}, ["n", "x2"], ["s"]), ("Slice", {}, ["x0", "s", "x3", "x2"], ["y0"])],
     [np.arange(20, dtype=np.float32).reshape(2, 10), np.float32(4), np.array([1], np.int64), np.array([99], np.int64)], [np.arange(20).reshape(2, 10)[:, 4:].astype(np.float32)], [2, 3])


# ---- what cannot be, in words ----
def refused(name, steps, inputs, words, constants=()):
    REFUSED.append(((f"refused_{name}", 13, steps, list(inputs), [np.float32(0)], set(constants), {}), words))


refused("no_bound", [loop("||x0", "y0", body("v:f3", DOUBLE, "low:b w:f3"))], [x],
        "node0 (Loop): its end depends on data, and nothing says how many trips there may be: its count is left out, and its condition compares no counter with a known number")
refused("no_bound_count", [loop("x1||x0", "y0", body("v:f3", DOUBLE, "low:b w:f3"))], [x, np.float32(3)], "node0 (Loop): its count x1 is not one whole number")
refused("count_by_data", [("Cast", {"to": 7}, ["x1"], ["m"]), loop("m||x0", "y0", body("v:f3", DOUBLE, "low:b w:f3"))], [x, np.float32(3)],
        "node1 (Loop): its end depends on data, and nothing says how many trips there may be: its count is not known when the model is loaded")
refused("condition_kind", [loop("x1||x0", "y0", body("v:f3", ["Add v v -> w", TOP], "top:f w:f3"))], [x, np.int64(3)], "node0 (Loop): its condition top is f32 of rank 0, not one bool", [1])
refused("condition_rank", [loop("x1||x0", "y0", body("v:f3", ["Add v v -> w", "Less w end -> go"], "go:b3 w:f3"))], [x, np.int64(3)], "node0 (Loop): its condition go is bool of rank 1, not one bool", [1])
refused("first_condition", [loop("x1|x0|x0", "y0", body("v:f3", DOUBLE, "low:b w:f3"))], [x, np.int64(3)], "node0 (Loop): its condition x0 is f32 of rank 1, not one bool", [1])
refused("grows", [loop("x1||x0", "y0", body("v:f3", [["Concat v v -> w", {"axis": 0}], TOP, "Less top end -> low"], "low:b w:f6"))], [x, np.int64(30)],
        "node0 (Loop): carried value 0 (x0) has another shape behind a trip", [1])
refused("keeps_by_trip", [loop("x1||x0", "y0 kept", body("v:f3", DOUBLE + ["Add i one -> m", "Reshape m list1 -> n", "ConstantOfShape n -> kept"], "low:b w:f3 kept:f"))], [x, np.int64(30)],
        "(Loop): how much of kept there is depends on the data", [1])
