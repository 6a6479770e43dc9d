/* The CUDA door against a driver without a GPU: the host's context, stream and pointers are used and nothing else; enqueueing neither waits, builds nor takes
   memory, of the device or of the process; what it cannot do is refused before a launch. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tests/unit/cuda_fake.h"
#include <sinter/cuda.h>
#include <stdlib.h>
#include <string.h>

static snt_diag diag = {.head = SNT_HEAD(diag)};
static const char text[] = "symbols { n: min=1 max=64 multiple_of=1 hint=8 }\n"
                           "graph @sum(%x: f32[n,16], state %total: f32[16]) {\n"
                           "  %w: f32[16] = const uniform seed=3 scale=0x1p+0\n"
                           "  %s = reduce.sum %x, axes=[0]\n"
                           "  %k = mul %w, 0\n"
                           "  %s1 = add %s, %k\n"
                           "  %next = add %total, %s1\n"
                           "  update %total, %next\n"
                           "  return y=%next\n"
                           "}\n";

static void check_attach(snt_context *c) {
  snt_device *d = NULL;
  snt_cuda_attach_info info = {.head = SNT_HEAD(cuda_attach_info), .get_proc = cuda_fake_proc};
  tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_E_ARG, "no context: %s", diag.text);
  info.context = cuda_fake_context();
  info.user = (void *)(uintptr_t) "cuLaunchKernel";
  tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_E_UNSUPPORTED, "a table without a function: %s", diag.text);
  tap_ok(strstr(diag.text, "cuLaunchKernel") != NULL, "which is named");
  info.user = NULL;
  info.context = (struct CUctx_st *)(void *)&info;
  tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_E_ARG, "a context that is none: %s", diag.text);
  info.context = cuda_fake_context();
  info.head.size -= 8;
  tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_E_STRUCT, "a struct cut short: %s", diag.text);
  info.head.type++;
  tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_E_STRUCT, "another struct: %s", diag.text);
}

#define REFUSED(call) tap_is_int((call), SNT_E_ARG, "%s: %s", #call, diag.text)

/* Nothing where something is needed, and what is another backend's. */
static void check_nothing(snt_context *c, snt_device *d, snt_exec *x, snt_stream *s) {
  const snt_cuda_attach_info info = {.head = SNT_HEAD(cuda_attach_info), .context = cuda_fake_context(), .get_proc = cuda_fake_proc};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  const snt_run_info run = {.head = SNT_HEAD(run_info)};
  const snt_cuda_enqueue_info right = {.head = SNT_HEAD(cuda_enqueue_info), .run = &run}, empty = {.head = SNT_HEAD(cuda_enqueue_info)};
  snt_cuda_enqueue_info cut = right;
  snt_device *other = NULL, *made = NULL;
  snt_stream *far = NULL, *none = NULL;
  snt_buffer *b = NULL;
  cut.head.size -= 8;
  REFUSED(snt_cuda_attach(NULL, &info, &made, &diag));
  REFUSED(snt_cuda_attach(c, NULL, &made, &diag));
  REFUSED(snt_cuda_attach(c, &info, NULL, &diag));
  tap_is_int(snt_device_open(c, &open, &other, &diag), SNT_OK, "a device of another backend");
  tap_is_int(snt_stream_create(other, &far, &diag), SNT_OK, "and a stream of it");
  REFUSED(snt_cuda_stream(NULL, cuda_fake_stream(), &none, &diag));
  REFUSED(snt_cuda_stream(other, cuda_fake_stream(), &none, &diag));
  REFUSED(snt_cuda_stream(d, cuda_fake_stream(), NULL, &diag));
  REFUSED(snt_cuda_buffer(NULL, 256, 64, &b, &diag));
  REFUSED(snt_cuda_buffer(other, 256, 64, &b, &diag));
  REFUSED(snt_cuda_buffer(d, 256, 0, &b, &diag));
  REFUSED(snt_cuda_buffer(d, 256, 64, NULL, &diag));
  REFUSED(snt_cuda_enqueue(NULL, s, &right, &diag));
  REFUSED(snt_cuda_enqueue(x, NULL, &right, &diag));
  REFUSED(snt_cuda_enqueue(x, s, NULL, &diag));
  REFUSED(snt_cuda_enqueue(x, far, &right, &diag));
  REFUSED(snt_cuda_enqueue(x, s, &empty, &diag));
  tap_is_int(snt_cuda_enqueue(x, s, &cut, &diag), SNT_E_STRUCT, "a struct cut short: %s", diag.text);
  tap_ok(!made && !none && !b, "and nothing is made");
  snt_stream_destroy(far);
  snt_device_destroy(other);
}

