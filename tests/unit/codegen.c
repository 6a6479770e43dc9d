/* The code generators without a device. Golden files (tests/golden/codegen/NAME.txt: a kernel, then each target's code; --bless writes them
   anew), totality of every target's tables, the numbers of SPIR-V, and outside tools over the listings and every operation. */
#include "codegen_common/ctext.h"
#include "codegen_spirv/spv_private.h"
#include "tests/tap.h"
#include "tests/unit/codegen_support.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* SPIR-V twice: buffers bound by slot, and reached by their addresses (main fills it in). */
static kir_caps address_caps;
static codegen_target by_address;
static const codegen_target *const targets[] = {&codegen_opencl, &codegen_cuda, &codegen_spirv, &by_address};

/* ---- golden files: "==== kernel" and "==== <target>" head the parts ---- */
static char *disassemble(ir_arena *arena, const codegen_code *code) {
  char path[] = "/tmp/sinter-spv-XXXXXX";
  int status = 0;
  const int file = mkstemp(path);
  if (file < 0 || !codegen_write_file(path, code->data, code->size)) return NULL;
  char *text = codegen_command(arena, &status, "spirv-dis --raw-id --no-header %s 2>&1", path);
  remove(path);
  return status == 0 ? text : NULL;
}

static void put_part(ir_text *out, const kir_kernel *k, const codegen_target *t) {
  kir_kernel legal;
  codegen_code code = {0};
  snt_diag diag = {0};
  ir_text_format(out, "==== %s\n", t->name);
  if (codegen_make(k, t, out->arena, &legal, &code, &diag) != SNT_OK) ir_text_format(out, "%s: %s\n", diag.stage, diag.text);
  else if (t->bit != SNT_TARGET_SPIRV) ir_text_put(out, code.data, code.size);
  else {
    const char *text = disassemble(out->arena, &code);
    ir_text_add(out, text ? text : "spirv-dis failed\n");
  }
}

static const char *part(ir_arena *arena, const char *file, const char *name) {
  char head[48];
  snprintf(head, sizeof head, "==== %s\n", name);
  const char *at = strstr(file, head);
  if (!at) return "";
  at += strlen(head);
  const char *end = strstr(at, "\n==== ");
  return ir_arena_text(arena, at, end ? (size_t)(end + 1 - at) : strlen(at));
}

static void check_golden(const char *path, bool bless) {
  ir_arena arena;
  kir_kernel k;
  ir_text now;
  size_t length = 0;
  ir_arena_init(&arena, NULL);
  ir_text_init(&now, &arena);
  const char *file = kernel_read_file(&arena, path, &length);
  if (!tap_ok(file && kernel_from_text(&k, &arena, part(&arena, file, "kernel")), "%s holds a kernel", path)) return;
  ir_text_format(&now, "==== kernel\n%s", kernel_print(&k));
  const bool has_dis = codegen_has_tool("spirv-dis");
  if (!has_dis) tap_skip("%s: spirv-dis is not here", path);
  for (uint32_t i = 0; i < IR_COUNT(targets); i++)
    if (has_dis || targets[i]->bit != SNT_TARGET_SPIRV) put_part(&now, &k, targets[i]);
  if (bless && has_dis) codegen_write_file(path, now.at, now.length);
  tap_is_text(part(&arena, now.at, "kernel"), part(&arena, file, "kernel"), "%s: the kernel's text is canonical", path);
  for (uint32_t i = 0; i < IR_COUNT(targets); i++)
    if (has_dis || targets[i]->bit != SNT_TARGET_SPIRV)
      tap_is_text(part(&arena, now.at, targets[i]->name), part(&arena, file, targets[i]->name), "%s: %s", path, targets[i]->name);
  ir_arena_free(&arena);
}

static void check_all_golden(bool bless) {
  glob_t found;
  if (glob("tests/golden/codegen/*.txt", 0, NULL, &found) != 0) tap_bail_out("no golden files: run from the project's root");
  for (size_t i = 0; i < found.gl_pathc; i++) check_golden(found.gl_pathv[i], bless);
  globfree(&found);
}

/* ---- totality: every operation has a cell, or names the pass that removes it, or why the target cannot ---- */
static uint32_t count_parted(const dialect *d) { /* operations whose rows do not all lie beside each other */
  uint32_t parted = 0;
  for (uint32_t i = 0; i < d->cell_count; i++)
    for (uint32_t j = i + 2; j < d->cell_count; j++) parted += d->cells[i].op == d->cells[j].op && d->cells[j - 1].op != d->cells[j].op;
  return parted;
}

