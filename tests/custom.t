#!/bin/sh
# Operators of the user's own, through the tool: fused with their neighbours or a kernel apart, on every device of this machine, within the bound of the
# reference; the texts are what runs; every mistake is told with the operator's name.
cd "$(dirname "$0")/.." || exit 1
sinter=${SNT_BUILD:-build/release}/sinter
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
number=0
failed=0
result() { # status, name
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; sed 's/^/# /' "$work/log" 2>/dev/null; fi
}
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP no $2"; }
has_device() { "$sinter" devices 2>/dev/null | grep -q "$1"; }

echo 'TAP version 13'
custom=examples/custom/softclip.snt
kernel=examples/custom/rowsum.snt

for device in host interp opencl:pocl vulkan cuda-text; do
  case $device in
  opencl:pocl) has_device opencl || { skip "$device" OpenCL; continue; } ;;
  vulkan) { has_device vulkan && command -v glslangValidator >/dev/null; } || { skip "$device" 'Vulkan with glslangValidator'; continue; } ;;
  esac
  "$sinter" run $custom --device $device --dim n=2077 --check >"$work/log" 2>&1 && grep -q ' 1 kernel,' "$work/log"
  result $? "a custom operator is fused on $device, within its bound"
  "$sinter" run $custom --device $device --dim n=2077 --unfused --check >"$work/log" 2>&1
  result $? "and by itself on $device"
  "$sinter" run $kernel --device $device --dim h=77 --dim w=131 --check >"$work/log" 2>&1
  result $? "a kernel of the user's own on $device, with other extents than it was compiled for"
done

# The texts are what runs: one that computes something else is outside the bound.
wrong() { # language, device
  case $1 in
  opencl) sed 's/native_divide(x, /native_divide(2 * x, /' $custom >"$work/wrong.snt" ;;
  cuda) sed 's/return x \/ d/return 2 * x \/ d/' $custom >"$work/wrong.snt" ;;
  glsl) sed 's/glsl="x /glsl="2 * x /' $custom >"$work/wrong.snt" ;;
  esac
  "$sinter" run "$work/wrong.snt" --device "$2" --check >"$work/log" 2>&1
  [ $? = 3 ]
  result $? "the $1 text is what $2 runs"
  sed 's/return;/return; result[row] = 1; return;/; s/row] = sum/row] = 2 * sum/' $kernel >"$work/wrong.snt"
  "$sinter" run "$work/wrong.snt" --device "$2" --check >"$work/log" 2>&1
  [ $? = 3 ]
  result $? "and the $1 kernel"
}
if has_device opencl; then wrong opencl opencl:pocl; else skip 'the opencl text' OpenCL; fi
wrong cuda cuda-text
if has_device vulkan && command -v glslangValidator >/dev/null; then wrong glsl vulkan; else skip 'the glsl text' 'Vulkan with glslangValidator'; fi