typedef struct fixture {
  api_memory *memory;
  snt_device *device;
  snt_stream *stream;
  snt_program *program;
  snt_buffer *buffers[3];
  float *at[3]; /* x, the state, the result */
} fixture;

static snt_result enqueue(const fixture *f, snt_exec *x, int64_t n, uint32_t arguments) {
  const snt_argument given[] = {
      {.port = 0, .buffer = f->buffers[0]}, {.port = 1, .buffer = f->buffers[1]}, {.port = 2, .buffer = f->buffers[2]}};
  const snt_run_info run = {
      .head = SNT_HEAD(run_info), .argument_count = arguments, .arguments = given + 3 - arguments, .symbols = &n, .symbol_count = 1};
  const snt_cuda_enqueue_info info = {.head = SNT_HEAD(cuda_enqueue_info), .run = &run};
  return snt_cuda_enqueue(x, f->stream, &info, &diag);
}

static void check_runs(const fixture *f, snt_exec *x) {
  for (int i = 0; i < 8 * 16; i++) f->at[0][i] = 1;
  memset(f->at[1], 0, 64);
  tap_is_int(enqueue(f, x, 4, 3), SNT_E_ORDER, "before the jobs are done: %s", diag.text);
  tap_is_int(snt_exec_prepare(x, &diag), SNT_OK, "the jobs are done");
  tap_is_int(enqueue(f, x, 9, 3), SNT_E_ARG, "more rows than the memory has: %s", diag.text);
  tap_is_int(enqueue(f, x, 65, 3), SNT_E_SHAPE, "more rows than the program takes: %s", diag.text);
  tap_is_int(enqueue(f, x, 4, 2), SNT_E_ARG, "no memory for an input: %s", diag.text);
  tap_is_int((int)cuda_fake.launches, 0, "and none of them launched a kernel");
  const cuda_fake_counts before = cuda_fake;
  const long long calls = atomic_load(&f->memory->calls);
  for (int i = 0; i < 2; i++) tap_is_int(enqueue(f, x, 4, 3), SNT_OK, "run %d %s", i, diag.text);
  tap_ok(f->at[2][0] == 8 && f->at[2][15] == 8, "two runs of four rows: %g", (double)f->at[2][0]);
  tap_ok(cuda_fake.launches > 0 && cuda_fake.other_streams == before.other_streams, "on the host's stream alone");
  tap_is_int((int)(cuda_fake.waits - before.waits + cuda_fake.allocations - before.allocations + cuda_fake.modules - before.modules +
                   cuda_fake.compiles - before.compiles + cuda_fake.streams - before.streams),
             0, "nothing waits, is built or taken");
  tap_is_int((int)(atomic_load(&f->memory->calls) - calls), 0, "nor is memory of the process");
  tap_is_int((int)cuda_fake.depth, 0, "the thread's own context is left as it was");
}

static void check_lost(const fixture *f, snt_exec *x) {
  cuda_fake_fail_launch(701);
  tap_is_int(enqueue(f, x, 4, 3), SNT_E_BACKEND, "what the driver refuses is its own error: %s", diag.text);
  cuda_fake_fail_launch(719);
  tap_is_int(enqueue(f, x, 4, 3), SNT_E_DEVICE_LOST, "a launch that failed loses the device");
  cuda_fake_fail_launch(0);
  tap_is_int(enqueue(f, x, 4, 3), SNT_E_DEVICE_LOST, "for good");
}

