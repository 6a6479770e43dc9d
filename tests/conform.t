#!/bin/sh
# The conformance suite: that it can fail (a wrong result, a killed and a hanging process, one that fails once, an expectation that no longer holds), and a first part of
# its cases on every device found; more of them with SNT_TEST_FULL.
cd "$(dirname "$0")/.." || exit 1
export POCL_DEVICES="${POCL_DEVICES-pthread}" # small as they are, cases run on several threads (api/exec_near.c)
conform=${SNT_BUILD:-build/release}/sinter-conform
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
number=0
failed=0
result() { # status, name
  number=$((number + 1))
  if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=1; fi
}
has() { grep -q -- "$1" "$2"; result $? "$3"; }

echo 'TAP version 13'
"$conform" --device interp --filter self. --self-test --case-time 2 --compile-time 4 --json "$work/self.jsonl" >"$work/self" 2>&1
[ $? = 1 ]; result $? 'cases that must fail: exit code 1'
has '^# fail: y\[0\]: got' "$work/self" 'a wrong result is seen'
has '^# crash: the process ended' "$work/self" 'a killed process is one case'
has '^# timeout:' "$work/self" 'a kernel that never ends is one case'
has '^# flaky: y\[0\]: got' "$work/self" 'a case that fails once and passes in a new process is said to be flaky, and does not pass'
has '^1\.\.4$' "$work/self" 'and the run goes on'
echo 'interp self. 2999-12-31 made to fail' >"$work/known"
"$conform" --device interp --filter self. --self-test --case-time 2 --compile-time 4 --expect "$work/known" >"$work/excused" 2>&1
result $? 'what is expected to fail does not count'
echo 'interp neg.f32 2999-12-31 does not fail at all' >"$work/known"
"$conform" --device interp --filter neg.f32.real.prime.alone --expect "$work/known" >"$work/log" 2>&1
[ $? = 1 ]; result $? 'an expectation that does not hold is a failure'
echo 'interp self. 2001-01-01 long ago' >"$work/known"
"$conform" --device interp --filter self.wrong --self-test --expect "$work/known" >"$work/log" 2>&1
[ $? = 1 ]; result $? 'an expired expectation excuses nothing'
echo 'three words only' >"$work/known"
"$conform" --device interp --expect "$work/known" >"$work/log" 2>&1
[ $? = 2 ]; result $? 'a broken expectation is refused'
has ':1: not' "$work/log" 'with its line'
"$conform" --device opencl:nowhere --filter neg.f32.real.prime >"$work/log" 2>&1
[ $? = 1 ]; result $? 'a device that is not there is a failure'
"$conform" report "$work/self.jsonl" -o "$work/page.html" >/dev/null 2>&1
result $? 'a page is made'
has '"revision": "' "$work/self.jsonl" 'of a suite whose revision is told'
has '<summary><b>timeout' "$work/page.html" 'that shows the failures'
has '<summary>its kernels</summary><pre>// kernel 1 of 1' "$work/page.html" 'and their kernels'
"$conform" report "$work/self.jsonl" -o "$work/table.md" >/dev/null 2>&1
has '^| self | .*, \*\*4 failed\*\* |$' "$work/table.md" 'a table says how many failed'
# Ended from outside, a run has whole lines: the parts of it can be read.
: >"$work/ended" # what is started may come to open it later than it is looked into
"$conform" --device interp --count 600 --jobs 1 --json "$work/ended.jsonl" >"$work/ended" 2>&1 &
ended=$!
while kill -0 $ended && [ "$(grep -c '^ok' "$work/ended")" -lt 5 ]; do sleep 0.1; done
kill -KILL $ended; wait $ended 2>/dev/null
"$conform" report "$work/ended.jsonl" -o "$work/ended.html" >"$work/log" 2>&1 && [ "$(wc -l <"$work/ended.jsonl")" -ge 5 ]
result $? 'a run that was killed can be read up to there'
# Stopped as a whole for longer than a case may take (a machine that sleeps, a debugger): no child hangs for that.
: >"$work/slept"
perl -e 'setpgrp; exec @ARGV' "$conform" --device interp --count 600 --case-time 12 --compile-time 12 --jobs 2 >"$work/slept" 2>&1 &
sleeper=$!
while kill -0 $sleeper && ! grep -q '^ok' "$work/slept"; do sleep 0.1; done
kill -STOP -$sleeper && sleep 15
kill -CONT $sleeper && sleep 1 # the parent first
kill -CONT -$sleeper && wait $sleeper; result $? 'a pause of all its processes is not taken for a hanging case'
grep -A1 '^not ok' "$work/slept" | sed 's/^/# /'
# Devices against each other: lines by hand, of four devices.
for device in a b c d; do
  { echo "{\"suite\": \"1\", \"revision\": \"r\", \"seed\": 1, \"device\": \"dev:$device\", \"name\": \"n\", \"driver\": \"d\", \"profile\": \"p\"}"
    case $device in a) said='fail pass fail pass skip pass' ;; b) said='pass fail fail pass pass pass' ;; *) said='pass fail fail pass fail pass' ;; esac
    case $device in d) said='pass pass fail pass pass pass' ;; esac
    case $device in c) ratio=0.9 ;; *) ratio=0.01 ;; esac
    i=0
    for result in $said; do
      i=$((i + 1))
      echo "{\"id\": \"case$i.f32.fused\", \"family\": \"case\", \"result\": \"$result\", \"ratio\": $([ $i = 4 ] && echo $ratio || echo 0), \"kernels\": 1, \"us\": 1}"
    done
    case $device in b) bits=00000000000000ff ;; *) bits=00000000000000fd ;; esac
    echo "{\"id\": \"bits1.f32.same\", \"family\": \"bits\", \"result\": \"pass\", \"ratio\": 0, \"bits\": \"$bits\", \"kernels\": 1, \"us\": 1}"
    echo "{\"id\": \"bits2.f32.fused\", \"family\": \"bits\", \"result\": \"pass\", \"ratio\": 0, \"bits\": \"$bits\", \"kernels\": 1, \"us\": 1}"
    echo "{\"id\": \"bits3.i32.fused\", \"family\": \"bits\", \"result\": \"fail\", \"ratio\": 2, \"bits\": \"0000000000000001\", \"kernels\": 1, \"us\": 1}"
    echo "{\"id\": \"bits4.i32.fused\", \"family\": \"bits\", \"result\": \"$([ $device = b ] && echo pass || echo fail)\", \"bits\": \"$bits\", \"kernels\": 1, \"us\": 1}"
    } >"$work/$device.jsonl"
