/* What compiling costs, by graph: times of the stages, memory from the host allocator.
     compile_cost                              memory is linear: 10 000 and 20 000 random nodes; weights that are scaled are not made (TAP)
     compile_cost WHAT [profile=P] [runs=N] [to=STAGE]     WHAT: chain:N, block, conv, random:N, or a model (.snt, .onnx); the least time of N runs
   tests/compile_cost.t counts the instructions of one run of it. Random graphs are the same everywhere. */
#include "tests/tap.h"
#include "tools/host/host.h"
#include <sinter/sinter_onnx.h>
#include <time.h>

/* ---- graphs as text ---- */

typedef struct writer {
  char *at;
  size_t length, capacity;
} writer;

static TAP_PRINTF(2, 3) void put(writer *w, const char *format, ...) {
  va_list list;
  if (w->capacity - w->length < 512) w->at = realloc(w->at, w->capacity = 2 * w->capacity + 1024);
  if (!w->at) exit(1);
  va_start(list, format);
  w->length += (size_t)vsnprintf(w->at + w->length, w->capacity - w->length, format, list);
  va_end(list);
}

/* Pointwise nodes one after the other, with a second operand from a few nodes back. */
static void write_chain(writer *w, uint32_t count) {
  static const char *const ops[] = {"add", "mul", "tanh", "max", "sub", "exp", "min", "neg"};
  put(w, "graph @chain(%%v0: f32[256,1024]) {\n");
  for (uint32_t i = 1; i <= count; i++) {
    const char *op = ops[i % 8];
    const bool one = !strcmp(op, "tanh") || !strcmp(op, "exp") || !strcmp(op, "neg");
    put(w, one ? "  %%v%u = %s %%v%u\n" : "  %%v%u = %s %%v%u, %%v%u\n", i, op, i - 1, i > 4 ? i - 4 : 0);
  }
  put(w, "  return y=%%v%u\n}\n", count);
}

/* One layer of a small transformer: attention, residuals, norms, a feed-forward of two products. */
static void write_block(writer *w) {
  put(w, "symbols { b: min=1 max=64 multiple_of=1 hint=8, n: min=1 max=512 multiple_of=1 hint=128 }\n");
  put(w, "graph @block(%%x: f32[b,n,384], %%mask: f32[b,1,1,n]");
  static const char *const square[] = {"wq", "wk", "wv", "wo"}, *const rows[] = {"bq", "bk", "bv", "bo", "g1", "h1", "g2", "h2"};
  for (uint32_t i = 0; i < 4; i++) put(w, ", %%%s: f32[384,384]", square[i]);
  for (uint32_t i = 0; i < 8; i++) put(w, ", %%%s: f32[384]", rows[i]);
  put(w, ", %%w1: f32[384,1536], %%b1: f32[1536], %%w2: f32[1536,384], %%b2: f32[384]) {\n");
  static const char *const heads[] = {"q", "k", "v"};
  for (uint32_t i = 0; i < 3; i++) {
    put(w, "  %%m%s = matmul %%x, %%w%s\n  %%e%s: f32[b,n,384] = broadcast %%b%s, axes=[2]\n  %%a%s = add %%m%s, %%e%s\n", heads[i],
        heads[i], heads[i], heads[i], heads[i], heads[i], heads[i]);
    put(w, "  %%r%s = reshape %%a%s, shape=[b,n,12,32]\n  %%%s = transpose %%r%s, perm=[0,2,%s]\n", heads[i], heads[i], heads[i], heads[i],
        i == 1 ? "3,1" : "1,3");
  }
  put(w, "  %%s = matmul %%q, %%k\n  %%t = mul %%s, 0.17677669\n  %%em: f32[b,12,n,n] = broadcast %%mask\n  %%u = add %%t, %%em\n");
  put(w, "  %%p = softmax %%u, axis=3\n  %%c = matmul %%p, %%v\n  %%ct = transpose %%c, perm=[0,2,1,3]\n  %%cr = reshape %%ct, "
         "shape=[b,n,384]\n");
  put(w, "  %%o = matmul %%cr, %%wo\n  %%eo: f32[b,n,384] = broadcast %%bo, axes=[2]\n  %%ob = add %%o, %%eo\n  %%n1 = add %%ob, %%x\n");
  put(w, "  %%l1 = layernorm %%n1, %%g1, %%h1, axis=2\n  %%f1 = matmul %%l1, %%w1\n  %%e1: f32[b,n,1536] = broadcast %%b1, axes=[2]\n");
  put(w, "  %%fb = add %%f1, %%e1\n  %%fg = gelu %%fb\n  %%f2 = matmul %%fg, %%w2\n  %%e2: f32[b,n,384] = broadcast %%b2, axes=[2]\n");
  put(w, "  %%f3 = add %%f2, %%e2\n  %%n2 = add %%f3, %%l1\n  %%l2 = layernorm %%n2, %%g2, %%h2, axis=2\n  return y=%%l2\n}\n");
}

