/* Mutated kernels: whatever the text or the tables say, parser, verifier, printer and interpreter answer and do not crash, and what was
   accepted prints to a fixed point. The first argument is the number of mutants (default 3000), the second the seed. */
#include "tests/unit/kernel_support.h"
#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"

static const char *const names[] = {"chain10",   "softmax_rows", "softmax_group", "linear_gelu",   "matmul_texel", "post",
                                    "attention", "kv_append",    "tonemap",       "gemm_gelu_f16", "every_float",  "every_integer",
                                    "control",   "fragments",    "narrow",        "pictures"};
enum { MAX_TEXT = 16384, BUFFER = 16384, ROOM = 1 << 16 };
static char sources[IR_COUNT(names)][MAX_TEXT];
static uint8_t memory[16][ROOM];
static uint32_t accepted, verified, ran;

/* Large extents become 4096 elements, so that mutants get to run. */
static void shrink(char *to, const char *from) {
  size_t length = 0;
  while (*from && length < MAX_TEXT - 8) {
    size_t digits = strspn(from, "0123456789");
    if (digits >= 5 && length && (to[length - 1] == '[' || to[length - 1] == ' ')) {
      length += (size_t)sprintf(to + length, "4096");
      from += digits;
    } else if (digits) {
      while (digits-- && length < MAX_TEXT - 8) to[length++] = *from++;
    } else {
      to[length++] = *from++;
    }
  }
  to[length] = 0;
}

static const char *const words[] = {"0",      "1",      "-1",    "4294967295", "inf", "nan", "lowest", "0x1p+0",        "f32",
                                    "i64",    "u8",     "f16x4", "boolx3",     "{",   "}",   "yield",  "barrier local", "loop",
                                    "if",     "else",   "load",  "store",      "%0",  "%1",  "%9",     "%20",           "frag<c,f32>",
                                    "rolled", "carry(", "\n",    "align=64",   "[",   "]"};

/* ---- mutations of the tables: what no parser would build ---- */
static void mutate_tables(kir_kernel *k, uint64_t *state) {
  kir_inst *in = kir_at(k, fuzz_dice(state, k->insts.count));
  switch (fuzz_dice(state, 9)) {
  case 0: in->op = (uint16_t)fuzz_dice(state, KIR_OP_COUNT + 3); break;
  case 1:
    in->type = (kir_type){(uint8_t)fuzz_dice(state, 20), (uint8_t)fuzz_dice(state, 18),
                          (uint8_t)(fuzz_dice(state, 8) ? 0 : fuzz_dice(state, 5))};
    break;
  case 2: in->arg_count = (uint16_t)fuzz_dice(state, 6); break;
  case 3: in->args = fuzz_dice(state, k->args.count + 4); break;
  case 4: in->index = fuzz_dice(state, 8) ? fuzz_dice(state, 8) : fuzz_dice(state, k->insts.count); break;
  case 5: in->imm.i = (int64_t)fuzz_dice(state, 64) - 32; break;
  case 6:
    if (k->args.count) k->args.at[fuzz_dice(state, k->args.count)] = fuzz_dice(state, k->insts.count + 2);
    break;
  case 7:
    in->lanes = (int32_t)fuzz_dice(state, 40) - 4, in->align = (uint16_t)fuzz_dice(state, 65), in->flags = (uint16_t)fuzz_dice(state, 32);
    break;
  default:
    if (k->memories.count) {
      kir_memory *m = &k->memories.at[fuzz_dice(state, k->memories.count)];
      m->dims[fuzz_dice(state, 4)] = fuzz_dice(state, 5000), m->rank = (uint8_t)fuzz_dice(state, 6),
                               m->space = (uint8_t)fuzz_dice(state, 7), m->type.lanes = (uint8_t)fuzz_dice(state, 5);
    }
  }
}

