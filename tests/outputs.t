#!/usr/bin/perl
# Files that the commands write: whole or not at all, over what was there, and into pipes and devices without putting a file in their place. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use JSON::PP;
use lib $FindBin::Bin;
use Sinter;

my $model = 'tests/patterns/p08_softmax.snt';
my $constants = "$dir/constants.snt";    # imported as a text longer than its weights

put($constants, "graph \@c(%x: f32[100]) {\n  %w: f32[100] = const [" . join(', ', 1 .. 100) . "]\n  %v0 = add %x, %w\n"
    . join('', map { "  %v$_ = add %v" . ($_ - 1) . ", %x\n" } 1 .. 50) . "  return y=%v50\n}\n");
`$sinter compile $model --target spirv --profile dgpu -o $dir/saved.sntp 2>&1`;
is($?, 0, 'a program to pack');
my %writes = (
  'compile -o' => "compile $model --target spirv --profile dgpu -o OUT.sntp",
  'pack --header' => "pack $dir/saved.sntp --header OUT",
  'explain --html' => "explain $model --profile dgpu --html -o OUT",
  'run --trace' => "run $model --device interp --trace OUT",
  'calibrate -o' => 'calibrate --device interp --quick --timeout 1 -o OUT',
  'import -o' => "import $constants -o OUT.snt",
  'run --output' => "run $model --device interp --output y=OUT.npy",
  'run --output of a picture' => "run $model --device interp --output y=OUT.png:hw:0..1",
);
$SIG{XFSZ} = 'IGNORE';    # children get an error for a file that grows too large, no signal

for my $what (sort keys %writes) {
  (my $command = $writes{$what}) =~ s/OUT/$dir\/out/;
  my ($file) = $command =~ m{(\Q$dir\E/out(?:\.\w+)?)};
  my $said = `$sinter $command 2>&1`;
  ok($? == 0 && -s $file, "$what: writes") or diag($said);
  put($file, 'what was there');
  $said = `ulimit -f 0; $sinter $command 2>&1`;
  ok($? >> 8 == 1 && !($? & 127) && $said =~ m{\Q$dir/out\E.*too large}i, "$what: a disk that takes nothing is a failure that names the file") or diag($?, $said);
  is(slurp($file), 'what was there', "$what: then what was there stays");
  is(join(' ', grep { /tmp/ } map { s{.*/}{}r } glob("$dir/*")), '', "$what: and nothing is left beside it");
  unlink $file;
}
`$sinter import $constants -o $dir/c.snt`;
my @had = map { slurp("$dir/c.$_") } 'snt', 'weights';
ok(length $had[0] > 512 && length $had[1] == 400, 'a text and its weights');
my $refused = `ulimit -f 1; $sinter import $constants -o $dir/c.snt 2>&1`;
ok($? >> 8 && $refused =~ m{\Q$dir\E/c\.snt: .*too large}i, 'import -o: a disk that has room for the weights only') or diag($refused);
is_deeply([map { slurp("$dir/c.$_") } 'snt', 'weights'], \@had, 'import -o: then both stay');
is_deeply([glob("$dir/c.*.tmp")], [], 'import -o: and nothing is left beside them');
SKIP: {
  skip('no /dev/full', 3) unless -c '/dev/full';
  for my $what ('pack --header', 'explain --html', 'run --trace') {
    (my $command = $writes{$what}) =~ s/OUT/\/dev\/full/;
    my $said = `$sinter $command 2>&1`;
    ok($? >> 8 && !($? & 127) && $said =~ m{/dev/full: No space}, "$what: a device that is full is an error") or diag($said);
  }
}
system('mkfifo', "$dir/pipe") == 0 or die;
my $read = fork // die $!;
if (!$read) { put("$dir/heard", slurp("$dir/pipe")); exit 0 }
(my $command = $writes{'pack --header'}) =~ s/OUT/$dir\/pipe/;
my $said = `$sinter $command 2>&1`;
is($?, 0, 'into a pipe') or diag($said);
waitpid $read, 0;
ok(-p "$dir/pipe", 'which stays one');
like(slurp("$dir/heard"), qr/^static const uint8_t saved\[\d+\] = \{\n[\d,\n]+\n\};\n\z/m, 'and has got it all');