/* What is copied is there when the call returns: the stream is waited for, where there is something to copy. */
static void check_copies(const fixture *f) {
  const float three[3] = {3, 4, 5};
  float back[3] = {0};
  const uint32_t before = cuda_fake.waits;
  tap_is_int(snt_buffer_upload(f->stream, f->buffers[0], 8, three, sizeof three, &diag), SNT_OK, "up %s", diag.text);
  tap_is_int(snt_buffer_download(f->stream, f->buffers[0], 8, back, sizeof back, &diag), SNT_OK, "down %s", diag.text);
  tap_ok(!memcmp(back, three, sizeof back) && cuda_fake.waits == before + 2, "what went up comes down, and each was waited for");
  tap_is_int(snt_buffer_upload(f->stream, f->buffers[0], 8, three, 0, &diag), SNT_OK, "nothing, up %s", diag.text);
  tap_ok(cuda_fake.waits == before + 2, "which needs no wait");
  tap_is_int(snt_buffer_download(f->stream, f->buffers[0], 8 * 16 * 4 - 8, back, sizeof back, &diag), SNT_E_ARG, "past the end: %s",
             diag.text);
}

/* The host's stream is let go as it is: nobody waits for what the host has put there. */
static void end_stream(const fixture *f) {
  const uint32_t waits = cuda_fake.waits;
  snt_stream_destroy(f->stream);
  tap_ok(cuda_fake.waits == waits, "the host's stream is not waited for when it is let go");
}

static void check_device(snt_context *c, fixture *f) {
  const size_t bytes[] = {8 * 16 * 4, 64, 64};
  const int64_t most = 8;
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .max_symbols = &most, .symbol_count = 1};
  snt_exec *x = NULL, *unbounded = NULL;
  snt_buffer *b = NULL;
  tap_is_int(snt_cuda_stream(f->device, cuda_fake_stream(), &f->stream, &diag), SNT_OK, "the host's stream");
  for (int i = 0; i < 3; i++) {
    f->at[i] = aligned_alloc(256, (bytes[i] + 255) / 256 * 256);
    tap_is_int(snt_cuda_buffer(f->device, (uintptr_t)f->at[i], bytes[i], &f->buffers[i], &diag), SNT_OK, "the host's memory");
  }
  tap_is_int(snt_cuda_buffer(f->device, (uintptr_t)f->at[0] + 4, 64, &b, &diag), SNT_E_ARG, "unaligned: %s", diag.text);
  tap_is_int(snt_cuda_buffer(f->device, 0, 64, &b, &diag), SNT_E_ARG, "no memory: %s", diag.text);
  f->program = api_compile_text(c, f->device, text, &diag);
  tap_ok(f->program != NULL, "compile %s", diag.text);
  tap_is_int(snt_exec_create(f->device, f->program, &info, &x, &diag), SNT_OK, "exec");
  check_nothing(c, f->device, x, f->stream);
  check_copies(f);
  check_runs(f, x);
  tap_is_int(snt_exec_create(f->device, f->program, NULL, &unbounded, &diag), SNT_OK, "an exec without max_symbols");
  tap_is_int(snt_exec_prepare(unbounded, &diag), SNT_OK, "its jobs");
  const snt_result r = enqueue(f, unbounded, 4, 3);
  tap_ok(r == SNT_E_LIMIT || r == SNT_OK, "runs where it needs no scratch, or would take memory: %s", diag.text);
  check_lost(f, x);
  snt_exec_destroy(unbounded);
  snt_exec_destroy(x);
  snt_program_destroy(f->program);
  end_stream(f);
  for (int i = 0; i < 3; i++) snt_buffer_destroy(f->buffers[i]), free(f->at[i]);
}