done
"$conform" report "$work"/[abcd].jsonl -o "$work/votes.html" >/dev/null 2>&1
result $? 'runs of four devices make a page'
has '<b>dev:a</b> alone fails of 4: <code>case1.f32.fused</code>' "$work/votes.html" 'that names the device which alone fails'
has '<b>dev:a</b> and all others fail of 4: <code>case3.f32.fused</code>' "$work/votes.html" 'a case that all fail'
has '<b>dev:c</b> is far above the others of 4: <code>case4.f32.fused</code> (0.9 of the bound, the others 0.01 at most)' "$work/votes.html" 'a device whose error is far above the others'
has '<b>dev:c</b> alone fails of 3: <code>case5.f32.fused</code>' "$work/votes.html" 'where one skipped the case, the other three'
has '<b>dev:b</b> alone has other bits of 4: <code>bits1.f32.same</code>' "$work/votes.html" 'a device whose bits are others where all must be the same'
has 'all others fail of 4: <code>bits3.i32.fused</code>, with the same bits: the reference stands alone' "$work/votes.html" 'the reference, where all fail alike'
has '<b>dev:b</b> alone passes of 4: <code>bits4.i32.fused</code>: the others have the same bits' "$work/votes.html" 'and whoever passes where the others agree'
! grep 'of [0-9]: <code>bits2' "$work/votes.html"; result $? 'bits that may differ have no vote'
! grep 'of [0-9]: <code>case[26]' "$work/votes.html"; result $? 'and nothing where two stand against two, or none alone'
"$conform" report "$work"/[ab].jsonl -o "$work/votes.html" >/dev/null 2>&1
! grep 'id=votes' "$work/votes.html"; result $? 'two devices have no vote'
[ "$("$conform" --list | wc -l)" -ge 20000 ]; result $? 'at least 20 000 cases'
[ "$("$conform" --list | head -400 | sed 's/\..*//' | sort -u | wc -l)" -ge 100 ]; result $? 'whose beginning covers the operators'

