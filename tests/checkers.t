#!/bin/sh
# Patterns under the checkers: the Vulkan validation layers (core and synchronisation) on lavapipe and SwiftShader, valgrind on what runs on the host,
# Oclgrind on the tiny ones. What is missing is skipped aloud.
cd "$(dirname "$0")/.." || exit 1
sinter=${SNT_BUILD:-build/release}/sinter
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
number=0
failed=0
result() {
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; sed 's/^/# /' "$work/log"; fi
}
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }
found=$("$sinter" devices)

echo 'TAP version 13'
for device in vulkan:llvmpipe vulkan:swiftshader; do
  case $found in
  *"$device"*) ;;
  *) skip "validation on $device" "no such device" && continue ;;
  esac
  if ! "$sinter" run tests/patterns/tiny_sum.snt --device "$device+validate" >"$work/log" 2>&1; then
    grep -q 'VK_LAYER_KHRONOS_validation is not installed' "$work/log" && skip "validation on $device" 'no validation layers' && continue
  fi
  for model in tests/patterns/p*.snt tests/patterns/tiny_*.snt; do
    case $model in *_large.snt) continue ;; esac
    timeout 120 "$sinter" run "$model" --device "$device+validate" --quiet >"$work/log" 2>&1
    result $? "$(basename "$model") validates on $device"
  done
done
if command -v valgrind >/dev/null; then
  for model in tests/patterns/tiny_*.snt; do
    for device in host interp; do
      SNT_CACHE_DIR='' valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect "$sinter" run "$model" --device $device --check --quiet >"$work/log" 2>&1
      result $? "$(basename "$model") on $device under valgrind"
    done
  done
else
  skip valgrind 'no valgrind'
fi
# The uninitialised-read check of Oclgrind 21.10 crashes on vectors in private arrays; the kernel interpreter makes that check.
if command -v oclgrind >/dev/null; then
  for model in tests/patterns/tiny_*.snt; do
    OCLGRIND_UNINITIALIZED=0 OCLGRIND_LOG=$work/oclgrind timeout 300 "$sinter" run "$model" --device opencl:oclgrind --check --quiet >"$work/log" 2>&1
    status=$?
    if [ -s "$work/oclgrind" ]; then cat "$work/oclgrind" >>"$work/log"; status=1; fi
    rm -f "$work/oclgrind"
    result $status "$(basename "$model") silent under Oclgrind"
  done
else
  skip Oclgrind 'no oclgrind'
fi
echo "1..$number"
exit $failed