/* A product whose panels are more local memory than arrays may have: the launch gives it, of a program that was saved and loaded too. */
static void run_large(snt_device *d, snt_exec *x, snt_stream *s) {
  enum { SIDE = 512, TERMS = 128, ONE = 0x3c00, TERMS_AS_F16 = 0x5800, TWICE = 0x400 };
  const size_t bytes[] = {2 * SIDE * TERMS, 2 * SIDE * TERMS, 2 * SIDE * SIDE};
  uint16_t *at[3];
  snt_argument given[3];
  const uint32_t before = cuda_fake.dynamic;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < 3; i++) {
    given[i] = (snt_argument){.port = i};
    at[i] = aligned_alloc(256, bytes[i]);
    tap_is_int(snt_cuda_buffer(d, (uintptr_t)at[i], bytes[i], &given[i].buffer, &diag), SNT_OK, "memory");
  }
  for (uint32_t i = 0; i < SIDE * TERMS; i++) at[0][i] = (uint16_t)(ONE + TWICE * (i / TERMS % 4)), at[1][i] = ONE;
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = given};
  const snt_cuda_enqueue_info info = {.head = SNT_HEAD(cuda_enqueue_info), .run = &run};
  tap_is_int(snt_exec_prepare(x, &diag), SNT_OK, "its kernel is built %s", diag.text);
  tap_is_int(snt_cuda_enqueue(x, s, &info, &diag), SNT_OK, "and runs %s", diag.text);
  for (uint32_t i = 0; i < SIDE * SIDE; i++) wrong += at[2][i] != TERMS_AS_F16 + TWICE * (i / SIDE % 4);
  tap_is_int((int)wrong, 0, "all results are right");
  tap_is_int((int)(cuda_fake.dynamic - before), 1, "with local memory that the launch gives");
  for (uint32_t i = 0; i < 3; i++) snt_buffer_destroy(given[i].buffer), free(at[i]);
}

static void check_large(snt_context *c) {
  const snt_cuda_attach_info attach = {.head = SNT_HEAD(cuda_attach_info), .context = cuda_fake_context(), .get_proc = cuda_fake_proc};
  static const char product[] = "graph @product(%x: f16[512,128], %w: f16[128,512]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n";
  snt_device *d = NULL;
  snt_stream *s = NULL;
  size_t size = 0;
  tap_is_int(snt_cuda_attach(c, &attach, &d, &diag), SNT_OK, "attach %s", diag.text);
  snt_program *p = api_compile_text(c, d, product, &diag), *loaded = NULL;
  tap_is_int(snt_cuda_stream(d, cuda_fake_stream(), &s, &diag), SNT_OK, "the host's stream");
  tap_is_int(snt_program_save(p, NULL, &size), SNT_INCOMPLETE, "a product is saved");
  void *blob = malloc(size);
  tap_is_int(snt_program_save(p, blob, &size), SNT_OK, "as so many bytes");
  tap_is_int(snt_program_load(c, blob, size, &loaded, &diag), SNT_OK, "and loaded %s", diag.text);
  for (uint32_t i = 0; i < 2; i++) {
    snt_exec *x = NULL;
    tap_is_int(snt_exec_create(d, i ? loaded : p, NULL, &x, &diag), SNT_OK, "an exec %s", diag.text);
    run_large(d, x, s);
    snt_exec_destroy(x);
  }
  free(blob);
  snt_program_destroy(loaded);
  snt_program_destroy(p);
  snt_stream_destroy(s);
  snt_device_destroy(d);
}

/* A compiler that is older than the device makes what the driver compiles. */
static void check_younger(snt_context *c) {
  const snt_cuda_attach_info info = {.head = SNT_HEAD(cuda_attach_info), .context = cuda_fake_context(), .get_proc = cuda_fake_proc};
  static const struct {
    int major;
    const char *target;
    bool portable;
  } cases[] = {{8, "--gpu-architecture=sm_80", false}, {9, "--gpu-architecture=sm_90", false}, {12, "--gpu-architecture=compute_90", true}};
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snt_device *d = NULL;
    snt_exec *x = NULL;
    const uint32_t before = cuda_fake.portable;
    cuda_fake_major = cases[i].major;
    tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_OK, "attach to a device of %d.0 %s", cases[i].major, diag.text);
    snt_program *p = api_compile_text(c, d, text, &diag);
    tap_is_int(snt_exec_create(d, p, NULL, &x, &diag), SNT_OK, "an exec %s", diag.text);
    tap_is_int(snt_exec_prepare(x, &diag), SNT_OK, "its kernels are built %s", diag.text);
    tap_ok(!strcmp(cuda_fake.target, cases[i].target), "for %s: %s", cases[i].target, cuda_fake.target);
    tap_is_int(cuda_fake.portable > before, cases[i].portable, "%s", cases[i].portable ? "as PTX" : "as a cubin");
    snt_exec_destroy(x);
    snt_program_destroy(p);
    snt_device_destroy(d);
  }
  cuda_fake_major = 0;
}

