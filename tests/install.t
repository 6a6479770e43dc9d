#!/bin/sh
# A program outside the tree finds the installed library through pkg-config and through find_package, shared and static, builds
# against it and runs. Output: TAP.
cd "$(dirname "$0")/.." || exit 1
build=${SNT_BUILD:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0

# check NAME COMMAND...: one line of TAP; what the command said is shown if it fails.
check() {
  name=$1
  shift
  count=$((count + 1))
  if "$@" >"$work/log" 2>&1; then
    echo "ok $count - $name"
  else
    echo "not ok $count - $name"
    sed 's/^/# /' "$work/log"
  fi
}

echo 'TAP version 13'
if [ ! -f "$build/libsinter.so" ]; then
  echo "1..0 # SKIP no library in $build"
  exit 0
fi
prefix=$work/prefix
consumer=$work/consumer
mkdir "$consumer"
check 'installs into a prefix' cmake --install "$build" --prefix "$prefix"

# The consumer includes every public header and calls into the library.
{
  for header in "$prefix"/include/sinter/*.h; do
    case $(basename "$header") in
    *cuda*) ;; # needs the CUDA toolkit's headers only where that is installed
    *) echo "#include <sinter/$(basename "$header")>" ;;
    esac
  done
  cat <<'END'
#include <stdio.h>
int main(void) {
  printf("version %u\n", (unsigned)snt_version());
  return snt_version() == 0;
}
END
} >"$consumer/main.c"
cat >"$consumer/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(sinter 0.1 REQUIRED)
add_executable(shared_user main.c)
target_link_libraries(shared_user PRIVATE sinter::sinter)
add_executable(static_user main.c)
target_link_libraries(static_user PRIVATE sinter::sinter_static)
END

cat >"$consumer/runtime.c" <<'END'
#include <sinter/vulkan.h>
int main(void) {
  snt_context *c = 0;
  snt_program *p = 0;
  const snt_result r = snt_context_create(0, &c);
  const snt_result refused = snt_program_load(c, "nothing", 7, &p, 0);
  snt_context_destroy(c);
  return r != SNT_OK || refused != SNT_E_BAD_BLOB;
}
END
cat >>"$consumer/CMakeLists.txt" <<'END'
add_executable(runtime_user runtime.c)
target_link_libraries(runtime_user PRIVATE sinter::sinter_runtime)
add_executable(runtime_static_user runtime.c)
target_link_libraries(runtime_static_user PRIVATE sinter::sinter_runtime_static)
END

check 'find_package configures a consumer' cmake -S "$consumer" -B "$consumer/b" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
check 'the consumer builds' cmake --build "$consumer/b"
check 'the command finds its decoders of pictures' "$prefix/bin/sinter" run tests/fuzz/corpus/onnx/imagedecoder_20_pnm_rgb.onnx --device host
check 'it runs with the shared library' "$consumer/b/shared_user"
check 'it runs with the static library' "$consumer/b/static_user"

check 'a program runs with the shared runtime library' "$consumer/b/runtime_user"
check 'a program runs with the static runtime library' "$consumer/b/runtime_static_user"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sinter.pc)")
export PKG_CONFIG_PATH
check 'pkg-config knows sinter' pkg-config --exists --print-errors sinter
# shellcheck disable=SC2046 # flags are words
check 'a C99 program builds with the flags of pkg-config' \
  cc -std=c99 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags sinter) "$consumer/main.c" -o "$consumer/by_pkg" \
  $(pkg-config --libs sinter) -Wl,-rpath,"$(pkg-config --variable=libdir sinter)"
check 'it runs' "$consumer/by_pkg"
# shellcheck disable=SC2046
check 'a C99 program builds with the flags of sinter-runtime' \
  cc -std=c99 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags sinter-runtime) "$consumer/runtime.c" -o "$consumer/runtime_by_pkg" \
  $(pkg-config --libs sinter-runtime) -Wl,-rpath,"$(pkg-config --variable=libdir sinter-runtime)"
check 'it runs' "$consumer/runtime_by_pkg"

# The examples as a reader of them builds them: strict C11, nothing but the installed files.
example() { # package file
  # shellcheck disable=SC2046
  check "$2 builds with the flags of $1" cc -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags "$1") "examples/$2" \
    -o "$consumer/$(basename "$2" .c)" $(pkg-config --libs "$1") -ldl -lm -Wl,-rpath,"$(pkg-config --variable=libdir sinter)"
}
example sinter minimal.c
check 'minimal runs' "$consumer/minimal" interp
example sinter describe/describe.c
check 'describe runs' "$consumer/describe"
example sinter opencl/opencl.c
example sinter cuda/cuda.c
example sinter-runtime saved/saved.c
example sinter-onnx onnx.c
check 'onnx runs' "$consumer/onnx" tests/fuzz/corpus/onnx/gelu_20.onnx interp
mkdir "$work/parent"
cat >"$work/parent/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(parent C)
add_subdirectory($(pwd) sinter)
if(TARGET tools_sinter_main OR SINTER_WERROR)
  message(FATAL_ERROR "a project that only uses the library got its tools, or its warnings as errors")
endif()
END
check 'configures inside another project' cmake -S "$work/parent" -B "$work/parent/b" -G Ninja

# shellcheck disable=SC2016 # the inner shell expands
check 'no installed file names the source tree' sh -c '! grep -rlIF -- "$1" "$2"' sh "$(pwd)" "$prefix"
echo "1..$count"
