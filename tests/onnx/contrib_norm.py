"""Activations, normalisations, and operators that are ONNX's own by another name."""
import numpy as np
from math import erf

rng = np.random.default_rng(1)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x, alpha=1.0):
    return x / (1 + np.exp(-alpha * x))


def layer_norm(x, scale, bias, epsilon):
    """the result, the mean and the factor"""
    mean = x.mean(-1, keepdims=True)
    factor = 1 / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return (x - mean) * factor * scale + (0 if bias is None else bias), mean, factor


def rms_norm(x, scale, epsilon):
    factor = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    return x * factor * scale, factor


def group_norm(x, groups, scale, bias, epsilon):  # channels last
    n, c = x.shape[0], x.shape[-1]
    v = x.reshape(n, -1, groups, c // groups)
    v = (v - v.mean((1, 3), keepdims=True)) / np.sqrt(v.var((1, 3), keepdims=True) + epsilon)
    return v.reshape(x.shape) * scale + bias


def activations(case):
    x, bias, wide = normal(3, 5), normal(5), normal(2, 3, 8)
    double, sum = x.astype(float), x.astype(float) + bias
    case("gelu", "Gelu", [x], [gelu(double)])
    case("biasgelu", "BiasGelu", [x, bias], [gelu(sum)])
    case("fastgelu", "FastGelu", [x], [fast_gelu(double)])
    case("fastgelu_bias", "FastGelu", [x, bias], [fast_gelu(sum)], [1])
    case("quickgelu", "QuickGelu", [x], [silu(double, np.float32(1.702))])
    case("quickgelu_alpha", "QuickGelu", [x], [silu(double, 0.5)], alpha=0.5)
    both = wide.astype(float) + np.arange(8)
    case("biassplitgelu", "BiasSplitGelu", [wide, np.arange(8, dtype=np.float32)], [both[..., :4] * gelu(both[..., 4:])])
    skip = normal(2, 3, 8)
    case("biasadd", "BiasAdd", [wide, np.arange(8, dtype=np.float32), skip], [both + skip])


def normalisations(case):
    x, skip, scale, bias, add = normal(2, 3, 7), normal(2, 3, 7), normal(7), normal(7), normal(7)
    double = x.astype(float)
    y, mean, factor = layer_norm(double, scale, bias, 1e-5)
    case("layernormalization_11", "LayerNormalization", [x, scale, bias], [y], opset=11, domain="", axis=-1)
    case("layernormalization_11_moments", "LayerNormalization", [x, scale, bias], [y, mean, factor], opset=11, domain="")
    y, factor = rms_norm(double, scale, 1e-6)
    case("simplifiedlayernormalization", "SimplifiedLayerNormalization", [x, scale], [y], domain="", axis=-1, epsilon=1e-6, stash_type=1)
    case("simplifiedlayernormalization_factor", "SimplifiedLayerNormalization", [x, scale], [y, factor], domain="", epsilon=1e-6)
    sum = double + skip
    case("skiplayernorm", "SkipLayerNormalization", [x, skip, scale, bias], [layer_norm(sum, scale, bias, 1e-12)[0]])
    case("skiplayernorm_no_beta", "SkipLayerNormalization", [x, skip, scale], [layer_norm(sum, scale, None, 1e-3)[0]], epsilon=1e-3)
    biased = sum + add
    case("skiplayernorm_bias_sum", "SkipLayerNormalization", [x, skip, scale, bias, add], [layer_norm(biased, scale, bias, 1e-5)[0], None, None, biased],
         [2, 3, 4], epsilon=1e-5)
    rows = double + skip[:1]
    case("skiplayernorm_one_skip", "SkipLayerNormalization", [x, skip[:1], scale, bias], [layer_norm(rows, scale, bias, 1e-12)[0]])
    case("skiplayernorm_open_rank2_skip", "SkipLayerNormalization", [x, skip[0], scale, bias], [layer_norm(double + skip[0], scale, bias, 1e-12)[0]])
    case("skipsimplified", "SkipSimplifiedLayerNormalization", [x, skip, scale], [rms_norm(sum, scale, 1e-5)[0]], epsilon=1e-5)
    case("skipsimplified_bias_sum", "SkipSimplifiedLayerNormalization", [x, skip, scale, add], [rms_norm(biased, scale, 1e-5)[0], None, None, biased],
         [2], epsilon=1e-5)
    case("skipsimplified_rank2", "SkipSimplifiedLayerNormalization", [x[0], skip[0], scale], [rms_norm(sum[0], scale, 1e-5)[0]], epsilon=1e-5)
    image, scale, bias = normal(2, 3, 5, 6), normal(6), normal(6)
    double = image.astype(float)
    case("groupnorm", "GroupNorm", [image, scale, bias], [group_norm(double, 3, scale, bias, 1e-5)], groups=3, activation=0)
    case("groupnorm_silu", "GroupNorm", [image, scale, bias], [silu(group_norm(double, 2, scale, bias, 1e-3))], groups=2, activation=1, epsilon=1e-3)
    first = np.moveaxis(group_norm(double, 3, scale, bias, 1e-5), -1, 1)
    case("groupnorm_first", "GroupNorm", [np.ascontiguousarray(np.moveaxis(image, -1, 1)), scale, bias], [first], groups=3, activation=0, channels_last=0)
    skip, add = normal(2, 6), normal(6)
    sum = double + skip.reshape(2, 1, 1, 6) + add
    case("skipgroupnorm", "SkipGroupNorm", [image, scale, bias, skip, add], [silu(group_norm(sum, 3, scale, bias, 1e-5)), sum], groups=3, activation=1)


def embeddings(case):
    words, places, segments, scale, bias = normal(11, 6), normal(9, 6), normal(2, 6), normal(6), normal(6)
    ids, kinds = rng.integers(0, 11, (2, 4)).astype(np.int32), rng.integers(0, 2, (2, 4)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    sum = words[ids].astype(float) + places[:4] + segments[kinds]
    given = [ids, kinds, words, places, segments, scale, bias]
    ends = np.array([3, 2], np.int32)
    case("embedlayernorm", "EmbedLayerNormalization", given + [mask], [layer_norm(sum, scale, bias, 1e-12)[0], ends], [2, 3, 4, 5, 6])
    case("embedlayernorm_no_mask", "EmbedLayerNormalization", given, [layer_norm(sum, scale, bias, 1e-12)[0], np.zeros(2, np.int32)], [2, 3, 4])
    plain = words[ids].astype(float) + places[:4]
    case("embedlayernorm_open_no_segments", "EmbedLayerNormalization", [ids, None, words, places, None, scale, bias],
         [layer_norm(plain, scale, bias, 1e-5)[0], np.zeros(2, np.int32)], [2, 3], epsilon=1e-5)
    at = np.array([[5, 4, 3, 2]], np.int32)
    sum = words[ids].astype(float) + places[at] + segments[kinds]
    case("embedlayernorm_positions", "EmbedLayerNormalization", given + [None, at], [layer_norm(sum, scale, bias, 1e-12)[0], np.zeros(2, np.int32), sum],
         mask_index_type=0)


def by_another_name(case):
    x = normal(3, 4)
    case("expanddims", "ExpandDims", [x, np.array(-1, np.int32)], [x[..., None]], [1])
    case("gathernd", "GatherND", [x, np.array([[2, 1], [0, 3]], np.int64)], [x[[2, 0], [1, 3]]])
    case("pad", "Pad", [x, np.array([0, 1, 2, 0], np.int64), np.float32(0.5)], [np.pad(x, ((0, 2), (1, 0)), constant_values=0.5)], [1, 2])
    case("pad_reflect", "Pad", [x, np.array([1, 1, 0, 2], np.int64)], [np.pad(x, ((1, 0), (1, 2)), mode="reflect")], [1], mode="reflect")
    case("range", "Range", [np.float32(1), np.float32(4), np.float32(0.5)], [np.arange(1, 4, 0.5, dtype=np.float32)], [0, 1, 2])
    case("range_by_one", "Range", [np.int64(2), np.int64(6)], [np.arange(2, 6)], [0, 1])
    case("trilu", "Trilu", [x, np.array(1, np.int64)], [np.triu(x, 1)], [1], upper=1)
    image, corners = normal(1, 2, 3, 3), np.stack(np.meshgrid([-1, 0, 1], [-1, 1]), -1)[None].astype(np.float32)
    case("gridsample", "GridSample", [image, corners], [image[:, :, [0, 2]]], align_corners=1)


def cases(case):
    for family in (activations, normalisations, embeddings, by_another_name):
        family(case)
