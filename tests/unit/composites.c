/* Composites mean what they say: activations against the C library, the others against the same thing written another way, both through
   the reference evaluator in f64. The same graphs, all of constants, then go through the folder. */
#include "ir/eval.h"
#include "ir/composites.h"
#include "tests/unit/graph_support.h"

/* ---- activations, element by element ---- */
static double relu(double x) { return x > 0 ? x : 0; }
static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
static double relu6(double x) { return clamp(x, 0, 6); }
static double leaky(double x) { return x < 0 ? 0.25 * x : x; }
static double elu(double x) { return x > 0 ? x : 0.5 * expm1(x); }
static double selu(double x) { return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * expm1(x)); }
static double celu(double x) { return relu(x) + fmin(0, 2 * expm1(x / 2)); }
static double gelu(double x) { return x * 0.5 * erfc(-x * sqrt(0.5)); }
static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x))); }
static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * logistic(x); }
static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }
static double mish(double x) { return x * tanh(softplus(x)); }
static double hardswish(double x) { return x * clamp(x / 6 + 0.5, 0, 1); }
static double hardsigmoid(double x) { return clamp(0.2 * x + 0.5, 0, 1); }
static double softsign(double x) { return x / (1 + fabs(x)); }
static double shrink(double x) { return x > 1.5 ? x - 0.25 : x < -1.5 ? x + 0.25 : 0; }
static double thresholded(double x) { return x > 0.75 ? x : 0; }
static double clip(double x) { return clamp(x, -0.5, 1.5); }
// clang-format off
static const struct { const char *call; double (*meaning)(double); } activations[] = {
    {"relu %x", relu}, {"relu6 %x", relu6}, {"leaky_relu %x, alpha=0.25", leaky}, {"prelu %x, %s", leaky}, {"elu %x, alpha=0.5", elu}, {"selu %x", selu}, {"selu %x, scale=1, alpha=0.5", elu},
    {"celu %x, alpha=2", celu}, {"gelu %x", gelu}, {"gelu_tanh %x", gelu_tanh}, {"silu %x", silu}, {"mish %x", mish}, {"hardswish %x", hardswish},
    {"hardsigmoid %x", hardsigmoid}, {"softplus %x", softplus}, {"softsign %x", softsign}, {"shrink %x, alpha=1.5, bias=0.25", shrink}, {"thresholded_relu %x, alpha=0.75", thresholded},
    {"clip %x, low=-0.5, high=1.5", clip},
    {"clip %x, %lo, %hi", clip}, {"clip %x, _, %hi, low=-0.5", clip}};
// clang-format on

static bool evaluate(test_graph *t, ir_eval_tensor *outputs) {
  const ir_eval_info info = {.symbols = NULL};
  return ir_eval_reference(&t->g, &info, &t->arena, outputs, &t->diag) == SNT_OK;
}

static void check_activations(void) {
  for (uint32_t i = 0; i < IR_COUNT(activations); i++) {
    char text[600];
    snprintf(text, sizeof text,
             "graph @g() {\n %%x: f64[8,40] = const normal seed=5 scale=6\n %%s: f64[40] = const 0.25\n %%lo: f64[] = const -0.5\n %%hi: "
             "f64[] = const 1.5\n"
             " %%y = %s\n return %%x, %%y\n}\n",
             activations[i].call);
    test_graph t;
    ir_eval_tensor out[2];
    double worst = 0;
    if (!tap_ok(graph_read_text(&t, text) == SNT_OK && evaluate(&t, out), "%s", activations[i].call)) tap_diag("  %s", t.diag.text);
    else
      for (uint32_t e = 0; e < 320; e++) {
        const double want = activations[i].meaning(out[0].value[e]), error = fabs(out[1].value[e] - want) / (1 + fabs(want));
        if (!(error <= worst)) worst = error;
      }
    tap_ok(worst < 1e-12, "%s means what it should (worst error %g)", activations[i].call, worst);
    graph_close(&t);
  }
}

/* ---- two ways to write one thing: outputs a and b ---- */
static const char constants[] = " %x: f64[2,6,5] = const normal seed=1 scale=2\n %y: f64[2,5,6] = const normal seed=2\n %g: f64[5] = const "
                                "normal seed=3\n %b: f64[5] = const normal seed=4\n"
                                " %i: f64[2,4,7,6] = const normal seed=5\n %w: f64[6,4,3,3] = const normal seed=6\n %wg: f64[6,2,3,3] = "
                                "const normal seed=7\n %wd: f64[8,1,3,3] = const normal seed=8\n"
                                " %wt: f64[4,3,3,2] = const normal seed=9\n %c6: f64[6] = const normal seed=10\n %c4: f64[4] = const "
                                "normal seed=11\n %v4: f64[4] = const uniform seed=12\n"
                                " %q: f64[1,4,3,8] = const normal seed=13\n %k: f64[1,2,5,8] = const normal seed=14\n %v: f64[1,2,5,6] = "
                                "const normal seed=15\n %t: i32[2,6] = const [0,1,2,3,4,0, 4,3,2,1,0,1]\n";
