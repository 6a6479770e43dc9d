/* The sinter command: a table of subcommands. */
#include "tools/sinter/tool.h"
#include <string.h>
#include <unistd.h>

// clang-format off
#define OF_GRAPHS                                                                                                                                            \
  "[--profile P|FILE] [--mask M] [--numerics default|strict|fast|reproducible] [--dim NAME=N] [--open] [--accuracy-level] [--fix NAME=FILE] "                                  \
  "[--fuse must:A,B|never:A,B|keep:A|barrier:A] [--no-rewrites] [--quiet]"
static const char graph_options[] = OF_GRAPHS;
static const char model_options[] = OF_GRAPHS " [--weights given|f16|int8] [--image PORT=chw|hwc|hw[,filtered]] [--unfused[=nodes]] [--line-info]";
static const tool_command commands[] = {
    {"devices", "devices [--json]", "Lists the devices found, each with the selector that --device takes.", command_devices, false, NULL},
    {"run", "run MODEL.snt|MODEL.onnx|FILE.sntp [--device D] [--dim NAME=N] [--open] [--accuracy-level] [--fix NAME=FILE] [--input NAME=FILE] [--output NAME=FILE] [--numerics M] [--weights given|f16|int8] [--mask M] [--check] [--unfused[=nodes]] [--no-rewrites] [--tune DIR [--timeout SECONDS]] [--learn] [--trace FILE.json [--runs N]]",
     "Compiles and runs a model. Inputs: FILE.npy, FILE.pb (a TensorProto), FILE.png[:nchw|nhwc|hw[:LO..HI]] or random[:SEED] (the default); outputs: FILE.npy, FILE.png or - (.npy).\nWithout --output, --check, --trace and --quiet it prints a line an output: name, type, the least, mean and largest of its numbers, and the first of them.\n--dim: an extent that the model leaves\n"
     "open; without, that of the inputs' files, else its hint. Of an ONNX model the kernels are made for just these, with --open for all: such a program is usually slower. Or the most of a length that\nan ONNX model computes and nothing in it bounds, by the name of its value, which the refusal says.\n--fix: an input of an ONNX model\n"
     "whose value the import is to know, as shapes that hang on it, or the file of a picture that ImageDecoder decodes: FILE.npy, FILE.pb, or any other file as its bytes, uint8[n].\n--accuracy-level: products of an ONNX model by weights of few bits whose accuracy_level is 4 round their rows to 8 bits, as ONNX Runtime does.\n--check compares every output with the f64 reference and prints max(error / bound); a ratio over 1 exits with 3.\n--trace writes a Chrome trace of the kernels, of --runs each the fastest.\n--tune: close choices are tried the other way on the\n"
     "device first, A B B A beyond the noise, and kept in DIR for the next time, for --timeout (120) seconds at most and what is then under way.\n--learn: kernels that the driver says spill are split.", command_run, false, model_options},
    {"explain", "explain MODEL.snt [--profile P | --device D] [--mask M] [--json | --html [--runs N]] [-o FILE] [--unfused[=nodes]]", "Shows the kernels a model becomes on a profile (pocl lavapipe rusticl swiftshader igpu dgpu mobile h100; cpu means pocl), and why.\n--html: one self-contained page with the\n"
     "graph before and after, each kernel in three languages, on every edge the reason; with --device estimated beside measured times.", command_explain, false, model_options},
    {"opt", "opt MODEL.snt --run PASSES [--profile P]", "Runs graph passes (canonicalise,decompose,rewrite ..) and prints the graph.", command_opt, false, graph_options},
    {"compile", "compile MODEL.snt --target opencl,spirv,cuda -o DIR|FILE.sntp [--profile P[,P..] | --device D] [--weights given|f16|int8] [--line-info] [--image PORT=chw|hwc|hw[,filtered]]", "Writes each kernel's code and the plan into DIR, or one saved program that run, explain, inspect and pack take; several profiles make it a pack with a variant each, of which the device chooses.\n"
     "--weights: what large weights and tables of rows are stored as; run --weights W --check says what that costs.\n"
     "--line-info: SPIR-V names values and gives each instruction its line of the kernel IR, for debuggers and profilers.", command_compile, false, model_options},
    {"inspect", "inspect FILE.sntp", "Prints what a saved program holds: symbols, ports, kernels with their sizes, what its weights are stored as, the plan.", command_inspect, false, NULL},
    {"inspect-kernel", "inspect-kernel MODEL.snt|MODEL.onnx [--profile P | --device D] [--kernel NAME] [--dim NAME=N] [--sample GROUPS] [--unfused[=nodes]] [--json]",
     "What each kernel asks of a device of the profile: 32-byte sectors of global memory that 32 neighbouring items touch at once beside the fewest possible, rounds lost to\n"
     "conflicts of 32 banks of local memory, barriers, instructions an item by class, operations a byte, live words, local bytes. Code as legalised for the profile's target,\n"
     "counted by the interpreter over --sample groups (4: the first, the last and between; inputs are zeros).\n--kernel: those with NAME in their name, access by access.", command_inspect_kernel, false, model_options},
    {"pack", "pack FILE.sntp --header FILE.h", "Writes a saved program as a C array.", command_pack, false, NULL},
    {"build", "build MODEL --device D [--jobs N] [--input NAME=FILE] [--tune DIR [--timeout SECONDS]] [--json]", "Compiles a model for a device and fills the cache of driver binaries, so that later runs start at once; says how long each part took.\n"
     "--jobs: kernels built at a time, by default one a processor.", command_build, false, model_options},
    {"bench", "bench MODEL|FOLDER.. --device D [--runs N] [--dim NAME=N] [--input NAME=FILE] [--no-unfused] [--tune DIR [--timeout SECONDS]] [--learn] [--json] | bench MODEL --device D --serve [--output NAME=FILE]",
     "Times the fused plan beside the unfused one, interleaved; a folder or several models make a Markdown table. Without --runs: for two seconds,\n"
     "at least 5 runs and at most 1000 of each. Keys of --json, a line a model: runs min_ms median_ms cpu_ms\n"
     "import_ms compile_ms build_ms ready_ms ready_cpu_ms kernels bytes_moved gbps gflops unfused_min_ms unfused_cpu_ms unfused_kernels bytes_unfused max_diff;\n"
     "what is not known is left out, bytes and rates where --dim asks a text model for other extents than its hints.\n"
     "--serve: when ready says so as JSON, then answers each line N of standard input with the milliseconds of N runs of the fused plan.", command_bench, true, model_options},
    {"calibrate", "calibrate [--device D] [-o FILE] [--quick] [--cpu-time] [--timeout SECONDS] [--quiet]",
     "Measures a profile of a device in under two minutes and writes it as text, each number with its noise and how it was measured; --profile FILE takes it.\n"
     "--quick: fewer and shorter samples, small shapes on a slow device, no memory beyond the caches: to see that it works. --cpu-time: by the time that the process was given, for a processor that others load.", command_calibrate, false, NULL},
    {"import", "import MODEL.onnx -o FILE.snt [--dim NAME=N] [--fix NAME=FILE]", "Writes an ONNX model as graph text, the weights in FILE.weights beside it.", command_import, false, NULL},
    {"onnx-test", "onnx-test [--device D] [--jobs N] [--timeout SECONDS] [--rtol X] [--atol X] FOLDER..",
     "Runs ONNX backend tests (model.onnx, test_data_set_*/input_*.pb, output_*.pb), each in a process of its own; folders are searched. TAP. Tolerances 1e-3 and 1e-7.", command_onnx_test, true, model_options},
    {"conform", "conform [--device D] [--profile smoke|standard|full] [OPTIONS]", "", NULL, false, NULL}, /* a program of its own, beside this one */
};
// clang-format on

