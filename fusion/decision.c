/* A decision record as one sentence: what was chosen, its numbers, and what would have to be otherwise for the other choice. */
#include "fusion/fusion.h"

const char *const fusion_kind_names[GROUP_KIND_COUNT] = {[GROUP_NONE] = "none",
                                                         [GROUP_LOOP] = "loop",
                                                         [GROUP_IMAGE] = "image",
                                                         [GROUP_REDUCE] = "reduce",
                                                         [GROUP_ROW] = "row",
                                                         [GROUP_CONTRACT] = "contract",
                                                         [GROUP_WINDOW] = "window",
                                                         [GROUP_TRANSPOSE] = "transpose",
                                                         [GROUP_SCAN] = "scan",
                                                         [GROUP_SORT] = "sort",
                                                         [GROUP_REPEAT] = "repeat",
                                                         [GROUP_SCATTER] = "scatter",
                                                         [GROUP_ATTENTION] = "attention",
                                                         [GROUP_OPAQUE] = "opaque"};

static const char *const kind_words[GROUP_KIND_COUNT] = {[GROUP_NONE] = "nothing",
                                                         [GROUP_LOOP] = "an elementwise loop",
                                                         [GROUP_REDUCE] = "a reduction",
                                                         [GROUP_ROW] = "a kernel of rows",
                                                         [GROUP_CONTRACT] = "a contraction",
                                                         [GROUP_WINDOW] = "a stencil",
                                                         [GROUP_TRANSPOSE] = "a transpose",
                                                         [GROUP_SCAN] = "a scan",
                                                         [GROUP_SCATTER] = "a scatter",
                                                         [GROUP_IMAGE] = "an image",
                                                         [GROUP_REPEAT] = "a loop of kernels",
                                                         [GROUP_SORT] = "a sort",
                                                         [GROUP_OPAQUE] = "a kernel of the user's own",
                                                         [GROUP_ATTENTION] = "attention"};

static double us(double ns) { return ns / 1e3; }
static bool is(const fusion_decision *d, const char *rule) { return !strcmp(d->rule, rule); }

/* What stands in the way of one kernel, where it is not its price. */
static void write_obstacle(const fusion_decision *d, ir_text *out) {
  static const struct {
    const char *rule, *sentence;
  } table[] = {{"cycle", "another kernel lies on a path between the two: one kernel would wait for itself"},
               {"never_fuse", "never_fuse keeps them apart"},
               {"barrier", "a barrier lies between them"},
               {"must_fuse", "must_fuse holds it where it is"},
               {"unfused", "compiled without fusing"},
               {"size", "one kernel would hold more operators than its price is worth looking at"},
               {"nothing stored", "one kernel would store nothing"},
               {"reads more", "what it is computed from is larger than what would not be stored"}};
  for (uint32_t i = 0; i < IR_COUNT(table); i++)
    if (is(d, table[i].rule)) {
      ir_text_add(out, table[i].sentence);
      return;
    }
  if (is(d, "bindings") && d->form == DECISION_RECOMPUTE)
    ir_text_format(out, "a kernel that computed it again would have %u bindings; this device has %u", d->count, d->limit);
  else if (is(d, "bindings")) ir_text_format(out, "would fuse with %u bindings; this device has %u", d->count, d->limit);
  else if (is(d, "kind") && d->kinds[0] && d->kinds[1])
    ir_text_format(out, "no kernel is %s and then %s", kind_words[d->kinds[0]], kind_words[d->kinds[1]]);
  else ir_text_format(out, "no one kernel: %s", d->rule);
}

static void write_pair(const fusion_decision *d, ir_text *out) {
  if (!d->taken && !is(d, "loses")) {
    write_obstacle(d, out);
    return;
  }
  if (is(d, "only reader") || is(d, "first reader")) {
    ir_text_add(out,
                is(d, "only reader") ? "one kernel: nothing else reads it" : "one kernel: small, and whatever else reads it comes later");
    return;
  }
  if (d->taken) ir_text_add(out, is(d, "must_fuse") ? "one kernel, as must_fuse says: " : "one kernel: ");
  else ir_text_add(out, "apart: ");
  ir_text_format(out, "%.2f us together, %.2f us apart; %.0f bytes less", us(d->ns_fused), us(d->ns_parts), d->bytes_saved);
  if (!d->taken) ir_text_format(out, "; would fuse if the one took %.2f us less", us(d->ns_fused - d->ns_parts));
}

static void write_whole(const fusion_decision *d, ir_text *out) {
  ir_text_format(out, "hyper-edge %s: ", d->what);
  if (d->ns_fused > 0)
    ir_text_format(out, "%s, %s %.2f us (%.2f us as one kernel, %.2f us apart; %.0f bytes less)", d->taken ? "taken" : "refused",
                   d->ns_parts >= d->ns_fused ? "saves" : "loses",
                   us(d->ns_parts > d->ns_fused ? d->ns_parts - d->ns_fused : d->ns_fused - d->ns_parts), us(d->ns_fused), us(d->ns_parts),
                   d->bytes_saved);
  else {
    ir_text_add(out, "refused: ");
    write_obstacle(d, out);
  }
}

static void write_recompute(const fusion_decision *d, ir_text *out) {
  if (is(d, "recompute") || is(d, "kept"))
    ir_text_format(out, "%s: %.2f us computed again in %u kernel%s, %.2f us stored once; %.0f bytes less", d->taken ? "recomputed" : "kept",
                   us(d->ns_fused), d->count, d->count > 1 ? "s" : "", us(d->ns_parts), d->bytes_saved);
  else {
    ir_text_add(out, "kept: ");
    write_obstacle(d, out);
  }
}

static void write_launch(const fusion_decision *d, ir_text *out) {
  if (d->taken)
    ir_text_format(out, "one launch of two independent kernels: %.2f us together, %.2f us apart", us(d->ns_fused), us(d->ns_parts));
  else if (is(d, "bindings")) ir_text_format(out, "two launches: would be one with %u bindings; this device has %u", d->count, d->limit);
  else ir_text_format(out, "two launches: %s", d->rule);
}

static void write_trips(const fusion_decision *d, ir_text *out) {
  const bool priced = d->taken || is(d, "loses");
  if (!priced) ir_text_format(out, "a loop of %u kernels: no one kernel goes through its trips: %s", d->count, d->rule);
  else
    ir_text_format(out, "%s: %.2f us for all trips in one kernel, %.2f us as %u launches a trip",
                   d->taken ? "one kernel" : "a loop of kernels", us(d->ns_fused), us(d->ns_parts), d->count);
}

void fusion_decision_text(const fusion_decision *d, ir_text *out) {
  switch ((decision_form)d->form) {
  case DECISION_PAIR: write_pair(d, out); break;
  case DECISION_WHOLE: write_whole(d, out); break;
  case DECISION_RECOMPUTE: write_recompute(d, out); break;
  case DECISION_LAUNCH: write_launch(d, out); break;
  case DECISION_BODY: ir_text_add(out, d->what); break;
  case DECISION_TRIPS: write_trips(d, out); break;
  }
}