typedef struct twin {
  const char *name, *body;
} twin;
// clang-format off
static const twin twins[] = {
    {"softmax, log_softmax", " %a = softmax %x, axis=1\n %l = log_softmax %x, axis=1\n %b2 = exp %l\n return %a, %b2"},
    {"softmax is not shaken by size", " %big = add %x, 1000\n %a = softmax %x\n %b2 = softmax %big\n return %a, %b2"},
    {"logsumexp", " %a = logsumexp %x, axes=[2]\n %e = exp %x\n %s = sum %e, axes=[-1]\n %b2 = log %s\n return %a, %b2"},
    {"mean and variance", " %m = mean %x, axes=[1,2], keep\n %s = mul %x, %x\n %ms = mean %s, axes=[1,2], keep\n %mm = mul %m, %m\n %b2 = sub %ms, %mm\n %a = variance %x, axes=[1,2], keep\n return %a, %b2"},
    {"norms l1, l2", " %a = norm_l2 %x\n %s = mul %x, %x\n %t2 = sum %s\n %b2 = sqrt %t2\n %n = norm_l1 %x\n %ab = abs %x\n %m = sum %ab\n %z = sub %n, %m\n %a2 = add %a, %z\n return %a2, %b2"},
    {"layernorm", " %a = layernorm %x, %g, %b, epsilon=0.01\n %m = mean %x, axes=[2], keep\n %mb: f64[2,6,5] = broadcast %m\n %d = sub %x, %mb\n %v2 = variance %x, axes=[2], keep\n"
                  " %e = add %v2, 0.01\n %r = sqrt %e\n %rb: f64[2,6,5] = broadcast %r\n %u = div %d, %rb\n %gb: f64[2,6,5] = broadcast %g\n %bb: f64[2,6,5] = broadcast %b\n %ug = mul %u, %gb\n %b2 = add %ug, %bb\n return %a, %b2"},
    {"rmsnorm of centred is layernorm", " %m = mean %x, axes=[2], keep\n %mb: f64[2,6,5] = broadcast %m\n %d = sub %x, %mb\n %a = rmsnorm %d, %g\n %z: f64[5] = const 0\n %b2 = layernorm %x, %g, %z\n return %a, %b2"},
    {"groupnorm of one group is layernorm over all but n", " %a = groupnorm %i, groups=1\n %b2 = layernorm %i, axis=1\n return %a, %b2"},
    {"groupnorm of single channels is instancenorm", " %a = groupnorm %i, %c4, %v4, groups=4\n %b2 = instancenorm %i, %c4, %v4\n return %a, %b2"},
    {"batchnorm", " %p = add %v4, 2\n %a = batchnorm %i, %c4, %v4, %c4, %p\n %m: f64[2,4,7,6] = broadcast %c4, axes=[1]\n %d = sub %i, %m\n %pe = add %p, 1e-5\n %r = rsqrt %pe\n %rg = mul %r, %c4\n"
                  " %rb: f64[2,4,7,6] = broadcast %rg, axes=[1]\n %u = mul %d, %rb\n %bb: f64[2,4,7,6] = broadcast %v4, axes=[1]\n %b2 = add %u, %bb\n return %a, %b2"},
    {"matmul, einsum", " %a = matmul %x, %y\n %b2 = einsum %x, %y, labels=\"bij,bjk->bik\"\n return %a, %b2"},
    {"matmul transposed", " %a = matmul %x, %y, transpose_a, transpose_b\n %xt = transpose %x, perm=[0,2,1]\n %yt = transpose %y, perm=[0,2,1]\n %b2 = matmul %xt, %yt\n return %a, %b2"},
    {"matmul broadcasts batches", " %y1 = slice %y, sizes=[1,5,6]\n %yb: f64[2,5,6] = broadcast %y1\n %a = matmul %x, %y1\n %b2 = matmul %x, %yb\n return %a, %b2"},
    {"matmul of a matrix", " %y1 = slice %y, sizes=[1,5,6]\n %m = reshape %y1, shape=[5,6]\n %a = matmul %x, %m\n %b2 = matmul %x, %y1\n return %a, %b2"},
    {"matmul by a vector", " %a = matmul %x, %g\n %gb: f64[2,6,5] = broadcast %g\n %p = mul %x, %gb\n %b2 = sum %p, axes=[2]\n return %a, %b2"},
    {"linear", " %y1 = slice %y, sizes=[1,5,6]\n %m = reshape %y1, shape=[5,6]\n %xt = transpose %x, perm=[0,2,1]\n %a = linear %xt, %m, %b\n %p = einsum %m, %xt, labels=\"oi,bci->bco\"\n %bb: f64[2,5,5] = broadcast %b\n %b2 = add %p, %bb\n return %a, %b2"},
    {"einsum sums lonely labels", " %a = einsum %x, %y, labels=\"bij,bjk->bi\"\n %p = matmul %x, %y\n %b2 = sum %p, axes=[2]\n return %a, %b2"},
    {"einsum of one", " %a = einsum %x, labels=\"bij->jb\"\n %s = sum %x, axes=[1]\n %b2 = transpose %s, perm=[1,0]\n return %a, %b2"},
    {"conv against shifted slices", " %a = conv %i, %w, stride=[2,1], pads=[1,0,0,1]\n %p = pad %i, low=[0,0,1,0], high=[0,0,0,1]\n"
                                    " %s0 = slice %p, starts=[0,0,0,0], sizes=[2,4,6,7]\n %z: f64[] = const 0\n %b2 = conv %p, %w, stride=[2,1]\n return %a, %b2"},
    {"conv of groups is a concat of convs", " %a = conv %i, %wg, groups=2, dilation=[1,2], pads=[1,1,1,1]\n %i0 = slice %i, sizes=[2,2,7,6]\n %i1 = slice %i, starts=[0,2,0,0], sizes=[2,2,7,6]\n"
                                           " %w0 = slice %wg, sizes=[3,2,3,3]\n %w1 = slice %wg, starts=[3,0,0,0], sizes=[3,2,3,3]\n %c0 = conv %i0, %w0, dilation=[1,2], pads=[1,1,1,1]\n"
                                           " %c1 = conv %i1, %w1, dilation=[1,2], pads=[1,1,1,1]\n %b2 = concat %c0, %c1, axis=1\n return %a, %b2"},
    {"depthwise conv with a multiplier", " %a = conv %i, %wd, groups=4\n %i1 = slice %i, starts=[0,1,0,0], sizes=[2,1,7,6]\n %w1 = slice %wd, starts=[2,0,0,0], sizes=[2,1,3,3]\n %b2 = conv %i1, %w1\n"
                                        " %a1 = slice %a, starts=[0,2,0,0], sizes=[2,2,5,4]\n return %a1, %b2"},
    {"a 1x1 conv is a matmul", " %w1 = slice %w, sizes=[6,4,1,1]\n %a = conv %i, %w1, %c6\n %m = reshape %w1, shape=[6,4]\n %f = reshape %i, shape=[2,4,42]\n %p = matmul %m, %f\n %r = reshape %p, shape=[2,6,7,6]\n"
                               " %cb: f64[2,6,7,6] = broadcast %c6, axes=[1]\n %b2 = add %r, %cb\n return %a, %b2"},
    {"a 1x1 conv with stride", " %w1 = slice %w, sizes=[6,4,1,1]\n %a = conv %i, %w1, stride=[2,3]\n %f = conv %i, %w1\n %b2 = slice %f, sizes=[2,6,4,2], steps=[1,1,2,3]\n return %a, %b2"},
    {"conv_transpose is the adjoint of conv", " %o: f64[2,3,15,9] = const normal seed=20\n %u = conv_transpose %i, %wt, stride=[2,1], pads=[0,0,0,0], output_pads=[0,0]\n %us = slice %u, sizes=[2,3,15,7]\n"
                                             " %o1 = slice %o, sizes=[2,3,15,7]\n %p = mul %us, %o1\n %a = sum %p\n %f = conv %o1, %wt, stride=[2,1]\n %r = mul %f, %i\n %b2 = sum %r\n return %a, %b2"},
    {"conv_transpose with pads and groups", " %o: f64[2,6,12,6] = const normal seed=21\n %u = conv_transpose %i, %wt, stride=[2,1], pads=[1,1,2,0], output_pads=[0,0], groups=2\n %p = mul %u, %o\n %a = sum %p\n"
                                           " %f = conv %o, %wt, stride=[2,1], pads=[1,1,2,0], groups=2\n %r = mul %f, %i\n %b2 = sum %r\n return %a, %b2"},
    {"conv_transpose with dilation", " %o: f64[2,3,9,8] = const normal seed=22\n %u = conv_transpose %i, %wt, pads=[1,0,1,0], dilation=[2,2]\n %p = mul %u, %o\n %a = sum %p\n"
                                    " %f = conv %o, %wt, pads=[1,0,1,0], dilation=[2,2]\n %r = mul %f, %i\n %b2 = sum %r\n return %a, %b2"},
    {"avgpool is a conv with ones", " %o: f64[4,1,3,2] = const 0.16666666666666666\n %a = avgpool %i, size=[3,2], stride=[2,2]\n %b2 = conv %i, %o, groups=4, stride=[2,2]\n return %a, %b2"},
    {"avgpool leaves padding out", " %a = avgpool %i, size=[3,3], pads=[1,1,1,1]\n %s = avgpool %i, size=[3,3], pads=[1,1,1,1], count_pads\n %one: f64[2,4,7,6] = const 1\n %d = avgpool %one, size=[3,3], pads=[1,1,1,1], count_pads\n %b2 = div %s, %d\n return %a, %b2"},
    {"maxpool of the negative is minus a minimum", " %a = maxpool %i, size=[2,3], pads=[1,0,0,0], stride=[2,1]\n %p = pad_edge %i, pads=[0,0,1,0,0,0,0,0]\n %n = neg %p\n %wv = window %n, axis=2, size=[2,3], stride=[2,1]\n %m = reduce.min %wv, axes=[4,5]\n %b2 = neg %m\n return %a, %b2"},
    {"global pools", " %a = global_avgpool %i\n %b2 = mean %i, axes=[2,3], keep\n %m = global_maxpool %i\n %n = maxpool %i, size=[7,6]\n %z = sub %m, %n\n %a2 = add %a, %z\n return %a2, %b2"},
    {"attention of grouped heads", " %a = attention %q, %k, %v\n %kk = resize_nearest %k, scales=[1,2,1,1]\n %vv = resize_nearest %v, scales=[1,2,1,1]\n %s = matmul %q, %kk, transpose_b\n %sc = mul %s, 0.35355339059327379\n"
                                  " %p = softmax %sc\n %b2 = matmul %p, %vv\n return %a, %b2"},
    {"causal attention is a mask", " %a = attention %q, %k, %v, causal\n %m: bool[3,5] = const [true,true,true,false,false, true,true,true,true,false, true,true,true,true,true]\n %b2 = attention %q, %k, %v, %m\n return %a, %b2"},
    {"a window is a mask", " %a = attention %q, %k, %v, causal, window=2\n %m: f64[3,5] = const [-1e30,0,0,-1e30,-1e30, -1e30,-1e30,0,0,-1e30, -1e30,-1e30,-1e30,0,0]\n %b2 = attention %q, %k, %v, %m\n return %a, %b2"},
    {"a mask by head", " %h: f64[1,4,3,5] = const normal seed=30\n %a = attention %q, %k, %v, %h, scale=1\n %kk = resize_nearest %k, scales=[1,2,1,1]\n %vv = resize_nearest %v, scales=[1,2,1,1]\n %s = matmul %q, %kk, transpose_b\n"
                       " %sm = add %s, %h\n %p = softmax %sm\n %b2 = matmul %p, %vv\n return %a, %b2"},
    {"softcap", " %a = attention %q, %k, %v, softcap=2, scale=1\n %kk = resize_nearest %k, scales=[1,2,1,1]\n %vv = resize_nearest %v, scales=[1,2,1,1]\n %s = matmul %q, %kk, transpose_b\n %h = mul %s, 0.5\n %t2 = tanh %h\n %d = mul %t2, 2\n %p = softmax %d\n %b2 = matmul %p, %vv\n return %a, %b2"},
    {"rotary turns keep lengths", " %an: f64[3,4] = const uniform seed=31 scale=3\n %co = cos %an\n %si = sin %an\n %r = rotary %q, %co, %si\n %a = norm_l2 %r, axes=[3]\n %b2 = norm_l2 %q, axes=[3]\n return %a, %b2"},
    {"interleaved rotary is rotary of shuffled halves", " %an: f64[3,4] = const uniform seed=31 scale=3\n %co = cos %an\n %si = sin %an\n %a = rotary %q, %co, %si, interleaved\n %s = reshape %q, shape=[1,4,3,4,2]\n %st = transpose %s, perm=[0,1,2,4,3]\n"
                                                    " %sf = reshape %st, shape=[1,4,3,8]\n %r = rotary %sf, %co, %si\n %u = reshape %r, shape=[1,4,3,2,4]\n %ut = transpose %u, perm=[0,1,2,4,3]\n %b2 = reshape %ut, shape=[1,4,3,8]\n return %a, %b2"},
    {"embedding is one_hot times the table", " %g2 = reshape %y, shape=[10,6]\n %a = embedding %g2, %t\n %h = one_hot %t, depth=10, dtype=f64\n %b2 = matmul %h, %g2\n return %a, %b2"},
    {"one_hot along another axis", " %a = one_hot %t, depth=5, axis=0\n %h = one_hot %t, depth=5\n %b2 = transpose %h, perm=[2,0,1]\n return %a, %b2"},
    {"cross_entropy", " %a = cross_entropy %x, %t\n %l = log_softmax %x\n %h = one_hot %t, depth=5, dtype=f64\n %p = mul %l, %h\n %s = sum %p, axes=[2]\n %b2 = neg %s\n return %a, %b2"},
    {"depth_to_space and back", " %d = depth_to_space %i, size=[2]\n %a = space_to_depth %d, size=[2]\n return %a, %i"},
    {"depth_to_space crd", " %a = depth_to_space %i, size=[2], mode=crd\n %r = reshape %i, shape=[2,1,2,2,7,6]\n %t2 = transpose %r, perm=[0,1,4,2,5,3]\n %b2 = reshape %t2, shape=[2,1,14,12]\n return %a, %b2"},
    {"resize_nearest repeats", " %a = resize_nearest %x, scales=[1,2,3]\n %s = slice %a, sizes=[2,6,5], starts=[0,1,2], steps=[1,2,3]\n return %s, %x"},
    {"gather_elements of equal rows is gather", " %r: i32[6] = const [4,-1,0,2,-5,3]\n %rb: i32[2,6,6] = broadcast %r\n %a = gather_elements %x, %rb, axis=2\n %f: i32[6] = const [4,4,0,2,0,3]\n %b2 = gather %x, %f, axis=2\n return %a, %b2"},
    {"gather_nd of whole tuples is gather_elements", " %n: i32[2,1,2] = const [3,1, -1,4]\n %a1 = gather_nd %x, %n, batch_dims=1\n %a = reshape %a1, shape=[2]\n %f = reshape %x, shape=[60]\n %fi: i32[2] = const [16,59]\n %b2 = gather %f, %fi, axis=0\n return %a, %b2"},
    {"scatter_elements undoes gather_elements", " %r: i32[2,6,5] = iota axis=2\n %rv = sub 4, %r\n %z: f64[2,6,5] = const 0\n %u = scatter_elements %z, %rv, %x, axis=2, mode=add\n %a = gather_elements %u, %rv, axis=2\n return %a, %x"},
    {"scatter_nd sets rows", " %n: i32[2,2] = const [1,2, 0,-1]\n %u: f64[2,5] = const normal seed=40\n %s = scatter_nd %x, %n, %u\n %a = gather_nd %s, %n\n return %a, %u"},
    {"reverse_sequence twice", " %len: i32[2] = const [4,6]\n %r = reverse_sequence %x, %len, axis=1, batch_axis=0\n %a = reverse_sequence %r, %len, axis=1, batch_axis=0\n %r1 = slice %r, starts=[1,0,0], sizes=[1,6,5]\n %x1 = slice %x, starts=[1,5,0], sizes=[1,6,5], steps=[1,-1,1]\n %d = sub %r1, %x1\n %db: f64[2,6,5] = broadcast %d\n %a2 = add %a, %db\n return %a2, %x"},
    {"two triangles are the whole", " %u = trilu %x, offset=1\n %l = trilu %x, lower\n %b2 = add %u, %l\n return %x, %b2"},
    {"argmax, argmin and their last", " %t64 = cast %t, dtype=f64\n %m = argmax %t64, last\n %n = argmin %t64, last\n %mc = sub 5, %m\n %p = argmax %t64\n %q_ = argmin %t64, keep\n %qr = reshape %q_, shape=[2]\n %s1 = mul %m, 1000\n %s2 = mul %n, 100\n %s3 = mul %p, 10\n %s4 = add %s1, %s2\n %s5 = add %s3, %qr\n %a = add %s4, %s5\n %b2: i64[2] = const [4540, 404]\n return %a, %b2"},
    {"hardmax picks the maximum", " %h = hardmax %x, axis=1\n %p = mul %h, %x\n %a = sum %p, axes=[1]\n %b2 = reduce.max %x, axes=[1]\n return %a, %b2"},
    {"max_unpool puts back what maxpool_index found", " %p = maxpool %i, size=[2,2], stride=[2,2]\n %k_ = maxpool_index %i, size=[2,2], stride=[2,2]\n %u = max_unpool %p, %k_, shape=[2,4,7,6]\n %a = maxpool %u, size=[2,2], stride=[2,2]\n %b2 = max %p, 0\n return %a, %b2"},
    {"maxpool_index with pads, dilation and columns first", " %o = add %i, 100\n %p = maxpool %o, size=[2,3], pads=[1,1,0,1], dilation=[2,1], stride=[2,1]\n %k_ = maxpool_index %o, size=[2,3], pads=[1,1,0,1], dilation=[2,1], stride=[2,1]\n %f = reshape %o, shape=[336]\n %a = gather %f, %k_, axis=0\n %kc = maxpool_index %o, size=[2,3], pads=[1,1,0,1], dilation=[2,1], stride=[2,1], column_major\n %ft = transpose %o, perm=[0,1,3,2]\n %fc = reshape %ft, shape=[336]\n %ac = gather %fc, %kc, axis=0\n %d = sub %a, %ac\n %b2 = add %p, %d\n return %a, %b2"},
    {"ceil reaches the end", " %a = maxpool %i, size=[3,2], stride=[3,4], ceil\n %p = pad %i, high=[0,0,2,0], value=-1e9\n %b2 = maxpool %p, size=[3,2], stride=[3,4]\n return %a, %b2"},
    {"ceil counts what there is", " %a = avgpool %i, size=[3,2], stride=[3,4], ceil\n %q_ = avgpool %i, size=[3,2], stride=[3,4], ceil, count_pads\n %l = slice %i, starts=[0,0,6,0], sizes=[2,4,1,6]\n %e = concat %i, %l, %l, axis=2\n %b2 = avgpool %e, size=[3,2], stride=[3,4]\n %z = sub %q_, %a\n %a2 = add %a, %z\n return %a2, %b2"},
    {"lppool is the root of a sum", " %a = lppool %i, size=[2,3], stride=[2,1]\n %s = mul %i, %i\n %m = avgpool %s, size=[2,3], stride=[2,1]\n %m6 = mul %m, 6\n %b2 = sqrt %m6\n return %a, %b2"},
    {"global_lppool of order 3", " %a = global_lppool %i, order=3\n %ab = abs %i\n %s = mul %ab, %ab\n %c = mul %s, %ab\n %m = sum %c, axes=[2,3], keep\n %b2 = pow %m, 0.33333333333333331\n return %a, %b2"},
    {"mean_variance_norm is nearly layernorm", " %a = mean_variance_norm %x, axes=[2], epsilon=0\n %b2 = layernorm %x, epsilon=0\n return %a, %b2"},
    {"lp_norm", " %u = lp_norm %x, axis=1\n %a = norm_l2 %u, axes=[1]\n %b2: f64[2,5] = const 1\n %v_ = lp_norm %x, axis=2, order=1\n %n = norm_l1 %v_, axes=[2]\n %n1 = sum %n\n %n2 = sub %n1, 12\n %a2 = add %a, %n2\n return %a2, %b2"},
    {"lrn of one channel", " %a = lrn %i, size=[1], alpha=0.5, beta=0.75, bias=2\n %s = mul %i, %i\n %s5 = mul %s, 0.5\n %b_ = add %s5, 2\n %p = pow %b_, 0.75\n %b2 = div %i, %p\n return %a, %b2"},
    {"lrn sums neighbours", " %a = lrn %i, size=[3], alpha=3, beta=1, bias=1\n %s = mul %i, %i\n %p = pad %s, low=[0,1,0,0], high=[0,1,0,0]\n %s0 = slice %p, sizes=[2,4,7,6]\n %s2 = slice %p, starts=[0,2,0,0], sizes=[2,4,7,6]\n %s01 = add %s0, %s\n %s012 = add %s01, %s2\n %e = add %s012, 1\n %b2 = div %i, %e\n return %a, %b2"},
    {"matmul_integer takes zeros off", " %m: i8[3,4] = const [1,2,3,4,5,6,7,8,9,10,11,-12]\n %n: u8[4,2] = const [200,1,2,3,4,5,6,7]\n %zm: i8[3] = const [1,2,3]\n %zn: u8[2] = const [100,3]\n %a = matmul_integer %m, %n, %zm, %zn\n %m64 = cast %m, dtype=f64\n %n64 = cast %n, dtype=f64\n %zm1 = reshape %zm, shape=[3,1]\n %zm64 = cast %zm1, dtype=f64\n %zmb: f64[3,4] = broadcast %zm64\n %zn64 = cast %zn, dtype=f64\n %znb: f64[4,2] = broadcast %zn64\n %ms = sub %m64, %zmb\n %ns = sub %n64, %znb\n %p = matmul %ms, %ns\n %b2 = cast %p, dtype=i32\n return %a, %b2"},
    {"conv_integer takes zeros off before it pads", " %q_ = mul %i, 20\n %qi = cast %q_, dtype=i8\n %r = mul %w, 20\n %ri = cast %r, dtype=i8\n %zx: i8[] = const 7\n %zw: i8[6] = const [0,1,2,3,4,5]\n %a = conv_integer %qi, %ri, %zx, %zw, pads=[1,1,1,1]\n %q64 = cast %qi, dtype=f64\n %r64 = cast %ri, dtype=f64\n %zw64 = cast %zw, dtype=f64\n %zwb: f64[6,4,3,3] = broadcast %zw64, axes=[0]\n %qs = sub %q64, 7\n %rs = sub %r64, %zwb\n %p = conv %qs, %rs, pads=[1,1,1,1]\n %b2 = cast %p, dtype=i32\n return %a, %b2"},
    {"einsum of diagonals, dots and no arrow", " %sq = slice %x, sizes=[2,5,5]\n %d = einsum %sq, labels=\"...ii->...i\"\n %e = einsum %d, %d, labels=\"...i,...i\"\n %m = mul %d, %d\n %b2 = sum %m, axes=[1]\n return %e, %b2"},
    {"einsum of three", " %a = einsum %x, %y, %g, labels=\"bij,bjk,j->ki\"\n %gb: f64[2,6,5] = broadcast %g\n %xg = mul %x, %gb\n %p = matmul %xg, %y\n %s = sum %p, axes=[0]\n %b2 = transpose %s, perm=[1,0]\n return %a, %b2"},
    {"einsum repeats what has extent 1", " %x1 = slice %x, sizes=[1,6,5]\n %a = einsum %x1, %y, labels=\"...ij,...jk->...ik\"\n %b2 = matmul %x1, %y\n return %a, %b2"},
    {"resample by one tap is gather", " %t1: i32[4,1] = const [3,0,2,2]\n %w1: f64[4,1] = const [1,2,3,4]\n %a = resample %x, %t1, %w1, axis=1\n %tr = reshape %t1, shape=[4]\n %gt = gather %x, %tr, axis=1\n %wr = reshape %w1, shape=[4]\n %wb: f64[2,4,5] = broadcast %wr, axes=[1]\n %b2 = mul %gt, %wb\n return %a, %b2"},
    {"resample by two taps is by five of which three weigh nothing", " %t1: i32[3,2] = const [0,1,3,2,2,2]\n %w1: f64[3,2] = const [1,2,-1,0.5,3,4]\n %a = resample %x, %t1, %w1, axis=1\n %t2: i32[3,5] = const [0,1,0,0,0,3,2,0,0,0,2,2,0,0,0]\n %w2: f64[3,5] = const [1,2,0,0,0,-1,0.5,0,0,0,3,4,0,0,0]\n %b2 = resample %x, %t2, %w2, axis=1\n return %a, %b2"},
    {"resample averages", " %t2: i32[2,2] = const [0,1,3,4]\n %w2: f64[2,2] = const 0.5\n %a = resample %x, %t2, %w2\n %s0 = slice %x, sizes=[2,6,2], steps=[1,1,3]\n %s1 = slice %x, starts=[0,0,1], sizes=[2,6,2], steps=[1,1,3]\n %s = add %s0, %s1\n %b2 = mul %s, 0.5\n return %a, %b2"},
    {"grid_sample of every element gives x", " %ty: f64[2,7,6] = iota axis=1\n %tx: f64[2,7,6] = iota axis=2\n %sy = mul %ty, 0.33333333333333331\n %sx = mul %tx, 0.4\n %gy = sub %sy, 1\n %gx = sub %sx, 1\n %gx4 = reshape %gx, shape=[2,7,6,1]\n %gy4 = reshape %gy, shape=[2,7,6,1]\n %grid = concat %gx4, %gy4, axis=3\n %a = grid_sample %i, %grid, align_corners\n %k_ = grid_sample %i, %grid, align_corners, mode=cubic, padding=reflection\n %n = grid_sample %i, %grid, align_corners, mode=nearest, padding=border\n %d = sub %k_, %n\n %a2 = add %a, %d\n return %a2, %i"},
    {"grid_sample outside: borders and zeros", " %gr: f64[2,1,2,2] = const [-3,-1,3,-1,-3,-1,3,-1]\n %b1 = grid_sample %i, %gr, align_corners, padding=border\n %z = grid_sample %i, %gr, align_corners\n %a = add %b1, %z\n %b2 = slice %i, sizes=[2,4,1,2], steps=[1,1,1,5]\n return %a, %b2"},
    {"grid_sample turns round at the border", " %gr: f64[2,1,1,2] = const [1.5,-1,1.5,-1]\n %a = grid_sample %i, %gr, align_corners, padding=reflection, mode=linear\n %gi: f64[2,1,1,2] = const [0.5,-1,0.5,-1]\n %b2 = grid_sample %i, %gi, align_corners\n return %a, %b2"},
    {"roi_align of whole pixels is an average", " %bx: f64[2,4] = const [0,0,6,4, 0,0,6,4]\n %im: i32[2] = const [1,0]\n %a = roi_align %i, %bx, %im, size=[2,3], length=2, half_pixel\n %s = slice %i, sizes=[2,4,4,6]\n %p = avgpool %s, size=[2,2], stride=[2,2]\n %b2 = slice %p, starts=[1,0,0,0], sizes=[2,4,2,3], steps=[-1,1,1,1]\n return %a, %b2"},
    {"roi_align takes as many samples as cells are long", " %bx: f64[3,4] = const [0,0,6,4, 1,0.5,5.5,4, 0,0,3.03,2.04]\n %im: i32[3] = const [1,0,1]\n %a = roi_align %i, %bx, %im, size=[2,3], length=0, half_pixel\n %b2 = roi_align %i, %bx, %im, size=[2,3], length=2, half_pixel\n return %a, %b2"},
    {"roi_align of boxes far larger than the image", " %bx: f64[2,4] = const [-100,-90,110,120, -70,-200,139.7,9.5]\n %im: i32[2] = const [1,0]\n %a = roi_align %i, %bx, %im, size=[3,3], length=0\n %b2 = roi_align %i, %bx, %im, size=[3,3], length=70\n return %a, %b2"},
    {"roi_align of boxes without an extent is 0", " %bx: f64[2,4] = const [2,2,2,5, 3,3,1,1]\n %im: i32[2] = const [1,0]\n %a = roi_align %i, %bx, %im, size=[2,2], length=0, half_pixel\n %b2: f64[2,4,2,2] = const 0\n return %a, %b2"},
    {"roi_align takes as many samples as cells are long, the greatest", " %bx: f64[3,4] = const [0,0,6,4, 1,0.5,5.5,4, 0,0,3.03,2.04]\n %im: i32[3] = const [1,0,1]\n %a = roi_align %i, %bx, %im, size=[2,3], length=0, half_pixel, mode=max\n %b2 = roi_align %i, %bx, %im, size=[2,3], length=2, half_pixel, mode=max\n return %a, %b2"},
    {"roi_align of boxes far larger than the image, the greatest", " %bx: f64[2,4] = const [-100,-90,110,120, -70,-200,139.7,9.5]\n %im: i32[2] = const [1,0]\n %a = roi_align %i, %bx, %im, size=[3,3], length=0, mode=max\n %b2 = roi_align %i, %bx, %im, size=[3,3], length=70, mode=max\n return %a, %b2"},
    {"roi_align of boxes without an extent is 0, the greatest", " %bx: f64[2,4] = const [2,2,2,5, 3,3,1,1]\n %im: i32[2] = const [1,0]\n %a = roi_align %i, %bx, %im, size=[2,2], length=0, half_pixel, mode=max\n %b2: f64[2,4,2,2] = const 0\n return %a, %b2"},
    {"roi_align by the greatest of samples on pixels", " %bx: f64[1,4] = const [-0.5,-0.5,2.5,2.5]\n %im: i32[1] = const 0\n %a = roi_align %i, %bx, %im, size=[3,3], length=1, mode=max\n %b2 = roi_align %i, %bx, %im, size=[3,3], length=1, mode=avg\n %s = slice %i, sizes=[1,4,3,3]\n %d = sub %b2, %s\n %b3 = add %a, %d\n %m1 = max %a, 0\n %m2 = max %s, 0\n %e1 = max %b3, 0\n return %m2, %e1"},
    {"lstm by hand for one step", " %xs = slice %x, sizes=[1,6,5]\n %w0: f64[1,12,5] = const normal seed=50 scale=0.4\n %r0: f64[1,12,3] = const normal seed=51 scale=0.4\n %b0: f64[1,24] = const normal seed=52\n %yy, %hh, %cc = lstm %xs, %w0, %r0, %b0\n %w1 = reshape %w0, shape=[12,5]\n %x1 = reshape %xs, shape=[6,5]\n %p = linear %x1, %w1\n %bs = reshape %b0, shape=[2,12]\n %bb = sum %bs, axes=[0]\n %bbb: f64[6,12] = broadcast %bb\n %q_ = add %p, %bbb\n %gi = slice %q_, sizes=[6,3]\n %go = slice %q_, starts=[0,3], sizes=[6,3]\n %gc = slice %q_, starts=[0,9], sizes=[6,3]\n %si = sigmoid %gi\n %so = sigmoid %go\n %tc = tanh %gc\n %c1 = mul %si, %tc\n %t1 = tanh %c1\n %h1 = mul %so, %t1\n %a = reshape %hh, shape=[6,3]\n %c2 = reshape %cc, shape=[6,3]\n %dc = sub %c1, %c2\n %a2 = add %a, %dc\n return %a2, %h1"},
    {"lstm backwards is forwards of the reverse", " %rev = slice %x, starts=[1,0,0], sizes=[2,6,5], steps=[-1,1,1]\n %w0: f64[1,12,5] = const normal seed=50 scale=0.4\n %r0: f64[1,12,3] = const normal seed=51 scale=0.4\n %b0: f64[1,24] = const normal seed=52\n %y1, %h1, %c1 = lstm %x, %w0, %r0, %b0, mode=reverse\n %y2, %h2, %c2 = lstm %rev, %w0, %r0, %b0\n return %h1, %h2"},
    {"lstm of two directions is two", " %w0: f64[1,12,5] = const normal seed=50 scale=0.4\n %r0: f64[1,12,3] = const normal seed=51 scale=0.4\n %b0: f64[1,24] = const normal seed=52\n %w2 = concat %w0, %w0, axis=0\n %r2 = concat %r0, %r0, axis=0\n %b2x = concat %b0, %b0, axis=0\n %y1, %h1, %c1 = lstm %x, %w2, %r2, %b2x, mode=both\n %y2, %h2, %c2 = lstm %x, %w0, %r0, %b0\n %y3, %h3, %c3 = lstm %x, %w0, %r0, %b0, mode=reverse\n %b2 = concat %y2, %y3, axis=1\n return %y1, %b2"},
    {"lstm keeps short sequences where they end", " %w0: f64[1,12,5] = const normal seed=50 scale=0.4\n %r0: f64[1,12,3] = const normal seed=51 scale=0.4\n %b0: f64[1,24] = const normal seed=52\n %len: i32[6] = const 1\n %y1, %h1, %c1 = lstm %x, %w0, %r0, %b0, %len\n %xs = slice %x, sizes=[1,6,5]\n %y2, %h2, %c2 = lstm %xs, %w0, %r0, %b0\n return %h1, %h2"},
    {"lstm as a repeat is lstm written out", " %long: f64[20,2,5] = const normal seed=53\n %w0: f64[1,12,5] = const normal seed=50 scale=0.4\n %r0: f64[1,12,3] = const normal seed=51 scale=0.4\n %b0: f64[1,24] = const normal seed=52\n %la = slice %long, sizes=[10,2,5]\n %lb = slice %long, starts=[10,0,0], sizes=[10,2,5]\n %y1, %h1, %c1 = lstm %long, %w0, %r0, %b0\n %y2, %h2, %c2 = lstm %la, %w0, %r0, %b0\n %y3, %h3, %c3 = lstm %lb, %w0, %r0, %b0, _, %h2, %c2\n %a = add %y1, 0\n %b2 = concat %y2, %y3, axis=0\n return %a, %b2"},
    {"gru as a repeat, backwards", " %long: f64[20,2,5] = const normal seed=53\n %w0: f64[1,9,5] = const normal seed=50 scale=0.4\n %r0: f64[1,9,3] = const normal seed=51 scale=0.4\n %b0: f64[1,18] = const normal seed=52\n %rev = slice %long, starts=[19,0,0], sizes=[20,2,5], steps=[-1,1,1]\n %y1, %h1 = gru %long, %w0, %r0, %b0, mode=reverse\n %y2, %h2 = gru %rev, %w0, %r0, %b0\n %b2 = slice %y2, starts=[19,0,0,0], sizes=[20,1,2,3], steps=[-1,1,1,1]\n return %y1, %b2"},
    {"gru without a past is the same late or early", " %xs = slice %x, sizes=[1,6,5]\n %w0: f64[1,9,5] = const normal seed=50 scale=0.4\n %r0: f64[1,9,3] = const normal seed=51 scale=0.4\n %b0: f64[1,18] = const normal seed=52\n %z: f64[1,18] = const 0\n %y1, %h1 = gru %xs, %w0, %r0, %z\n %y2, %h2 = gru %xs, %w0, %r0, %z, linear_before_reset\n return %h1, %h2"},
    {"gru by hand for one step", " %xs = slice %x, sizes=[1,6,5]\n %w0: f64[1,9,5] = const normal seed=50 scale=0.4\n %r0: f64[1,9,3] = const normal seed=51 scale=0.4\n %b0: f64[1,18] = const normal seed=52\n %z: f64[1,18] = const 0\n %h0: f64[1,6,3] = const normal seed=54\n %yy, %hh = gru %xs, %w0, %r0, %z, _, %h0\n %w1 = reshape %w0, shape=[9,5]\n %r1 = reshape %r0, shape=[9,3]\n %hr = reshape %h0, shape=[6,3]\n %x1 = reshape %xs, shape=[6,5]\n %p = linear %x1, %w1\n %q_ = linear %hr, %r1\n %u = add %p, %q_\n %gz = slice %u, sizes=[6,3]\n %gr = slice %u, starts=[0,3], sizes=[6,3]\n %sz = sigmoid %gz\n %sr = sigmoid %gr\n %rh = mul %sr, %hr\n %rr = slice %r1, starts=[6,0], sizes=[3,3]\n %qh = linear %rh, %rr\n %ph = slice %p, starts=[0,6], sizes=[6,3]\n %th = add %ph, %qh\n %nh = tanh %th\n %df = sub %hr, %nh\n %zd = mul %sz, %df\n %b2 = add %nh, %zd\n %a = reshape %hh, shape=[6,3]\n return %a, %b2"},
    {"activations of an rnn and their numbers", " %xs = slice %x, sizes=[1,6,5]\n %w0: f64[1,3,5] = const normal seed=50\n %r0: f64[1,3,3] = const 0\n %w1 = reshape %w0, shape=[3,5]\n %x1 = reshape %xs, shape=[6,5]\n %l = linear %x1, %w1\n %y0, %h0 = rnn %xs, %w0, %r0, activations=\"affine:2:0.5\"\n %u = mul %l, 2\n %f0 = add %u, 0.5\n %y1, %h1 = rnn %xs, %w0, %r0, activations=\"scaledtanh:1.5:0.5\"\n %v1 = mul %l, 0.5\n %v2 = tanh %v1\n %f1 = mul %v2, 1.5\n %y2, %h2 = rnn %xs, %w0, %r0, activations=\"leakyrelu:0.25\"\n %f2 = leaky_relu %l, alpha=0.25\n %y3, %h3 = rnn %xs, %w0, %r0, activations=\"thresholdedrelu:-0.5\"\n %f3 = thresholded_relu %l, alpha=-0.5\n %y4, %h4 = rnn %xs, %w0, %r0, activations=\"elu:0.5\"\n %f4 = elu %l, alpha=0.5\n %y5, %h5 = rnn %xs, %w0, %r0, activations=\"hardsigmoid:0.3:0.4\"\n %f5 = hardsigmoid %l, alpha=0.3, beta=0.4\n %y6, %h6 = rnn %xs, %w0, %r0, activations=\"leakyrelu\"\n %f6 = leaky_relu %l\n %y7, %h7 = rnn %xs, %w0, %r0, activations=\"softsign\"\n %f7 = softsign %l\n %y8, %h8 = rnn %xs, %w0, %r0, activations=\"softplus\"\n %f8 = softplus %l\n %c = concat %y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7, %y8, axis=0\n %a = reshape %c, shape=[54,3]\n %b2 = concat %f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8, axis=0\n return %a, %b2"},
    {"rnn of batches first", " %w0: f64[1,3,5] = const normal seed=50\n %r0: f64[1,3,3] = const normal seed=51\n %xt = transpose %x, perm=[1,0,2]\n %y1, %h1 = rnn %x, %w0, %r0, activations=relu, high=1\n %y2, %h2 = rnn %xt, %w0, %r0, batch_first, activations=relu, high=1\n %b2 = transpose %y2, perm=[1,2,0,3]\n return %y1, %b2"},
    {"dft and back", " %s = reshape %x, shape=[2,6,5,1]\n %f = dft %s, axis=1\n %v_ = dft %f, axis=1, inverse\n %re = slice %v_, sizes=[2,6,5,1]\n %a = reshape %re, shape=[2,6,5]\n %im = slice %v_, starts=[0,0,0,1], sizes=[2,6,5,1]\n %i2 = reshape %im, shape=[2,6,5]\n %a2 = add %a, %i2\n return %a2, %x"},
    {"dft keeps the energy; one side is half of it", " %s = reshape %x, shape=[2,6,5,1]\n %f = dft %s, axis=1\n %q_ = mul %f, %f\n %e = sum %q_\n %a = mul %e, 0.16666666666666666\n %x2 = mul %x, %x\n %b2 = sum %x2\n %o = dft %s, axis=1, onesided\n %h = slice %f, sizes=[2,4,5,2]\n %d = sub %o, %h\n %ds = norm_l1 %d\n %a2 = add %a, %ds\n return %a2, %b2"},
    {"stft of one frame is dft", " %s = reshape %x, shape=[2,30,1]\n %hw: f64[8] = const normal seed=60\n %f = stft %s, %hw, step=4, onesided\n %p = slice %s, starts=[0,4,0], sizes=[2,8,1]\n %h1 = reshape %hw, shape=[8,1]\n %hb: f64[2,8,1] = broadcast %h1\n %pw = mul %p, %hb\n %b2 = dft %pw, axis=1, onesided\n %a1 = slice %f, starts=[0,1,0,0], sizes=[2,1,5,2]\n %a = reshape %a1, shape=[2,5,2]\n %n = stft %s, step=4, length=8\n %n1 = slice %n, starts=[0,1,0,0], sizes=[2,1,8,2]\n %n2 = reshape %n1, shape=[2,8,2]\n %n3 = dft %p, axis=1\n %d = sub %n2, %n3\n %e = norm_l1 %d\n %a2 = add %a, %e\n return %a2, %b2"},
    {"dft in passes: seven zeros behind each value repeat the spectrum", " %s: f64[2,64,2] = const normal seed=61\n %s4 = reshape %s, shape=[2,64,1,2]\n %z: f64[2,64,7,2] = const 0\n %c = concat %s4, %z, axis=2\n %l = reshape %c, shape=[2,512,2]\n %a = dft %l, axis=1\n %f = dft %s, axis=1\n %b2 = concat %f, %f, %f, %f, %f, %f, %f, %f, axis=1\n return %a, %b2"},
    {"dft in passes of a real signal, and back; one side is half of it", " %s: f64[2,360,1] = const normal seed=62\n %f = dft %s, axis=1\n %v_ = dft %f, axis=1, inverse\n %z: f64[2,360,1] = const 0\n %c = concat %s, %z, axis=2\n %o = dft %s, axis=1, onesided\n %h = slice %f, sizes=[2,181,2]\n %a = concat %v_, %o, axis=1\n %b2 = concat %c, %h, axis=1\n return %a, %b2"},
    {"dft in passes of an odd length, one side", " %s: f64[1,675,1] = const normal seed=63\n %f = dft %s, axis=1\n %a = dft %s, axis=1, onesided\n %b2 = slice %f, sizes=[1,338,2]\n return %a, %b2"},
    {"dft in passes along an axis in the middle", " %s: f64[3,96,5,2] = const normal seed=64\n %a = dft %s, axis=1\n %t_ = transpose %s, perm=[0,2,1,3]\n %f = dft %t_, axis=2\n %b2 = transpose %f, perm=[0,2,1,3]\n return %a, %b2"},
    {"dft in passes: filled with zeros, and cut", " %s: f64[2,100,2] = const normal seed=65\n %z: f64[2,156,2] = const 0\n %c = concat %s, %z, axis=1\n %f1 = dft %s, axis=1, length=256\n %f2 = dft %c, axis=1\n %g1 = dft %c, axis=1, length=90, inverse\n %p = slice %s, sizes=[2,90,2]\n %g2 = dft %p, axis=1, inverse\n %a = concat %f1, %g1, axis=1\n %b2 = concat %f2, %g2, axis=1\n return %a, %b2"},
    {"dft in three passes, and back", " %s: f64[1,16384,2] = const normal seed=66\n %f = dft %s, axis=1\n %a = dft %f, axis=1, inverse\n return %a, %s"},
    {"stft in passes", " %s: f64[1,1200,1] = const normal seed=67\n %hw: f64[400] = const normal seed=68\n %f = stft %s, %hw, step=160, onesided\n %p = slice %s, starts=[0,320,0], sizes=[1,400,1]\n %h1 = reshape %hw, shape=[400,1]\n %hb: f64[1,400,1] = broadcast %h1\n %pw = mul %p, %hb\n %b2 = dft %pw, axis=1, onesided\n %a1 = slice %f, starts=[0,2,0,0], sizes=[1,1,201,2]\n %a = reshape %a1, shape=[1,201,2]\n return %a, %b2"},
    {"det of a product is the product of dets", " %m = slice %x, sizes=[2,5,5]\n %n = slice %y, sizes=[2,5,5]\n %p = matmul %m, %n\n %a = det %p\n %dm = det %m\n %dn = det %n\n %b2 = mul %dm, %dn\n return %a, %b2"},
    {"nll_loss", " %l = log_softmax %x, axis=2\n %lt = transpose %l, perm=[0,2,1]\n %wc: f64[5] = const [1,2,3,4,5]\n %n1 = nll_loss %lt, %t, mode=none\n %c1 = cross_entropy %x, %t\n %n2 = nll_loss %lt, %t, %wc, ignore=0\n %wt_ = gather %wc, %t, axis=0\n %k_ = ne %t, 0\n %kw = select %k_, %wt_, 0:f64\n %m = mul %c1, %kw\n %ms = sum %m\n %ks = sum %kw\n %m2 = div %ms, %ks\n %d = sub %n2, %m2\n %n3 = nll_loss %lt, %t, mode=sum\n %cs = sum %c1\n %e = sub %n3, %cs\n %de = add %d, %e\n %deb: f64[2,6] = broadcast %de, axes=[]\n %a = add %n1, %deb\n return %a, %c1"},
    {"flatten", " %a = flatten %i, axis=2\n %b2 = reshape %i, shape=[8,42]\n return %a, %b2"},
    {"pads by wrap", " %a = pad_wrap %x, pads=[0,2,1,0,1,2]\n %c = concat %x, %x, %x, axis=1\n %c1 = concat %c, %c, %c, axis=2\n %b2 = slice %c1, starts=[0,4,4], sizes=[2,9,8]\n return %a, %b2"},
    {"pads by reflection", " %a = pad_reflect %x, pads=[0,2,0,0,0,0]\n %r = slice %x, starts=[0,2,0], sizes=[2,2,5], steps=[1,-1,1]\n %b2 = concat %r, %x, axis=1\n return %a, %b2"},
    {"pads by the edge", " %a = pad_edge %x, pads=[0,1,0,0,0,2]\n %t2 = slice %x, sizes=[2,1,5]\n %c = concat %t2, %x, axis=1\n %e = slice %c, starts=[0,0,4], sizes=[2,7,1]\n %b2 = concat %c, %e, %e, axis=2\n return %a, %b2"},
    {"negative pads cut off, and what is left is padded", " %a = pad_reflect %x, pads=[0,-2,0,0,3,-1]\n %c = slice %x, starts=[0,2,0], sizes=[2,4,4]\n %b2 = pad_reflect %c, pads=[0,0,0,0,3,0]\n return %a, %b2"},
    {"dequantize of quantize is near", " %s: f32[6] = const 0.125\n %z: u8[6] = const 100\n %xf: f32[2,6,5] = cast %x\n %qz = quantize %xf, %s, %z\n %d = dequantize %qz, %s, %z\n %m = mul %xf, 8\n %r = round %m\n %b2 = mul %r, 0.125\n return %d, %b2"},
    {"quantize saturates", " %h = mul %x, 1e6\n %hf: f32[2,6,5] = cast %h\n %a = quantize %hf, 1:f32, dtype=i8\n %p = gt %hf, 0\n %b2 = select %p, 127:i8, -128\n return %a, %b2"},
    {"dropout keeps the mean, and what it keeps", " %d = dropout %x, ratio=0.25, seed=7\n %z = eq %d, 0\n %u = mul %d, 0.75\n %b2 = select %z, %x, %u\n return %x, %b2"},
    {"sgd with momentum", " %p, %vel = sgd %x, %x, %x, rate=0.5, momentum=0.5\n %a = mul %x, 0.25\n return %p, %a"},
    {"adam's first step goes by the rate", " %z: f64[2,6,5] = const 0\n %p, %m, %v2 = adam %z, %x, %z, %z, rate=0.125, epsilon=0\n %s = sign %x\n %b2 = mul %s, -0.125\n return %p, %b2"},
    {"adam's step may be a value", " %p, %m, %v2 = adam %x, %x, %x, %x, 3:f64\n %b2 = sub %x, %p\n %p3, _, _ = adam %x, %x, %x, %x, step=3\n %b3 = sub %x, %p3\n return %b2, %b3"},
};
// clang-format on

