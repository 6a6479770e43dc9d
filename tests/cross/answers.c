/* What the library makes of graphs on the machine it runs on, as text that is the same on every other (tests/cross.t): for each graph and profile the saved
   program's size and checksum, and the bits that the interpreter gives of a reproducible one.
   answers FILE.snt.. ; answers --save PROFILE FILE.snt OUT ; answers --load FILE.sntp. Nothing but the public headers and ISO C. */
#include <inttypes.h>
#include <sinter/sinter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const profiles[] = {"dgpu", "igpu", "pocl", "lavapipe", "mobile", "h100"};
enum { PROFILES = sizeof profiles / sizeof *profiles, MAX_PORTS = 32, MAX_SYMBOLS = 16 };

static uint64_t checksum(uint64_t sum, const void *data, size_t size) { /* FNV-1a */
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
  return sum;
}
static const uint64_t no_checksum = UINT64_C(0xcbf29ce484222325);

static char *read_file(const char *path, size_t *size) {
  FILE *in = fopen(path, "rb");
  char *data = NULL;
  size_t room = 0, got = 1;
  for (*size = 0; in && got; *size += got) {
    if (*size == room) data = realloc(data, room = room ? 2 * room : 65536);
    got = data ? fread(data + *size, 1, room - *size, in) : 0;
  }
  if (in) fclose(in);
  return data;
}

static int fail(const char *file, const char *what, snt_result r, const snt_diag *diag) {
  printf("%s: %s: %s: %s\n", file, what, snt_result_text(r), diag->text);
  return 1;
}

/* ---- runs ---- */

static void fill(unsigned char *data, const snt_port *port, size_t count) {
  static uint32_t state = 1;
  const uint32_t width = snt_dtype_size(port->tensor.dtype);
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    const int small = (int)(state >> 24) % 7;
    if (port->tensor.dtype == SNT_F32) {
      const float x = (float)(int32_t)(state >> 8) * 0x1p-23f - 1;
      memcpy(data + i * width, &x, sizeof x);
    } else if (port->tensor.dtype == SNT_F64) {
      const double x = small - 3;
      memcpy(data + i * width, &x, sizeof x);
    } else if (port->tensor.dtype == SNT_F16 || port->tensor.dtype == SNT_BF16) {
      const uint16_t half = (uint16_t)(port->tensor.dtype == SNT_F16 ? 0x3800 + small * 64 : 0x3f00 + small * 8);
      memcpy(data + i * width, &half, sizeof half);
    } else if (width == 1) {
      data[i] = (unsigned char)(port->tensor.dtype == SNT_BOOL ? small & 1 : small);
    } else if (width == 2) {
      const int16_t x = (int16_t)small;
      memcpy(data + i * width, &x, sizeof x);
    } else if (width == 4) {
      const int32_t x = small;
      memcpy(data + i * width, &x, sizeof x);
    } else if (width == 8) {
      const int64_t x = small;
      memcpy(data + i * width, &x, sizeof x);
    }
  }
}

/* Which bits a NaN has is no promise of any mode (docs/numerics.md). */
static void one_nan(float *data, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (data[i] != data[i]) memset(data + i, 0xff, sizeof *data);
}

/* Elements, as a machine has them that keeps the lowest byte first. */
static void lowest_first(unsigned char *data, size_t bytes, uint32_t width) {
  const uint16_t one = 1;
  if (*(const unsigned char *)&one) return;
  for (size_t at = 0; at < bytes; at += width)
    for (uint32_t i = 0; i < width / 2; i++) {
      const unsigned char low = data[at + i];
      data[at + i] = data[at + width - 1 - i];
      data[at + width - 1 - i] = low;
    }
}

typedef struct ports {
  snt_port port[MAX_PORTS];
  snt_argument argument[MAX_PORTS];
  int64_t symbols[MAX_SYMBOLS];
  uint32_t count, symbol_count;
} ports;

static int take_ports(ports *p, const snt_program *program) {
  p->count = snt_program_port_count(program);
  p->symbol_count = snt_program_symbol_count(program);
  if (p->count > MAX_PORTS || p->symbol_count > MAX_SYMBOLS) return 0;
  for (uint32_t i = 0; i < p->symbol_count; i++) {
    snt_symbol s;
    if (snt_program_symbol(program, i, &s) != SNT_OK) return 0;
    p->symbols[i] = s.min > s.hint ? s.min : s.hint;
  }
  for (uint32_t i = 0; i < p->count; i++) {
    int64_t dims[SNT_MAX_RANK];
    size_t count = 1;
    p->port[i].head.type = SNT_TYPE_port;
    p->port[i].head.size = sizeof p->port[i];
    if (snt_program_port(program, i, &p->port[i]) != SNT_OK || snt_program_port_dims(program, i, p->symbols, dims) != SNT_OK) return 0;
    for (uint32_t k = 0; k < p->port[i].tensor.rank; k++) count *= (size_t)dims[k];
    const uint32_t width = snt_dtype_size(p->port[i].tensor.dtype);
    if (!width || count > 1u << 20) return 0;
    p->argument[i].port = i;
    p->argument[i].bytes = count * width;
    p->argument[i].host = calloc(count ? count : 1, width);
    if (!p->argument[i].host) return 0;
    if (p->port[i].kind != SNT_PORT_OUTPUT) fill(p->argument[i].host, &p->port[i], count);
  }
  return 1;
}

