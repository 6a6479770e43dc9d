"""Products with an activation behind them, and those by weights of a few bits."""
import numpy as np

rng = np.random.default_rng(2)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def packed(q, bits):
    """numbers along the last axis, the lowest bits first"""
    count = 8 // bits
    q = np.concatenate([q, np.zeros(q.shape[:-1] + (-q.shape[-1] % count,), q.dtype)], -1)
    q = q.reshape(q.shape[:-1] + (-1, count)).astype(np.uint32)
    return (q << (bits * np.arange(count, dtype=np.uint32))).sum(-1).astype(np.uint8)


def products(case):
    a, b = normal(2, 3, 5), normal(2, 5, 4)
    x, y = a.astype(float), b.astype(float)
    case("fusedmatmul", "FusedMatMul", [a, b], [x @ y * 0.25], alpha=0.25)
    case("fusedmatmul_b", "FusedMatMul", [a, normal(2, 4, 5)], [None])if False else None
    right = normal(2, 4, 5)
    case("fusedmatmul_transb", "FusedMatMul", [a, right], [x @ right.astype(float).swapaxes(1, 2)], [1], transB=1)
    left = normal(2, 5, 3)
    case("fusedmatmul_open_transa", "FusedMatMul", [left, b], [left.astype(float).swapaxes(1, 2) @ y], transA=1)
    rows = normal(3, 2, 5)
    case("fusedmatmul_batcha", "FusedMatMul", [rows, b], [rows.astype(float).swapaxes(0, 1) @ y], transBatchA=1)
    across = normal(5, 2, 7, 3)
    by = normal(2, 7, 5, 4)
    case("fusedmatmul_batcha_transa", "FusedMatMul", [across, by], [across.astype(float).transpose(1, 2, 3, 0) @ by], transBatchA=1, transA=1)
    by = normal(5, 2, 4)
    case("fusedmatmul_batchb", "FusedMatMul", [a, by], [x @ by.astype(float).transpose(1, 0, 2)], transBatchB=1)
    case("transposematmul", "TransposeMatMul", [a, right], [2 * x @ right.astype(float).swapaxes(1, 2)], transB=1, alpha=2.0)
    case("fusedmatmulactivation", "FusedMatMulActivation", [a, b], [np.tanh(x @ y)], activation="Tanh")
    a, b, c = normal(3, 5), normal(4, 5), normal(4)
    sum = a.astype(float) @ b.T + c
    case("fusedgemm_relu", "FusedGemm", [a, b, c], [np.maximum(sum, 0)], [1, 2], transB=1, activation="Relu")
    case("fusedgemm_leaky", "FusedGemm", [a, b, c], [np.where(sum < 0, 0.2 * sum, sum)], transB=1, activation="LeakyRelu", activation_alpha=0.2)
    case("fusedgemm_no_c", "FusedGemm", [a, b], [1 / (1 + np.exp(-0.5 * (sum - c)))], transB=1, alpha=0.5, activation="Sigmoid")
    gelu = lambda v: 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    case("gemmfastgelu", "GemmFastGelu", [a, np.ascontiguousarray(b.T), c], [gelu(sum)])


