/* sinter explain and sinter devices. */
#include "tools/sinter/tool.h"
#include <stdlib.h>
#include <string.h>

static int explain_page(const tool_options *options) {
  tool_session s;
  snt_result r = tool_open(&s, options, options->device != NULL);
  if (r == SNT_OK && !options->out) r = host_fail(&s.diag, SNT_E_ARG, "explain", "--html needs -o PAGE.html");
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  if (r == SNT_OK) r = tool_compile(&s, SNT_TARGET_OPENCL | SNT_TARGET_SPIRV | SNT_TARGET_CUDA);
  if (r == SNT_OK) r = tool_write_page(&s, options->out);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_close(&s);
  return code;
}

int command_explain(const tool_options *options) {
  if (options->html) return explain_page(options);
  tool_session s;
  snt_result r = tool_open(&s, options, options->device != NULL);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_compile(&s, 0);
  char *text = NULL;
  if (r == SNT_OK) r = tool_explain(s.program, options->json ? SNT_EXPLAIN_JSON : SNT_EXPLAIN_TEXT, &text);
  if (r == SNT_OK) r = host_write_file(options->out ? options->out : "-", text, strlen(text), &s.diag);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  free(text);
  tool_close(&s);
  return code;
}

static void put_device(const snt_device_info *info, bool first, bool last) {
  const char *const pairs[][2] = {{"selector", info->selector}, {"name", info->name}, {"driver", info->driver}, {"profile", info->profile}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    printf("%s\"%s\": ", i ? ", " : first ? "[\n  {" : "  {", pairs[i][0]);
    host_put_json(stdout, pairs[i][1], SIZE_MAX, "");
  }
  printf(last ? "}\n]\n" : "},\n");
}

int command_devices(const tool_options *options) {
  tool_session s;
  tool_options plain = *options;
  plain.profile = "pocl";
  host_prepare_drivers(NULL);
  snt_result r = tool_open(&s, &plain, false);
  uint32_t count = 0;
  if (r == SNT_OK) r = snt_device_list(s.context, &count, 0, NULL);
  snt_device_info *list = calloc(count + 1, sizeof *list);
  if (r == SNT_OK) r = list ? snt_device_list(s.context, &count, sizeof *list, list) : SNT_E_HOST_MEM;
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) {
    if (options->json) put_device(&list[i], i == 0, i + 1 == count);
    else printf("%-20s %-12s %s (%s)\n", list[i].selector, list[i].profile, list[i].name, list[i].driver);
  }
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  free(list);
  tool_close(&s);
  return code;
}
