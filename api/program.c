/* snt_compile: graph -> plan by fusion, then each kernel legalised and printed for every wanted target.
   In: a graph (copied) and a profile. Out: an immutable program. On failure nothing is left. */
#include "api/explain_private.h"
#include "fusion/emit.h"
#include "fusion/narrow.h"

/* ---- the program owns a copy of the graph and shares its constants' data, so that it outlives it ---- */

static bool is_of(const ir_graph *g, const void *data) {
  for (uint32_t i = 0; i < g->consts.count; i++)
    if (g->consts.at[i].data == data) return true;
  return false;
}

/* What was made for the program alone is in its arena already. */
static snt_result copy_constants(snt_program *p, const ir_graph *given) {
  for (uint32_t n = 1; n < p->graph.nodes.count; n++) {
    const ir_node *node = ir_at(&p->graph, n);
    if (node->op != IR_OP_const) continue;
    ir_const *c = &p->graph.consts.at[node->payload];
    if (c->kind == IR_CONST_NORMAL || c->kind == IR_CONST_UNIFORM) c->data = NULL; /* made again, in our arena */
    if (c->kind != IR_CONST_DATA || !is_of(given, c->data)) continue;
    const size_t bytes = (size_t)ir_tensor_elements(&p->pool, &node->type) * ir_dtypes[node->type.dtype].bytes;
    c->data = api_store_data(p->store, c->data, bytes);
    if (!c->data) return SNT_E_HOST_MEM;
  }
  return SNT_OK;
}

const int32_t api_weight_types[] = {[SNT_WEIGHTS_F16] = SNT_F16, [SNT_WEIGHTS_I8] = SNT_I8};

/* Decisions and errors speak of the caller's values. */
static void note_origins(ir_graph *g, const uint32_t *map, uint32_t count) {
  for (uint32_t n = 1; n < count; n++)
    if (map[n] && !g->nodes.at[map[n]].origin) g->nodes.at[map[n]].origin = n;
}

/* With weights of fewer bytes. The numbers of `from` are those of the caller's values, and stay in `origin`. */
static snt_result copy_narrow(snt_program *p, const ir_graph *from, snt_diag *diag) {
  ir_arena temp;
  ir_graph given;
  uint32_t made = 0;
  ir_arena_init(&temp, &p->context->alloc);
  ir_graph_init(&given, &temp, &p->pool);
  uint32_t *map = IR_NEW_ARRAY(&temp, uint32_t, from->nodes.count);
  snt_result r = map ? ir_graph_copy_live(from, &given, map) : SNT_E_HOST_MEM;
  if (r == SNT_OK) note_origins(&given, map, from->nodes.count);
  if (r == SNT_OK) r = fusion_narrow(&given, &p->options, &p->graph, &made, diag);
  ir_arena_free(&temp);
  if (r == SNT_OK && !made)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "weights", 0,
                   "the graph has no weights to store as %s: no constant of 4096 numbers or more that are summed over",
                   ir_dtypes[p->options.weights].name);
  return r;
}

static snt_result copy_graph(snt_program *p, const snt_graph *g, snt_diag *diag) {
  uint32_t *map = IR_NEW_ARRAY(&p->arena, uint32_t, g->graph.nodes.count);
  if (!map || !expr_pool_copy(&p->pool, &p->arena, &g->pool)) return ir_no_memory(diag, "compile");
  ir_graph_init(&p->graph, &p->arena, &p->pool);
  snt_result r = SNT_OK;
  if (p->options.weights) {
    r = copy_narrow(p, &g->graph, diag);
  } else {
    r = ir_graph_copy_live(&g->graph, &p->graph, map);
    if (r == SNT_OK) note_origins(&p->graph, map, g->graph.nodes.count);
  }
  if (r == SNT_E_UNSUPPORTED) return r;
  /* the copy takes over the pointer; the text must be the program's own */
  p->graph.title = ir_arena_text(&p->arena, g->graph.title ? g->graph.title : "main", strlen(g->graph.title ? g->graph.title : "main"));
  p->store = api_store_hold(g->store);
  if (r == SNT_OK) r = p->graph.title ? copy_constants(p, &g->graph) : SNT_E_HOST_MEM;
  return r == SNT_OK ? r : ir_fail(diag, r, "compile", 0, "the graph could not be copied");
}

