"""Attention: each case's expected values come from attend() below, which is given what the schema says that a query may see."""
import numpy as np

FILTER = -10000.0


def softmax(s, sink=None):
    most = s.max(-1, keepdims=True)
    top = most if sink is None else np.maximum(most, sink)
    e = np.exp(s - top)
    return e / (e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - top)))


def attend(q, k, v, bias=0.0, scale=None, cap=0.0, sink=None):
    """q [batch, heads, length, width], k and v of as many heads or a divisor; bias is added to the scores behind the cap."""
    q, k, v = (x.astype(float) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = q @ k.swapaxes(-1, -2) * (scale or 1 / np.sqrt(q.shape[-1]))
    s = cap * np.tanh(s / cap) if cap else s
    s = s + bias
    return softmax(s, sink) @ v, s


def split(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).swapaxes(1, 2)


def join(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def filtered(seen, value=FILTER):
    return np.where(seen, 0.0, value)


def causal(queries, keys, past=0):
    return np.where(np.arange(keys) <= np.arange(queries)[:, None] + past, 0.0, -np.inf)


def turn(x, cos, sin, positions, interleaved=0):
    """x [batch, heads, length, width], positions [batch, length]; only the first 2 * columns of the tables are turned."""
    x = x.astype(float)
    n = cos.shape[1]
    c, s = cos.astype(float)[positions][:, None], sin.astype(float)[positions][:, None]
    y = x.copy()
    a, b = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if interleaved else (slice(0, n), slice(n, 2 * n))
    y[..., a], y[..., b] = x[..., a] * c - x[..., b] * s, x[..., b] * c + x[..., a] * s
    return y


def multi_head(case, normal):
    heads, width, wide = 3, 5, 7
    hidden = heads * width
    i32 = lambda *v: np.array(v, np.int32)

    def name(text):
        return "multi_head_" + text

    q, k, v = normal(2, 4, hidden), normal(2, 6, hidden), normal(2, 6, heads * wide)
    sq, sk, sv = split(q, heads), split(k, heads), split(v, heads)
    y = lambda *args, **more: join(attend(*args, **more)[0])
    case(name("cross"), "MultiHeadAttention", [q, k, v], [y(sq, sk, sv)], num_heads=heads)
    case(name("open_cross"), "MultiHeadAttention", [q, k, v], [y(sq, sk, sv, scale=0.3)], num_heads=heads, scale=0.3)
    ends = np.arange(6) < i32(6, 3)[:, None]
    case(name("lengths"), "MultiHeadAttention", [q, k, v, None, i32(6, 3)], [y(sq, sk, sv, filtered(ends)[:, None, None])], num_heads=heads)
    places = i32(6, 3, 0, 4, 8, 0, 6, 9)
    case(name("lengths_places"), "MultiHeadAttention", [q, k, v, None, places], [y(sq, sk, sv, filtered(ends)[:, None, None])], num_heads=heads)
    keys = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 1, 0]], np.int32)
    bias = normal(1, heads, 4, 6)
    case(name("padding"), "MultiHeadAttention", [q, k, v, None, keys, bias],
         [y(sq, sk, sv, filtered(keys > 0, -50)[:, None, None] + bias)], num_heads=heads, mask_filter_value=-50.0)
    pairs = (normal(2, 4, 6) > 0).astype(np.int32)
    pairs[1, 2] = 0  # a query without keys
    case(name("pairs"), "MultiHeadAttention", [q, k, v, None, pairs, normal(2, 1, 4, 6) * 0],
         [y(sq, sk, sv, filtered(pairs > 0, -64)[:, None])], num_heads=heads, mask_filter_value=-64.0)
    # bias of the projection
    b = normal(2 * hidden + heads * wide)
    bq, bk, bv = (split(x + part, heads) for x, part in zip((q, k, v), np.split(b, [hidden, 2 * hidden])))
    case(name("bias"), "MultiHeadAttention", [q, k, v, b], [y(bq, bk, bv)], num_heads=heads)
    # a cache
    q, k, v = normal(2, 3, hidden), normal(2, 3, hidden), normal(2, 3, hidden)
    pk, pv, b = normal(2, heads, 4, width), normal(2, heads, 4, width), normal(3 * hidden)
    bq, bk, bv = (split(x + part, heads) for x, part in zip((q, k, v), np.split(b, 3)))
    bk, bv = np.concatenate([pk, bk], 2), np.concatenate([pv, bv], 2)
    case(name("past"), "MultiHeadAttention", [q, k, v, b, None, None, pk, pv], [y(bq, bk, bv, causal(3, 7, 4)), bk, bv], num_heads=heads, unidirectional=1)
    keys = np.array([[0, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]], np.int32)
    case(name("past_padding"), "MultiHeadAttention", [q, k, v, b, keys, None, pk, pv],
         [y(bq, bk, bv, causal(3, 7, 4) + filtered(keys > 0)[:, None, None]), bk, bv], num_heads=heads, unidirectional=1)
    case(name("unidirectional"), "MultiHeadAttention", [q, k, v], [y(*(split(x, heads) for x in (q, k, v)), causal(3, 3))], num_heads=heads, unidirectional=1)
    # one token after a cache
    q, k, v = normal(2, 1, hidden), normal(2, 1, hidden), normal(2, 1, hidden)
    bk, bv = np.concatenate([pk, split(k, heads)], 2), np.concatenate([pv, split(v, heads)], 2)
    case(name("open_token"), "MultiHeadAttention", [q, k, v, None, None, None, pk, pv], [y(split(q, heads), bk, bv), bk, bv], num_heads=heads)
    # packed
    packed = normal(2, 4, heads, 3, width)
    case(name("packed"), "MultiHeadAttention", [packed], [y(*(packed[:, :, :, i].swapaxes(1, 2) for i in range(3)))], num_heads=heads)
    pair, q = normal(2, 5, heads, 2, width), normal(2, 3, hidden)
    case(name("packed_pair"), "MultiHeadAttention", [q, pair], [y(split(q, heads), *(pair[:, :, :, i].swapaxes(1, 2) for i in range(2)))], num_heads=heads)
    # keys and values of a cache of their own
    k, v = normal(2, heads, 6, width), normal(2, heads, 6, width)
    case(name("cached"), "MultiHeadAttention", [q, k, v], [y(split(q, heads), k, v)], num_heads=heads)
    out, scores = attend(split(q, heads), k, v)
    case(name("scores"), "MultiHeadAttention", [q, k, v], [join(out), None, None, scores], num_heads=heads)