for my $what ('pack --header', 'explain --html', 'calibrate -o') {
  (my $command = $writes{$what}) =~ s/OUT/-/;
  my $got = `$sinter $command 2>$dir/errors`;
  ok($? == 0 && length $got > 500 && !-e '-', "$what -: the standard output") or diag($?, slurp("$dir/errors"));
  `$sinter $command 2>$dir/errors >/dev/full` if -c '/dev/full';
  SKIP: { skip('no /dev/full', 1) unless -c '/dev/full'; ok($? >> 8 && slurp("$dir/errors") =~ /-: No space/, "$what -: which may be full") or diag(slurp("$dir/errors")) }
}
$said = `$sinter import $constants -o - 2>&1`;
ok($? >> 8 && $said =~ /-o -: the weights/ && !-e '-' && !-e '-.weights', 'import -o -: refused, it writes two files') or diag($said);
$said = `$sinter compile $model --target spirv -o - 2>&1`;
ok($? >> 8 == 2 && $said =~ /-o -: a folder or a FILE\.sntp/ && !-e '-', 'compile -o -: refused, it makes a folder') or diag($said);
is(`$sinter explain $model -o $dir/explained --json`, '', 'explain -o: nothing else is said');
like(slurp("$dir/explained"), qr/^\{\n  "profile".*\}\n\z/s, 'and the file has it');
SKIP: {
  skip('no /dev/full', 1) unless -c '/dev/full';
  my @silent = grep { system("$sinter $_ >/dev/full 2>$dir/errors") == 0 || slurp("$dir/errors") !~ /standard output: (?:No space|not all)|-: No space/ }
    "explain $model", "explain $model --json", 'devices', 'devices --json', "opt $model --run canonicalise", "inspect $dir/saved.sntp", "inspect-kernel $model", 'run --help', '--help',
    "run $model --device host --check", "bench $model --device host --runs 2 --json", "build $model --device host", "calibrate --device host --quick --quiet --timeout 1",
    'conform --list --count 5', 'conform --device host --count 2', "compile $model --target spirv --profile dgpu -o $dir/again.sntp";
  is_deeply(\@silent, [], 'a standard output that is full is an error of every command');
}
$said = `$sinter calibrate --device interp --quiet -o $dir/none/profile 2>&1`;
ok($? >> 8 == 2 && $said =~ m{none/profile: No such file}, 'calibrate -o: where no file can be made, nothing is measured first') or diag($said);

# A picture's numbers: black is LO, white HI.
put("$dir/grey.snt", "graph \@grey(%x: f32[2,3]) {\n  %a = mul %x, 0.0\n  %y = add %a, 100.0\n  return y=%y\n}\n");
put("$dir/same.snt", "graph \@same(%x: f32[2,3]) {\n  %y = relu %x\n  return y=%y\n}\n");
`$sinter run $dir/grey.snt --device host --output y=$dir/grey.png:hw:0..255 && $sinter run $dir/same.snt --device host --input x=$dir/grey.png:hw:0..255 --output y=$dir/grey.npy`;
is(join(' ', unpack 'f<6', substr slurp("$dir/grey.npy"), -24), join(' ', (100) x 6), '0..255: as many steps of one');
for my $form ('hw:0..', 'hw:1..1', 'hw:0..1x', 'hw:', 'hw:..1', 'hw:0.1', 'hw:0..nan') {
  $said = `$sinter run $dir/same.snt --device host --output y=$dir/none.png:$form 2>&1`;
  ok($? >> 8 == 2 && $said =~ /LO\.\.HI/ && !-e "$dir/none.png", "$form is no picture's form") or diag($said);
}

# Inputs that other programs write.
sub foreign { my ($type, $shape, $data) = @_; my $h = "{'descr': '$type', 'fortran_order': False, 'shape': $shape, }\n"; return "\x93NUMPY\1\0" . pack('v', length $h) . $h . $data }
put("$dir/big.npy", foreign('>f4', '(2, 3)', 'x' x 24)), put("$dir/wrong.npy", foreign('<f8', '(3, 2)', 'x' x 48)), put("$dir/junk.pb", 'junk');
mkdir "$dir/nothing" or die;
put("$dir/month", "host add 2031-13-01 no such month\n");
put("$dir/six.pb", "\x08\x02\x08\x03\x10\x01\x4a\x18" . pack('f<6', 1 .. 6));    # TensorProto: dims 2 and 3, float, raw data
my $standard = `$sinter run $dir/same.snt --device host --input x=$dir/six.pb --output y=-`;
is(join(' ', unpack 'f<6', substr $standard, -24), '1 2 3 4 5 6', 'a TensorProto goes in, an .npy comes out of the standard output');
$said = `SNT_CACHE_DIR=$dir/month $sinter build $model --device host 2>&1`;
ok($? >> 8 == 2 && $said =~ m{SNT_CACHE_DIR: \Q$dir\E/month: Not a directory}, 'build: where nothing can be kept, nothing is built') or diag($said);