/* ---- hooks: dumps and progress in the public form ---- */

typedef struct dump_user {
  const snt_compile_info *info;
  snt_context *context;
  api_store *store;
} dump_user;

static void send(const dump_user *d, const char *stage, void (*print)(const void *, ir_text *), const void *what) {
  ir_arena temp;
  ir_text text;
  if (!d->info->dump) return;
  ir_arena_init(&temp, &d->context->alloc);
  ir_text_init(&text, &temp);
  print(what, &text);
  if (!text.failed) d->info->dump(d->info->user, stage, text.at, text.length);
  ir_arena_free(&temp);
}
static void print_graph(const void *g, ir_text *out) { ir_graph_print(g, out); }
static void print_kernel(const void *k, ir_text *out) { kir_print(k, out); }
static void print_plan(const void *p, ir_text *out) { plan_print(p, out); }
static void after_pass(void *user, const char *pass, const ir_graph *g, double ms) {
  (void)ms;
  send(user, pass, print_graph, g);
}
static void after_kernel(void *user, const char *name, const kir_kernel *k) { send(user, name, print_kernel, k); }
static int progress(void *user, const char *stage, double fraction) {
  const dump_user *d = user;
  return d->info->progress ? d->info->progress(d->info->user, stage, fraction) : 0;
}

static fusion_sizes *sizes(void *user, const void *data, uint64_t bytes) {
  return api_store_sizes(((const dump_user *)user)->store, data, bytes);
}

/* ---- kernels to code ---- */

/* Texts of the user's own that a generator does not print itself are compiled by the caller; the words are kept with the program. */
static snt_result compile_own(snt_program *p, const kir_kernel *source, uint32_t row, const codegen_target *t, const snt_compile_info *info,
                              snt_diag *diag) {
  kir_own *own = &source->owns.at[row];
  const uint32_t *words = NULL;
  size_t bytes = 0;
  ir_text text;
  if (!t->own_text || own->spirv || !own->source[KIR_OWN_GLSL] || !info->glsl) return SNT_OK;
  ir_text_init(&text, &p->arena);
  SNT_TRY(t->own_text(source, row, &text, diag));
  SNT_TRY(info->glsl(info->glsl_user, own->name, text.at, text.length, &words, &bytes, diag));
  if (!words || !bytes || bytes % sizeof *words)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "glsl", 0, "operator %s: its GLSL was compiled to nothing", own->name);
  uint32_t *kept = ir_arena_take(&p->arena, bytes, sizeof *words);
  if (!kept) return ir_no_memory(diag, "glsl");
  memcpy(kept, words, bytes);
  own->spirv = kept;
  own->spirv_bytes = bytes;
  return SNT_OK;
}

/* A driver that ends all loops of an item after so many trips gives wrong answers beyond; trips that only the run knows are one here. */
static snt_result check_trips(const snt_program *p, const kir_kernel *legal, snt_diag *diag) {
  kir_mix mix;
  if (!p->profile.max_trips) return SNT_OK;
  kir_count_mix(legal, 1, &mix);
  if (mix.trips <= p->profile.max_trips) return SNT_OK;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "codegen", 0,
                 "kernel %s: an item may make %.0f trips of its loops; the device ends them after %u", legal->name, mix.trips,
                 p->profile.max_trips);
}