/* `sinter conform ...` is the program sinter-conform in the folder of this one. */
static int run_conform(char **argv) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "-conform");
  if (length > 0) {
    memcpy(path + length, "-conform", sizeof "-conform");
    execv(path, argv + 1);
  }
  fprintf(stderr, "sinter: sinter-conform is not beside this program\n");
  return EXIT_FAILED;
}

/* One piece that stays together: to the next blank outside brackets. */
static size_t piece_of(const char *text) {
  int depth = 0;
  size_t n = 0;
  for (; text[n] && (depth > 0 || !strchr(" \n", text[n])); n++) depth += (text[n] == '[') - (text[n] == ']');
  return n;
}

/* Lines of at most 100 columns, all but the first behind `indent` blanks; `at`: columns that the first has already. A line of the text begins
   one of these where an option does. */
static void put_wrapped(FILE *to, size_t at, int indent, const char *text) {
  enum { COLUMNS = 100 };
  bool fresh = true; /* nothing of the text is in this line */
  while (*text) {
    const size_t piece = piece_of(text);
    const bool breaks = *text == '\n' && !strncmp(text, "\n--", 3);
    if (breaks || (!fresh && piece && at + 1 + piece > COLUMNS)) {
      fprintf(to, "\n%*s", indent, "");
      at = (size_t)indent, fresh = true;
    }
    if (piece) at += (size_t)fprintf(to, "%s%.*s", fresh ? "" : " ", (int)piece, text), fresh = false;
    text += piece + (piece == 0);
  }
  fprintf(to, "\n");
}

