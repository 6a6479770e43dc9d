/* Options of all subcommands: one table, "--name value" or "--name=value". A command takes those that its usage names, and one that compiles those that all
   such take. */
#include "tools/sinter/tool.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { TEXT, MAY_BE_EMPTY, LIST, PAIR, FLAG, NUMBER, REAL, COMPILE } option_kind;
typedef struct option_info {
  const char *name;
  uint8_t kind;
  size_t offset, count_offset;
  uint32_t flag;
} option_info;
#define AT(field) offsetof(tool_options, field)
// clang-format off
static const option_info table[] = {
    {"--device", TEXT, AT(device), 0, 0}, {"--profile", TEXT, AT(profile), 0, 0}, {"--mask", MAY_BE_EMPTY, AT(mask), 0, 0}, {"--numerics", TEXT, AT(numerics), 0, 0},
    {"--header", TEXT, AT(header), 0, 0}, {"--target", TEXT, AT(target), 0, 0}, {"-o", TEXT, AT(out), 0, 0}, {"--run", TEXT, AT(passes), 0, 0}, {"--trace", TEXT, AT(trace), 0, 0},
    {"--input", PAIR, AT(inputs), AT(input_count), TOOL_MAX_PORTS}, {"--output", PAIR, AT(outputs), AT(output_count), TOOL_MAX_PORTS}, {"--image", PAIR, AT(images), AT(image_count), TOOL_MAX_PORTS}, {"--dim", PAIR, AT(dims), AT(dim_count), TOOL_MAX_DIMS},
    {"--fix", PAIR, AT(fixed), AT(fixed_count), TOOL_MAX_PORTS},
    {"--check", FLAG, AT(check), 0, 0}, {"--json", FLAG, AT(json), 0, 0}, {"--quiet", FLAG, AT(quiet), 0, 0}, {"--quick", FLAG, AT(quick), 0, 0}, {"--cpu-time", FLAG, AT(processor_time), 0, 0}, {"--runs", NUMBER, AT(runs), 0, 0},
    {"--serve", FLAG, AT(serve), 0, 0}, {"--no-unfused", FLAG, AT(no_unfused), 0, 0}, {"--share", TEXT, AT(share), 0, 0}, {"--tune", TEXT, AT(tune), 0, 0}, {"--learn", FLAG, AT(learn), 0, 0}, {"--open", FLAG, AT(open), 0, 0}, {"--accuracy-level", FLAG, AT(accuracy_level), 0, 0},
    {"--jobs", NUMBER, AT(jobs), 0, 0}, {"--timeout", NUMBER, AT(timeout), 0, 0}, {"--rtol", REAL, AT(rtol), 0, 0}, {"--atol", REAL, AT(atol), 0, 0},
    {"--unfused=nodes", COMPILE, 0, 0, SNT_COMPILE_UNFUSED_NODES}, {"--unfused", COMPILE, 0, 0, SNT_COMPILE_UNFUSED}, {"--no-rewrites", COMPILE, 0, 0, SNT_COMPILE_NO_REWRITES}, {"--line-info", COMPILE, 0, 0, SNT_COMPILE_LINE_INFO},
    {"--html", FLAG, AT(html), 0, 0}, {"--fuse", LIST, AT(fuse), AT(fuse_count), TOOL_MAX_FUSE},
    {"--weights", TEXT, AT(weights), 0, 0}, {"--kernel", TEXT, AT(kernel), 0, 0}, {"--sample", NUMBER, AT(sample), 0, 0},
};
// clang-format on

/* What means nothing without another, and what contradicts another. */
typedef struct option_rule {
  const char *command, *option, *other;
  bool needs; /* else: not both */
} option_rule;
static const option_rule rules[] = {
    {"run", "--runs", "--trace", true},      {"explain", "--runs", "--html", true},
    {"explain", "--runs", "--device", true}, {"bench", "--output", "--serve", true},
    {"bench", "--runs", "--serve", false},   {"run", "--timeout", "--tune", true},
    {"build", "--timeout", "--tune", true},  {"bench", "--timeout", "--tune", true},
    {"explain", "--html", "--json", false},  {NULL, "--unfused", "--unfused=nodes", false},
};

static bool complain(const char *what, const char *argument) {
  fprintf(stderr, "sinter: %s \"%s\"\n", what, argument);
  return false;
}

static bool set_pair(tool_options *o, const option_info *info, char *value) {
  tool_pair *pairs = (tool_pair *)(void *)((char *)o + info->offset);
  uint32_t *count = (uint32_t *)(void *)((char *)o + info->count_offset);
  char *equal = strchr(value, '=');
  if (!equal || equal == value || !equal[1])
    return fprintf(stderr, "sinter: %s: expected NAME=VALUE, got \"%s\"\n", info->name, value), false;
  if (*count == info->flag) return complain("too many of", info->name);
  *equal = 0;
  for (uint32_t i = 0; i < *count; i++)
    if (!strcmp(pairs[i].name, value)) return fprintf(stderr, "sinter: %s names \"%s\" twice\n", info->name, value), false;
  pairs[(*count)++] = (tool_pair){value, equal + 1};
  return true;
}