static snt_result emit_target(snt_program *p, ir_arena scratch[2], uint32_t kernel, uint32_t target, const snt_compile_info *info,
                              snt_diag *diag) {
  const codegen_target *t = rt_codegen(api_targets[target].bit);
  const kir_kernel *source = p->plan.kernels.at[kernel].kernel;
  api_kernel *k = &p->kernels[kernel];
  kir_kernel *legal = IR_NEW(&p->arena, kir_kernel);
  if (!t) return ir_fail(diag, SNT_E_UNSUPPORTED, "codegen", 0, "this build has no generator for target %u", api_targets[target].bit);
  if (!legal) return ir_no_memory(diag, "codegen");
  kir_caps caps = p->profile.caps;
  rt_narrow_caps(&caps, t->caps);
  caps.target = t->name;
  if (!cost_permutes(&p->profile)) caps.permute = 0;
  if (info->flags & SNT_COMPILE_LINE_INFO) caps.about = explain_kernel(p, kernel);
  for (uint32_t row = 0; row < source->owns.count; row++) SNT_TRY(compile_own(p, source, row, t, info, diag));
  kir_init(legal, &p->arena, source->name);
  SNT_TRY(kir_run_passes_in(scratch, source, legal, &caps, NULL, NULL, diag));
  SNT_TRY(check_trips(p, legal, diag));
  legal->name = api_entry_name(legal->name);
  SNT_TRY(t->emit(legal, &caps, &p->arena, &k->code[target].code, diag));
  k->legal[target] = legal;
  k->block_bytes = kir_block_bytes(legal);
  k->binding_count = 0;
  for (uint32_t m = 0; m < legal->memories.count; m++)
    k->binding_count += legal->memories.at[m].space == KIR_GLOBAL || legal->memories.at[m].space == KIR_IMAGE;
  memcpy(k->items, legal->items, sizeof k->items);
  if (api_targets[target].bit != SNT_TARGET_SPIRV) return SNT_OK;
  if (k->binding_count > API_MAX_BINDINGS)
    return ir_fail(diag, SNT_E_LIMIT, "codegen", 0, "%s binds %u buffers and images", source->name, k->binding_count);
  k->sub = legal->sub;
  rt_slot_kinds(legal, k->binding_count, k->kinds);
  for (uint32_t m = 0; kir_address_at(legal, &caps) && m < legal->memories.count; m++)
    if (kir_is_addressed(&legal->memories.at[m], &caps)) k->kinds[legal->memories.at[m].slot] = RT_SLOT_ADDRESS;
  return SNT_OK;
}

/* Equal kernels are made once: a table of the first of each, by the hash of what was scheduled. */
typedef struct made_kernels {
  uint32_t *first, size; /* number + 1; 0: free */
  uint32_t *copied;      /* the same by where its instructions lie: equal groups have copies of one kernel (fusion/schedule/again.c) */
} made_kernels;

static bool same_name(const kir_kernel *a, const kir_kernel *b) { return !strcmp(api_entry_name(a->name), api_entry_name(b->name)); }

/* A kernel before this one that is its copy; itself, and now in the table, when there is none. */
static uint32_t find_copied(const snt_program *p, made_kernels *made, uint32_t number) {
  const plan_kernel *all = p->plan.kernels.at;
  const kir_kernel *own = all[number].kernel;
  uint32_t at = (uint32_t)((uintptr_t)own->insts.at >> 4) & (made->size - 1);
  for (; made->copied[at]; at = (at + 1) & (made->size - 1)) {
    const kir_kernel *other = all[made->copied[at] - 1].kernel;
    if (own->insts.at == other->insts.at && same_name(own, other) && kir_same_code(own, other)) return made->copied[at] - 1;
  }
  made->copied[at] = number + 1;
  return number;
}

/* The kernel that is the same as `number`; itself, and now in the table, when there is none. */
static uint32_t find_equal(const snt_program *p, made_kernels *made, uint32_t number) {
  const plan_kernel *all = p->plan.kernels.at;
  uint32_t at = (uint32_t)kir_code_hash(all[number].kernel) & (made->size - 1);
  for (; made->first[at]; at = (at + 1) & (made->size - 1)) {
    const kir_kernel *other = all[made->first[at] - 1].kernel, *own = all[number].kernel;
    if (same_name(own, other) && kir_same_code(own, other)) return made->first[at] - 1;
  }
  made->first[at] = number + 1;
  return number;
}