static void put_usage(FILE *to, const tool_command *command) { put_wrapped(to, (size_t)fprintf(to, "usage: sinter "), 7, command->usage); }

static void put_help(const tool_command *command) {
  put_usage(stdout, command);
  printf("\n");
  put_wrapped(stdout, 0, 0, command->help);
  if (!command->common) return;
  printf("\nAnd as %s:\n  ",
         command->common == model_options ? "every command that compiles a model" : "commands that compile a model, for its graph");
  put_wrapped(stdout, 2, 2, command->common);
}

static int usage(FILE *to) {
  fprintf(to, "usage: sinter COMMAND [OPTIONS]\n\nFuses a graph of tensor operators and runs it on OpenCL, Vulkan, CUDA or the host.\n\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) put_wrapped(to, (size_t)fprintf(to, "  sinter "), 9, commands[i].usage);
  fprintf(to, "\nEvery command that compiles a model takes, too:\n  ");
  put_wrapped(to, 2, 2, model_options);
  put_wrapped(to, 0, 0,
              "--fuse, as often as wanted: must (one kernel, or the obstacle is told), never, keep, barrier, each with names of values or "
              "outputs.");
  fprintf(to, "\n  sinter --version\n  sinter COMMAND --help\n\nA FILE to write of - is the standard output.\n\n");
  put_wrapped(to, 0, 0,
              "Environment: SNT_DEVICE and SNT_MASK where --device and --mask are not given; SNT_CACHE_DIR has what drivers built "
              "($XDG_CACHE_HOME/sinter or "
              "~/.cache/sinter; set to nothing: none is kept), SNT_CACHE_BYTES at most (1 GiB); SNT_DUMP_DIR gets the graph after each "
              "pass, the kernels and the "
              "plan; SNT_NVRTC names a libnvrtc.so outside the loader's path.");
  fprintf(to, "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 outside the bound of --check.\n");
  return to == stdout ? EXIT_GOOD : EXIT_USAGE;
}

static int run_command(int argc, char **argv) {
  if (argc < 2) return usage(stderr);
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) return usage(stdout);
  if (!strcmp(argv[1], "--version")) {
    printf("sinter %s\n", SNT_VERSION_TEXT);
    return EXIT_GOOD;
  }
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(argv[1], commands[i].name)) continue;
    if (!commands[i].run) return run_conform(argv);
    for (int a = 2; a < argc; a++)
      if (!strcmp(argv[a], "--help")) {
        put_help(&commands[i]);
        return EXIT_GOOD;
      }
    tool_options options;
    if (!tool_parse(&options, &commands[i], argc - 2, argv + 2)) {
      put_usage(stderr, &commands[i]);
      return EXIT_USAGE;
    }
    const uint32_t most = commands[i].many
                              ? UINT32_MAX
                              : commands[i].common || strstr(commands[i].usage, " FILE.sntp") || strstr(commands[i].usage, " MODEL");
    if (options.path_count > most) {
      fprintf(stderr, "sinter: %s: \"%s\"\n", most ? "a second model" : "no option, and no file is taken", options.paths[most]);
      put_usage(stderr, &commands[i]);
      return EXIT_USAGE;
    }
    return commands[i].run(&options);
  }
  fprintf(stderr, "sinter: no command \"%s\"; sinter --help lists them\n", argv[1]);
  return EXIT_USAGE;
}

int main(int argc, char **argv) {
  const int code = run_command(argc, argv);
  return host_end_output("sinter") || code ? code : EXIT_FAILED;
}
