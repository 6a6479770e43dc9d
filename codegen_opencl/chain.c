/* Several kernels as one launch. A launch of its own costs a kernel what it takes to let all threads of a processor sleep and wake; here
   each group goes through all of them, the links, and takes of each what no other has taken: groups are handed out by counters, one a
   share, and where a link waits for those before it, until the counters of what is finished have come to their ends. Nothing waits for a
   group that has not begun, so that it does not matter how many of the launch's groups run at once, or in which order: the first one to run
   could do everything. What has begun must end; where groups run in lockstep that is not so, and cost_profile.launch_steps is 0.

   Works on the texts that ctext made, of kernels without local memory and of one work-item a group: the kernel becomes a function, its group a parameter. */
#include "codegen_opencl/helpers.h"

enum {
  APART = 16, /* words: a cache line each */
  EXIT = 0,
  SHARES = 32 /* of the groups of a link that each of the launch takes, at least, if there are as many */
};

/* The parts of a kernel's text: helpers as the table has them, then the kernel. */
typedef struct parts {
  const char *params, *body; /* of the kernel: "__global float *restrict p0, .."; what stands behind the two lines about its group */
  size_t params_length;
  uint64_t helpers; /* bit n: row n of opencl_helpers */
} parts;

static const char entry[] = "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void ";

static bool take(const char **at, const char *text) {
  const size_t length = strlen(text);
  if (strncmp(*at, text, length)) return false;
  *at += length;
  return true;
}

/* What only kernels may have, or all items of a group share. */
static bool is_bound_to_kernels(const char *text) {
  static const char *const words[] = {"__local ", "__constant ", "SNT_SYNC_", "image2d_t"};
  bool found = false;
  for (uint32_t i = 0; i < IR_COUNT(words); i++) found |= strstr(text, words[i]) != NULL;
  return found;
}

static bool split(const codegen_code *code, parts *out) {
  const char *at = code->data;
  *out = (parts){.helpers = 0};
  for (uint32_t i = 0; i < opencl_helper_count; i++)
    if (take(&at, opencl_helpers[i].text)) out->helpers |= (uint64_t)1 << i;
  if (!take(&at, entry) || is_bound_to_kernels(at)) return false;
  const char *open = strchr(at, '('), *close = open ? strstr(open, ") {\n") : NULL;
  if (!close) return false;
  out->params = open + 1;
  out->params_length = (size_t)(close - out->params);
  at = close + 4;
  for (int line = 0; line < 2 && at; line++)
    at = strchr(at, '\n'), at = at ? at + 1 : NULL; /* snt_group, and the end of what is too many */
  out->body = at;
  return at != NULL;
}

bool opencl_can_link(const codegen_code *code) {
  parts p;
  return split(code, &p);
}

/* The first link with the same code. */
static uint32_t first_like(const codegen_link *links, uint32_t n) {
  uint32_t i = 0;
  while (i < n && !codegen_same(links[i].code, links[n].code)) i++;
  return i;
}

static void put_functions(uint32_t count, const codegen_link *links, const parts *p, ir_text *out) {
  for (uint32_t i = 0; i < count; i++) {
    if (first_like(links, i) != i) continue;
    ir_text_format(out, "static __attribute__((noinline)) void link%u(const uint snt_group, ", i);
    ir_text_put(out, p[i].params, p[i].params_length);
    ir_text_format(out, ") {\n%s", p[i].body);
  }
}

static void put_entry(uint32_t count, const codegen_link *links, ir_text *out) {
  ir_text_format(out, "%schain(volatile __global uint *turns", entry);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t n = 0; n < links[i].binding_count && !links[i].shares; n++) ir_text_format(out, ", __global void *p%u_%u", i, n);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t n = 0; n <= links[i].word_count; n++) ir_text_format(out, ", const uint w%u_%u", i, n);
  ir_text_add(
      out, ", const uint groups) {\n  if (groups == 0u) return;\n"
           "  const uint all = (uint)(get_num_groups(0) * get_num_groups(1) * get_num_groups(2));\n"
           "  const uint own = (uint)((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0));\n");
}

