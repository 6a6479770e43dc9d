/* A session: what every subcommand opens and closes in the same order. */
#include "tools/sinter/tool.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static snt_result open_device(tool_session *s) {
  const char *selector = s->options.device ? s->options.device : s->env.device;
  host_prepare_drivers(selector);
  const snt_open_info info = {.head = SNT_HEAD(open_info), .selector = selector, .mask = s->options.mask ? s->options.mask : s->env.mask};
  snt_result r = snt_device_open(s->context, &info, &s->device, &s->diag);
  return r == SNT_OK ? snt_device_profile(s->device, &s->profile) : r;
}

/* A profile from a file, as `sinter calibrate` writes it; a name without a folder or a dot is no file. */
static snt_result read_profile(tool_session *s, const char *path, snt_profile **out) {
  void *text = NULL;
  size_t size = 0;
  if (!strpbrk(path, "/.")) return SNT_E_ARG;
  snt_result r = host_read_file(path, &text, &size, &s->diag);
  if (r == SNT_OK) r = snt_profile_parse(s->context, text, size, out, &s->diag);
  else path = NULL; /* which that has named */
  free(text);
  if (r == SNT_OK || !path) return r;
  const snt_diag why = s->diag;
  return host_fail(&s->diag, r, "profile", "%s: %s", path, why.text);
}

static snt_result find_profile(tool_session *s, const char *name, snt_profile **out) {
  snt_result r = snt_profile_builtin(s->context, name, out);
  if (r == SNT_E_HOST_MEM) return r;
  if (r != SNT_OK) r = read_profile(s, name, out);
  if (r == SNT_OK || s->diag.result) return r;
  return host_fail(&s->diag, r, "profile", "no profile \"%s\": pocl lavapipe rusticl swiftshader igpu dgpu mobile h100", name);
}

/* One of a list, narrowed by --mask. */
snt_result tool_open_profile(tool_session *s, const char *given, size_t length) {
  char name[4096];
  if (length >= sizeof name) return host_fail(&s->diag, SNT_E_ARG, "profile", "--profile: too long a name");
  snprintf(name, sizeof name, "%.*s", (int)length, given);
  snt_profile *plain;
  snt_result r = find_profile(s, name, &plain);
  if (r != SNT_OK) return r;
  snt_profile_destroy(s->profile);
  s->profile = plain;
  if (!s->options.mask) return SNT_OK;
  s->profile = NULL;
  r = snt_profile_mask(plain, s->options.mask, &s->profile, &s->diag);
  snt_profile_destroy(plain);
  return r;
}

static snt_result open_profile(tool_session *s) {
  const char *given = s->options.profile ? s->options.profile : "pocl";
  return tool_open_profile(s, given, strcspn(given, ","));
}

/* A folder that the user names must be there or be made; a home that takes none is no reason to fail. */
static snt_result open_cache(tool_session *s, snt_cache_io *out) {
  if (!s->env.cache_dir) return SNT_OK;
  snt_diag why = {.head = SNT_HEAD(diag)};
  const snt_result r = host_cache_open(s->env.cache_dir, s->env.cache_bytes, &s->cache, &why);
  if (r == SNT_OK) *out = (snt_cache_io){s->cache, host_cache_get, host_cache_set};
  return r == SNT_OK || !s->env.cache_named ? SNT_OK : host_fail(&s->diag, r, "cache", "SNT_CACHE_DIR: %s", why.text);
}

snt_result tool_open(tool_session *s, const tool_options *options, bool with_device) {
  enum { OPTIONS = offsetof(tool_session, env) }; /* are large, and come first */
  _Static_assert(offsetof(tool_session, options) == 0, "what is zeroed begins behind the options");
  memset((uint8_t *)s + OPTIONS, 0, sizeof *s - OPTIONS);
  s->options = *options;
  snt_result r = host_read_env(&s->env, &s->diag);
  if (r != SNT_OK) return r;
  snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .alloc = host_allocator()};
  r = open_cache(s, &info.cache);
  if (r == SNT_OK) r = snt_context_create(&info, &s->context);
  if (r == SNT_OK) r = snt_context_add_backend(s->context, host_cuda_text());
  if (r != SNT_OK) return r;
  if (!with_device) return open_profile(s);
  r = open_device(s);
  return r == SNT_OK && options->profile ? open_profile(s) : r; /* the device as a text describes it */
}

static int SNT_CALL show_progress(void *user, const char *stage, double fraction) {
  (void)user;
  fprintf(stderr, "\r%3.0f %% %-16s", fraction * 100, stage);
  return 0;
}

static void SNT_CALL dump(void *user, const char *stage, const char *text, size_t length) {
  tool_session *s = user;
  static unsigned number;
  char path[4096];
  snprintf(path, sizeof path, "%s/%02u-%s.txt", s->env.dump_dir, number++, stage);
  if (s->dumped == SNT_OK) s->dumped = host_write_file(path, text, length, &s->diag);
}