/* A convolution whose weights go through local memory in another order, and a norm's factor for each channel. */
static float weights[512 * 128 * 3 * 3];
static const void *SNT_CALL find_weights(void *user, const char *name, uint64_t offset, uint64_t bytes) {
  (void)user, (void)name;
  return offset + bytes <= sizeof weights ? (const char *)weights + offset : NULL;
}
static void write_conv(writer *w) {
  put(w, "graph @conv(%%x: f32[1,128,14,14]) {\n  %%w: f32[512,128,3,3] = const data=\"w\"\n  %%f: f32[512] = const data=\"f\"\n");
  put(w, "  %%c = conv %%x, %%w, pads=[1,1,1,1], stride=[2,2]\n  %%e: f32[1,512,7,7] = broadcast %%f, axes=[1]\n  %%y = mul %%c, %%e\n");
  put(w, "  return y=%%y\n}\n");
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

/* Of each node one operand is recent, the other from anywhere within a thousand; results that nobody reads are outputs. */
static void write_random(writer *w, uint32_t count) {
  static const char *const unary[] = {"tanh", "exp", "neg", "abs", "sqrt", "sigmoid"}, *const binary[] = {"add", "mul", "sub", "max"};
  uint64_t state = 12345;
  uint8_t *used = calloc(count + 4, 1);
  if (!used) exit(1);
  put(w, "graph @random(%%v0: f32[64,64], %%v1: f32[64,64], %%v2: f32[64,64], %%v3: f32[64,64]) {\n");
  for (uint32_t i = 4; i < count + 4; i++) {
    const uint32_t kind = next_random(&state) % 100, near = i - 1 - next_random(&state) % 4, span = i < 1000 ? i : 1000;
    const uint32_t far = i - 1 - next_random(&state) % span, pick = next_random(&state);
    if (kind < 40) put(w, "  %%v%u = %s %%v%u\n", i, unary[pick % 6], near);
    else if (kind < 80) put(w, "  %%v%u = %s %%v%u, %%v%u\n", i, binary[pick % 4], near, far);
    else if (kind < 86) put(w, "  %%v%u = softmax %%v%u, axis=1\n", i, near);
    else if (kind < 92) put(w, "  %%v%u = transpose %%v%u, perm=[1,0]\n", i, near);
    else if (kind < 96)
      put(w, "  %%r%u = reduce.sum %%v%u, axes=[%u], keep\n  %%e%u: f32[64,64] = broadcast %%r%u\n  %%v%u = add %%v%u, %%e%u\n", i, near,
          pick % 2, i, i, i, far, i);
    else put(w, "  %%v%u = matmul %%v%u, %%v%u\n", i, near, far);
    used[near] = 1;
    if (kind >= 40 && (kind < 80 || kind >= 92)) used[far] = 1;
  }
  put(w, "  return ");
  for (uint32_t i = 4, k = 0; i < count + 4; i++)
    if (!used[i]) put(w, "%so%u=%%v%u", k++ ? ", " : "", i, i);
  put(w, "\n}\n");
  free(used);
}

/* ---- one compile ---- */

enum { MAX_STAGES = 32 };
typedef struct watch {
  const char *stage[MAX_STAGES], *last; /* `last`: the stage to stop before */
  double began[MAX_STAGES];
  uint32_t count;
} watch;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int SNT_CALL on_progress(void *user, const char *stage, double fraction) {
  watch *w = user;
  (void)fraction;
  if (w->count && !strcmp(w->stage[w->count - 1], stage)) return 0;
  if (w->count < MAX_STAGES) {
    w->stage[w->count] = stage;
    w->began[w->count++] = now_ms();
  }
  return w->last && !strcmp(stage, w->last);
}

typedef struct memory {
  uint64_t live, most;
} memory;
static void *SNT_CALL count_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  memory *m = user;
  (void)align, (void)scope; /* what malloc gives fits every type */
  m->live += size;
  if (m->live > m->most) m->most = m->live;
  return malloc(size);
}
static void SNT_CALL count_release(void *user, void *p, size_t size, size_t align) {
  memory *m = user;
  (void)align;
  if (!p) return;
  m->live -= size;
  free(p);
}

typedef struct bench {
  memory memory;
  snt_context *context;
  snt_graph *graph;
  snt_profile *profile;
  snt_diag diag;
} bench;

static snt_result open_text(bench *b, const char *text, size_t length) {
  const snt_data_source source = {NULL, find_weights};
  const snt_result r = snt_graph_create(b->context, &b->graph);
  return r == SNT_OK ? snt_graph_parse(b->graph, text, length, &source, &b->diag) : r;
}

static snt_result open_file(bench *b, const char *path) {
  void *text = NULL;
  size_t size = 0;
  if (strstr(path, ".onnx")) {
    const snt_onnx_info info = {.head = SNT_HEAD(onnx_info)};
    const snt_result r = snt_graph_create(b->context, &b->graph);
    return r == SNT_OK ? snt_onnx_import_file(b->graph, path, &info, &b->diag) : r;
  }
  snt_result r = host_read_file(path, &text, &size, &b->diag);
  if (r == SNT_OK) r = open_text(b, text, size);
  free(text);
  return r;
}

