/* sinter inspect-kernel: the figures of inspect_kernel.c as a table, as JSON, and of one kernel access by access. */
#include "tools/sinter/inspect_kernel.h"
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 4 };

static double a_group(const inspect_figures *f, uint64_t count) { return (double)count / (double)f->sampled; }

static double excess(uint64_t actual, uint64_t ideal) { return ideal ? (double)actual / (double)ideal : 1; }

static double intensity(const inspect_figures *f) { return f->bytes > 0 ? f->flops / f->bytes : 0; }

static double barriers(const inspect_figures *f) {
  double count = 0;
  for (uint32_t i = 1; i < f->kernel->insts.count; i++)
    if (kir_at(f->kernel, i)->op == KIR_barrier) count += (double)f->insts[i].runs;
  return count / ((double)f->items * (double)f->sampled);
}

static void print_table(const inspect_figures *list, uint32_t count) {
  printf("%-22s %9s %5s %5s %7s %12s %7s %10s %8s %11s  instructions an item\n", "kernel", "groups", "items", "words", "local B", "sectors",
         "/ideal", "conflicts", "barriers", "flop/byte");
  for (uint32_t i = 0; i < count; i++) {
    const inspect_figures *f = &list[i];
    printf("%-22s %9llu %5u %5u %7llu %12.0f %7.3f %10.1f %8.1f %11.2f ", f->name, (unsigned long long)f->groups, f->items, f->live_words,
           (unsigned long long)f->local_bytes, a_group(f, f->stats.transactions),
           excess(f->stats.transactions, f->stats.ideal_transactions), a_group(f, f->stats.bank_conflicts), barriers(f), intensity(f));
    for (uint32_t m = 0; m < MIX_COUNT; m++)
      if (f->mix[m] > 0) printf(" %s %.0f", inspect_mix_names[m], f->mix[m]);
    printf("\n");
  }
  printf("sectors (32 bytes that 32 neighbouring items touch at once) and conflicts (more rounds than 32 banks of 4 bytes need) are those "
         "of a group\n");
}

static void print_json(const inspect_figures *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const inspect_figures *f = &list[i];
    printf("%s{\"kernel\": \"%s\", \"kind\": \"%s\", \"groups\": %llu, \"sampled\": %llu, \"items\": %u, \"live_words\": %u, "
           "\"local_bytes\": %llu, ",
           i ? "  " : "[\n  ", f->name, f->kind, (unsigned long long)f->groups, (unsigned long long)f->sampled, f->items, f->live_words,
           (unsigned long long)f->local_bytes);
    printf("\"sectors\": %.1f, \"ideal_sectors\": %.1f, \"excess\": %.4f, \"conflicts\": %.1f, \"barriers\": %.1f, \"flops\": %.0f, "
           "\"bytes\": %.0f, "
           "\"intensity\": %.3f, \"mix\": {",
           a_group(f, f->stats.transactions), a_group(f, f->stats.ideal_transactions),
           excess(f->stats.transactions, f->stats.ideal_transactions), a_group(f, f->stats.bank_conflicts), barriers(f), f->flops, f->bytes,
           intensity(f));
    for (uint32_t m = 0; m < MIX_COUNT; m++) printf("%s\"%s\": %.1f", m ? ", " : "", inspect_mix_names[m], f->mix[m]);
    printf("}}%s", i + 1 < count ? ",\n" : "\n]\n");
  }
  if (!count) printf("[]\n");
}

/* Every access to global and local memory, where it stands in the code. */
static void print_accesses(const inspect_figures *f) {
  static const char *const spaces[] = {[KIR_GLOBAL] = "global",   [KIR_IMAGE] = "image",     [KIR_LOCAL] = "local",
                                       [KIR_PRIVATE] = "private", [KIR_SCRATCH] = "scratch", [KIR_CONSTANT] = "const"};
  uint32_t depth = 0;
  printf("%s: accesses of a group\n  %-6s %-12s %-10s %-8s %-6s %10s %12s %7s %10s\n", f->name, "inst", "operation", "memory", "space",
         "loops", "items", "sectors", "/ideal", "conflicts");
  for (uint32_t i = 1; i < f->kernel->insts.count; i++) {
    const kir_inst *in = kir_at(f->kernel, i);
    if (in->op == KIR_loop) depth++;
    if (in->op == KIR_end && kir_at(f->kernel, in->index)->op == KIR_loop) depth--;
    if (!(kir_ops[in->op].flags & KIR_MEM)) continue;
    const kir_memory *m = &f->kernel->memories.at[in->index];
    const kir_interp_inst *own = &f->insts[i];
    if (m->space == KIR_PRIVATE || m->space == KIR_CONSTANT) continue;
    printf("  %%%-5u %-12s %-10s %-8s %-6u %10.0f %12.1f %7.3f %10.1f\n", i, kir_ops[in->op].name, m->name, spaces[m->space], depth,
           a_group(f, own->runs), a_group(f, own->transactions), excess(own->transactions, own->ideal_transactions),
           a_group(f, own->bank_conflicts));
  }
}

static uint32_t target_of(const snt_profile *profile) {
  for (uint32_t t = 0; t < API_TARGETS; t++)
    if (!strcmp(api_targets[t].name, profile->profile.target)) return api_targets[t].bit;
  return SNT_TARGET_HOST;
}

int command_inspect_kernel(const tool_options *options) {
  tool_session s;
  tool_options own = *options;
  own.quiet = true;
  inspect_figures *list = NULL;
  uint32_t count = 0;
  snt_result r = tool_open(&s, &own, options->device != NULL);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  if (r == SNT_OK) r = tool_compile(&s, target_of(s.profile));
  if (r == SNT_OK) r = inspect_steps(&s, options->kernel, options->sample ? options->sample : SAMPLE, &list, &count);
  if (r == SNT_OK && options->kernel && !count)
    r = host_fail(&s.diag, SNT_E_ARG, "inspect", "no kernel that runs is named \"%s\"", options->kernel);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  if (r == SNT_OK && options->json) print_json(list, count);
  else if (r == SNT_OK) print_table(list, count);
  for (uint32_t i = 0; r == SNT_OK && options->kernel && !options->json && i < count; i++) print_accesses(&list[i]);
  inspect_free(list, count);
  tool_close(&s);
  return code;
}