def decoder(case, normal):
    heads, width = 3, 8
    hidden = heads * width
    op = "DecoderMaskedMultiHeadAttention"
    q, k, v, b = normal(2, 1, hidden), normal(2, 1, hidden), normal(2, 1, hidden), normal(3 * hidden)
    pk, pv = normal(2, heads, 5, width), normal(2, heads, 5, width)
    bk, bv = np.concatenate([pk, split(k, heads)], 2), np.concatenate([pv, split(v, heads)], 2)
    y = lambda *args: join(attend(*args)[0])
    case("decoder_past", op, [q, k, v, None, None, pk, pv], [y(split(q, heads), bk, bv), bk, bv], num_heads=heads)
    keys = np.array([[0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]], np.int32)
    bias = normal(1, heads, 1, 6)
    case("decoder_masked", op, [q, k, v, keys, bias, pk, pv],
         [y(split(q, heads), bk, bv, filtered(keys > 0)[:, None, None] + bias), bk, bv], num_heads=heads)
    row = np.concatenate([q, k, v], 2)
    case("decoder_packed", op, [row, None, None, None, None, pk, pv], [y(split(q, heads), bk, bv), bk, bv], num_heads=heads)
    # one buffer for past and present: the first rows of it are in use, the others stay
    bq = [split(x + part, heads) for x, part in zip((q, k, v), np.split(b, 3))]
    fk, fv = normal(2, heads, 9, width), normal(2, heads, 9, width)
    nk, nv = fk.copy(), fv.copy()
    nk[:, :, 5], nv[:, :, 5] = bq[1][:, :, 0], bq[2][:, :, 0]
    shared = dict(num_heads=heads, past_present_share_buffer=1)
    place = np.array([5], np.int32)
    case("decoder_shared", op, [q, k, v, None, None, fk, fv, place, None, None, b], [y(bq[0], nk[:, :, :6], nv[:, :, :6]), nk, nv], **shared)
    case("decoder_shared_masked", op, [q, k, v, keys, bias, fk, fv, place, None, None, b],
         [y(bq[0], nk[:, :, :6], nv[:, :, :6], filtered(keys > 0)[:, None, None] + bias), nk, nv], **shared)
    ck, cv = normal(2, heads, 7, width), normal(2, heads, 7, width)
    case("decoder_cross", op, [q, ck, cv], [y(split(q, heads), ck, cv)], num_heads=heads)