static void run(snt_context *context, const char *file, const snt_program *program) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  snt_device *device = NULL;
  snt_exec *exec = NULL;
  ports p = {0};
  uint64_t sum = no_checksum;
  snt_result r = snt_device_open(context, &open, &device, &diag);
  if (r == SNT_OK && !take_ports(&p, program)) {
    printf("%s interp not run: it is large\n", file);
  } else if (r == SNT_OK) {
    r = snt_exec_create(device, program, NULL, &exec, &diag);
    const snt_run_info info = {.head = SNT_HEAD(run_info),
                               .argument_count = p.count,
                               .arguments = p.argument,
                               .symbols = p.symbols,
                               .symbol_count = p.symbol_count};
    if (r == SNT_OK) r = snt_run(exec, &info, &diag);
    for (uint32_t i = 0; i < p.count; i++) {
      const size_t bytes = (size_t)p.argument[i].bytes;
      if (p.port[i].tensor.dtype == SNT_F32) one_nan(p.argument[i].host, bytes / sizeof(float));
      lowest_first(p.argument[i].host, bytes, snt_dtype_size(p.port[i].tensor.dtype));
      if (p.port[i].kind != SNT_PORT_INPUT) sum = checksum(sum, p.argument[i].host, bytes);
    }
    if (r == SNT_OK) printf("%s interp %016" PRIx64 "\n", file, sum);
  }
  if (r != SNT_OK) fail(file, "interp", r, &diag);
  for (uint32_t i = 0; i < MAX_PORTS; i++) free(p.argument[i].host);
  snt_exec_destroy(exec);
  snt_device_destroy(device);
}

/* ---- programs ---- */

static snt_result compile(snt_context *context, const char *path, const char *name, uint32_t targets, snt_program **out, snt_diag *diag) {
  size_t length;
  char *text = read_file(path, &length);
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  const uint32_t numerics = targets == SNT_TARGET_HOST ? SNT_NUMERICS_REPRODUCIBLE : SNT_NUMERICS_DEFAULT;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = targets, .numerics = numerics};
  snt_result r = text ? snt_profile_builtin(context, name, &profile) : SNT_E_ARG;
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, length, NULL, diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, out, diag);
  snt_graph_destroy(graph);
  snt_profile_destroy(profile);
  free(text);
  return r;
}

static void *save(const snt_program *program, size_t *size) {
  *size = 0;
  snt_program_save(program, NULL, size);
  void *blob = malloc(*size);
  if (blob && snt_program_save(program, blob, size) == SNT_OK) return blob;
  free(blob);
  return NULL;
}

static void answer(snt_context *context, const char *path) {
  const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  for (int i = 0; i < PROFILES; i++) {
    snt_diag diag = {.head = SNT_HEAD(diag)};
    snt_program *program = NULL;
    size_t size;
    const snt_result r = compile(context, path, profiles[i], 0, &program, &diag);
    void *blob = r == SNT_OK ? save(program, &size) : NULL;
    if (blob) printf("%s %s %zu %016" PRIx64 "\n", file, profiles[i], size, checksum(no_checksum, blob, size));
    else fail(file, profiles[i], r, &diag);
    free(blob);
    snt_program_destroy(program);
  }
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_program *program = NULL;
  const snt_result r = compile(context, path, "pocl", SNT_TARGET_HOST, &program, &diag);
  if (r == SNT_OK) run(context, file, program);
  else fail(file, "interp", r, &diag);
  snt_program_destroy(program);
}

static int write_blob(snt_context *context, const char *profile, const char *path, const char *out) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_program *program = NULL;
  size_t size = 0;
  const snt_result r = compile(context, path, profile, 0, &program, &diag);
  void *blob = r == SNT_OK ? save(program, &size) : NULL;
  FILE *to = blob ? fopen(out, "wb") : NULL;
  const int whole = to && fwrite(blob, 1, size, to) == size;
  if (to) fclose(to);
  free(blob);
  snt_program_destroy(program);
  return whole ? 0 : fail(path, "save", r, &diag);
}

static int load(snt_context *context, const char *path) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_program *program = NULL;
  size_t size;
  char *blob = read_file(path, &size);
  const snt_result r = snt_program_load(context, blob, size, &program, &diag);
  const int failed = r == SNT_OK ? 0 : fail("load", "blob", r, &diag);
  if (!failed) printf("%s: %u kernels\n", snt_program_profile(program), snt_program_kernel_count(program));
  snt_program_destroy(program);
  free(blob);
  return failed;
}

int main(int argc, char **argv) {
  snt_context *context = NULL;
  int failed = 0;
  if (snt_context_create(NULL, &context) != SNT_OK) return 1;
  if (argc == 5 && !strcmp(argv[1], "--save")) failed = write_blob(context, argv[2], argv[3], argv[4]);
  else if (argc == 3 && !strcmp(argv[1], "--load")) failed = load(context, argv[2]);
  else
    for (int i = 1; i < argc; i++) answer(context, argv[i]);
  snt_context_destroy(context);
  return failed;
}
