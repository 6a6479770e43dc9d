# Compiler settings that hold for every file. Contraction is off everywhere: the reference evaluator, the folder and the interpreter
# must round as written, or no bound on a device's error means anything.
option(SINTER_BUILD_TOOLS "Build the sinter command, the benchmarks and the examples" ${PROJECT_IS_TOP_LEVEL})
include(CMakeDependentOption)
cmake_dependent_option(SINTER_BUILD_TESTS "Build the unit tests, which need the tools' library" ${PROJECT_IS_TOP_LEVEL} SINTER_BUILD_TOOLS OFF)
option(SINTER_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(SINTER_FUZZERS "Build tests/fuzz for libFuzzer instead of its own driver: clang, with SINTER_SANITIZE=fuzzer-no-link,address" OFF)
set(SINTER_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(SINTER_GENERATED ${PROJECT_BINARY_DIR}/generated)

# The smallest code a compiler makes: gcc has -Oz since 12 (1 % of the library less than -Os, no more instructions a compilation).
include(CheckCCompilerFlag)
check_c_compiler_flag(-Oz SINTER_HAS_OZ)
set(SINTER_SMALL $<IF:$<BOOL:${SINTER_HAS_OZ}>,-Oz,-Os>)
# Tables lie where their elements may, in place of every 32 bytes (gcc, x86): 2 KB between 300 of them.
check_c_compiler_flag(-malign-data=abi SINTER_HAS_ALIGN_DATA)

# Tables of texts are a thousand addresses, which a loader adjusts: 24 bytes each in the file, or a bit where linker and loader know DT_RELR.
if(NOT CMAKE_CROSSCOMPILING)
  include(CheckCSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
  check_c_source_runs("static const char *const texts[] = {\"a\", \"b\"}; int main(int n, char **v) { (void)v; return texts[n & 1][0] != 'b'; }"
    SINTER_PACK_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
endif()
set(SINTER_PACKED_RELOCATIONS $<$<BOOL:${SINTER_PACK_RELOCATIONS}>:-Wl,-z,pack-relative-relocs>)

# sinter_exports(target script): a shared library that shows what the version script names, and has no more than that needs. Windows knows no such scripts.
function(sinter_exports target script)
  target_link_options(${target} PRIVATE -Wl,--gc-sections)
  if(WIN32)
    target_link_options(${target} PRIVATE -static-libgcc)
  else()
    target_link_options(${target} PRIVATE -Wl,--version-script=${script} -Wl,--as-needed)
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${script})
  endif()
endfunction()

add_library(sinter_flags INTERFACE)
target_compile_definitions(sinter_flags INTERFACE $<$<BOOL:${MINGW}>:__USE_MINGW_ANSI_STDIO=1>)
target_compile_options(sinter_flags INTERFACE -Wall -Wextra -Wpedantic $<$<BOOL:${SINTER_WERROR}>:-Werror>
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_include_directories(sinter_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/api/include ${SINTER_GENERATED}/include)
if(SINTER_SANITIZE)
  # The checks that sanitizers insert mislead gcc's flow analysis: these warnings are for the builds without them.
  target_compile_options(sinter_flags INTERFACE -fsanitize=${SINTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow>)
  target_link_options(sinter_flags INTERFACE -fsanitize=${SINTER_SANITIZE})
endif()