# What the environment says wrongly is told by its name, too, and none of it is left out in silence; without a home there is no cache, as before.
for (
  ["SNT_CACHE_BYTES=abc SNT_CACHE_DIR=$dir/cache", 'SNT_CACHE_BYTES: not a number of bytes: "abc"'],
  ["SNT_CACHE_BYTES=-1 SNT_CACHE_DIR=$dir/cache", 'SNT_CACHE_BYTES: .*"-1"'],
  ["SNT_CACHE_BYTES=1k SNT_CACHE_DIR=$dir/cache", 'SNT_CACHE_BYTES: .*"1k"'],
  ["SNT_CACHE_BYTES=99999999999999999999 SNT_CACHE_DIR=$dir/cache", 'SNT_CACHE_BYTES: .*"9{20}"'],
  ["SNT_CACHE_DIR=$dir/month", "SNT_CACHE_DIR: \Q$dir\E/month: Not a directory"],
  ["SNT_CACHE_DIR=$dir/month/below", "SNT_CACHE_DIR: \Q$dir\E/month/below: Not a directory"],
  ["SNT_DUMP_DIR=$dir/month", "\Q$dir\E/month: Not a directory"],
  ["SNT_DUMP_DIR=/proc", '/proc/\d\d-\w+\.txt'],
  ['SNT_DEVICE=nothing', 'no backend has the name of "nothing"'],
  ['SNT_MASK=bindings=x', '"bindings=x" is no KEY=NUMBER'],
) {
  my ($variables, $says, $code) = @$_;
  my $device = $variables =~ /DEVICE/ ? '' : '--device interp';
  my $got = `$variables $sinter run $model $device 2>&1`;
  ok($? >> 8 == ($code // 2) && $got =~ /$says/, "$variables: refused") or diag($? >> 8, $got);
}
$said = `env -u SNT_CACHE_DIR XDG_CACHE_HOME=$dir/month $sinter run $model --device interp --quiet 2>&1`;
is("$?$said", '0', 'a home that takes no cache is no reason to fail');

# What is given and means nothing is wrong usage, and said by its name: command line, what is said.
put("$dir/cut.profile", "base = pocl\nname = cut\nlanes = ");
for (
  ["explain $model --profile $dir/cut.profile", quotemeta("$dir/cut.profile") . ': line 3: bad value for lanes', 1],
  ["run $model --device interp --input x=random:abc", 'x: expected FILE\.npy.*"random:abc"'],
  ["run $model --device interp --input x=random:-1", '"random:-1"'],
  ["run $model --device interp --input x=randomly", '"randomly"'],
  ["explain $model --profile pocl,igpu", 'one profile, no list: "pocl,igpu"'],
  ["run $model --device interp --image x=chw,fast", '--image x=chw,fast:'],
  ["run $model --device interp --fix x=$dir/none.npy", '--fix x: no ONNX model'],
  ["run $dir/saved.sntp --device host --numerics strict", 'compiled: --numerics comes too late'],
  ["run $dir/saved.sntp --device host --unfused", 'compiled: --unfused'],
  ["run $dir/saved.sntp --device host --profile igpu", 'compiled: --profile comes too late'],
  ["run $model --device host --input y=random", 'no input "y"; there are: x'],
  ["run $model --device host --output x=$dir/none.npy", 'no output "x"; there are: y'],
  ["run $model --device host --dim depth=3", 'no symbol "depth"; there are: none'],
  ["run $model --device host --dim =3", '--dim: expected NAME=VALUE, got "=3"'],
  ["run $model --device host --runs 3", '--runs means nothing without --trace'],
  ["run $model --device host --unfused --unfused=nodes", '--unfused and --unfused=nodes: one of them'],
  ["explain $model --html --json -o $dir/none.html", '--html and --json: one of them'],
  ["opt $model --run polish", 'passes are.* canonicalise .* plan\n.*no pass "polish"'],
  ["run $dir/same.snt --device host --input x=$dir/big.npy", q{no tensor has elements of numpy's type '>f4'}, 1],
  ["run $dir/same.snt --device host --input x=$dir/wrong.npy", 'wrong\.npy: f64\[3,2\], where x is f32\[2,3\]', 1],
  ["run $dir/same.snt --device host --input x=$dir/junk.pb", 'junk\.pb: no tensor', 1],
  ["run $model --device ''", 'an empty value of "--device"'],
  ["run $model --device host --tune=", 'an empty value of "--tune"'],
  ["compile $model --target spirv -o ''", 'an empty value of "-o"'],
  ["run $model --device host --input x=random:18446744073709551616", '"random:18446744073709551616"'],
  ["build $model --device host --input z=random", 'no input "z"; there are: x'],
  (map { ["opt $model --run canonicalise $_", "opt takes no option \"" . s/ .*//r . '"'] } '--weights f16', '--image x=chw', '--unfused', '--unfused=nodes', '--line-info'),
  ["bench $model $dir/nothing --device host --runs 2", quotemeta("$dir/nothing") . ': no model is there'],
  ["conform --device ''", '--device: ""'],
  ['conform --device host,,interp', '--device: "host,,interp" is no list'],
  ['conform --seed 1.5', '--seed: "1.5"'],
  ['conform --seed 18446744073709551616', '--seed: "18446744073709551616"'],
  ['conform --count 1.5', '--count: "1.5"'],
  ['conform --grow 2 --pair 2', '--pair, --triple.*: one of them'],
  ['conform --grow 2 --filter relu', '--grow, or --filter.*: one of them'],
  ["conform report @{[1 .. 65]} -o $dir/page.html", 'report: more than 64 files'],
  ['conform --profile all', '--profile: "all" is none of its values'],
  ['conform --speed 3', 'no option "--speed"'],
  ["conform --device host --expect $dir/month", 'month:1: not `DEVICE'],
  ["bench $model --device interp --runs 0", '--runs: not a number from 1 on: "0"'],
  ["build $model --device interp --jobs 0", '--jobs: not a number from 1 on: "0"'],
  ["inspect-kernel $model --sample x", '--sample: not a number from 1 on: "x"'],
  ['onnx-test --rtol 1e-x .', '--rtol: not a number from 0 on: "1e-x"'],
  ['onnx-test --atol= .', '--atol: not a number from 0 on: ""'],
  ['devices opencl:0', '"opencl:0"'],
  ["calibrate $model", 'no file is taken: "' . quotemeta($model) . '"'],
  ["run $model --device nosuch", 'no backend has the name of "nosuch"'],
  ["bench $model --device nosuch --tune $dir/two.sntp", 'no backend has the name of "nosuch"'],
  ["calibrate --device nosuch -o $dir/two.sntp", 'no backend has the name of "nosuch"'],
  ["opt $model --run canonicalise --dim zz=3", '--dim: symbols of a graph are open'],
  ["compile $model --target spirv --profile dgpu,nosuch -o $dir/two.sntp", 'no profile "nosuch": pocl'],
  ["compile $model --target spirv --profile " . join(',', ('dgpu') x 17) . " -o $dir/two.sntp", '--profile: more than 16'],
) {
  my ($command, $what, $code) = @$_;
  $said = `$sinter $command 2>&1`;
  ok($? >> 8 == ($code // 2) && $said =~ /$what/, $command =~ s/\Q$dir\E//gr) or diag($?, $said);
}
ok(!-e "$dir/two.sntp", 'and nothing is written');
is((says("$sinter run $model --device host --mask ''"))[0], 0, 'an empty mask takes nothing away');
SKIP: {
  skip('no /dev/zero', 2) unless -c '/dev/zero';
  for my $command ('run /dev/zero', "explain $model --profile /dev/zero") {
    $said = `ulimit -v 4000000; $sinter $command 2>&1`;
    ok($? >> 8 == 2 && $said =~ m{/dev/zero: a device without an end}, "$command: is not read until memory ends") or diag($?, $said);
  }
}
$said = `ulimit -v 4000000; $sinter bench $model --device host --runs 4294967295 2>&1`;
ok($? >> 8 == 1 && $said =~ /out of host memory/, 'bench: times of more runs than memory has room for') or diag($?, $said);

# Names that JSON has to escape.
my $named = put('a"b\\c.snt', slurp($model));
for my $command ("bench '$named' --device host --runs 2 --json", "build '$named' --device host --json", 'devices --json') {
  my $read = eval { decode_json(scalar `$sinter $command`) };
  ok($read && (ref $read eq 'ARRAY' || $read->{model} eq $named), ($command =~ /(\w+)/)[0] . ' --json: a name is a string') or diag($@);
}
done_testing;
