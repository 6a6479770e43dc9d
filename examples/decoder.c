/* A language model with a cache, as exporters write it with ONNX Runtime's operators: one program for the prompt and for each word behind it.
     decoder MODEL.onnx DEVICE COUNT WORD..      prints the COUNT likeliest words behind those given, by number
   Inputs input_ids, attention_mask and past.. in the order of the outputs present..; extents batch_size, sequence_length, past_sequence_length. */
#include <sinter/sinter_onnx.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 256, LONGEST = 1024 };

typedef struct decoder {
  snt_program *program;
  snt_exec *exec;
  snt_argument ports[PORTS];
  uint32_t port_count, symbol_count;
  int64_t symbols[PORTS], words[LONGEST + 1], ones[LONGEST];
  void *caches[2][PORTS]; /* pasts, and presents: they change sides after each run */
  float *logits;
  int64_t classes;
} decoder;

/* The extents and ports of a run of `fresh` words behind `past`; the first time, for the longest text, with memory. */
static snt_result bind_ports(decoder *d, int64_t fresh, int64_t past) {
  uint32_t number[2] = {0, 0};
  snt_symbol s;
  snt_port port;
  for (uint32_t i = 0; i < d->symbol_count && snt_program_symbol(d->program, i, &s) == SNT_OK; i++)
    d->symbols[i] = !strcmp(s.name, "sequence_length") ? fresh : !strcmp(s.name, "past_sequence_length") ? past : past + fresh;
  for (uint32_t i = 0; i < d->port_count && snt_program_port(d->program, i, &port) == SNT_OK; i++) {
    int64_t dims[SNT_MAX_RANK], elements = 1;
    const snt_result r = snt_program_port_dims(d->program, i, d->symbols, dims);
    if (r != SNT_OK) return r;
    for (uint32_t k = 0; k < port.tensor.rank; k++) elements *= dims[k];
    d->ports[i] = (snt_argument){.port = i, .bytes = (uint64_t)elements * snt_dtype_size(port.tensor.dtype)};
    const bool given_out = port.kind == SNT_PORT_OUTPUT;
    void **memory = !strcmp(port.name, "logits") ? (void **)&d->logits : &d->caches[given_out][number[given_out]++];
    if (!strcmp(port.name, "input_ids")) d->ports[i].host = d->words + past, number[given_out]--;
    else if (!strcmp(port.name, "attention_mask")) d->ports[i].host = d->ones, number[given_out]--;
    else if (!*memory && !(*memory = malloc(d->ports[i].bytes + 64))) return SNT_E_HOST_MEM;
    else d->ports[i].host = *memory;
    if (memory == (void **)&d->logits) d->classes = dims[port.tensor.rank - 1];
  }
  return SNT_OK;
}

static snt_result next_word(decoder *d, int64_t fresh, int64_t past, snt_diag *diag) {
  snt_result r = bind_ports(d, fresh, past);
  const snt_run_info run = {SNT_HEAD(run_info), d->port_count, 0, d->ports, d->symbols, d->symbol_count};
  if (r == SNT_OK) r = snt_run(d->exec, &run, diag);
  if (r != SNT_OK) return r;
  const float *last = d->logits + (fresh - 1) * d->classes;
  int64_t best = 0;
  for (int64_t i = 1; i < d->classes; i++)
    if (last[i] > last[best]) best = i;
  d->words[past + fresh] = best;
  for (uint32_t i = 0; i < PORTS; i++) {
    void *past_one = d->caches[0][i];
    d->caches[0][i] = d->caches[1][i], d->caches[1][i] = past_one;
  }
  return SNT_OK;
}

static snt_result decode(decoder *d, int64_t count, int64_t prompt, snt_diag *diag) {
  d->port_count = snt_program_port_count(d->program), d->symbol_count = snt_program_symbol_count(d->program);
  if (d->port_count > PORTS || d->symbol_count > PORTS) return SNT_E_LIMIT;
  snt_result r = bind_ports(d, prompt, LONGEST); /* memory for the longest */
  for (int64_t past = 0, fresh = prompt; r == SNT_OK && past + fresh < prompt + count; past += fresh, fresh = 1) {
    r = next_word(d, fresh, past, diag);
    if (r == SNT_OK) printf("%lld\n", (long long)d->words[past + fresh]);
  }
  return r;
}

int main(int argc, char **argv) {
  snt_diag diag = {.head = SNT_HEAD(diag), .text = "usage: decoder MODEL.onnx DEVICE COUNT WORD.."};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = argc > 2 ? argv[2] : NULL};
  const snt_symbol bounds[] = {{.name = "batch_size", .min = 1, .max = 1, .hint = 1},
                               {.name = "sequence_length", .min = 1, .max = LONGEST, .hint = 1},
                               {.name = "past_sequence_length", .min = 0, .max = LONGEST, .hint = 128}};
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info), .dim_count = 3, .dims = bounds};
  static decoder d;
  snt_context *context = NULL;
  snt_device *device = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = NULL;
  const int64_t prompt = argc - 4, count = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;
  snt_result r = prompt > 0 && count > 0 && prompt + count <= LONGEST ? snt_context_create(NULL, &context) : SNT_E_ARG;
  for (int64_t i = 0; i < LONGEST; i++) d.words[i] = r == SNT_OK && i < prompt ? strtoll(argv[4 + i], NULL, 10) : 0, d.ones[i] = 1;
  if (r == SNT_OK) r = snt_device_open(context, &open, &device, &diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_onnx_import_file(graph, argv[1], &info, &diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &d.program, &diag);
  snt_graph_destroy(graph); /* the program shares the weights, which stay mapped */
  if (r == SNT_OK) r = snt_exec_create(device, d.program, NULL, &d.exec, &diag);
  if (r == SNT_OK) r = decode(&d, count, prompt, &diag);
  if (r != SNT_OK) fprintf(stderr, "%s: %s\n", snt_result_text(r), diag.text);
  for (uint32_t i = 0; i < PORTS; i++) free(d.caches[0][i]), free(d.caches[1][i]);
  free(d.logits);
  snt_exec_destroy(d.exec);
  snt_program_destroy(d.program);
  snt_profile_destroy(profile);
  snt_device_destroy(device);
  snt_context_destroy(context);
  return r == SNT_OK ? 0 : 1;
}