static snt_result emit_all(snt_program *p, ir_arena scratch[2], const dump_user *d, snt_diag *diag) {
  made_kernels made = {.size = 16};
  while (made.size < 2 * p->plan.kernels.count) made.size *= 2;
  made.first = IR_NEW_ARRAY(&p->arena, uint32_t, made.size);
  p->kernels = IR_NEW_ARRAY(&p->arena, api_kernel, p->plan.kernels.count + 1);
  made.copied = IR_NEW_ARRAY(&p->arena, uint32_t, made.size);
  if (!p->kernels || !made.first || !made.copied) return ir_no_memory(diag, "codegen");
  for (uint32_t i = 0; i < p->plan.kernels.count; i++) {
    if (progress((void *)(uintptr_t)d, "codegen", (double)i / p->plan.kernels.count))
      return ir_fail(diag, SNT_E_CANCELLED, "codegen", 0, "cancelled by the caller");
    uint32_t equal = find_copied(p, &made, i);
    if (equal == i) equal = find_equal(p, &made, i);
    if (equal != i) {
      p->kernels[i] = p->kernels[equal];
      continue;
    }
    for (uint32_t t = 0; t < API_TARGETS; t++)
      if (p->targets & api_targets[t].bit) SNT_TRY(emit_target(p, scratch, i, t, d->info, diag));
  }
  return SNT_OK;
}

static snt_result emit_kernels(snt_program *p, const dump_user *d, snt_diag *diag) {
  ir_arena scratch[2];
  ir_arena_init(&scratch[0], &p->context->alloc);
  ir_arena_init(&scratch[1], &p->context->alloc);
  const snt_result r = emit_all(p, scratch, d, diag);
  ir_arena_free(&scratch[0]);
  ir_arena_free(&scratch[1]);
  return r;
}

static snt_result list_ports(snt_program *p, snt_diag *diag) {
  p->ports = IR_NEW_ARRAY(&p->arena, uint32_t, p->plan.buffers.count + 1);
  if (!p->ports) return ir_no_memory(diag, "compile");
  for (uint32_t i = 0; i < p->graph.inputs.count; i++)
    p->ports[p->port_count++] = fusion_buffer_of(&p->fusion, p->fusion.graph->inputs.at[i].node);
  for (uint32_t i = 0; i < p->graph.outputs.count; i++)
    p->ports[p->port_count++] = fusion_buffer_of(&p->fusion, p->fusion.graph->outputs.at[i].node);
  return SNT_OK;
}

static uint32_t default_target(const cost_profile *p) {
  if (!strcmp(p->target, "interp")) return SNT_TARGET_HOST;
  for (uint32_t t = 0; t < API_TARGETS; t++) {
    if (!strcmp(api_targets[t].name, p->target)) return api_targets[t].bit;
  }
  return 0;
}

static bool has_port(const ir_graph *g, const char *name) {
  for (uint32_t i = 0; i < g->inputs.count; i++)
    if (!strcmp(&g->names.at[g->inputs.at[i].name], name)) return true;
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (!strcmp(&g->names.at[g->outputs.at[i].name], name)) return true;
  return false;
}

static snt_result list_images(snt_program *p, const snt_compile_info *info, snt_diag *diag) {
  const size_t stride = info->image_stride ? info->image_stride : sizeof(snt_image_port);
  if (api_is_short(info->image_stride, sizeof(snt_image_port)))
    return ir_fail(diag, SNT_E_ARG, "compile", 0, "image ports are in rows that are too short");
  fusion_image *images = IR_NEW_ARRAY(&p->arena, fusion_image, info->image_count);
  if (!images) return ir_no_memory(diag, "compile");
  for (uint32_t i = 0; i < info->image_count; i++) {
    const snt_image_port *given = info->images ? (const snt_image_port *)(const void *)((const char *)info->images + i * stride) : NULL;
    if (!given || !given->port || !has_port(&p->graph, given->port))
      return ir_fail(diag, SNT_E_ARG, "compile", 0, "no port \"%s\" to be an image", given && given->port ? given->port : "");
    if (given->layout < PLAN_IMAGE_CHW || given->layout >= PLAN_IMAGE_COUNT)
      return ir_fail(diag, SNT_E_ARG, "compile", 0, "image port %s has layout %u", given->port, given->layout);
    SNT_TRY(api_check_flags(given->flags, SNT_IMAGE_FILTERED, "image port", diag));
    images[i] = (fusion_image){ir_arena_text(&p->arena, given->port, strlen(given->port)), (uint8_t)given->layout, given->flags != 0};
    if (!images[i].name) return ir_no_memory(diag, "compile");
  }
  p->options.images = images;
  p->options.image_count = info->image_count;
  return SNT_OK;
}

