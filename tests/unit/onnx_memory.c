/* What loading a model takes: a network of convolutions with batch norms is written as an ONNX file, imported from there, compiled, made an exec of and
   run once, and the peak compared with its weights: on the host everything the process holds, elsewhere what is asked of the host allocator (the
   driver's compiler keeps its own). onnx_memory [DEVICE ..] */
#include "tests/tap.h"
#include "tools/host/host.h"
#include <sinter/sinter_onnx.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 14, LAYERS = 36, WIDE = 1024, NARROW = 256 };
static const double most_ratio = 2.2;
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
enum { SHADOWED = 1 }; /* the process holds more than it asked for */
#else
enum { SHADOWED = 0 };
#endif

/* ---- a model, as protocol buffers ---- */

typedef struct bytes {
  uint8_t *at;
  size_t count, room;
} bytes;

static uint8_t *grow(bytes *b, size_t count) {
  if (b->count + count > b->room) {
    b->room = (b->count + count) * 2;
    uint8_t *moved = realloc(b->at, b->room);
    if (!moved) exit(99);
    b->at = moved;
  }
  b->count += count;
  return b->at + b->count - count;
}

static void put_varint(bytes *b, uint64_t value) {
  for (; value > 127; value >>= 7) *grow(b, 1) = (uint8_t)(value | 128);
  *grow(b, 1) = (uint8_t)value;
}

static void put_number(bytes *b, uint32_t field, uint64_t value) {
  put_varint(b, field << 3);
  put_varint(b, value);
}

static void put_data(bytes *b, uint32_t field, const void *data, size_t count) {
  put_varint(b, field << 3 | 2);
  put_varint(b, count);
  if (count) memcpy(grow(b, count), data, count);
}

static void put_text(bytes *b, uint32_t field, const char *text) { put_data(b, field, text, strlen(text)); }

static void put_message(bytes *b, uint32_t field, bytes *inner) {
  put_data(b, field, inner->at, inner->count);
  free(inner->at);
  *inner = (bytes){0};
}

/* An initialiser of small numbers about `middle`. */
static void put_tensor(bytes *graph, const char *name, uint32_t rank, const int64_t *dims, float middle, float spread) {
  bytes t = {0};
  size_t count = 1;
  for (uint32_t i = 0; i < rank; i++) put_number(&t, 1, (uint64_t)dims[i]), count *= (size_t)dims[i];
  float *data = malloc(count * sizeof *data);
  uint32_t state = 12345;
  if (!data) exit(99);
  for (size_t i = 0; i < count; i++) data[i] = middle + spread * ((float)((state = state * 1664525 + 1013904223) >> 8) / (1 << 23) - 1);
  put_number(&t, 2, 1);
  put_text(&t, 8, name);
  put_data(&t, 9, data, count * sizeof *data);
  free(data);
  put_message(graph, 5, &t);
}

static void put_port(bytes *graph, uint32_t field, const char *name, int64_t channels) {
  const int64_t dims[] = {1, channels, SIDE, SIDE};
  bytes port = {0}, type = {0}, tensor = {0}, shape = {0};
  for (uint32_t i = 0; i < 4; i++) {
    bytes dim = {0};
    put_number(&dim, 1, (uint64_t)dims[i]);
    put_message(&shape, 1, &dim);
  }
  put_number(&tensor, 1, 1);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&port, 1, name);
  put_message(&port, 2, &type);
  put_message(graph, field, &port);
}

static void put_node(bytes *graph, const char *op, uint32_t count, const char *const *inputs, const char *output, int64_t pad) {
  bytes n = {0};
  for (uint32_t i = 0; i < count; i++) put_text(&n, 1, inputs[i]);
  put_text(&n, 2, output);
  put_text(&n, 4, op);
  if (pad) {
    bytes a = {0};
    put_text(&a, 1, "pads");
    for (uint32_t i = 0; i < 4; i++) put_number(&a, 8, (uint64_t)pad);
    put_number(&a, 20, 7);
    put_message(&n, 5, &a);
  }
  put_message(graph, 1, &n);
}

/* Convolution, batch norm, ReLU: wide to narrow, 3x3 among the narrow, narrow to wide, and so on. */
static void put_layer(bytes *graph, uint32_t i, char *value, size_t size) {
  char w[32], out[32], norm[4][32];
  const int64_t from = i % 3 == 0 ? WIDE : NARROW, to = i % 3 == 2 ? WIDE : NARROW, taps = i % 3 == 1 ? 3 : 1;
  snprintf(w, sizeof w, "w%u", i);
  put_tensor(graph, w, 4, (const int64_t[]){to, from, taps, taps}, 0, 1.0f / (float)(taps * 16));
  snprintf(out, sizeof out, "conv%u", i);
  put_node(graph, "Conv", 2, (const char *const[]){value, w}, out, taps / 2);
  static const char *const what[] = {"scale", "shift", "mean", "variance"};
  for (uint32_t k = 0; k < 4; k++) {
    snprintf(norm[k], sizeof norm[k], "%s%u", what[k], i);
    put_tensor(graph, norm[k], 1, &to, k == 0 || k == 3 ? 1 : 0, 0.25f);
  }
  char normed[32];
  snprintf(normed, sizeof normed, "norm%u", i);
  put_node(graph, "BatchNormalization", 5, (const char *const[]){out, norm[0], norm[1], norm[2], norm[3]}, normed, 0);
  snprintf(value, size, "relu%u", i);
  put_node(graph, "Relu", 1, (const char *const[]){normed}, value, 0);
}