static void check_dialect(const dialect *d) {
  uint32_t missing = 0, levels = 0;
  dialect_index index;
  for (const dialect *at = d; at; at = at->base) {
    levels++;
    tap_is_int(count_parted(at), 0, "the rows of each operation in %s lie beside each other", at->name);
    tap_ok(at->cell_count <= UINT8_MAX, "and are few enough for an index of bytes");
  }
  tap_ok(levels <= CT_DIALECTS, "%s has no more bases than an index has levels", d->name);
  dialect_find_rows(d, &index);
  for (uint32_t op = 1; op < KIR_OP_COUNT; op++) {
    bool has = false;
    for (uint32_t i = 0; i < 2 * SNT_DTYPE_COUNT; i++)
      has |= dialect_cell(d, &index, (kir_op)op, i / 2, i % 2 ? CT_VECTOR : CT_SCALAR) != NULL;
    if (!has) missing++, tap_diag("%s has nothing for %s", d->name, kir_ops[op].name);
  }
  tap_is_int(missing, 0, "every operation has an entry in %s", d->name);
}

static void check_selection(void) {
  uint32_t missing = 0;
  const char *why;
  for (uint32_t op = 1; op < KIR_OP_COUNT; op++)
    if (!spv_isel_has((kir_op)op, &why)) missing++, tap_diag("spirv has nothing for %s", kir_ops[op].name);
  tap_is_int(missing, 0, "every operation has an entry in spirv");
}

/* ---- outside tools ---- */
typedef struct judged {
  const char *name, *target;
} judged;
static void check_verdict(void *user, const char *tool, int status, const char *said) {
  const judged *j = user;
  if (!said) tap_skip("%s: %s is not here", j->name, tool);
  else if (status && strstr(said, "capability operand: 6022")) tap_skip("%s: this %s is older than cooperative matrices", j->name, tool);
  else if (!tap_ok(status == 0, "%s: %s takes the %s code", j->name, tool, j->target)) tap_diag_text(said);
}

static void judge_kernel(const kir_kernel *k, const char *name) {
  for (uint32_t i = 0; i < IR_COUNT(targets); i++) {
    ir_arena arena;
    kir_kernel legal;
    codegen_code code;
    snt_diag diag = {0};
    ir_arena_init(&arena, NULL);
    const snt_result made = codegen_make(k, targets[i], &arena, &legal, &code, &diag);
    if (made == SNT_E_UNSUPPORTED) tap_skip("%s for %s: %s", name, targets[i]->name, diag.text);
    else if (tap_ok(made == SNT_OK, "%s becomes %s: %s", name, targets[i]->name, diag.text))
      codegen_judge(targets[i], &code, check_verdict, &(judged){name, targets[i]->name});
    ir_arena_free(&arena);
  }
}

static void judge_listings(void) {
  glob_t found;
  if (glob("tests/golden/kernel/*.kir", 0, NULL, &found) != 0) tap_bail_out("no listings");
  for (size_t i = 0; i < found.gl_pathc; i++) {
    ir_arena arena;
    kir_kernel k;
    size_t length;
    ir_arena_init(&arena, NULL);
    const char *text = kernel_read_file(&arena, found.gl_pathv[i], &length);
    if (tap_ok(text && kernel_from_text(&k, &arena, text), "%s is a kernel", found.gl_pathv[i])) judge_kernel(&k, k.name);
    ir_arena_free(&arena);
  }
  globfree(&found);
}

static void judge_cases(void) {
  static codegen_cases cases;
  static const struct {
    int32_t base;
    uint32_t lanes;
  } shapes[] = {{SNT_F32, 1}, {SNT_F32, 4}, {SNT_I32, 4}, {SNT_U32, 1}, {SNT_U32, 8}, {SNT_I64, 1}, {SNT_F64, 2}};
  for (uint32_t i = 0; i < IR_COUNT(shapes); i++) {
    char name[32];
    ir_arena arena;
    ir_arena_init(&arena, NULL);
    codegen_cases_make(&cases, &arena, shapes[i].base, shapes[i].lanes);
    snprintf(name, sizeof name, "operations on %s x%u", ir_dtypes[shapes[i].base].name, shapes[i].lanes);
    if (tap_ok(!cases.kernel.failed, "%s: %s", name, cases.kernel.first_error.text)) judge_kernel(&cases.kernel, name);
    ir_arena_free(&arena);
  }
}

/* ---- the numbers of SPIR-V: every `Name = value` of ours stands in the Khronos headers ---- */
static bool number_of(const char *header, const char *name, uint32_t *value) {
  const size_t n = strlen(name);
  for (const char *at = header; (at = strstr(at, name)) != NULL; at += n)
    if (at[n] == ' ' && at[n + 1] == '=' && (at == header || at[-1] == ' ')) return *value = (uint32_t)strtoul(at + n + 2, NULL, 0), true;
  return false;
}