# A device that there is not is told before a list is made, which would fail here; those beside it run.
"$conform" --device opencl:nosuch --graph "$work/nothing" >"$work/log" 2>&1
[ $? = 1 ] && [ "$(cat "$work/log")" = "$(printf 'TAP version 13\nnot ok 1 - opencl:nosuch opens\n# %s\n1..1' "$(sed -n 's/^# //p' "$work/log")")" ]; result $? 'a device that there is not, before the list'
"$conform" --device opencl:nosuch,interp --filter neg.f32.real.prime.alone.fused >"$work/log" 2>&1
[ $? = 1 ] && grep -q '^not ok 1 - opencl:nosuch opens$' "$work/log" && grep -q '^ok 2 - neg' "$work/log"; result $? 'and one beside another'
for wrong in '--device nosuch' '--device interp,nosuch' '--device interp=nosuch' '--mask nosuch' '--device interp --mask nosuch'; do
  "$conform" $wrong --filter neg.f32.real.prime.alone.fused >"$work/out" 2>"$work/log"
  [ $? = 2 ] && grep -q nosuch "$work/log" && [ ! -s "$work/out" ]; result $? "$wrong: wrong usage, nothing is run"
done

# A graph that is none, or has more ports than a case may, is told before anything runs, and why.
printf 'graph @g(%%x: f32[2]) {\n  %%y = neg %%z\n  return y=%%y\n}\n' >"$work/none.snt"
{ printf 'graph @g('; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do printf '%%x%d: f32[2], ' "$i"; done
  printf '%%x: f32[2]) {\n  %%y = neg %%x\n  return y=%%y\n}\n'; } >"$work/wide.snt"
for wrong in 'none %z' 'wide 25 ports'; do
  "$conform" --device interp --graph "$work/${wrong%% *}.snt" >"$work/out" 2>"$work/log"
  [ $? = 1 ] && grep -q "${wrong%% *}.snt: .*: .*${wrong#* }" "$work/log"; result $? "a graph that no case can be of: $wrong"
done

# In other ways: extents that are multiples of two, and a state of the graph's own beside an input that an output would replace.
printf 'symbols { n: min=2 max=64 multiple_of=2 hint=8 }\ngraph @g(state %%s: f32[4,3], %%x: f32[n,3]) {\n  %%m = reduce.max %%x, axes=[0], keep\n  %%b = broadcast %%m, shape=[4,3]\n  %%y = add %%s, %%b\n  update %%s, %%y\n  %%z = neg %%x\n  return y=%%y, z=%%z\n}\n' >"$work/ways.snt"
"$conform" --device interp --graph "$work/ways.snt" --ways >"$work/log" 2>&1; result $? 'multiples and states in other ways'

# A driver that never answers is ended where it is opened.
mkdir "$work/silent"
if cc -shared -fPIC tests/lost/silent.c -o "$work/silent/libOpenCL.so.1" 2>"$work/log"; then
  LD_LIBRARY_PATH=$work/silent "$conform" --device opencl:0,interp --compile-time 5 --filter neg.f32.real.prime.alone.fused >"$work/log" 2>&1
  [ $? = 1 ] && grep -q '^not ok 1 - opencl:0 opens$' "$work/log" && grep -q '^# opening opencl:0: no answer in 5 s; the process was ended$' "$work/log" && grep -q '^ok 2 - neg' "$work/log"
  result $? 'a driver that does not answer when it is opened, and a device beside it'
fi
"$conform" --device interp --grow 1 --save "$work/log/below" >"$work/said" 2>&1
[ $? = 2 ] && grep -q -- '--save: .*log.*: Not a directory' "$work/said"; result $? 'a folder that there cannot be is told before anything runs'

