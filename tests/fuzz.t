#!/bin/sh
# Graphs grown at random: each is compiled with fusion and held against the f64 reference, and in STRICT against itself unfused, bit by bit. Kernels of
# several classes of devices run on the interpreter, which also sees races and reads of what nothing wrote. Seeds are those of the revision: new with each, the same
# wherever it is tested; without a repository new each time. They are printed: `sinter conform --grow` repeats one, SNT_FUZZ_SEED gives another. What once failed stands in tests/fuzz/seeds. With SNT_TEST_FULL: twenty times as many, and the drivers found.
# Then bytes and texts of which most are wrong: ONNX models, texts of graphs and kernels, saved programs, entries of the cache, from tests/fuzz/corpus and mutations of
# it, under the sanitizers of build/debug where that is built; and by libFuzzer where build/fuzz is (SNT_TEST_FULL builds it). A mutation that fails is kept as a file.
cd "$(dirname "$0")/.." || exit 1
conform=${SNT_BUILD:-build/release}/sinter-conform
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
SNT_CACHE_DIR= && export SNT_CACHE_DIR
number=0
failed=0
result() { # status, name
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; fi
}
classes=interp,interp=pocl,interp=lavapipe,interp=swiftshader,interp=rusticl,interp=h100,interp=mobile,interp=igpu,interp=dgpu
tree=$(git rev-parse 'HEAD^{tree}' 2>/dev/null | cut -c1-5)
seed=${SNT_FUZZ_SEED:-$((${tree:+0x}${tree:-$(date +%s)} % 1000000))}

run() { # name, count of graphs that must pass at least, options
  name=$1 least=$2
  shift 2
  if "$conform" --time 0 "$@" >"$work/log" 2>&1; then status=0; else status=1; fi
  passed=$(grep -c '^ok' "$work/log")
  [ "$passed" -ge "$least" ] || status=1
  result $status "$name: $passed"
  grep -A30 '^not ok\|shrunk to' "$work/log" | grep -v '^ok' | sed 's/^/# /' | head -150
}

echo 'TAP version 13'
run 'graphs that once failed' 200 --graph tests/fuzz/seeds --device $classes
run 'graphs that once failed, on four bindings' 500 --graph tests/fuzz/seeds --device interp=lavapipe,interp=swiftshader --mask bindings=4
count=170
[ -z "$SNT_TEST_FULL" ] || count=3400
number_of_class=0
for class in $(echo $classes | tr , ' '); do
  number_of_class=$((number_of_class + 1))
  run "seed $((seed + number_of_class)), $count graphs on $class" $count --grow $count --seed $((seed + number_of_class)) --device "$class"
done
# An operator with a structure of its own, and readers of its values at several places: all 5640 pairs with SNT_TEST_FULL. Then two such, one on the other's result.
for list in pair triple; do
  count=70
  [ $list = pair ] || count=50
  [ -z "$SNT_TEST_FULL" ] || count=5640
  number_of_class=0
  for class in $(echo $classes | tr , ' '); do
    number_of_class=$((number_of_class + 1))
    run "seed $((seed + number_of_class)), $count graphs of ${list}s on $class" $count --$list $count --seed $((seed + number_of_class)) --device "$class"
  done
done
# What passes, made and run in other ways: saved, on two threads, with other extents, with a state for an input, compiled otherwise (conformance/ways.c).
count=25
[ -z "$SNT_TEST_FULL" ] || count=600
for class in interp interp=pocl interp=mobile; do
  run "seed $seed, $count graphs on $class in other ways" $((count * 4 / 5)) --ways --grow $count --seed $seed --device "$class"
  run "seed $seed, $count graphs of pairs on $class in other ways" $((count * 4 / 5)) --ways --pair $count --seed $seed --device "$class"
done
if [ -n "$SNT_TEST_FULL" ]; then
  run 'graphs that once failed, on every device' 200 --graph tests/fuzz/seeds --expect tests/conform.expect
  run "seed $seed, 300 graphs on every device" 300 --grow 300 --seed "$seed" --expect tests/conform.expect
fi

