#!/bin/sh
# Every pattern's kernels for every target, through the tools that know the languages: spirv-val, clang -x cl, nvcc (sm_80, sm_90).
# A few patterns meet nvcc here, all of them with SNT_TEST_FULL. Missing tools are skipped aloud.
cd "$(dirname "$0")/.." || exit 1
sinter=${SNT_BUILD:-build/release}/sinter
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
number=0
failed=0
clang=$(command -v clang-14 || command -v clang)
result() { # status, name
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; fi
}
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP no $2"; }

echo 'TAP version 13'
count=0
for model in tests/patterns/*.snt; do
  name=$(basename "$model" .snt)
  count=$((count + 1))
  for profile in pocl lavapipe dgpu; do
    "$sinter" compile "$model" --target opencl,spirv,cuda --profile "$profile" -o "$work/$name-$profile" >"$work/log" 2>&1
    status=$?
    result $status "$name compiles for $profile"
    [ $status = 0 ] || { sed 's/^/# /' "$work/log"; continue; }
    if command -v spirv-val >/dev/null; then
      bad=0
      for f in "$work/$name-$profile"/*.spv; do spirv-val --target-env vulkan1.1 "$f" >"$work/log" 2>&1 || { bad=1; sed 's/^/# /' "$work/log"; }; done
      result $bad "$name $profile: spirv-val"
    else
      skip "$name $profile: spirv-val" spirv-val
    fi
    if [ -n "$clang" ]; then
      bad=0
      for f in "$work/$name-$profile"/*.cl; do
        "$clang" -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only "$f" >"$work/log" 2>&1 || { bad=1; sed 's/^/# /' "$work/log"; }
      done
      result $bad "$name $profile: clang -x cl"
    else
      skip "$name $profile: clang" clang
    fi
  done
  if ! command -v nvcc >/dev/null; then
    skip "$name: nvcc" nvcc
  elif [ -n "${SNT_TEST_FULL-}" ] || [ $((count % 10)) = 1 ]; then
    bad=0
    for f in "$work/$name-dgpu"/*.cu; do
      for arch in sm_80 sm_90; do
        nvcc -arch=$arch -cubin -fmad=false -o "$work/x.cubin" "$f" >"$work/log" 2>&1 || { bad=1; sed 's/^/# /' "$work/log"; }
      done
    done
    result $bad "$name: nvcc sm_80 and sm_90"
  fi
done
echo "1..$number"
exit $failed