# A device that is lost (by a loader in place of Vulkan's, whose first submissions say so): once, a flaky case; twice, one that fails; those after it run.
real=$(/sbin/ldconfig -p | sed -n 's/.*libvulkan\.so\.1 .*=> //p' | head -1)
mkdir "$work/lost"
lost() { # how often
  head -c "$1" /dev/zero >"$work/losses"
  LD_LIBRARY_PATH=$work/lost SNT_LOSSES=$work/losses "$conform" --device vulkan:llvmpipe --filter neg.f32.real.prime.alone --jobs 1 >"$work/lost.log" 2>&1
}
if [ -n "$real" ] && cc -shared -fPIC -DREAL_LOADER="\"$real\"" tests/lost/vulkan.c -o "$work/lost/libvulkan.so.1" 2>"$work/log" && ! { lost 0; grep '^not ok.* opens$' "$work/lost.log"; }; then
  cases=$(grep -c '^ok' "$work/lost.log")
  lost 1
  has '^# flaky: device lost' "$work/lost.log" 'a device lost once: a flaky case'
  lost 2
  has '^# fail: device lost' "$work/lost.log" 'a device lost twice: a case that fails'
  [ "$(grep -c '^ok' "$work/lost.log")" = $((cases - 1)) ] && [ "$(grep -c '^not ok' "$work/lost.log")" = 1 ]; result $? "and the other $((cases - 1)) pass, on the device opened again"
else
  number=$((number + 1))
  echo "ok $number - a lost device # SKIP no Vulkan loader, or no device llvmpipe"
fi

names() { sed -n 's/^ok [0-9]* - \([^ ]*\).*/\1/p' "$1"; } # of the cases that passed
part() { "$conform" --device interp --filter neg.f32.real.prime "$@" 2>&1; }
part --list | sort >"$work/listed"
part >"$work/whole"
: >"$work/parts"
for i in 1 2 3; do part --shard $i/3 --jobs 2 --json "$work/part$i.jsonl" >"$work/part" && names "$work/part" | sort >"$work/names"
  part --list --shard $i/3 | sort | cmp -s - "$work/names"; result $? "part $i of 3: the cases that it lists"
  names "$work/part" >>"$work/parts"
done
names "$work/whole" | sort | cmp -s - "$work/listed" && sort "$work/parts" | cmp -s - "$work/listed"; result $? 'three parts are the whole, each case in one of them'
cat "$work"/part[123].jsonl >"$work/joined.jsonl"
"$conform" report "$work/joined.jsonl" -o "$work/joined.html" >"$work/log" 2>&1 && grep -q '<p>1 runs,' "$work/joined.html" &&
  grep -q "<td>$(wc -l <"$work/listed")<td>$(wc -l <"$work/parts")<td class=g>0<" "$work/joined.html"; result $? 'and their lines, joined, are one run of a page'
! readelf -d "$conform" | grep NEEDED | grep -v -e '\[libc\.' -e '\[libm\.' -e '\[libdl\.' -e '\[ld-linux'; result $? 'it needs libc, libm and libdl'

"$conform" --device interp --count 12 --json "$work/run.jsonl" >/dev/null 2>&1
"$conform" --device interp --count 12 --json "$work/again.jsonl" --resume >"$work/log" 2>&1 && [ "$(grep -c '^ok' "$work/log")" = 12 ]
result $? 'to go on with a file that is not there is to begin'
head -c -9 "$work/run.jsonl" | head -n 8 | head -c -9 >"$work/again.jsonl" # six cases and most of a line
"$conform" --device interp --count 12 --json "$work/again.jsonl" --resume >"$work/log" 2>&1 && [ "$(grep -c '^ok' "$work/log")" = 6 ] &&
  sed -n 's/.*"id": "\([^"]*\)".*/\1/p' "$work/again.jsonl" | sort >"$work/ids" && sed -n 's/.*"id": "\([^"]*\)".*/\1/p' "$work/run.jsonl" | sort | cmp -s - "$work/ids"