def packed(case, normal):
    heads, width, inner = 3, 5, 11
    hidden = heads * width
    i32 = lambda *v: np.array(v, np.int32)
    x, w, b = normal(2, 4, inner), normal(inner, 3 * hidden), normal(3 * hidden)

    def project(x, w, b, sizes=(hidden, hidden)):
        all = x.astype(float) @ w + b
        return [split(p, heads) for p in np.split(all, [sizes[0], sizes[0] + sizes[1]], 2)]

    y = lambda *args, **more: join(attend(*args, **more)[0])
    q, k, v = project(x, w, b)
    op = "Attention"
    case("packed_plain", op, [x, w, b], [y(q, k, v)], num_heads=heads)
    case("packed_open_plain", op, [x, w, b], [y(q, k, v, scale=0.2)], num_heads=heads, scale=0.2)
    case("packed_causal", op, [x, w, b], [y(q, k, v, causal(4, 4))], num_heads=heads, unidirectional=1)
    ends, starts = i32(4, 3), i32(1, 0)
    seen = np.arange(4) < ends[:, None]
    case("packed_ends", op, [x, w, b, ends], [y(q, k, v, filtered(seen)[:, None, None])], num_heads=heads)
    seen = seen & (np.arange(4) >= starts[:, None])
    case("packed_starts", op, [x, w, b, np.concatenate([ends, starts])], [y(q, k, v, filtered(seen)[:, None, None])], num_heads=heads)
    keys = np.array([[1, 1, 0, 1], [0, 1, 1, 0]], np.int32)
    case("packed_keys", op, [x, w, b, keys], [y(q, k, v, filtered(keys > 0, -30)[:, None, None] + causal(4, 4))], num_heads=heads, unidirectional=1,
         mask_filter_value=-30.0)
    pairs = (normal(2, 4, 4) > 0).astype(np.int32)
    bias = normal(2, heads, 4, 4)
    case("packed_pairs", op, [x, w, b, pairs, None, bias], [y(q, k, v, filtered(pairs > 0, -64)[:, None] + bias)], num_heads=heads, mask_filter_value=-64.0)
    # a cache; the bias of scores is one for all batches and heads
    past, bias = normal(2, 2, heads, 3, width), normal(1, 1, 4, 7)
    pk, pv = (np.concatenate([past[i], p], 2) for i, p in enumerate((k, v)))
    case("packed_past", op, [x, w, b, None, past, bias], [y(q, pk, pv, causal(4, 7, 3) + bias), np.stack([pk, pv])], num_heads=heads, unidirectional=1)
    keys = np.array([[0, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0]], np.int32)
    case("packed_past_keys", op, [x, w, b, keys, past], [y(q, pk, pv, filtered(keys > 0)[:, None, None]), np.stack([pk, pv])], num_heads=heads)
    case("packed_present", op, [x, w, b], [y(q, k, v), np.stack([k, v])], num_heads=heads)
    # values of another width
    w, b = normal(inner, 2 * hidden + heads * 2), normal(2 * hidden + heads * 2)
    case("packed_wide", op, [x, w, b], [y(*project(x, w, b))], num_heads=heads, qkv_hidden_sizes=[hidden, hidden, heads * 2])


