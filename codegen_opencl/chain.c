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

#define ONCE "static __attribute__((noinline)) void "

/* The names of parameters: what stands before their commas. */
static void put_names(const char *params, size_t length, ir_text *out) {
  for (const char *at = params, *end = params + length; at < end; at++) {
    const char *name = at;
    while (at < end && *at != ',') name = *at == ' ' || *at == '*' ? at + 1 : name, at++;
    ir_text_add(out, ", ");
    ir_text_put(out, name, (size_t)(at - name));
  }
}

/* Each group of the launch has a share of the link's, in order: what it made of one link it reads in the next, from its own cache. It takes
   a few at a time where there are many, since what they share a counter for would take longer than a short one of them; then of the others'
   shares, as long as there is something. A function of each kernel does so for all links that it is: drivers compile what stands once. */
static void put_functions(uint32_t count, const codegen_link *links, const parts *p, ir_text *out) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t words = links[i].word_count;
    if (first_like(links, i) != i) continue;
    ir_text_format(out, ONCE "link%u(const uint snt_group, ", i);
    ir_text_put(out, p[i].params, p[i].params_length);
    ir_text_format(out, ") {\n%s" ONCE "share%u(volatile __global uint *turns, const uint n, const uint all, const uint own, ", p[i].body,
                   i);
    ir_text_put(out, p[i].params, p[i].params_length);
    ir_text_format(
        out,
        ") {\n  for (uint at = 0u; at < all; at++) {\n    const uint whose = own + at < all ? own + at : own + at - all, low = "
        "SNT_SHARE(w%u, whose), most = SNT_SHARE(w%u, whose + 1u) - low;\n"
        "    volatile __global uint *taken = turns + %uu * (%uu + n * all + whose);\n"
        "    for (uint few = most / %uu + 1u, g; *taken < most && (g = atomic_add(taken, few)) < most;) {\n"
        "      const uint first = low + g, end = low + min(g + few, most);\n      for (g = first; g < end; g++)\n        link%u(g",
        words, words, APART, 1 + count, SHARES, i);
    put_names(p[i].params, p[i].params_length, out);
    ir_text_format(
        out, ");\n      mem_fence(CLK_GLOBAL_MEM_FENCE);\n      atomic_add(turns + %uu * (1u + n), end - first);\n    }\n  }\n}\n", APART);
  }
  /* a plain read sees the end coming, a read that is a write makes what others wrote before it be seen */
  ir_text_add(out, ONCE "finish(volatile __global uint *done, const uint most) {\n  do while (*done < most) SNT_PAUSE; "
                        "while (atomic_or(done, 0u) < most);\n}\n");
}

static void put_entry(uint32_t count, const codegen_link *links, ir_text *out) {
  uint32_t slots = 0;
  ir_text_format(out, "%schain(volatile __global uint *turns", entry);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t n = 0; n < links[i].binding_count; n++)
      if (links[i].slots[n] > slots) ir_text_format(out, ", __global void *p%u", ++slots);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t n = 0; n <= links[i].word_count; n++) ir_text_format(out, ", const uint w%u_%u", i, n);
  ir_text_add(
      out, ", const uint groups) {\n  if (groups == 0u) return;\n"
           "  const uint all = (uint)(get_num_groups(0) * get_num_groups(1) * get_num_groups(2));\n"
           "  const uint own = (uint)((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0));\n");
}

static void put_call(const codegen_link *links, uint32_t i, ir_text *out) {
  ir_text_format(out, "  share%u(turns, %uu, all, own", first_like(links, i), i);
  for (uint32_t n = 0; n < links[i].binding_count; n++) ir_text_format(out, ", p%u", links[i].slots[n]);
  for (uint32_t n = 0; n <= links[i].word_count; n++) ir_text_format(out, ", w%u_%u", i, n);
  ir_text_add(out, ");\n");
}

static void put_wait(uint32_t i, uint32_t word, ir_text *out) {
  ir_text_format(out, "  finish(turns + %u, w%u_%u);\n", APART * (1 + i), i, word);
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
    put_call(links, i, &text);
  }
  /* the last one to leave leaves them as they were */
  ir_text_format(&text, "  if (atomic_inc(turns + %u) + 1u == all)\n", EXIT);
  ir_text_format(&text, "    for (uint i = 0u; i < %uu * (%uu + %uu * all); i += %uu) turns[i] = 0u;\n}\n", APART, 1 + count, count, APART);
  if (text.failed) return ir_fail(diag, SNT_E_HOST_MEM, "chain", 0, "out of memory");
  *out = (codegen_code){text.at, text.length};
  return SNT_OK;
}