result $? 'a run that was ended goes on: no case twice, none left out, and no part of a line'
"$conform" --device interp --count 12 --json "$work/again.jsonl" --resume >"$work/log" 2>&1 && grep -q '^1\.\.0' "$work/log"
result $? 'and has nothing left then'
"$conform" --device interp,host --count 12 --json "$work/again.jsonl" --resume >"$work/log" 2>&1
[ $? = 2 ]; result $? 'of one device'
"$conform" pack "$work/run.jsonl" -o "$work/submission" >"$work/log" 2>&1
result $? 'a run is packed'
"$conform" verify "$work/submission" --count 3 >"$work/log" 2>&1
result $? 'and its cases pass again with the same errors'
"$conform" --device interp,host --filter neg.f32.real.prime --count 12 --json "$work/two.jsonl" >/dev/null 2>&1
"$conform" report "$work/two.jsonl" -o "$work/two.html" >"$work/log" 2>&1 && grep -q '<p>2 runs,' "$work/two.html" &&
  [ "$(grep -c '<td>12<td>12<td class=g>0<' "$work/two.html")" = 2 ]; result $? 'lines of two devices in one file are two runs of a page'
"$conform" pack "$work/two.jsonl" -o "$work/pair" >"$work/log" 2>&1 && "$conform" verify "$work/pair" --count 3 >"$work/log" 2>&1 &&
  [ "$(grep -c '^ok .* interp ' "$work/log") $(grep -c '^ok .* host ' "$work/log")" = '3 3' ]; result $? 'and two of a submission, each checked on its own device'
for kind in grow pair triple; do "$conform" --device interp --$kind 4 --seed 91 --json "$work/$kind.jsonl" >/dev/null 2>&1; done
"$conform" pack "$work/grow.jsonl" "$work/pair.jsonl" "$work/triple.jsonl" -o "$work/grown" >"$work/log" 2>&1 &&
  "$conform" verify "$work/grown" >"$work/log" 2>&1 && [ "$(grep -c '^ok' "$work/log")" = 12 ]; result $? 'grown graphs and pairs are made again from their ids'
"$conform" --device interp --graph tests/inspect/even.snt --json "$work/file.jsonl" >/dev/null 2>&1
"$conform" pack "$work/file.jsonl" -o "$work/unmade" >"$work/log" 2>&1
[ $? = 1 ] && grep -q 'file.jsonl: graph.even.fused is no case that an id alone makes again' "$work/log" && [ ! -e "$work/unmade" ]; result $? 'those of a file are not packed'
tail -n +2 "$work/two.jsonl" >"$work/headless"
"$conform" report "$work/headless" -o "$work/none.html" >"$work/log" 2>&1
[ $? = 1 ]; result $? 'lines of nobody are refused'
has 'no line that names suite and device' "$work/log" 'with what is missing'
sed 's/"kernels": 1/"kernels": 2/' "$work/submission" >"$work/forged"
"$conform" verify "$work/forged" >"$work/log" 2>&1
[ $? = 1 ]; result $? 'a changed submission is refused'
has 'its checksum differs' "$work/log" 'by its checksum'

# Of what is known to fail only the lines that name one of these cases whole.
awk 'NR == FNR { seed[$1]; next } { id = $2; sub(/^~/, "", id) } id in seed' tests/conform.seeds tests/conform.expect >"$work/known"
if "$conform" --time 0 --cases tests/conform.seeds --expect "$work/known" >"$work/seeds" 2>&1; then status=0; else status=1; fi
result $status "the cases that once failed, on every device: $(grep -c '^ok' "$work/seeds")"
grep -A1 '^not ok' "$work/seeds" | sed 's/^/# /'

# Of a graph whose rows are one, but for NaN, whatever they are computed from: a batch in two parts says nothing of it.
echo graph.94d20e09.strict >"$work/alike"
"$conform" --time 0 --grow 170 --seed 634288 --device interp=lavapipe --cases "$work/alike" >"$work/log" 2>&1
has '^ok 1 - graph.94d20e09.strict' "$work/log" 'rows that are alike beside NaN'

tests/faults/apply --check . 2>"$work/log"
result $? 'every fault of tests/faults stands in the sources'
sed 's/^/# /' "$work/log"

count=120
[ -z "$SNT_TEST_FULL" ] || count=4000
if "$conform" --count $count --time 0 --expect tests/conform.expect >"$work/all" 2>&1; then status=0; else status=1; fi
result $status "every device: $(grep -c '^ok' "$work/all") cases"
grep -A1 '^not ok' "$work/all" | sed 's/^/# /'
grep 'not run' "$work/all"
echo "1..$number"
exit $failed