static bool add_text(tool_options *o, const option_info *info, const char *value) {
  const char **list = (const char **)(void *)((char *)o + info->offset);
  uint32_t *count = (uint32_t *)(void *)((char *)o + info->count_offset);
  if (*count == info->flag) return complain("too many of", info->name);
  list[(*count)++] = value;
  return true;
}

static bool set_number(uint32_t *out, const char *value) {
  uint64_t number;
  const bool good = host_read_number(value, &number) && number && number <= UINT32_MAX;
  *out = good ? (uint32_t)number : 0;
  return good;
}

static bool set_real(double *out, const char *value) {
  char *stop;
  *out = strtod(value, &stop);
  return stop > value && !*stop && *out >= 0;
}

static bool set_option(tool_options *o, const option_info *info, char *value) {
  char *field = (char *)o + info->offset;
  if (info->kind == TEXT && !*value) return complain("an empty value of", info->name);
  switch (info->kind) {
  case FLAG: *(bool *)(void *)field = true; return true;
  case COMPILE: o->compile_flags |= info->flag; return true;
  case TEXT:
  case MAY_BE_EMPTY: *(const char **)(void *)field = value; return true;
  case LIST: return add_text(o, info, value);
  case PAIR: return set_pair(o, info, value);
  case REAL:
    return set_real((double *)(void *)field, value) ||
           fprintf(stderr, "sinter: %s: not a number from 0 on: \"%s\"\n", info->name, value) < 0;
  default:
    return set_number((uint32_t *)(void *)field, value) ||
           fprintf(stderr, "sinter: %s: not a number from 1 on: \"%s\"\n", info->name, value) < 0;
  }
}

static const option_info *find_option(char *argument, char **value) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const size_t length = strlen(table[i].name);
    if (strncmp(argument, table[i].name, length)) continue;
    if (argument[length] == '=' && table[i].kind != FLAG && table[i].kind != COMPILE) {
      *value = argument + length + 1;
      return &table[i];
    }
    if (!argument[length]) {
      *value = NULL;
      return &table[i];
    }
  }
  return NULL;
}

static bool names(const char *usage, const char *option) {
  const size_t length = strlen(option);
  for (const char *at = strstr(usage, option); at; at = strstr(at + 1, option))
    if ((at == usage || at[-1] == ' ' || at[-1] == '[') && strchr(" ]=[", at[length])) return true;
  return false;
}

/* --share is of the helpers that build kernels, which are `build` commands. */
static bool takes(const tool_command *command, const option_info *info) {
  const char *option = info->kind == COMPILE && info->flag == SNT_COMPILE_UNFUSED_NODES ? "--unfused" : info->name;
  return names(command->usage, option) || (command->common && (names(command->common, option) || info->offset == AT(share)));
}

static bool is_given(const bool *given, const char *option) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, option)) return given[i];
  return false;
}

static bool keeps_rules(const tool_command *command, const bool *given) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const option_rule *r = &rules[i];
    if ((r->command && strcmp(r->command, command->name)) || !is_given(given, r->option) || is_given(given, r->other) == r->needs) continue;
    fprintf(stderr, r->needs ? "sinter: %s means nothing without %s\n" : "sinter: %s and %s: one of them\n", r->option, r->other);
    return false;
  }
  return true;
}

bool tool_parse(tool_options *o, const tool_command *command, int argc, char **argv) {
  bool given[sizeof table / sizeof *table] = {false};
  *o = (tool_options){.paths = argv, .rtol = 1e-3, .atol = 1e-7};
  for (int i = 0; i < argc; i++) {
    char *value = NULL;
    if (argv[i][0] != '-') {
      argv[o->path_count++] = argv[i]; /* to the front: those places were read */
      o->model = argv[0];
      continue;
    }
    const option_info *info = find_option(argv[i], &value);
    if (!info) return complain("unknown option", argv[i]);
    if (!takes(command, info)) return fprintf(stderr, "sinter: %s takes no option \"%s\"\n", command->name, info->name), false;
    const bool wants = info->kind != FLAG && info->kind != COMPILE;
    if (wants && !value && i + 1 == argc) return complain("a value is missing after", argv[i]);
    if (wants && !value) value = argv[++i];
    if (!set_option(o, info, value)) return false;
    given[info - table] = true;
  }
  if (o->profile && strchr(o->profile, ',') && !strstr(command->usage, "P[,P..]")) return complain("one profile, no list:", o->profile);
  return keeps_rules(command, given);
}