def quantised(case, normal, rng):
    heads, width, inner = 3, 4, 8
    hidden = heads * width
    op = "QAttention"
    x, w = rng.integers(0, 256, (2, 4, inner)).astype(np.uint8), rng.integers(-100, 100, (inner, 3 * hidden)).astype(np.int8)
    b, sx, sw, zx = normal(3 * hidden), np.array([0.01], np.float32), np.array([0.02], np.float32), np.array([120], np.uint8)
    each = (0.01 + 0.01 * rng.random(3 * hidden)).astype(np.float32)
    ends = np.array([4, 2], np.int32)
    seen = filtered(np.arange(4) < ends[:, None])[:, None, None]
    past = normal(2, 2, heads, 3, width)

    def project(zero, sw):
        all = (x.astype(float) - zero) @ w.astype(float) * (0.01 * sw.astype(float)) + b
        return [split(p, heads) for p in np.split(all, 3, 2)]

    q, k, v = project(120, sw)
    case("packed_q", op, [x, w, b, sx, sw, ends, zx], [join(attend(q, k, v, seen)[0])], [1], num_heads=heads)
    pk, pv = (np.concatenate([past[i], p], 2) for i, p in enumerate((k, v)))
    case("packed_q_past", op, [x, w, b, sx, sw, None, zx, None, past], [join(attend(q, pk, pv, causal(4, 7, 3))[0]), np.stack([pk, pv])], [1],
         num_heads=heads, unidirectional=1)
    q, k, v = project(0, each)
    case("packed_q_columns", op, [x, w, b, sx, each], [join(attend(q, k, v)[0])], [1, 4], num_heads=heads)


def group(case, normal):
    op = "GroupQueryAttention"
    heads, pairs, width = 6, 2, 16
    i32 = lambda *v: np.array(v, np.int32)
    cos, sin = np.cos(normal(12, 8)), np.sin(normal(12, 8))

    def steps(before, queries, past, pk=None, pv=None, lengths=None, total=None, turned=None, window=0, bias=None, order=True, packed=False, positions=None,
              norms=None, counts=None, **attrs):
        """Inputs, and what comes out: row i of batch b stands at before[b] + i; rows of the past from before[b] on are not in use."""
        batch = len(before)
        q, k, v = normal(batch, queries, heads * width), normal(batch, queries, pairs * width), normal(batch, queries, pairs * width)
        total = total or max(before) + queries
        sq, sk, sv = split(q, heads), split(k, pairs), split(v, pairs)
        own = np.array(before)[:, None] + np.arange(queries)
        if norms is not None:
            rms = lambda x, w: x / np.sqrt((x.astype(float) ** 2).mean(-1, keepdims=True) + 1e-6) * w
            sq, sk = rms(sq, norms[0]), rms(sk, norms[1])
        if turned is not None:
            at = own if positions is None else positions
            sq, sk = turn(sq, cos, sin, at, turned), turn(sk, cos, sin, at, turned)
        rows = max(total, past)
        key, value = np.zeros((2, batch, pairs, rows, width))
        for b, n in enumerate(before):
            for to, old, new in ((key, pk, sk), (value, pv, sv)):
                if past:
                    to[b, :, :n] = old[b, :, :n]
                to[b, :, n : n + queries] = new[b]
        j = np.arange(rows)[None, None]
        seen = j <= own[..., None] if order else j < own[:, -1:, None] + 1
        if window:
            seen = seen & (j > own[..., None] - window)
        mask = np.where(seen, 0, -np.inf)[:, None]
        if bias is not None:
            mask = mask + np.pad(bias, ((0, 0), (0, 0), (0, 0), (0, rows - bias.shape[3])))
        sink = attrs.pop("sink", None)
        smooth = attrs.get("smooth_softmax") or sink is not None
        share = np.asarray(0.0 if sink is None else sink)[..., None, None] if smooth else None
        y = join(attend(sq, key, value, mask, attrs.get("scale"), attrs.get("softcap", 0), share)[0])
        qkv = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
        lengths = own[:, -1].astype(np.int32) if lengths is None else lengths
        ins = qkv + [pk, pv, lengths, i32(total), cos if turned is not None else None, sin if turned is not None else None, positions, bias, sink]
        ins += [None, None, *(norms or [None, None]), counts]
        while ins[-1] is None:
            ins.pop()
        attrs |= dict(num_heads=heads, kv_num_heads=pairs) | (dict(do_rotary=1, rotary_interleaved=turned) if turned is not None else {})
        attrs |= (dict(local_window_size=window) if window else {}) | ({} if order else dict(causal=0))
        return op, ins, [y, key, value], attrs

    def put(name, *args, constant=True, **more):
        op, ins, outs, attrs = steps(*args, **more)
        case("group_" + name, op, ins, outs, [6] if constant else [], **attrs)

    caches = lambda batch, rows: dict(pk=normal(batch, pairs, rows, width), pv=normal(batch, pairs, rows, width))
    put("prompt", [0, 0], 5, 0)
    put("prompt_data", [0, 0], 5, 0, constant=False)
    put("open_prompt", [0, 0], 5, 0, constant=False, turned=0)
    put("prompt_turned", [0, 0], 5, 0, turned=0, softcap=2.0)
    put("prompt_packed", [0, 0], 5, 0, turned=1, packed=True, scale=0.3)
    put("prompt_window", [0, 0], 7, 0, window=3)
    put("prompt_bias", [0, 0], 4, 0, bias=normal(1, heads, 4, 4), softcap=3.0)
    put("prompt_whole", [0, 0], 4, 0, order=False)
    put("prompt_shared", [0, 0], 4, 9, turned=0, **caches(2, 9))
    # one batch that goes on: the past is in use as a whole
    put("token", [6], 1, 6, turned=0, **caches(1, 6))
    put("token_data", [6], 1, 6, constant=False, turned=0, **caches(1, 6))
    put("open_token", [6], 1, 6, constant=False, turned=0, **caches(1, 6))
    put("token_window", [6], 1, 6, turned=0, window=4, **caches(1, 6))
    put("chunk", [4], 3, 4, turned=0, packed=True, **caches(1, 4))
    put("chunk_window", [5], 3, 5, turned=0, window=3, **caches(1, 5))
    # a cache longer than what is in use, batches of different lengths
    put("buffer", [6], 1, 11, turned=0, **caches(1, 11))
    put("buffer_chunk", [4], 3, 11, turned=1, window=4, **caches(1, 11))
    put("lengths", [3, 6], 1, 6, turned=0, **caches(2, 6))
    put("lengths_data", [3, 6], 1, 6, constant=False, turned=0, packed=True, **caches(2, 6))
    put("lengths_buffer", [3, 6], 1, 10, turned=0, **caches(2, 10))
    put("lengths_buffer_data", [3, 6], 1, 10, constant=False, turned=0, **caches(2, 10))
    put("lengths_bias", [3, 5], 1, 5, bias=normal(2, 1, 1, 6), window=4, **caches(2, 5))
    put("lengths_whole", [3, 6], 1, 10, order=False, **caches(2, 10))
    put("positions", [3, 6], 1, 6, turned=0, positions=np.array([[2], [7]]), **caches(2, 6))
    # the softmax has one part more
    put("smooth", [0, 0], 4, 0, smooth_softmax=1)
    put("sink", [0, 0], 4, 0, sink=normal(heads))
    put("sink_lengths", [3, 6], 1, 10, sink=normal(heads), turned=0, window=3, bias=normal(1, heads, 1, 7), **caches(2, 10))
    put("counts", [3, 5], 2, 8, turned=0, counts=i32(2, 2), **caches(2, 8))
    put("norms", [4], 2, 4, turned=0, norms=(normal(width), normal(width)), **caches(1, 4))