def convolved(x, w, pad):
    x = np.pad(x.astype(float), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    y = np.zeros((x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            y += np.einsum("nchw,mc->nmhw", x[:, :, i : i + y.shape[2], j : j + y.shape[3]], w[:, :, i, j].astype(float))
    return y


def convolutions(case):
    x, w, b, z = normal(1, 3, 6, 5), normal(4, 3, 3, 3), normal(4), normal(1, 4, 6, 5)
    y = convolved(x, w, 1) + b.reshape(1, 4, 1, 1)
    case("fusedconv_relu", "FusedConv", [x, w, b], [np.maximum(y, 0)], [1, 2], pads=[1, 1, 1, 1], activation="Relu")
    case("fusedconv_add_clip", "FusedConv", [x, w, b, z], [np.clip(y + z, 0, 1.5)], [1, 2], pads=[1, 1, 1, 1], activation="Clip", activation_params=[0.0, 1.5])
    hard = np.clip(0.25 * y + 0.4, 0, 1)
    case("fusedconv_hard", "FusedConv", [x, w, b], [hard], pads=[1, 1, 1, 1], kernel_shape=[3, 3], activation="HardSigmoid", activation_params=[0.25, 0.4])
    last = lambda v: np.ascontiguousarray(np.moveaxis(v, 1, -1))
    case("nhwcconv", "NhwcConv", [last(x), w, b], [last(y)], pads=[1, 1, 1, 1])
    case("nhwcfusedconv", "NhwcFusedConv", [last(x), w, b, last(z)], [last(np.maximum(y + z, 0))], [1, 2], pads=[1, 1, 1, 1], activation="Relu")


def rounded(x, block):
    """whole numbers to 127 times a scale a block"""
    wide = np.pad(x.astype(np.float32), [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % block)]).reshape(x.shape[:-1] + (-1, block))
    most = np.abs(wide).max(-1, keepdims=True)
    codes = np.rint(wide * np.divide(np.float32(127), most, out=np.zeros_like(most), where=most > 0))
    return (codes * (most.astype(float) / 127)).reshape(x.shape[:-1] + (-1,))[..., : x.shape[-1]]


def few_bits(case, name, rows, columns, block, bits, x_shape, zeros=None, bias=False, groups=False, constant=True, dtype=np.float32, level=0):
    """zeros: None, "packed" or "real"; level 4: rounds the rows of x to 8 bits, block by block, unless groups or zeros forbid"""
    count = -(-columns // block)
    q = rng.integers(0, 1 << bits, (rows, count, block))
    scale = (0.1 * normal(rows, count)).astype(dtype)
    zero = rng.integers(0, 1 << bits, (rows, count))
    group = rng.integers(0, count, columns).astype(np.int32)
    real = np.full((rows, count), 1 << (bits - 1)) if zeros is None else zero
    wide = np.arange(columns) // block if not groups else group
    w = (q.reshape(rows, -1)[:, :columns] - real[:, wide]) * scale.astype(float)[:, wide]
    x, b = normal(*x_shape, columns).astype(dtype), normal(rows).astype(dtype)
    third = None if zeros is None else packed(zero, bits) if zeros == "packed" else zero.astype(dtype)
    given = [x, packed(q, bits), scale, third, group if groups else None, b if bias else None]
    rows_of_x = rounded(x, block) if level == 4 and not groups and zeros != "real" else x.astype(float)
    want = rows_of_x @ w.T + (b.astype(float) if bias else 0)
    more = {"accuracy_level": level} if level else {}
    case("matmulnbits_" + name, "MatMulNBits", given, [want.astype(dtype)], [i for i in range(1, 6) if given[i] is not None] if constant else [],
         K=columns, N=rows, bits=bits, block_size=block, **more)


def coded(case, name, kind, rows, columns, block, **attrs):
    fp4 = [0, 0.0052083333, 0.6666666667, 1, 0.3333333333, 0.5, 0.1666666667, 0.25]
    nf4 = [-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
           0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1]
    table = np.array([fp4 + [-v for v in fp4], nf4][kind])
    total = rows * columns
    q, scale = rng.integers(0, 16, total), normal(-(-total // block))
    w = (table[q] * scale.astype(float)[np.arange(total) // block]).reshape(rows, columns)
    even = np.concatenate([q, np.zeros(total % 2, q.dtype)])
    x = normal(2, columns if attrs.get("transB", 1) else rows)
    case("matmulbnb4_" + name, "MatMulBnb4", [x, (even[0::2] * 16 + even[1::2]).astype(np.uint8), scale], [x @ (w.T if attrs.get("transB", 1) else w)], [1, 2],
         K=columns, N=rows, quant_type=kind, block_size=block, **attrs)


def rows_of_blocks(case, name, bits, with_zeros, index):
    columns, block = 48, 16
    q, zero = rng.integers(0, 1 << bits, (9, columns)), rng.integers(0, 1 << bits, (9, columns // block))
    scale = normal(9, columns // block)
    wide = lambda v: np.repeat(v, block, 1)
    real = wide(zero) if with_zeros else 1 << (bits - 1)
    want = ((q - real) * wide(scale.astype(float)))[index]
    given = [packed(q, bits), index, scale] + ([packed(zero, bits)] if with_zeros else [])
    case("gatherblockquantized_" + name, "GatherBlockQuantized", given, [want], [i for i in range(len(given)) if i != 1], bits=bits, block_size=block,
         gather_axis=0, quantize_axis=1)


def weights(case):
    few_bits(case, "4", 7, 64, 32, 4, (3,))
    few_bits(case, "4_one_row", 24, 128, 16, 4, (1, 1))
    few_bits(case, "4_zeros", 7, 48, 16, 4, (2, 3), "packed")
    few_bits(case, "4_bias_open", 5, 96, 32, 4, (2, 3), "packed", True)
    few_bits(case, "4_real_zeros", 6, 64, 16, 4, (3,), "real")
    few_bits(case, "4_partial", 6, 40, 16, 4, (3,), "packed", True)
    few_bits(case, "4_groups", 6, 64, 16, 4, (3,), groups=True)
    few_bits(case, "4_inputs", 6, 64, 32, 4, (3,), constant=False)
    few_bits(case, "8", 7, 64, 32, 8, (3,))
    few_bits(case, "8_zeros", 7, 64, 32, 8, (1,), "packed", True)
    few_bits(case, "2", 6, 64, 16, 2, (3,))
    few_bits(case, "2_zeros", 6, 96, 32, 2, (1, 2), "packed")
    few_bits(case, "level4", 48, 128, 32, 4, (1,), level=4)
    few_bits(case, "level4_zeros_bias", 7, 96, 16, 4, (2, 3), "packed", True, level=4)
    few_bits(case, "level4_partial", 6, 40, 16, 4, (3,), "packed", level=4)
    few_bits(case, "level4_groups", 6, 64, 16, 4, (3,), groups=True, level=4)
    few_bits(case, "level4_real_zeros", 6, 64, 16, 4, (3,), "real", level=4)
    few_bits(case, "level4_8", 7, 64, 32, 8, (3,), level=4)
    coded(case, "nf4", 1, 6, 32, 16)
    coded(case, "fp4", 0, 6, 32, 64)
    coded(case, "nf4_ragged", 1, 5, 19, 16)
    coded(case, "nf4_backward", 1, 6, 32, 16, transB=0)
    rows_of_blocks(case, "4", 4, False, np.array([[0, 8], [3, 3]], np.int64))
    rows_of_blocks(case, "4_zeros", 4, True, np.array([7, -1, 2], np.int64))
    rows_of_blocks(case, "8_zeros", 8, True, np.array([1, 2], np.int32))
    rows_of_blocks(case, "2", 2, False, np.array([1, 8], np.int64))
    a, b = normal(4, 3), normal(5, 3)
    apart = ((a[:, None].astype(float) - b[None]) ** 2).sum(2)
    case("cdist", "CDist", [a, b], [apart])
    case("cdist_root", "CDist", [a, b], [np.sqrt(apart)], metric="euclidean")


def cases(case):
    for family in (products, convolutions, weights):
        family(case)