static void check_numbers(void) {
  ir_arena arena;
  size_t length;
  uint32_t checked = 0, wrong = 0, value;
  ir_arena_init(&arena, NULL);
  const char *ours = kernel_read_file(&arena, "codegen_spirv/spv_codes.h", &length);
  const char *core = kernel_read_file(&arena, "/usr/include/spirv/unified1/spirv.h", &length);
  const char *glsl = kernel_read_file(&arena, "/usr/include/spirv/unified1/GLSL.std.450.h", &length);
  if (!core || !glsl) tap_skip("the SPIR-V headers are not here");
  for (const char *at = ours; at && core && glsl && (at = strpbrk(at, "SG")) != NULL;) {
    char name[80];
    const size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    at += n;
    if (strncmp(at, " = ", 3) != 0 || !strncmp(name, "SPV_", 4)) continue;
    checked++;
    if (number_of(core, name, &value) || number_of(glsl, name, &value)) {
      if (value == (uint32_t)strtoul(at + 3, NULL, 0)) continue;
    }
    if (n > 3 && !strcmp(name + n - 3, "KHR")) { /* these headers are older than the extension */
      tap_diag("%s is not in the SPIR-V headers here", name);
      continue;
    }
    wrong++, tap_diag("%s", name);
  }
  if (core && glsl) tap_ok(checked > 150 && wrong == 0, "%u numbers of SPIR-V are the specification's", checked);
  ir_arena_free(&arena);
}

/* ---- several kernels as one ---- */
static codegen_code opencl_code(ir_arena *arena, const char *name, kir_kernel *legal) {
  kir_kernel *k = IR_NEW(arena, kir_kernel);
  codegen_code code = {0};
  size_t length = 0;
  char path[64];
  snprintf(path, sizeof path, "tests/golden/codegen/%s.txt", name);
  const char *file = kernel_read_file(arena, path, &length);
  tap_ok(k && file && kernel_from_text(k, arena, part(arena, file, "kernel")) &&
             codegen_make(k, &codegen_opencl, arena, legal, &code, NULL) == SNT_OK,
         "%s as OpenCL", name);
  return code;
}

/* A kernel with f64 has no line that asks for denormals as zero, and takes it from those that it is chained to. */
static void check_chain_of_doubles(const codegen_code *other, const codegen_link *like, ir_arena *arena) {
  static const char ends[] = "#define SNT_CPU 1\n#endif\n", asks[] = "// -cl-denorms-are-zero\n";
  const char *head = strchr(other->data, '\n') + 1, *rest = strstr(head, ends) + sizeof ends - 1;
  ir_text text;
  ir_text_init(&text, arena);
  ir_text_put(&text, head, (size_t)(rest - head));
  ir_text_format(&text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n%s", rest);
  const codegen_code doubles = {text.at, text.length};
  codegen_link links[] = {*like, *like};
  codegen_code code = {0};
  for (uint32_t i = 0; i < 2; i++) {
    if (i) links[1].code = &doubles;
    tap_ok(codegen_opencl.chain(2, links, arena, &code, NULL) == SNT_OK && !strncmp(code.data, asks, sizeof asks - 1) == !i,
           i ? "one link of f64: the kernel keeps denormals" : "none: it asks for them as zero");
  }
}

static void check_chain(bool bless) {
  static const char path[] = "tests/golden/chain.cl";
  static const char *const alone[] = {"arrays", "row_sum", "image"}; /* a constant array, local memory, an image */
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  kir_kernel scale, halves, other;
  size_t length = 0;
  const codegen_code a = opencl_code(&arena, "scale", &scale), b = opencl_code(&arena, "halves", &halves);
  static const uint32_t slots[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const uint32_t of_a = kir_binding_count(&scale), of_b = kir_binding_count(&halves);
  const codegen_link first = {&a, slots, of_a, kir_block_bytes(&scale) / 4, false};
  const codegen_link links[] = {first,
                                {&b, slots + of_a, of_b, kir_block_bytes(&halves) / 4, false},
                                {&a, slots + 1, of_a, kir_block_bytes(&scale) / 4, true},
                                {&a, slots + 1, of_a, kir_block_bytes(&scale) / 4, true}};
  codegen_code code = {0};
  tap_ok(codegen_opencl.can_link(&a) && codegen_opencl.can_link(&b) &&
             codegen_opencl.chain(IR_COUNT(links), links, &arena, &code, NULL) == SNT_OK,
         "four links make a kernel, which share what they bind");
  if (bless) codegen_write_file(path, code.data, code.size);
  const char *want = kernel_read_file(&arena, path, &length);
  tap_is_text(code.data ? code.data : "", want ? want : "", "%s", path);
  for (uint32_t i = 0; i < IR_COUNT(alone); i++) {
    const codegen_code c = opencl_code(&arena, alone[i], &other);
    tap_ok(!codegen_opencl.can_link(&c), "%s is no link", alone[i]);
  }
  check_chain_of_doubles(&a, &links[0], &arena);
  const codegen_code own = {"float own(float x) { return x; }\n__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k() {\n", 99};
  tap_ok(!codegen_opencl.can_link(&own) && !codegen_opencl.can_link(&(codegen_code){"", 0}), "nor is a text with the user's own, nor none");
  ir_arena_free(&arena);
}

int main(int argc, char **argv) {
  const bool bless = argc > 1 && !strcmp(argv[1], "--bless");
  address_caps = spirv_caps, address_caps.address = true;
  by_address = codegen_spirv, by_address.name = "spirv by address", by_address.caps = &address_caps;
  check_all_golden(bless);
  check_chain(bless);
  check_dialect(&dialect_opencl);
  check_dialect(&dialect_cuda);
  check_selection();
  check_numbers();
  judge_listings();
  judge_cases();
  return tap_done();
}