/* Each group of the launch has a share of the link's, in order: what it made of one link it reads in the next, from its own cache. It takes
   a few at a time where there are many, since what they share a counter for would take longer than a short one of them; then of the others'
   shares, as long as there is something. */
static void put_call(const codegen_link *links, uint32_t count, uint32_t i, ir_text *out) {
  const uint32_t words = links[i].word_count;
  uint32_t owner = i;
  while (links[owner].shares) owner--;
  ir_text_format(out,
                 "  for (uint at = 0u; at < all; at++) {\n    const uint whose = own + at < all ? own + at : own + at - all, low = "
                 "SNT_SHARE(w%u_%u, whose), "
                 "most = SNT_SHARE(w%u_%u, whose + 1u) - low;\n",
                 i, words, i, words);
  ir_text_format(out, "    volatile __global uint *taken = turns + %uu * (%uu + %uu * all + whose);\n", APART, 1 + count, i);
  ir_text_format(out,
                 "    for (uint few = most / %uu + 1u, g; *taken < most && (g = atomic_add(taken, few)) < most;) {\n"
                 "      const uint first = low + g, end = low + min(g + few, most);\n      for (g = first; g < end; g++)\n        link%u(g",
                 SHARES, first_like(links, i));
  for (uint32_t n = 0; n < links[i].binding_count; n++) ir_text_format(out, ", p%u_%u", owner, n);
  for (uint32_t n = 0; n <= words; n++) ir_text_format(out, ", w%u_%u", i, n);
  ir_text_format(out, ");\n      mem_fence(CLK_GLOBAL_MEM_FENCE);\n      atomic_add(turns + %u, end - first);\n    }\n  }\n",
                 APART * (1 + i));
}

/* A plain read sees the end coming, a read that is a write makes what others wrote before it be seen. */
static void put_wait(uint32_t i, uint32_t word, ir_text *out) {
  const uint32_t done = APART * (1 + i);
  ir_text_format(out, "  do while (turns[%u] < w%u_%u) SNT_PAUSE; while (atomic_or(turns + %u, 0u) < w%u_%u);\n", done, i, word, done, i,
                 word);
}

snt_result opencl_chain(uint32_t count, const codegen_link *links, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  parts *p = IR_NEW_ARRAY(arena, parts, count + 1);
  uint64_t helpers = 0;
  bool keeps = false; /* denormals */
  ir_text text;
  if (!p) return ir_fail(diag, SNT_E_HOST_MEM, "chain", 0, "out of memory");
  for (uint32_t i = 0; i < count; i++) {
    if (!split(links[i].code, &p[i])) return ir_fail(diag, SNT_E_INTERNAL, "chain", 0, "link %u is no kernel that could be one", i);
    helpers |= p[i].helpers, keeps |= !(p[i].helpers & OPENCL_FLUSHES);
  }
  if (keeps) helpers &= ~OPENCL_FLUSHES; /* where a link does, all do */
  ir_text_init(&text, arena);
  for (uint32_t i = 0; i < opencl_helper_count; i++)
    if (helpers >> i & 1) ir_text_add(&text, opencl_helpers[i].text);
  ir_text_add(&text,
              "#define SNT_SHARE(n, i) (uint)((ulong)(n) * (i) / all)\n"
              "#if __has_builtin(__builtin_ia32_pause)\n#define SNT_PAUSE __builtin_ia32_pause()\n#else\n#define SNT_PAUSE\n#endif\n");
  put_functions(count, links, p, &text);
  put_entry(count, links, &text);
  uint32_t waited = 0;
  for (uint32_t i = 0; i < count; i++) {
    for (; links[i].barrier && waited < i; waited++) put_wait(waited, links[waited].word_count, &text);
    put_call(links, count, i, &text);
  }
  /* the last one to leave leaves them as they were */
  ir_text_format(&text, "  if (atomic_inc(turns + %u) + 1u == all)\n", EXIT);
  ir_text_format(&text, "    for (uint i = 0u; i < %uu * (%uu + %uu * all); i += %uu) turns[i] = 0u;\n}\n", APART, 1 + count, count, APART);
  if (text.failed) return ir_fail(diag, SNT_E_HOST_MEM, "chain", 0, "out of memory");
  *out = (codegen_code){text.at, text.length};
  return SNT_OK;
}
