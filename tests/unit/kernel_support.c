/* Helpers of the kernel IR tests. */
#include "tests/unit/kernel_support.h"
#include <stdio.h>

char *kernel_read_file(ir_arena *arena, const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    printf("# %s cannot be opened\n", path);
    return NULL;
  }
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char *text = ir_arena_take(arena, (size_t)size + 1, 1);
  *length = text ? fread(text, 1, (size_t)size, file) : 0;
  fclose(file);
  return text;
}

bool kernel_from_text(kir_kernel *k, ir_arena *arena, const char *text) {
  snt_diag diag = {0};
  kir_init(k, arena, "unnamed");
  if (kir_parse(k, text, strlen(text), &diag) || kir_verify(k, NULL, &diag)) {
    printf("# %s\n", diag.text);
    return false;
  }
  return true;
}

bool kernel_from_golden(kir_kernel *k, ir_arena *arena, const char *name) {
  char path[256];
  size_t length;
  snprintf(path, sizeof path, "tests/golden/kernel/%s.kir", name);
  const char *text = kernel_read_file(arena, path, &length);
  return text && kernel_from_text(k, arena, text);
}

char *kernel_print(const kir_kernel *k) {
  ir_text text;
  ir_text_init(&text, k->arena);
  kir_print(k, &text);
  return text.failed ? NULL : text.at;
}

void kernel_dispatch_init(kernel_dispatch *d, const kir_kernel *k, uint64_t groups) {
  memset(d, 0, sizeof *d);
  d->info = (kir_interp_info){
      .kernel = k, .groups = groups, .buffers = d->buffers, .images = d->images, .scalars = d->block, .scalar_bytes = sizeof d->block};
}

void kernel_dispatch_buffer(kernel_dispatch *d, void *data, uint64_t bytes) {
  d->buffers[d->info.buffer_count++] = (kir_interp_buffer){data, bytes};
}

void kernel_dispatch_scalar(kernel_dispatch *d, const char *name, double value) {
  const kir_kernel *k = d->info.kernel;
  for (uint32_t i = 0; i < k->scalars.count; i++)
    if (!strcmp(k->scalars.at[i].name, name)) ir_dtype_store(k->scalars.at[i].type.base, d->block + k->scalars.at[i].offset, 0, value);
}

snt_result kernel_dispatch_run(kernel_dispatch *d) { return kir_interp_run(&d->info, NULL, &d->stats, &d->diag); }

float kernel_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(int32_t)(*state >> 8) / 8388608.0f - 1;
}

void kernel_numbers(float *to, size_t count, uint32_t seed) {
  for (size_t i = 0; i < count; i++) to[i] = kernel_number(&seed);
}
