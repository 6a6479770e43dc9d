/* What the host device and the interpreter need of a saved program: the graph, and kernel IR. A library without a compiler has other
   definitions of these functions (runtime_only/). In: texts that nobody vouches for. Out: parts of the program, verified. */
#include "api/blob.h"

typedef struct graph_data {
  snt_program *p;
  const blob_bytes *data;
} graph_data;

static const void *find_constant(void *user, const char *file, uint64_t offset, uint64_t size) {
  const graph_data *d = user;
  return strcmp(file, "data") == 0 ? blob_constant(d->p, d->data, offset, size) : NULL;
}

snt_result blob_load_graph(snt_program *p, const blob_bytes *text, const blob_bytes *data, snt_diag *diag) {
  graph_data where = {p, data};
  const ir_text_hooks hooks = {.user = &where, .load = find_constant};
  ir_graph_init(&p->graph, &p->arena, &p->pool);
  SNT_TRY(ir_graph_parse_with(&p->graph, (const char *)text->at, text->size, &hooks, diag));
  SNT_TRY(ir_graph_verify(&p->graph, NULL, diag));
  ir_graph_stamp_origins(&p->graph);
  return SNT_OK;
}

/* A port of the plan is the graph's input or output of the same place: the same name, element type and shape. */
const char *blob_compare_graph(const snt_program *p) {
  const ir_graph *g = &p->graph;
  if (p->port_count != g->inputs.count + g->outputs.count) return "the number of ports is wrong";
  for (uint32_t i = 0; i < p->port_count; i++) {
    const bool in = i < g->inputs.count;
    const ir_port *port = in ? &g->inputs.at[i] : &g->outputs.at[i - g->inputs.count];
    const ir_node *node = ir_at(g, port->node);
    const plan_buffer *b = &p->plan.buffers.at[p->ports[i]];
    const plan_buffer_kind kind = !in ? PLAN_OUTPUT : node->op == IR_OP_state ? PLAN_STATE : PLAN_INPUT;
    bool same = b->kind == kind && b->dtype == node->type.dtype && b->rank == node->type.rank;
    for (uint32_t d = 0; same && d < b->rank; d++) same = b->dims[d] == node->type.dims[d];
    if (!same || strcmp(b->name, &g->names.at[port->name]) != 0) return "a port is not what the graph says";
  }
  return NULL;
}

snt_result blob_load_kernel(snt_program *p, api_kernel *k, snt_diag *diag) {
  const uint32_t host = api_target_index(SNT_TARGET_HOST);
  kir_kernel *legal = IR_NEW(&p->arena, kir_kernel);
  if (!legal) return SNT_E_HOST_MEM;
  kir_init(legal, &p->arena, "");
  SNT_TRY(kir_parse(legal, k->code[host].code.data, k->code[host].code.size, diag));
  SNT_TRY(kir_verify(legal, NULL, diag));
  k->legal[host] = legal;
  return kir_block_bytes(legal) == k->block_bytes ? SNT_OK : ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "a kernel's scalars differ");
}