static bool write_model(const char *path) {
  bytes model = {0}, graph = {0}, opset = {0};
  char value[32] = "x";
  for (uint32_t i = 0; i < LAYERS; i++) put_layer(&graph, i, value, sizeof value);
  put_text(&graph, 2, "layers");
  put_port(&graph, 11, "x", WIDE);
  put_port(&graph, 12, value, WIDE);
  put_number(&opset, 2, 13);
  put_number(&model, 1, 8);
  put_message(&model, 8, &opset);
  put_message(&model, 7, &graph);
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(model.at, 1, model.count, file) == model.count;
  if (file) good &= fclose(file) == 0;
  free(model.at);
  return good;
}

/* ---- loading it ---- */

typedef struct counted {
  uint64_t now, peak;
} counted;

static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  counted *c = user;
  (void)scope;
  if (align < sizeof(void *)) align = sizeof(void *);
  void *data = aligned_alloc(align, (size + align - 1) / align * align);
  if (data && (c->now += size) > c->peak) c->peak = c->now;
  return data;
}

static void SNT_CALL release(void *user, void *data, size_t size, size_t align) {
  (void)align;
  if (data) ((counted *)user)->now -= size;
  free(data);
}

static float input[WIDE * SIDE * SIDE], output[WIDE * SIDE * SIDE];

static snt_result load_and_run(snt_context *c, const char *path, const char *selector, snt_diag *diag) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  const snt_argument arguments[] = {{0, 0, NULL, 0, input, sizeof input}, {1, 0, NULL, 0, output, sizeof output}};
  const snt_run_info run = {SNT_HEAD(run_info), 2, 0, arguments, NULL, 0};
  snt_device *device = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = NULL;
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  snt_result r = snt_device_open(c, &open, &device, diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_graph_create(c, &graph);
  if (r == SNT_OK) r = snt_onnx_import_file(graph, path, NULL, diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &program, diag);
  if (r == SNT_OK) r = snt_exec_create(device, program, NULL, &exec, diag);
  if (r == SNT_OK) r = snt_exec_prepare(exec, diag);
  if (r == SNT_OK) r = snt_run(exec, &run, diag);
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  snt_graph_destroy(graph);
  snt_profile_destroy(profile);
  snt_device_destroy(device);
  return r;
}

/* Peak of the resident set, in bytes; 0 where the system does not say. */
static uint64_t resident(void) {
  char line[128];
  uint64_t kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) (void)sscanf(line, "VmHWM: %" SCNu64, &kilobytes);
  if (file) fclose(file);
  return kilobytes * 1024;
}

static void check(const char *path, uint64_t weights, const char *selector) {
  counted heap = {0};
  snt_diag diag = {0};
  snt_context *c = NULL;
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .alloc = {&heap, acquire, release}};
  snt_result r = snt_context_create(&info, &c);
  if (r == SNT_OK) r = load_and_run(c, path, selector, &diag);
  snt_context_destroy(c);
  if (r == SNT_E_UNSUPPORTED || r == SNT_E_BACKEND) {
    tap_skip("%s: %s", selector, diag.text);
    return;
  }
  const bool whole = !SHADOWED && !strcmp(selector, "host");
  const uint64_t peak = whole ? resident() : heap.peak;
  tap_ok(r == SNT_OK && peak > weights / (whole ? 2 : 8) && (double)peak <= most_ratio * (double)weights,
         "%s: %s %.2f of %.1f MB of weights%s%s", selector, whole ? "the process holds" : "allocations are", (double)peak / (double)weights,
         (double)weights / 1e6, diag.text[0] ? ": " : "", diag.text);
  tap_ok(heap.now == 0, "%s: all of it goes back", selector);
}

/* In a process of its own: what writing takes is not to be counted. */
static uint64_t make_model(const char *path) {
  struct stat file;
  int status = 1;
  const pid_t child = fork();
  if (child == 0) _exit(write_model(path) ? 0 : 1);
  if (child < 0 || waitpid(child, &status, 0) != child || status || stat(path, &file)) return 0;
  return (uint64_t)file.st_size;
}

int main(int count, char **arguments) {
  const char *folder = getenv("TMPDIR");
  char path[256];
  snprintf(path, sizeof path, "%.200s/sinter-memory-XXXXXX", folder ? folder : "/tmp");
  const int file = mkstemp(path);
  if (file < 0 || close(file)) return 99;
  tap_begin();
  const uint64_t weights = make_model(path); /* what is not weights is a few kilobytes */
  host_prepare_drivers(NULL);
  tap_ok(weights > 0, "the model is written");
  if (weights && count < 2) check(path, weights, "host");
  if (weights && count < 2) check(path, weights, "opencl:pocl");
  for (int i = 1; weights && i < count; i++) check(path, weights, arguments[i]);
  (void)unlink(path);
  return tap_done();
}