if command -v spirv-val >/dev/null && command -v glslangValidator >/dev/null; then
  for model in $custom $kernel; do
    "$sinter" compile $model --target spirv --profile dgpu -o "$work/spv" >"$work/log" 2>&1 &&
      for f in "$work/spv"/*.spv; do spirv-val --target-env vulkan1.1 "$f" >"$work/log" 2>&1 || exit 1; done
    result $? "spirv-val: $(basename $model)"
    rm -rf "$work/spv"
  done
  "$sinter" compile $custom --target spirv --profile dgpu -o "$work/spv" >"$work/log" 2>&1
  spirv-dis "$work"/spv/*.spv 2>/dev/null | grep -c OpFunctionCall >"$work/count"
  [ "$(cat "$work/count")" -gt 0 ]
  result $? 'the function of the GLSL is called in the fused kernel'
else
  skip 'spirv-val' 'spirv-val with glslangValidator'
fi

# Nested repeats of the body, arguments that are numbers, one operand twice, several definitions, one calling another.
cat >"$work/more.snt" <<'EOF'
symbols { n: min=1 max=5000 hint=300 }
custom half(%x: f32) {
  %y = mul %x, 0.5
  yield %y
} opencl="x * 0.5f", cuda="x * 0.5f", glsl="x * 0.5"
custom average(%a: f32, %b: f32, %c: f32, %d: f32) {
  %1 = add %a, %b
  %2 = add %c, %d
  %3 = add %1, %2
  %4 = half %3
  %5 = half %4
  yield %5
} opencl="(a + b + (c + d)) * 0.25f", cuda="""
float s = a + b;
for (int i = 0; i < 1; i++) s += c + d;
return s * 0.25f;
""", glsl="""
float twice(float v) { return v * 2; }
%%
float s = a + b;
if (s > 1e30) return s;
s += c + d;
return twice(s) * 0.125;
"""
custom clamp_index(%i: i32, %top: i32) {
  %a = max %i, 0
  %b = min %a, %top
  yield %b
} opencl="clamp(i, 0, top)", cuda="i < 0 ? 0 : i < top ? i : top", glsl="clamp(i, 0, top)"
kernel outer(%x: f32[m], %y: f32[m]) {
  %a: f32[m,1] = reshape %x
  %b: f32[1,m] = reshape %y
  %c: f32[m,m] = broadcast %a
  %d: f32[m,m] = broadcast %b
  %r = mul %c, %d
  yield %r
} items=[8,8], groups=((m + 7)/8)*((m + 7)/8), scalars=[m], opencl="""
const uint tiles = (m + 7) / 8, r = snt_group / tiles * 8 + get_local_id(1), c = snt_group % tiles * 8 + get_local_id(0);
if (r < m && c < m) result[r * m + c] = x[r] * y[c];
""", cuda="""
const unsigned tiles = (m + 7) / 8, r = snt_group / tiles * 8 + threadIdx.y, c = snt_group % tiles * 8 + threadIdx.x;
if (r < m && c < m) result[r * m + c] = x[r] * y[c];
""", glsl="""
uint tiles = (m + 7) / 8, r = snt_group / tiles * 8 + gl_LocalInvocationID.y, c = snt_group % tiles * 8 + gl_LocalInvocationID.x;
if (r < m && c < m) result[r * m + c] = x[r] * y[c];
"""
graph @g(%x: f32[n], %k: i32[n]) {
  %m = average %x, %x, 2, 0.25
  %i = clamp_index %k, 5
  %j = cast %i, dtype=f32
  %s = mul %m, %j
  %rev = slice %s, starts=[n-1], sizes=[n], steps=[-1]
  %o = outer %rev, %rev
  %t = reduce.sum %o, axes=[1]
  return s=%s, t=%t
}
EOF
for device in host opencl:pocl vulkan cuda-text; do
  case $device in
  opencl:pocl) has_device opencl || { skip "$device" OpenCL; continue; } ;;
  vulkan) { has_device vulkan && command -v glslangValidator >/dev/null; } || { skip "$device" Vulkan; continue; } ;;
  esac
  "$sinter" run "$work/more.snt" --device $device --dim n=83 --check >"$work/log" 2>&1
  result $? "definitions that call each other, views and equal operands of a kernel: $device"
done

says() { # name, text that is expected, arguments: the command must fail and say it
  name=$1 text=$2
  shift 2
  "$sinter" "$@" >"$work/log" 2>&1 && status=1 || status=0
  grep -qF -- "$text" "$work/log" || status=1
  result $status "$name"
}
edit() { sed "$1" $custom >"$work/bad.snt"; }
editk() { sed "$1" $kernel >"$work/bad.snt"; }
edit 's/softclip %s, 0.5/softclip %s/'
says 'too few operands' 'softclip takes 2 operands, 1 are given' run "$work/bad.snt" --device host
edit 's/softclip %s, 0.5/softclip %s, 0.5, %s/'
says 'too many operands' 'softclip takes 2 operands, 3 are given' run "$work/bad.snt" --device host
edit 's/%x: f32,/%x: i32,/'
says 'a wrong type' 'softclip: operand 1 is f32, i32 is wanted' run "$work/bad.snt" --device host
edit 's/%b = fma %a/%b = fma %z/'
says 'a value that the body does not have' '%z is not defined' run "$work/bad.snt" --device host
edit 's/yield %y/yield %nothing/'
says 'a result that the body does not have' '%nothing is not defined' run "$work/bad.snt" --device host
edit 's/custom softclip/custom add/'
says 'the name of an operator' 'add is an operator already' run "$work/bad.snt" --device host
edit 's/ulp=16/ulps=16/'
says 'an attribute that there is not' 'ulps' run "$work/bad.snt" --device host
edit 's/%a = abs %x/%a = softclip %x, %k/'
says 'an operator that calls itself' 'without end' run "$work/bad.snt" --device host
edit 's/ulp=16/native/; s/, glsl="[^"]*"//'
says 'a target without a text' 'operator softclip has no source for spirv: it has opencl, cuda' compile "$work/bad.snt" --target spirv --profile dgpu -o "$work/no"
editk '/^"""*, cuda=/,/^"""*, glsl=/{/^"""*, glsl=/!d;s/^"""*, glsl=/""", glsl=/}'
says 'a kernel without a text for a target' 'operator rowsum has no source for cuda: it has opencl, glsl' compile "$work/bad.snt" --target cuda --profile dgpu -o "$work/no"
editk 's/items=\[64\]/items=[4096]/'
says 'too many work-items' 'items' run "$work/bad.snt" --device host
editk 's/, groups=[^,]*//'
says 'a kernel without groups' 'attribute groups is missing' run "$work/bad.snt" --device host
if has_device opencl; then
  edit 's/fabs(x)/fabx(x)/'
  says 'OpenCL C that does not compile' 'softclip:1:' run "$work/bad.snt" --device opencl:pocl
  editk 's/get_local_id(0)/get_locals(0)/'
  says 'nor a kernel of it' 'rowsum:2:' run "$work/bad.snt" --device opencl:pocl
else
  skip 'OpenCL C that does not compile' OpenCL
fi
edit 's/return x/return zz/'
says 'CUDA that does not compile' 'softclip:3:' run "$work/bad.snt" --device cuda-text
if command -v glslangValidator >/dev/null; then
  edit 's/abs(x))"/abz(x))"/'
  says 'GLSL that does not compile' 'operator softclip: ERROR:' compile "$work/bad.snt" --target spirv --profile dgpu -o "$work/no"
  edit 's/glsl="[^"]*"/glsl="x + float(gl_GlobalInvocationID.x)"/'
  says 'GLSL that is no function of its operands' 'operator softclip: its GLSL reads memory or built-in variables' compile "$work/bad.snt" --target spirv --profile dgpu -o "$work/no"
  edit 's/glsl="[^"]*"/glsl="float(double(x))"/'
  says 'GLSL that needs a capability' 'operator softclip: its GLSL needs a capability' compile "$work/bad.snt" --target spirv --profile dgpu -o "$work/no"
else
  skip 'GLSL that does not compile' glslangValidator
fi
echo "1..$number"
exit $failed