static snt_result open_bench(bench *b, const char *what, const char *profile) {
  memset(b, 0, sizeof *b);
  snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  info.alloc = (snt_host_alloc){&b->memory, count_acquire, count_release};
  snt_result r = snt_context_create(&info, &b->context);
  if (r == SNT_OK) r = snt_profile_builtin(b->context, profile, &b->profile);
  if (r != SNT_OK) return r;
  writer w = {0};
  const char *number = strchr(what, ':');
  const uint32_t count = number ? (uint32_t)strtoul(number + 1, NULL, 10) : 0;
  if (!strncmp(what, "chain:", 6)) write_chain(&w, count);
  else if (!strcmp(what, "block")) write_block(&w);
  else if (!strcmp(what, "conv")) write_conv(&w);
  else if (!strncmp(what, "random:", 7)) write_random(&w, count);
  r = w.at ? open_text(b, w.at, w.length) : open_file(b, what);
  free(w.at);
  return r;
}

static void close_bench(bench *b) {
  snt_profile_destroy(b->profile);
  snt_graph_destroy(b->graph);
  snt_context_destroy(b->context);
}

static snt_result compile(bench *b, watch *w, uint32_t *kernels) {
  snt_program *program = NULL;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_SPIRV, .user = w, .progress = on_progress};
  const snt_result r = snt_compile(b->graph, b->profile, &info, &program, &b->diag);
  *kernels = snt_program_kernel_count(program);
  snt_program_destroy(program);
  return r == SNT_E_CANCELLED && w->last ? SNT_OK : r;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise) {
  for (int i = 2; i < argc; i++)
    if (!strncmp(argv[i], name, strlen(name))) return argv[i] + strlen(name);
  return otherwise;
}

static int print_times(int argc, char **argv) {
  bench b;
  const uint32_t runs = (uint32_t)strtoul(option(argc, argv, "runs=", "1"), NULL, 10);
  snt_result r = open_bench(&b, argv[1], option(argc, argv, "profile=", "dgpu"));
  double least[MAX_STAGES + 1] = {0};
  watch w = {0};
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < runs && r == SNT_OK; i++) {
    w = (watch){.last = option(argc, argv, "to=", NULL)};
    const double start = now_ms();
    r = compile(&b, &w, &kernels);
    const double end = now_ms();
    for (uint32_t s = 0; s <= w.count; s++) {
      const double ms = s == w.count ? end - start : (s + 1 < w.count ? w.began[s + 1] : end) - w.began[s];
      if (!i || ms < least[s]) least[s] = ms;
    }
  }
  if (r != SNT_OK) fprintf(stderr, "%s\n", b.diag.text);
  for (uint32_t s = 0; s < w.count && r == SNT_OK; s++) printf("  %-14s %9.3f ms\n", w.stage[s], least[s]);
  if (r == SNT_OK) printf("%s: %.3f ms, %u kernels, %.1f MB\n", argv[1], least[w.count], kernels, (double)b.memory.most / 1e6);
  close_bench(&b);
  return r != SNT_OK;
}

static uint64_t memory_of(const char *what) {
  bench b;
  watch w = {.last = "fission"};
  uint32_t kernels;
  tap_ok(open_bench(&b, what, "dgpu") == SNT_OK, "%s is read %s", what, b.diag.text);
  const uint64_t before = b.memory.live;
  b.memory.most = before;
  tap_ok(compile(&b, &w, &kernels) == SNT_OK, "and grouped %s", b.diag.text);
  const uint64_t used = b.memory.most - before;
  close_bench(&b);
  tap_is_int((int64_t)b.memory.live, 0, "nothing is left of it");
  return used;
}

/* The same numbers in another order lose as much by a factor as they do where they lie; only where their sizes do not say that nothing is
   lost are they put in order. */
static void check_weights(void) {
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) weights[i] = 0.5f + (float)(i % 1013) / 1024;
  const uint64_t plain = memory_of("conv");
  weights[1000] = 1.2e-38f; /* half of it is no normal number */
  const uint64_t tiny = memory_of("conv");
  tap_ok(tiny > plain + sizeof weights / 2,
         "weights that are scaled and turned are made only where they must be read: %.1f MB, else %.1f MB", (double)tiny / 1e6,
         (double)plain / 1e6);
}

int main(int argc, char **argv) {
  if (argc > 1) return print_times(argc, argv);
  tap_begin();
  const double one = (double)memory_of("random:10000"), two = (double)memory_of("random:20000");
  tap_ok(two < 2.2 * one, "memory is linear in the graph: %.1f MB, twice the nodes %.1f MB", one / 1e6, two / 1e6);
  check_weights();
  return tap_done();
}