/* ---- what is done with each ---- */
static void bind(kernel_dispatch *d, const kir_kernel *k, uint64_t *state) {
  kernel_dispatch_init(d, k, 2);
  d->info.buffer_count = 16;
  d->info.step_limit = 20000;
  d->info.subgroup_size = 1 + fuzz_dice(state, 8);
  for (uint32_t i = 0; i < 16; i++) {
    d->buffers[i] = (kir_interp_buffer){memory[i], BUFFER};
    d->images[i] = (kir_interp_image){memory[i], 8, 8, 4, SNT_U8};
  }
  for (uint32_t i = 0; i < k->memories.count; i++) { /* images as their formats want them */
    const kir_memory *m = &k->memories.at[i];
    if (m->space != KIR_IMAGE || m->slot >= 16) continue;
    const bool word = !strcmp(m->format, "r32ui") || !strcmp(m->format, "rgb10a2"), half = !strcmp(m->format, "rgba16f");
    d->images[m->slot].channels = word ? 1 : 4;
    d->images[m->slot].dtype = word ? SNT_U32 : half ? SNT_F16 : SNT_U8;
  }
  for (uint32_t i = 0; i < k->scalars.count; i++)
    if (k->scalars.at[i].offset <= 120)
      ir_dtype_store(k->scalars.at[i].type.base, d->block + k->scalars.at[i].offset, 0, 1 + fuzz_dice(state, 8));
}

static bool prints_to_fixed_point(const kir_kernel *k, ir_arena *arena) {
  kir_kernel again;
  snt_diag diag = {0};
  const char *text = kernel_print(k);
  kir_init(&again, arena, "again");
  if (!text || kir_parse(&again, text, strlen(text), &diag)) {
    printf("# %s\n", diag.text);
    tap_diag_text(text ? text : "");
    return false;
  }
  const char *twice = kernel_print(&again);
  if (twice && !strcmp(text, twice)) return true;
  tap_diag_first_difference(twice ? twice : "", text);
  return false;
}

static bool use(kir_kernel *k, ir_arena *arena, uint64_t *state) {
  snt_diag diag = {0};
  kernel_dispatch d;
  ir_text errors;
  ir_text_init(&errors, arena);
  if (kir_verify(k, &errors, &diag)) return errors.length > 0;
  verified++;
  if (!prints_to_fixed_point(k, arena)) return false;
  bind(&d, k, state);
  if (kir_interp_run(&d.info, NULL, &d.stats, &d.diag) == SNT_OK) ran++;
  return true;
}

static bool try_mutant(uint64_t *state) {
  static char text[MAX_TEXT];
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  strcpy(text, sources[fuzz_dice(state, IR_COUNT(names))]);
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "mutant");
  const bool tables = fuzz_dice(state, 3) == 0;
  for (uint32_t n = tables ? 0 : 1 + fuzz_dice(state, 3); n; n--) fuzz_mutate_text(text, sizeof text, words, IR_COUNT(words), state);
  bool fine = true;
  if (kir_parse(&k, text, strlen(text), &diag) == SNT_OK) {
    accepted++;
    for (uint32_t n = tables ? 1 + fuzz_dice(state, 2) : 0; n; n--) mutate_tables(&k, state);
    fine = use(&k, &arena, state);
  } else {
    fine = diag.result == SNT_E_PARSE && diag.text[0];
  }
  ir_arena_free(&arena);
  return fine;
}

int main(int argc, char **argv) {
  const uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 3000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  uint32_t bad = 0;
  for (uint32_t i = 0; i < IR_COUNT(names); i++) {
    ir_arena arena;
    char path[256];
    size_t length;
    ir_arena_init(&arena, NULL);
    snprintf(path, sizeof path, "tests/golden/kernel/%s.kir", names[i]);
    const char *text = kernel_read_file(&arena, path, &length);
    if (!tap_ok(text && length < MAX_TEXT - 64, "%s can be read", path)) return tap_done();
    shrink(sources[i], text);
    ir_arena_free(&arena);
  }
  for (uint32_t i = 0; i < 16; i++) kernel_numbers((float *)memory[i], ROOM / 4, i + 1);
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t before = state;
    if (!try_mutant(&state) && bad++ < 5) tap_diag("mutant of seed %llu is mistreated", (unsigned long long)before);
  }
  tap_is_int(bad, 0, "%u mutants: errors are explained, accepted text prints to a fixed point", count);
  tap_ok(verified > count / 20 && ran > count / 100, "enough mutants get far: %u parsed, %u verified, %u ran to the end", accepted,
         verified, ran);
  return tap_done();
}