/* The number of a word in a list; an option that is not given is the first. */
static uint32_t word_of(const char *given, const char *const *words, uint32_t count, snt_result *r) {
  for (uint32_t i = 0; given && i < count; i++)
    if (!strcmp(words[i], given)) return i;
  if (given) *r = SNT_E_ARG;
  return 0;
}

static snt_result parse_images(tool_session *s, snt_image_port *out, uint32_t *count) {
  static const char *const layouts[] = {"", "chw", "hwc", "hw"};
  for (*count = 0; *count < s->options.image_count; ++*count) {
    const tool_pair *pair = &s->options.images[*count];
    const size_t word = strcspn(pair->value, ",");
    uint32_t layout = SNT_IMAGE_HW;
    while (layout && (strncmp(layouts[layout], pair->value, word) || layouts[layout][word])) layout--;
    if (!layout || (pair->value[word] && strcmp(pair->value + word, ",filtered")))
      return host_fail(&s->diag, SNT_E_ARG, "image", "--image %s=%s: an image is NAME=chw, hwc or hw, and may be ,filtered", pair->name,
                       pair->value);
    out[*count] = (snt_image_port){pair->name, layout, pair->value[word] ? SNT_IMAGE_FILTERED : 0};
  }
  return SNT_OK;
}

snt_result tool_weights(tool_session *s, uint32_t *out) {
  static const char *const words[] = {[SNT_WEIGHTS_AS_GIVEN] = "given", [SNT_WEIGHTS_F16] = "f16", [SNT_WEIGHTS_I8] = "int8"};
  snt_result r = SNT_OK;
  *out = word_of(s->options.weights, words, 3, &r);
  return r == SNT_OK ? r : host_fail(&s->diag, r, "weights", "no weights \"%s\": given f16 int8", s->options.weights);
}

snt_result tool_numerics(tool_session *s, uint32_t *out) {
  static const char *const words[] = {"default", "strict", "fast", "reproducible"};
  snt_result r = SNT_OK;
  *out = word_of(s->options.numerics, words, 4, &r);
  return r == SNT_OK ? r
                     : host_fail(&s->diag, r, "numerics", "no numerics mode \"%s\": default strict fast reproducible", s->options.numerics);
}

snt_result tool_compile_flags(tool_session *s, uint32_t targets, uint32_t flags, snt_program **out) {
  snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = targets, .flags = flags, .user = s};
  snt_image_port images[TOOL_MAX_PORTS];
  info.images = images;
  snt_result r = tool_numerics(s, &info.numerics);
  if (r != SNT_OK) return r;
  r = tool_weights(s, &info.weights);
  if (r != SNT_OK) return r;
  r = parse_images(s, images, &info.image_count);
  if (r != SNT_OK) return r;
  const bool terminal = isatty(2) && !s->options.quiet;
  if (terminal) info.progress = show_progress;
  if (s->env.dump_dir) r = host_make_dirs(s->env.dump_dir, &s->diag);
  if (r != SNT_OK) return r;
  if (s->env.dump_dir) info.dump = dump;
  host_glsl glsl = {NULL};
  if (host_glsl_found()) info.glsl = host_glsl_compile, info.glsl_user = &glsl;
  r = snt_compile(s->graph, s->profile, &info, out, &s->diag);
  host_glsl_free(&glsl);
  if (terminal) fprintf(stderr, "\r%24s\r", "");
  return r == SNT_OK ? s->dumped : r;
}

snt_result tool_compile(tool_session *s, uint32_t targets) {
  snt_result r = s->program ? SNT_OK : tool_compile_flags(s, targets, s->options.compile_flags, &s->program);
  if (r == SNT_OK) r = tool_check_names(s);
  return r == SNT_OK ? tool_settle_symbols(s) : r;
}

void tool_close(tool_session *s) {
  snt_exec_destroy(s->exec);
  tool_end_helpers(s);
  snt_program_destroy(s->program);
  snt_graph_destroy(s->graph);
  snt_profile_destroy(s->profile);
  snt_device_destroy(s->device);
  snt_context_destroy(s->context);
  host_cache_close(s->cache);
  tool_forget_data();
  free(s->text);
}

const char *tool_plural(uint32_t count) { return count == 1 ? "" : "s"; }

int tool_fail(const tool_session *s, snt_result r) {
  fprintf(stderr, "sinter: %s%s%s%s%s\n", s->options.model ? s->options.model : "", s->options.model ? ": " : "", snt_result_text(r),
          s->diag.text[0] ? ": " : "", s->diag.text);
  return r == SNT_E_ARG ? EXIT_USAGE : EXIT_FAILED;
}
