"""Nodes that are refused, and the words for it."""
import numpy as np


def f(*shape):
    return np.zeros(shape, np.float32)


def u8(*shape):
    return np.zeros(shape, np.uint8)


ONE, ZERO = np.float32(1), np.uint8(0)
QUERY, PART, PAST, SEEN, TOTAL = f(2, 1, 48), f(2, 1, 16), f(2, 1, 5, 16), np.zeros(2, np.int32), np.int32(6)
GROUP = [QUERY, PART, PART, PAST, PAST, SEEN, TOTAL]
HEADS = dict(num_heads=3, kv_num_heads=1)
BITS = dict(K=32, N=4, block_size=16)
WEIGHTS = [f(3, 32), u8(4, 2, 8), f(4, 2)]

# name, operator, inputs, attributes, words
REFUSED = [
    ("group_quantised_cache", "GroupQueryAttention", GROUP + [None] * 5 + [f(1), f(1)], HEADS, "a quantised cache (k_scale, v_scale)"),
    ("group_rolling", "GroupQueryAttention", GROUP, dict(HEADS, sliding_window_cache=1, local_window_size=4), "sliding_window_cache: a cache that drops rows"),
    ("group_scores", "GroupQueryAttention", GROUP, dict(HEADS, qk_output=1), "qk_output"),
    ("group_heads", "GroupQueryAttention", GROUP, dict(HEADS, kv_num_heads=2), "num_heads 3 beside kv_num_heads 2"),
    ("heads_beams", "MultiHeadAttention", [QUERY, QUERY, QUERY] + [None] * 6 + [np.zeros((2, 1, 1), np.int32)], dict(num_heads=3), "cache_indirection"),
    ("heads_no_key", "MultiHeadAttention", [QUERY], dict(num_heads=3), "no key beside a query of rank 3"),
    ("heads_mask", "MultiHeadAttention", [QUERY, QUERY, QUERY, None, np.zeros((2, 3), np.int32)], dict(num_heads=3), "a mask or bias of 3, expected 1"),
    ("packed_mask", "Attention", [QUERY, f(48, 144), f(144), np.zeros((2, 1, 9, 9), np.int32)], dict(num_heads=3), "a mask of rank 4"),
    ("packed_rotary", "Attention", [QUERY, f(48, 144), f(144)], dict(num_heads=3, do_rotary=1), "do_rotary"),
    ("rotary_scale", "RotaryEmbedding", [f(1, 3, 4, 8), np.zeros(1, np.int64), f(4, 4), f(4, 4)], dict(scale=2.0), "a scale other than 1"),
    ("bits_width", "MatMulNBits", WEIGHTS, dict(BITS, bits=3), "bits 3; 2, 4 and 8 are supported"),
    ("bits_block", "MatMulNBits", WEIGHTS, dict(BITS, bits=4, block_size=24), "block_size 24"),
    ("bits_rows", "MatMulNBits", WEIGHTS, dict(BITS, bits=4, N=0), "N 0, K 32"),
    ("bits_packed", "MatMulNBits", WEIGHTS, dict(BITS, bits=4, weight_prepacked=1), "weights packed for one vendor's devices"),
    ("bits_shape", "MatMulNBits", WEIGHTS, dict(BITS, bits=4, N=5), "reshape"),
    ("codes_kind", "MatMulBnb4", [f(3, 32), u8(64), f(8)], dict(BITS, quant_type=2), "quant_type 2"),
    ("rows_axes", "GatherBlockQuantized", [u8(9, 24), np.zeros(2, np.int64), f(9, 3)], dict(block_size=16, quantize_axis=0), "gathered along axis 0"),
    ("bits_no_codes", "MatMulNBits", [WEIGHTS[0], None, WEIGHTS[2]], dict(BITS, bits=4), "input 1 is missing"),
    ("activation", "FusedGemm", [f(2, 3), f(3, 4)], dict(activation="Unheard"), "activation Unheard"),
    ("distance", "CDist", [f(2, 3), f(4, 3)], dict(metric="cosine"), "metric cosine"),
    ("groupnorm_activation", "GroupNorm", [f(1, 2, 2, 4), f(4), f(4)], dict(groups=2, activation=7), "activation 7"),
    ("embed_rank", "EmbedLayerNormalization", [np.zeros(3, np.int32), None, f(4, 8), f(4, 8), None, f(8), f(8)], {}, "input_ids must have rank 2"),
    ("add_scale", "QLinearAdd", [u8(2, 4), f(4), ZERO, u8(2, 4), ONE, ZERO, ONE, ZERO], {}, "must be one number: it has rank 1"),
    ("concat_threes", "QLinearConcat", [ONE, ZERO, u8(2, 4), ONE], dict(axis=1), "each operand must be a tensor, its scale and its zero point"),
    ("softmax_version", "QLinearSoftmax", [u8(2, 4), ONE, ZERO, ONE, ZERO], {}, "attribute opset is missing"),
    ("gemm_halves", "QGemm", [u8(2, 4), ONE, ZERO, u8(4, 3), ONE, ZERO, None, ONE], {}, "y_scale and y_zero_point must be given together"),
    ("pool_rank", "QLinearGlobalAveragePool", [u8(2, 4), ONE, ZERO, ONE, ZERO], {}, "rank 2 has no spatial axis"),
]
