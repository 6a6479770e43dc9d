/* sinter build: a model compiled and its kernels built for a device, with the time of each part. What is built is in the cache afterwards. */
#include "tools/sinter/bench.h"

static void report(const tool_session *s, const bench_ready *t) {
  const char *form = s->options.json
                         ? ", \"kernels\": %u, \"distinct\": %u, \"cached\": %u, \"import_ms\": %.1f, \"compile_ms\": %.1f, "
                           "\"build_ms\": %.1f, \"ready_ms\": %.1f, \"ready_cpu_ms\": %.1f}\n"
                         : ": %u kernels, %u of them distinct, %u in the cache; import %.0f ms, compile %.0f ms, build %.0f ms: ready in "
                           "%.0f ms (%.0f ms of processor time)\n";
  uint32_t cached;
  const uint32_t distinct = tool_count_pipelines(s->exec, &cached);
  if (s->options.json) fputs("{\"model\": ", stdout), host_put_json(stdout, s->options.model, SIZE_MAX, "");
  else fputs(s->options.model, stdout);
  printf(form, snt_exec_step_count(s->exec), distinct, cached, t->import_ms, t->compile_ms, t->build_ms, bench_ready_ms(t), t->cpu_ms);
}

/* What was asked for is that something be kept: where nothing can be, it is said before the work. */
static snt_result check_cache(tool_session *s) {
  char path[1024];
  if (!s->env.cache_dir || s->options.share) return SNT_OK; /* none is wanted */
  snprintf(path, sizeof path, "%s/entry", s->env.cache_dir);
  return host_can_write(path, &s->diag);
}

int command_build(const tool_options *options) {
  tool_session s;
  bench_ready times;
  snt_result r = tool_open(&s, options, true);
  if (r == SNT_OK) r = check_cache(&s);
  if (r == SNT_OK) r = bench_make_ready(&s, &times);
  if (r == SNT_OK && !options->share) report(&s, &times);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_close(&s);
  return code;
}
