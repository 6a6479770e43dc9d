#!/usr/bin/perl
# Files that the commands write: whole or not at all, over what was there, and into pipes and devices without putting a file in their place. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
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
);
$SIG{XFSZ} = 'IGNORE';    # children get an error for a file that grows too large, no signal

for my $what (sort keys %writes) {
  (my $command = $writes{$what}) =~ s/OUT/$dir\/out/;
  my ($file) = $command =~ m{(\Q$dir\E/out(?:\.\w+)?)};
  my $said = `$sinter $command 2>&1`;
  ok($? == 0 && -s $file, "$what: writes") or diag($said);
  put($file, 'what was there');
  $said = `ulimit -f 0; $sinter $command 2>&1`;
  ok($? >> 8 && !($? & 127) && $said =~ m{\Q$dir/out\E.*too large}i, "$what: a disk that takes nothing is an error that names the file") or diag($?, $said);
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
done_testing;