static snt_result compile_into(snt_program *p, const snt_graph *g, const snt_compile_info *info, snt_diag *diag) {
  dump_user user = {info, p->context, NULL};
  const fusion_hooks hooks = {
      .user = &user, .after_graph_pass = after_pass, .after_kernel = after_kernel, .progress = progress, .sizes = sizes};
  p->options = (fusion_options){.profile = &p->profile,
                                .numerics = (uint8_t)info->numerics,
                                .no_rewrites = (info->flags & SNT_COMPILE_NO_REWRITES) != 0,
                                .weights = api_weight_types[info->weights],
                                .peak_bytes = info->peak_bytes,
                                .targets = info->targets ? info->targets : default_target(&p->profile),
                                .glsl = info->glsl != NULL,
                                .hooks = &hooks,
                                .verify = true};
  SNT_TRY(copy_graph(p, g, diag));
  user.store = p->store;
  SNT_TRY(list_images(p, info, diag));
  p->options.level = info->flags & SNT_COMPILE_UNFUSED_NODES ? FUSION_UNFUSED_NODES
                     : info->flags & SNT_COMPILE_UNFUSED     ? FUSION_UNFUSED
                                                             : FUSION_FUSED;
  p->targets = p->options.targets;
  plan_init(&p->plan, &p->arena, &p->pool);
  SNT_TRY(fusion_compile(&p->fusion, &p->graph, &p->options, &p->arena, &p->plan, diag));
  SNT_TRY(plan_verify(&p->plan, diag));
  send(&user, "plan", print_plan, &p->plan);
  p->options.hooks = NULL; /* they end with this call */
  p->fusion.diag = NULL;
  SNT_TRY(list_ports(p, diag));
  if (!api_expect_constants(p)) return ir_no_memory(diag, "compile");
  return emit_kernels(p, &user, diag);
}

enum {
  COMPILE_FLAGS = SNT_COMPILE_UNFUSED | SNT_COMPILE_UNFUSED_NODES | SNT_COMPILE_NO_REWRITES | SNT_COMPILE_LINE_INFO,
  COMPILE_TARGETS = SNT_TARGET_HOST | SNT_TARGET_OPENCL | SNT_TARGET_SPIRV | SNT_TARGET_CUDA
};

snt_result snt_compile(snt_graph *g, const snt_profile *profile, const snt_compile_info *given, snt_program **out, snt_diag *diag) {
  if (!g || !profile || !out) return ir_fail(diag, SNT_E_ARG, "compile", 0, "a graph, a profile and a place for the program are needed");
  snt_compile_info info = {0};
  if (given) {
    SNT_TRY(api_check_head(&given->head, SNT_TYPE_compile_info, sizeof info, diag));
    memcpy(&info, given, given->head.size < sizeof info ? given->head.size : sizeof info);
  }
  if (info.numerics > SNT_NUMERICS_REPRODUCIBLE) return ir_fail(diag, SNT_E_ARG, "compile", 0, "no numerics mode %u", info.numerics);
  SNT_TRY(api_check_flags(info.flags, COMPILE_FLAGS, "compile", diag));
  if (info.targets & ~COMPILE_TARGETS) return ir_fail(diag, SNT_E_ARG, "compile", 0, "unknown targets 0x%x", info.targets);
  if (info.weights > SNT_WEIGHTS_I8) return ir_fail(diag, SNT_E_ARG, "compile", 0, "no weights of kind %u", info.weights);
  if (info.numerics == SNT_NUMERICS_REPRODUCIBLE) info.flags |= SNT_COMPILE_NO_REWRITES; /* they are priced, and prices are the device's */
  SNT_TRY(snt_graph_verify(g, diag));
  const uint32_t starved = api_starved(g->context);
  snt_program *p = api_program_new(g->context);
  if (!p) return ir_no_memory(diag, "compile");
  p->profile = profile->profile;
  if (info.numerics == SNT_NUMERICS_REPRODUCIBLE) exec_repair_caps(profile, &p->profile.caps);
  snt_result r = compile_into(p, g, &info, diag);
  if (r == SNT_OK && api_starved(g->context) != starved) r = SNT_E_INTERNAL; /* someone went on without what it asked for */
  r = api_blame(g->context, starved, r, diag);
  api_store_rest(g->store);
  if (r != SNT_OK) {
    api_program_drop(p);
    return r;
  }
  *out = p;
  return SNT_OK;
}
