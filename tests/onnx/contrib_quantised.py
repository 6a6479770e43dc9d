"""Quantised operators. A tensor q with a scale s and a zero point z stands for (q - z) s; what comes out is rounded to the nearest q."""
import numpy as np

F = np.float32


def scale_of(number):
    return np.array(number, F)


def zero_of(number, dtype):
    return np.array(number, dtype)


def real(q, scale, zero=0):
    return (q.astype(float) - np.asarray(zero, float)) * np.asarray(scale, float)


def quantized(x, scale, zero, dtype):
    """Where x lies so near to the middle of two that f32 could fall to either side, the case is no good."""
    steps = x / np.asarray(scale, float)
    assert abs(abs(steps - np.floor(steps)) - 0.5).min() > 1e-4, "choose other numbers"
    info = np.iinfo(dtype)
    return np.clip(np.round(steps) + np.asarray(zero, float), info.min, info.max).astype(dtype)


def windows(x, size, stride, pads, reduce, ceil=False):
    """x [n, c, h, w] as lists of the elements of each window; those outside are left out."""
    out = []
    for axis in range(2):
        span = x.shape[2 + axis] + pads[axis] + pads[2 + axis] - size[axis]
        out.append((-(-span // stride[axis]) if ceil else span // stride[axis]) + 1)
    y = np.zeros(x.shape[:2] + tuple(out))
    for i in range(out[0]):
        for j in range(out[1]):
            low = [i * stride[0] - pads[0], j * stride[1] - pads[1]]
            part = x[:, :, max(low[0], 0):low[0] + size[0], max(low[1], 0):low[1] + size[1]]
            y[:, :, i, j] = reduce(part)
    return y


def conv(x, w, stride, pads, groups=1):
    """x [n, c, h, w] and w [m, c / groups, h, w], as numbers."""
    wide = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    height, width = (wide.shape[2] - w.shape[2]) // stride[0] + 1, (wide.shape[3] - w.shape[3]) // stride[1] + 1
    y = np.zeros((x.shape[0], w.shape[0], height, width))
    per, own = w.shape[0] // groups, w.shape[1]
    for m in range(w.shape[0]):
        first = m // per * own
        for i in range(height):
            for j in range(width):
                part = wide[:, first:first + own, i * stride[0]:i * stride[0] + w.shape[2], j * stride[1]:j * stride[1] + w.shape[3]]
                y[:, m, i, j] = (part * w[m]).sum((1, 2, 3))
    return y


def last(x):
    return np.moveaxis(x, 1, -1)


def binary(case, codes):
    for name, op, shapes, dtype, zeros in [
        ("add", "QLinearAdd", ((3, 5), (3, 5)), np.uint8, (128, 120, 131)),
        ("add_signed", "QLinearAdd", ((2, 1, 5), (3, 1)), np.int8, (-3, 7, 11)),
        ("add_no_zeros", "QLinearAdd", ((7,), ()), np.uint8, None),
        ("add_open", "QLinearAdd", ((3, 7), (7,)), np.uint8, (12, 99, 40)),
        ("mul", "QLinearMul", ((3, 5), (5,)), np.uint8, (128, 120, 131)),
        ("mul_signed", "QLinearMul", ((3, 1), (1, 7)), np.int8, (-3, 7, 11)),
        ("mul_no_zeros", "QLinearMul", ((9,), (9,)), np.int8, None),
    ]:
        a, b = codes(dtype, *shapes[0]), codes(dtype, *shapes[1])
        scales = (0.0173, 0.0291, 0.0337) if "add" in name else (0.0173, 0.0291, 0.0313)
        values = [real(v, s, z) for v, s, z in zip((a, b), map(F, scales), zeros or (0, 0))]
        whole = values[0] + values[1] if "Add" in op else values[0] * values[1]
        given = [zero_of(z, dtype) for z in zeros] if zeros else [None] * 3
        inputs = [a, scale_of(scales[0]), given[0], b, scale_of(scales[1]), given[1], scale_of(scales[2]), given[2]]
        case("qlinear_" + name + ("_" if name.endswith("open") else ""), op, inputs if zeros else inputs[:-1],
             [quantized(whole, F(scales[2]), zeros[2] if zeros else 0, dtype)], constants=[i for i in (1, 2, 4, 5, 6, 7) if zeros and i != 4])


def unary(case, codes):
    def one(name, op, x, compute, x_scale, x_zero, y_scale, y_zero, constants=(1, 2, 3, 4), **attrs):
        dtype = x.dtype
        zeros = [None if z is None else zero_of(z, dtype) for z in (x_zero, y_zero)]
        inputs = [x, scale_of(x_scale), zeros[0], scale_of(y_scale), zeros[1]]
        y = compute(real(x, F(x_scale), x_zero or 0))
        if "opset" in attrs:  # an attribute of the operator, though that of a case is something else
            op, attrs = [(op, attrs)], {}
        case(name, op, inputs, [quantized(y, F(y_scale), y_zero or 0, dtype)], constants=[i for i in constants if i < len(inputs) and inputs[i] is not None], **attrs)

    def softmax(axes):
        def compute(x):
            e = np.exp(x - x.max(axes, keepdims=True))
            return e / e.sum(axes, keepdims=True)

        return compute

    u, i = np.uint8, np.int8
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    one("qlinear_sigmoid", "QLinearSigmoid", codes(u, 3, 7), sigmoid, 0.043, 127, 1 / 256, 0)
    one("qlinear_sigmoid_signed", "QLinearSigmoid", codes(i, 11), sigmoid, 0.043, None, 0.0041, -128)
    one("qlinear_leaky_relu", "QLinearLeakyRelu", codes(u, 3, 7), lambda x: np.where(x < 0, F(0.01) * x, x), 0.043, 127, 0.0371, 17)
    one("qlinear_leaky_relu_signed", "QLinearLeakyRelu", codes(i, 2, 5), lambda x: np.where(x < 0, F(0.3) * x, x), 0.043, 9, 0.0371, None, constants=(), alpha=0.3)
    one("qlinear_softmax", "QLinearSoftmax", codes(u, 3, 7), softmax(-1), 0.021, 127, 1 / 256, 0, opset=13)
    one("qlinear_softmax_axis", "QLinearSoftmax", codes(i, 3, 5, 2), softmax(1), 0.021, 5, 1 / 256, -128, opset=13, axis=-2)
    one("qlinear_softmax_flat", "QLinearSoftmax", codes(u, 3, 5, 2), softmax((1, 2)), 0.021, None, 1 / 256, 0, opset=12, axis=1)
    one("qlinear_reduce_mean", "QLinearReduceMean", codes(u, 3, 5, 2), lambda x: x.mean((0, 2), keepdims=True), 0.021, 127, 0.011, 100, axes=[0, -1], keepdims=1)
    one("qlinear_reduce_mean_signed", "QLinearReduceMean", codes(i, 3, 7), lambda x: x.mean(1), 0.021, None, 0.0113, None, axes=[1], keepdims=0)
    image = codes(u, 2, 3, 5, 7)
    mean = lambda x: x.mean((2, 3), keepdims=True)
    one("qlinear_global_average_pool", "QLinearGlobalAveragePool", image, mean, 0.021, 127, 0.0113, 100)
    one("qlinear_global_average_pool_open_", "QLinearGlobalAveragePool", image, mean, 0.021, 127, 0.0113, 100)
    one("qlinear_global_average_pool_last", "QLinearGlobalAveragePool", codes(i, 2, 5, 3), lambda x: x.mean(1, keepdims=True), 0.021, -7, 0.0113, 10, channels_last=1)
    average = lambda part: part.mean((2, 3))
    one("qlinear_average_pool", "QLinearAveragePool", image, lambda x: windows(x, (2, 3), (1, 2), (0, 1, 1, 1), average), 0.021, 127, 0.0173, 100, kernel_shape=[2, 3],
        strides=[1, 2], pads=[0, 1, 1, 1])
    one("qlinear_average_pool_whole", "QLinearAveragePool", image, lambda x: windows(x, (3, 3), (2, 2), (1, 1, 1, 1), lambda part: part.sum((2, 3)) / 9), 0.021, 127,
        0.0173, 0, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
    one("qlinear_average_pool_last", "QLinearAveragePool", codes(i, 1, 7, 5, 3),
        lambda x: last(windows(np.moveaxis(x, -1, 1), (2, 2), (3, 2), (0, 0, 0, 0), average, True)), 0.021, 5, 0.0173, -9, kernel_shape=[2, 2], strides=[3, 2],
        ceil_mode=1, channels_last=1)
    same = codes(i, 1, 2, 5, 7)
    one("qlinear_average_pool_same_open_", "QLinearAveragePool", same, lambda x: windows(x, (3, 3), (1, 1), (1, 1, 1, 1), average), 0.021, 5, 0.0173, 0,
        kernel_shape=[3, 3], auto_pad="SAME_UPPER")


def several(case, codes):
    u, i = np.uint8, np.int8
    for dtype, name, zeros, axis in [(u, "", (128, 100, 7, 90), 1), (i, "_signed", (1, -9, 5, 3), -1)]:
        parts = [codes(dtype, 2, 3, 5)] + [codes(dtype, *shape) for shape in ([(2, 4, 5), (2, 1, 5)] if axis == 1 else [(2, 3, 2), (2, 3, 1)])]
        scales = (0.0173, 0.0291, 0.0211, 0.0337)
        inputs = [scale_of(scales[3]), zero_of(zeros[3], dtype)]
        for p, s, z in zip(parts, scales, zeros):
            inputs += [p, scale_of(s), zero_of(z, dtype)]
        y = np.concatenate([real(p, F(s), z) for p, s, z in zip(parts, scales, zeros)], axis)
        case("qlinear_concat" + name, "QLinearConcat", inputs, [quantized(y, F(scales[3]), zeros[3], dtype)], constants=[0, 1, 3, 4, 6, 7, 9, 10], axis=axis)
    part = codes(u, 2, 3)
    shared = [scale_of(0.1), zero_of(9, u)]
    case("qlinear_concat_one_scale", "QLinearConcat", shared + [part, *shared, part[:1], *shared], [np.concatenate([part, part[:1]])], constants=[0, 1, 3, 4, 6, 7], axis=0)
    for dtype, name, shapes, zeros in [(u, "", ((3, 1), (3, 5), (5,)), (128, 100, 90)), (i, "_signed", ((4,), (4,), (3, 4)), (4, -5, 3))]:
        condition = codes(u, *shapes[0]) > 127
        x, y = codes(dtype, *shapes[1]), codes(dtype, *shapes[2])
        scales = (0.0173, 0.0291, 0.0237)
        z = np.where(condition, real(x, F(scales[0]), zeros[0]), real(y, F(scales[1]), zeros[1]))
        inputs = [condition, x, scale_of(scales[0]), zero_of(zeros[0], dtype), y, scale_of(scales[1]), zero_of(zeros[1], dtype), scale_of(scales[2]), zero_of(zeros[2], dtype)]
        case("qlinear_where" + name, "QLinearWhere", inputs, [quantized(z, F(scales[2]), zeros[2], dtype)], constants=[2, 3, 5, 6, 7, 8])


def pools(case, codes):
    peak = lambda part: part.max((2, 3))
    for name, x, attrs, y in [
        ("nhwc_max_pool", codes(np.uint8, 2, 5, 7, 3), dict(kernel_shape=[2, 3], strides=[2, 1], pads=[1, 1, 0, 1]), lambda x: windows(x, (2, 3), (2, 1), (1, 1, 0, 1), peak)),
        ("nhwc_max_pool_ceil", codes(np.int8, 1, 7, 4, 2), dict(kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1), lambda x: windows(x, (2, 2), (3, 3), (0, 0, 0, 0), peak, True)),
    ]:
        case(name, "NhwcMaxPool", [x], [last(y(np.moveaxis(x, -1, 1))).astype(x.dtype)], **attrs)


def products(case, codes, normal):
    u, i = np.uint8, np.int8

    def small(*shape):  # so that no runtime's 16-bit steps overflow
        return (codes(u, *shape) % 17).astype(i) - 8

    # convolutions
    for name, dtype, channels_last, bias, columns, groups in [
        ("qlinear_conv_own", u, 0, True, True, 1),
        ("qlinear_conv_last", u, 1, True, True, 1),
        ("qlinear_conv_last_groups", i, 1, False, False, 2),
        ("qlinear_conv_last_open_", u, 1, False, False, 1),
    ]:
        x, w = codes(dtype, 2, 4, 5, 7), small(6, 4 // groups, 3, 2)
        w_scale = np.array([0.011, 0.017, 0.013, 0.019, 0.012, 0.021], F) if columns else np.array(0.013, F)
        w_zero = np.zeros(w_scale.shape, i)
        b = (codes(i, 6).astype(np.int32) * 11) if bias else None
        x_zero, y_zero = (120, 131) if dtype == u else (-5, 9)
        sums = conv(x.astype(float) - x_zero, w.astype(float), (2, 1), (1, 0, 1, 1), groups) + (0 if b is None else b.reshape(-1, 1, 1))
        y = quantized(sums * F(0.0173) * w_scale.astype(float).reshape(-1, 1, 1), F(0.0671), y_zero, dtype)
        inputs = [last(x) if channels_last else x, scale_of(0.0173), zero_of(x_zero, dtype), w, w_scale, w_zero, scale_of(0.0671), zero_of(y_zero, dtype), b]
        case(name, "QLinearConv", inputs if bias else inputs[:-1], [last(y) if channels_last else y], constants=range(1, 9 if bias else 8), strides=[2, 1],
             pads=[1, 0, 1, 1], kernel_shape=[3, 2], group=groups, **(dict(channels_last=1) if channels_last else {}))
    # QGemm
    for name, dtype, flags, columns, c_shape, quantizes in [
        ("qgemm", u, {}, False, (5,), True),
        ("qgemm_columns", i, dict(transB=1, alpha=0.5), True, None, True),
        ("qgemm_float", u, dict(transA=1), True, (3, 1), False),
        ("qgemm_open_", u, dict(transB=1), False, (1, 5), False),
    ]:
        a, b = codes(dtype, 3, 7), small(7, 5)
        b_scale = np.array([0.011, 0.017, 0.013, 0.019, 0.012], F) if columns else np.array(0.013, F)
        b_zero = np.array([1, -2, 3, 0, 2], i) if columns else np.array(2, i)
        c = None if c_shape is None else codes(i, *c_shape).astype(np.int32) * 9
        a_zero, y_zero = (120, 131) if dtype == u else (-5, 9)
        sums = real(a, 1, a_zero) @ real(b, 1, b_zero) + (0 if c is None else c)
        y = sums * flags.get("alpha", 1) * float(F(0.0173)) * b_scale.astype(float)
        inputs = [a.T.copy() if "transA" in flags else a, scale_of(0.0173), zero_of(a_zero, dtype), b.T.copy() if "transB" in flags else b, b_scale, b_zero, c]
        constants = [1, 2, 3, 4, 5] + ([] if c is None else [6])
        if quantizes:
            inputs += [scale_of(0.0671), zero_of(y_zero, dtype)]
            constants += [7, 8]
            y = quantized(y, F(0.0671), y_zero, dtype)
        case(name, "QGemm", inputs if quantizes or c is not None else inputs[:-1], [y], constants=constants, **flags)
    # MatMulIntegerToFloat
    for name, dtype, shapes, columns, zeros, bias in [
        ("matmul_integer_to_float", u, ((3, 7), (7, 5)), False, True, True),
        ("matmul_integer_to_float_columns", u, ((2, 3, 7), (7, 5)), True, True, False),
        ("matmul_integer_to_float_signed", i, ((2, 3, 7), (2, 7, 5)), False, False, True),
    ]:
        a, b = codes(dtype, *shapes[0]), small(*shapes[1])
        b_scale = np.array([0.011, 0.017, 0.013, 0.019, 0.012], F) if columns else np.array(0.013, F)
        b_zero = np.array([1, -2, 3, 0, 2], i) if columns else np.array(2, i)
        plus = normal(5) if bias else None
        y = real(a, F(0.0173), 120 if zeros else 0) @ real(b, b_scale, b_zero if zeros else 0) + (plus.astype(float) if bias else 0)
        inputs = [a, b, scale_of(0.0173), b_scale, zero_of(120, dtype) if zeros else None, b_zero if zeros else None, plus]
        while inputs[-1] is None:
            inputs.pop()
        case(name, "MatMulIntegerToFloat", inputs, [y], constants=[1, 3] + ([5] if zeros else []))
    a, b = codes(u, 3, 7), codes(u, 7, 5)
    half = np.float16
    y = real(a, half(0.0173), 120) @ real(b, half(0.013), 130)
    case("matmul_integer_to_float_half", "MatMulIntegerToFloat", [a, b, np.array(0.0173, half), np.array(0.013, half), zero_of(120, u), zero_of(130, u)], [y.astype(half)])
    # DynamicQuantizeMatMul: x is first rounded to the 256 codes between its least and its greatest value
    for name, shapes, dtype, columns, zeros, bias in [
        ("dynamic_quantize_matmul", ((3, 7), (7, 5)), i, False, False, True),
        ("dynamic_quantize_matmul_columns", ((2, 3, 7), (7, 5)), i, True, True, True),
        ("dynamic_quantize_matmul_open_", ((2, 3, 7), (7, 5)), u, False, True, False),
    ]:
        a, b = normal(*shapes[0]), (small(*shapes[1]) + 8).astype(u) if dtype == u else small(*shapes[1])
        b_scale = np.array([0.011, 0.017, 0.013, 0.019, 0.012], F) if columns else np.array(0.013, F)
        b_zero = (np.array([1, -2, 3, 0, 2], i) if columns else np.array(2, dtype)) if zeros else None
        plus = normal(5) if bias else None
        low, high = min(a.min(), F(0)), max(a.max(), F(0))
        step = F(high - low) / F(255)
        zero = np.round(-low / step)
        a_codes = quantized(a.astype(float), step, zero, u)
        y = real(a_codes, step, zero) @ real(b, b_scale, b_zero if zeros else 0) + (plus.astype(float) if bias else 0)
        inputs = [a, b, b_scale, b_zero, plus]
        while inputs[-1] is None:
            inputs.pop()
        case(name, "DynamicQuantizeMatMul", inputs, [y], constants=[1, 2] + ([3] if zeros else []))
    # plain integers
    for name, dtype in [("matmul_integer16", np.int16), ("matmul_integer16_unsigned", np.uint16)]:
        a, b = (codes(u, 2, 3, 7).astype(int) * 77 - (9000 if dtype == np.int16 else 0)).astype(dtype), (codes(u, 7, 5).astype(int) * 37).astype(dtype)
        case(name, "MatMulInteger16", [a, b], [(a.astype(np.int64) @ b).astype(np.int32)])
    for name, dtype, zeros in [("mul_integer", u, (120, 9)), ("mul_integer_signed", i, (None, -7))]:
        a, b = codes(dtype, 3, 5), codes(dtype, 5)
        y = (a.astype(int) - (zeros[0] or 0)) * (b.astype(int) - zeros[1])
        case(name, "MulInteger", [a, None if zeros[0] is None else zero_of(zeros[0], dtype), b, zero_of(zeros[1], dtype)], [y.astype(np.int32)])
    x = codes(u, 3, 5, 2)
    case("reduce_sum_integer", "ReduceSumInteger", [x], [x.astype(np.uint32).sum((0, 2), keepdims=True).astype(np.uint32)], axes=[0, -1], keepdims=1)
    x = codes(i, 3, 5)
    case("reduce_sum_integer_signed", "ReduceSumInteger", [x], [x.astype(np.int32).sum(1).astype(np.int32)], axes=[1], keepdims=0)


def conversions(case, codes, normal):
    x = normal(3, 5)
    for name, dtype, scale, zero, attrs in [
        ("quantize_own", np.uint8, F(0.031), 120, {}),
        ("quantize_own_axis", np.int8, np.array([0.031, 0.017, 0.023], F), np.array([1, -5, 9]), dict(axis=0)),
        ("quantize_own_wide", np.uint16, F(0.00031), 32000, {}),
        ("quantize_own_wide_signed", np.int16, F(0.00031), -3, {}),
        ("quantize_own_default", np.uint8, F(0.031), None, {}),
    ]:
        spread = (slice(None), None) if attrs else ()
        y = quantized(x.astype(float), np.asarray(scale)[spread], 0 if zero is None else np.asarray(zero)[spread], dtype)
        inputs = [x, np.asarray(scale)] + ([] if zero is None else [np.asarray(zero, dtype)])
        case(name, "QuantizeLinear", inputs, [y], constants=range(1, len(inputs)), **attrs)
    half = (x * 0.5).astype(np.float16)
    case("quantize_own_half", "QuantizeLinear", [half, np.array(0.031, np.float16), zero_of(100, np.uint8)],
         [quantized(half.astype(float), np.float16(0.031), 100, np.uint8)])
    for name, q, scale, zero, attrs in [
        ("dequantize_own", codes(np.uint8, 3, 5), F(0.031), 120, {}),
        ("dequantize_own_axis", codes(np.int8, 3, 5), np.array([0.031, 0.017, 0.023], F), np.array([1, -5, 9]), dict(axis=-2)),
        ("dequantize_own_wide", (codes(np.uint8, 3, 5).astype(int) * 201).astype(np.uint16), F(0.00031), 32000, {}),
        ("dequantize_own_sums", codes(np.int8, 3, 5).astype(np.int32) * 1000, F(0.00031), None, {}),
    ]:
        spread = (slice(None), None) if attrs else ()
        y = real(q, np.asarray(scale)[spread], 0 if zero is None else np.asarray(zero)[spread])
        inputs = [q, np.asarray(scale)] + ([] if zero is None else [np.asarray(zero, q.dtype)])
        case(name, "DequantizeLinear", inputs, [y], constants=range(1, len(inputs)), **attrs)


def rounded(x):
    """To the 256 codes between the least and the greatest value, or 0, of all; as `quantized`."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    if low == high:
        return x
    scale = (high - low) / 255
    zero = round(-low / scale)
    return real(quantized(x, scale, zero, np.uint8), scale, zero)


def lstm(x, w, r, bias, h, cell, peepholes, reverse):
    """One direction, gates i o f c. w [in, 4 hidden]."""
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    size, out = h.shape[1], np.zeros((len(x),) + h.shape)
    x = rounded(x)
    for t in reversed(range(len(x))) if reverse else range(len(x)):
        gates = x[t] @ w + rounded(h) @ r + bias[:4 * size] + bias[4 * size:]
        i, o, f, c = (gates[:, k * size:(k + 1) * size] for k in range(4))
        cell_new = sigmoid(f + peepholes[2 * size:] * cell) * cell + sigmoid(i + peepholes[:size] * cell) * np.tanh(c)
        h, cell = sigmoid(o + peepholes[size:2 * size] * cell_new) * np.tanh(cell_new), cell_new
        out[t] = h
    return out, h, cell


def recurrent(case, codes, normal):
    """x and h are rounded as one thread of the runtime does: the rows of a batch together."""
    for name, steps, batch, inputs, hidden, dtype, columns, both, full in [
        ("dynamic_quantize_lstm", 1, 3, 5, 2, np.int8, False, False, False),
        ("dynamic_quantize_lstm_columns", 1, 2, 3, 4, np.int8, True, True, True),
        ("dynamic_quantize_lstm_steps", 3, 2, 5, 4, np.uint8, False, True, True),
        ("dynamic_quantize_lstm_trips", 20, 1, 5, 8, np.int8, False, True, False),
        ("dynamic_quantize_lstm_open_", 3, 1, 5, 4, np.int8, True, False, False),
    ]:
        count = 2 if both else 1
        x = normal(steps, batch, inputs)
        w, r = ((codes(np.uint8, count, rows, 4 * hidden) % 61).astype(int) - 30 for rows in (inputs, hidden))
        zero = 90 if dtype == np.uint8 else 0
        shape = (count, 4 * hidden) if columns else (count,)
        scales = [np.abs(normal(*shape)) * F(0.01) + F(0.005) for _ in range(2)]
        zeros = np.full(shape, zero, dtype)
        bias = normal(count, 8 * hidden) if full else np.zeros((count, 8 * hidden), F)
        h = normal(count, batch, hidden) if full else np.zeros((count, batch, hidden), F)
        cell = normal(count, batch, hidden) if full else np.zeros((count, batch, hidden), F)
        peepholes = normal(count, 3 * hidden) if full else np.zeros((count, 3 * hidden), F)
        wide = [m * s.astype(float)[:, None, :] if columns else m * s.astype(float)[:, None, None] for m, s in zip((w, r), scales)]
        runs = [lstm(*(v.astype(float) for v in (x, wide[0][d], wide[1][d], bias[d], h[d], cell[d], peepholes[d])), d == 1) for d in range(count)]
        results = [np.stack([run[0] for run in runs], 1), np.stack([run[1] for run in runs]), np.stack([run[2] for run in runs])]
        optional = [bias, None, h, cell, peepholes] if full else [None] * 5
        case(name, "DynamicQuantizeLSTM", [x, (w + zero).astype(dtype), (r + zero).astype(dtype), *optional, scales[0], zeros, scales[1], zeros], results,
             constants=[1, 2, 8, 9, 10, 11], hidden_size=hidden, direction="bidirectional" if both else "forward")


def embeddings(case, codes, rng):
    for name, segments, mask in [("qembed_layernorm", True, True), ("qembed_layernorm_plain", False, False)]:
        u = np.uint8
        ids = rng.integers(0, 11, (2, 5)).astype(np.int32)
        kinds = rng.integers(0, 2, (2, 5)).astype(np.int32)
        tables = [codes(u, 11, 8), codes(u, 6, 8), codes(u, 2, 8) if segments else None, codes(u, 8), codes(u, 8)]
        scales, zeros = (0.013, 0.017, 0.011, 0.019, 0.023), (120, 90, 131, 7, 100)
        wide = [None if t is None else real(t, F(s), z) for t, s, z in zip(tables, scales, zeros)]
        x = wide[0][ids] + wide[1][:5] + (wide[2][kinds] if segments else 0)
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * wide[3] + wide[4]
        places = (np.arange(5) < np.array([[3], [5]])).astype(np.int32)
        left = lambda values, make: [None if tables[k] is None else make(v) for k, v in enumerate(values)]
        inputs = [ids, kinds if segments else None, *tables, places if mask else None, *left(scales, scale_of), *left(zeros, lambda z: zero_of(z, u))]
        count = places.sum(1).astype(np.int32) if mask else np.zeros(2, np.int32)
        case(name, "QEmbedLayerNormalization", inputs, [x, count], constants=[k for k in range(2, 18) if k != 7 and inputs[k] is not None])


def cases(case):
    rng = np.random.default_rng(4)

    def codes(dtype, *shape):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def normal(*shape):
        return rng.standard_normal(shape).astype(F)

    binary(case, codes)
    unary(case, codes)
    several(case, codes)
    pools(case, codes)
    products(case, codes, normal)
    conversions(case, codes, normal)
    recurrent(case, codes, normal)
    embeddings(case, codes, rng)