def rotary(case, normal):
    op = "RotaryEmbedding"
    cos, sin = np.cos(normal(9, 4)), np.sin(normal(9, 4))
    x, flat = normal(2, 3, 5, 8), normal(2, 5, 24)
    at = np.array([[0, 1, 2, 3, 4], [3, 4, 5, 8, 7]])
    case("rotary_heads", op, [x, at, cos, sin], [turn(x, cos, sin, at)])
    case("rotary_neighbours", op, [x, at, cos, sin], [turn(x, cos, sin, at, 1)], interleaved=1)
    case("rotary_flat", op, [flat, at, cos, sin], [join(turn(split(flat, 3), cos, sin, at))])
    case("rotary_first", op, [flat, np.array([2]), cos, sin], [join(turn(split(flat, 3), cos, sin, np.arange(5)[None] + 2))])
    part = cos[:, :2], sin[:, :2]
    case("rotary_open_part", op, [flat, at, *part], [join(turn(split(flat, 3), *part, at))], num_heads=3, rotary_embedding_dim=4)
    case("rotary_heads_part", op, [x, at, *part], [turn(x, *part, at, 1)], interleaved=1, num_heads=3, rotary_embedding_dim=4)


def cases(case):
    rng = np.random.default_rng(3)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    multi_head(case, normal)
    decoder(case, normal)
    packed(case, normal)
    group(case, normal)
    rotary(case, normal)
    quantised(case, normal, rng)