static double number_at(const ir_eval_tensor *t, uint64_t i) { return t->value ? t->value[i] : (double)t->ints[i]; }

static double worst_difference(const ir_eval_tensor *a, const ir_eval_tensor *b) {
  double worst = 0;
  if (a->count != b->count || a->count == 0) return INFINITY;
  for (uint64_t i = 0; i < a->count; i++) {
    const double x = number_at(a, i), y = number_at(b, i), error = fabs(x - y) / (1 + fabs(y));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

/* All values are constants, so the folder leaves nothing but constants behind the outputs, save what counts positions or draws numbers. */
static void check_folded(test_graph *t, const char *name, const ir_eval_tensor *before) {
  bool changed = false;
  ir_eval_tensor after[2];
  tap_is_int(ir_graph_fold(&t->g, 100000, &changed), SNT_OK, "%s: folds", name);
  tap_is_text(graph_errors(t), "", "%s: and stays sound", name);
  const char *text = graph_text(t);
  const bool computed = strstr(text, "iota") || strstr(text, "random") || strstr(text, "repeat");
  uint32_t left = 0;
  for (uint32_t i = 0; i < t->g.outputs.count; i++) left += ir_at(&t->g, t->g.outputs.at[i].node)->op != IR_OP_const;
  if (!evaluate(t, after)) tap_ok(false, "%s: is evaluated again: %s", name, t->diag.text);
  else
    tap_ok(worst_difference(&after[0], &before[0]) < 1e-6 && worst_difference(&after[1], &before[1]) < 1e-6 && (left <= 1 || computed),
           "%s: to the same values", name);
}

static void check_twins(void) {
  for (uint32_t i = 0; i < IR_COUNT(twins); i++) {
    char text[6000];
    test_graph t;
    ir_eval_tensor out[2];
    snprintf(text, sizeof text, "graph @g() {\n%s%s\n}\n", constants, twins[i].body);
    if (!tap_is_int(graph_read_text(&t, text), SNT_OK, "%s: is read", twins[i].name)) {
      tap_diag("  %s", t.diag.text);
    } else if (!tap_is_text(graph_errors(&t), "", "%s: is sound", twins[i].name) || !evaluate(&t, out)) {
      tap_ok(false, "%s: is evaluated: %s", twins[i].name, t.diag.text);
    } else {
      const double worst = worst_difference(&out[0], &out[1]);
      tap_ok(worst < 1e-9, "%s: both ways agree (%g)", twins[i].name, worst);
      check_folded(&t, twins[i].name, out);
    }
    graph_close(&t);
  }
}

/* Every row must be built by some graph here. */
static void check_coverage(void) {
  for (uint32_t c = 1; c < IR_COMPOSITE_COUNT; c++) {
    char call[64];
    bool found = false;
    snprintf(call, sizeof call, "= %s %%", ir_composites[c].name);
    for (uint32_t i = 0; i < IR_COUNT(twins) && !found; i++) found = strstr(twins[i].body, call) != NULL;
    for (uint32_t i = 0; i < IR_COUNT(activations) && !found; i++) found = strncmp(activations[i].call, call + 2, strlen(call + 2)) == 0;
    if (strcmp(ir_composites[c].name, "swiglu") == 0) continue; /* below */
    tap_ok(found, "%s is exercised", ir_composites[c].name);
  }
}

/* Names, origins, narrow types, symbols. */
static void check_nodes(void) {
  test_graph t;
  ir_eval_tensor out[2];
  graph_read_text(&t,
                  "symbols { n: max=64 }\ngraph @g(%x: f16[n,8], %y: f16[n,8]) {\n %s = swiglu %x, %y\n %1 = softmax %s\n return %1\n}\n");
  const uint32_t last = t.g.outputs.at[0].node;
  tap_is_text(graph_errors(&t), "", "narrow composites over symbols are sound");
  tap_is_int(ir_at(&t.g, last)->type.dtype, SNT_F16, "and give back the operand's type");
  uint32_t named = 0, origin = ir_at(&t.g, last)->origin, same = 0;
  for (uint32_t n = 3; n < t.g.nodes.count; n++) named += strcmp(ir_node_name(&t.g, n), "s") == 0, same += ir_at(&t.g, n)->origin == origin;
  tap_ok(named >= 4, "%u nodes carry the user's name", named);
  tap_ok(origin == last && same >= 6, "%u have the result as origin", same);
  graph_close(&t);
  graph_read_text(&t, "graph @g() {\n %a: f64[9] = const normal seed=1\n %b: f64[9] = const normal seed=2\n %x = swiglu %a, %b\n %s = silu "
                      "%a\n %y = mul %s, %b\n return %x, %y\n}\n");
  tap_ok(evaluate(&t, out) && worst_difference(&out[0], &out[1]) < 1e-15, "swiglu");
  graph_close(&t);
  const snt_result read = graph_read_text(
      &t,
      "symbols { n: max=64 }\ngraph @g(%x: f32[n,2,3,4], %w: f32[1,1,4,5], %v: f32[1,2,6,3]) {\n %y = matmul %x, %w\n %z = matmul %v, %y\n"
      " return %z\n}\n");
  tap_ok(read == SNT_OK && strstr(graph_text(&t), "f32[n,2,6,5]"), "a batch of 1 is repeated for the first symbol as for any other extent");
  graph_close(&t);
}

/* What only repeats is left alone, splats fold at any size, and what depends on an input stays. */
static void check_folder(void) {
  test_graph t;
  bool changed;
  graph_read_text(
      &t,
      "symbols { n: max=64 }\ngraph @g(%x: f32[n,4]) {\n %w: f32[4] = const [1,2,3,4]\n %v = mul %w, 2\n %vb: f32[n,4] = broadcast %v\n "
      "%two: f32[n,4] = broadcast 2:f32\n %three = add %two, 1\n"
      " %y = mul %x, %vb\n %z = add %y, %three\n %big: f32[64,64] = const uniform seed=1\n %big2 = mul %big, %big\n return %z, %big2\n}\n");
  tap_is_int(ir_graph_fold(&t.g, 100, &changed), SNT_OK, "folds");
  tap_ok(changed, "and says so");
  const char *text = graph_text(&t);
  tap_ok(strstr(text, "%v: f32[4] = const [0x1p+1, 0x1p+2, 0x1.8p+2, 0x1p+3]") != NULL, "the operand of a broadcast is folded");
  tap_ok(strstr(text, "%vb: f32[n,4] = broadcast %v") != NULL, "the broadcast is not");
  tap_ok(strstr(text, "%three: f32[n,4] = const 0x1.8p+1") != NULL, "splats fold under symbols");
  tap_ok(strstr(text, "%big2: f32[64,64] = mul") != NULL, "the limit holds");
  tap_is_text(graph_errors(&t), "", "the result is sound");
  ir_graph_fold(&t.g, 100, &changed);
  tap_ok(!changed, "a second time changes nothing");
  graph_close(&t);
  graph_read_text(&t, "graph @g() {\n %x: f32[1048576,1048576] = broadcast 2:f32\n %y = reduce.sum %x, axes=[0,1]\n return %y\n}\n");
  tap_is_int(ir_graph_fold(&t.g, 100, &changed), SNT_OK, "few elements out of more than fit memory are left");
  tap_ok(strstr(graph_text(&t), "%y: f32[] = reduce.sum %x") != NULL, "to the device");
  graph_close(&t);
}

/* T5's buckets: f32 of log(2) / log(16) * 8 is 2, of the numbers between in f64 a little less. */
static void check_thresholds(void) {
  test_graph t;
  bool changed;
  graph_read_text(&t, "graph @g() {\n %w: f32[2] = const [2, 4]\n %log = log %w\n %part = div %log, 0x1.62e43p+1\n %m = mul %part, 8\n"
                      " %i: i32[2] = cast %m\n %f = floor %m\n %b = lt %m, %w\n return %i, %f, %b\n}\n");
  tap_is_int(ir_graph_fold(&t.g, 100, &changed), SNT_OK, "folds");
  tap_ok(strstr(graph_text(&t), "%i: i32[2] = const [2, 4]") != NULL, "a cast to an integer sees the f32 before it");
  tap_ok(strstr(graph_text(&t), "%f: f32[2] = const [0x1p+1, 0x1p+2]") != NULL, "so does a floor");
  tap_ok(strstr(graph_text(&t), "%b: bool[2] = const [false, false]") != NULL, "and a comparison");
  graph_close(&t);
}

int main(void) {
  check_activations();
  check_twins();
  check_coverage();
  check_nodes();
  check_folder();
  check_thresholds();
  return tap_done();
}