/* What the driver says of a device stands in its profile; what it does not say is that of the profile by its name. */
static void check_facts(snt_context *c) {
  const snt_cuda_attach_info info = {.head = SNT_HEAD(cuda_attach_info), .context = cuda_fake_context(), .get_proc = cuda_fake_proc};
  static const struct {
    bool integrated;
    const char *device, *name, *clock, *cache, *memory;
  } cases[] = {{false, "fake", "dgpu", "\nghz = 1.5 GHz\n", "\nl2_bytes = 4194304 B\n", "\ndram_gbs = 1399.68 GB/s\n"},
               {false, "NVIDIA H200", "h200", "\nghz = 1.5 GHz\n", "\nl2_bytes = 4194304 B\n", "\ndram_gbs = 1399.68 GB/s\n"},
               {true, "fake", "igpu", NULL, NULL, NULL}};
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snt_device *d = NULL;
    snt_profile *p = NULL;
    snt_device_info about = {.head = SNT_HEAD(device_info)};
    char said[8192] = "", *where = said;
    size_t room = sizeof said;
    cuda_fake_integrated = cases[i].integrated, cuda_fake_name = cases[i].device;
    tap_is_int(snt_cuda_attach(c, &info, &d, &diag), SNT_OK, "attach %s", diag.text);
    tap_is_int(snt_device_get_info(d, &about), SNT_OK, "what it is");
    tap_ok(!strcmp(about.profile, cases[i].name), "of the class %s: %s", cases[i].name, about.profile);
    tap_is_int(snt_device_profile(d, &p), SNT_OK, "its profile");
    tap_is_int(snt_profile_print(p, where, &room), SNT_OK, "as text");
    tap_ok(cases[i].clock ? strstr(said, cases[i].clock) != NULL : !strstr(said, "\nghz = 0 GHz\n"), "the clock, if it is said");
    tap_ok(cases[i].cache ? strstr(said, cases[i].cache) != NULL : !strstr(said, "\nl2_bytes = 0 B\n"), "the cache, if it is said");
    tap_ok(cases[i].memory ? strstr(said, cases[i].memory) != NULL : !strstr(said, "\ndram_gbs = 0 GB/s\n"), "the memory, if it is said");
    snt_profile_destroy(p);
    snt_device_destroy(d);
  }
  cuda_fake_integrated = false, cuda_fake_name = "fake";
}

int main(void) {
  api_memory memory = {0};
  if (!cuda_fake_open()) {
    printf("TAP version 13\n1..0 # SKIP no C++ compiler\n");
    return 0;
  }
  snt_context *c = api_context(&memory);
  fixture f = {.memory = &memory};
  const snt_cuda_attach_info info = {.head = SNT_HEAD(cuda_attach_info), .context = cuda_fake_context(), .get_proc = cuda_fake_proc};
  check_attach(c);
  tap_is_int(snt_cuda_attach(c, &info, &f.device, &diag), SNT_OK, "attach %s", diag.text);
  check_device(c, &f);
  check_large(c);
  check_younger(c);
  check_facts(c);
  snt_device_destroy(f.device);
  snt_context_destroy(c);
  tap_ok(cuda_fake.allocations == cuda_fake.frees && cuda_fake.modules == cuda_fake.unloads && cuda_fake.streams == cuda_fake.stream_ends,
         "what was made in the host's context is gone from it");
  tap_is_int((int)cuda_fake.releases, 0, "which stays the host's");
  tap_is_int((int)memory.live, 0, "and nothing stays behind in the process");
  cuda_fake_close();
  return tap_done();
}