# ---- parsers ----
checked=${SNT_FUZZ_BUILD:-build/debug}
[ -x "$checked/tests/fuzz_onnx" ] || checked=${SNT_BUILD:-build/release}
seconds=6
[ -z "$SNT_TEST_FULL" ] || seconds=300
# Saved programs are of one version of the library only, so those to begin with are made here.
mkdir "$work/blob"
for target in opencl spirv cuda; do
  for model in tests/fuzz/corpus/text/*.snt; do
    "${SNT_BUILD:-build/release}/sinter" compile "$model" --target $target --profile pocl -o "$work/blob/$target-$(basename "$model").sntp" >"$work/log" 2>&1 || cat "$work/log"
  done
done
corpus_of() { # fuzzer
  case $1 in
  blob) echo "$work/blob" ;;
  text) echo tests/golden/graph tests/golden/kernel tests/patterns tests/fuzz/seeds tests/fuzz/corpus/text ;;
  *) echo "tests/fuzz/corpus/$1" ;;
  esac
}
parsers='blob cache onnx text'
for fuzzer in $parsers; do
  # shellcheck disable=SC2046 # folders
  if "$checked/tests/fuzz_$fuzzer" --seconds $seconds --seed "$seed" $(corpus_of "$fuzzer") >"$work/log" 2>&1; then status=0; else status=1; fi
  result $status "$(sed -n 's/^\(not \)*ok 2 - //p' "$work/log"), $checked"
  [ $status = 0 ] || sed 's/^/# /' "$work/log" | tail -60
done
# Models of one operator with one thing wrong each.
mkdir "$work/nodes" "$work/varied"
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
if $python tests/onnx/contrib "$work/nodes" >"$work/log" 2>&1 && $python tests/onnx/recent "$work/nodes" >>"$work/log" 2>&1; then
  $python tests/onnx/vary "$work/varied" "$work"/nodes/*/model.onnx >"$work/log" 2>&1 &&
    "$checked/tests/fuzz_onnx" --whole "$work/varied" >"$work/log" 2>&1
  result $? "nodes with one thing wrong: $(sed -n 's/^\(not \)*ok 2 - //p' "$work/log"), $checked"
  grep -v '^ok' "$work/log" | sed 's/^/# /' | tail -60
else
  number=$((number + 1))
  echo "ok $number - nodes with one thing wrong # SKIP python3-onnx, python3-numpy and python3-pil are not installed"
fi
if [ -n "$SNT_TEST_FULL" ] && command -v clang-14 >/dev/null; then
  { cmake --preset fuzz && cmake --build --preset fuzz; } >"$work/log" 2>&1
  result $? 'the fuzzers are built for libFuzzer'
fi
for fuzzer in $parsers; do
  if [ -x "build/fuzz/tests/fuzz_$fuzzer" ]; then
    mkdir "$work/found.$fuzzer"
    # shellcheck disable=SC2046
    "build/fuzz/tests/fuzz_$fuzzer" -seed="$seed" -max_total_time=$seconds -timeout=60 -artifact_prefix="fuzz-$fuzzer-" "$work/found.$fuzzer" \
      $(corpus_of "$fuzzer") >"$work/log" 2>&1
    status=$?
    result $status "$fuzzer by libFuzzer, seed $seed: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 runs/p' "$work/log")"
    [ $status = 0 ] || tail -60 "$work/log" | sed 's/^/# /'
  else
    number=$((number + 1))
    echo "ok $number - $fuzzer by libFuzzer # SKIP build/fuzz is not built (clang: cmake --preset fuzz)"
  fi
done

# What is no graph is an error, and a seed gives as many graphs as it was asked for.
printf 'graph @wrong(%%x: f32[4]) {\n  %%a = add %%x, %%nothing\n  return y=%%a\n}\n' >"$work/wrong.snt"
"$conform" --graph "$work/wrong.snt" --device interp >"$work/log" 2>&1
[ $? = 1 ]; result $? 'a graph that is none is refused'
[ "$("$conform" --grow 500 --seed 7 --list | sort -u | wc -l)" = 500 ]; result $? 'every graph of a seed is another'
echo "1..$number"
exit $failed
