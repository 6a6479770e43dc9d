#!/usr/bin/perl
# What the sinter command says to broken texts, absent files and wrong options: exit code 1 (failed) or 2 (wrong usage), never a signal, and
# a message that names the place. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan skip_all => "no sinter command: $sinter" unless -x $sinter;
$ENV{SNT_CACHE_DIR} = '';

sub run_sinter {
  my $said = '';
  my $pid = open(my $out, '-|') // die $!;
  if (!$pid) { open STDERR, '>&', \*STDOUT; exec {$sinter} $sinter, @_ or exit 99 }
  { local $/; $said = <$out> // '' }
  close $out;
  return ($? & 127, $? >> 8, $said);
}

sub refuses {
  my ($name, $code, $place, @command) = @_;
  my ($signal, $exit, $said) = run_sinter(@command);
  is($signal, 0, "$name: no crash");
  is($exit, $code, "$name: exit code $code") or diag $said;
  like($said, $place, "$name: the message says where");
}

my $count = 0;
sub model {
  my $path = sprintf '%s/m%d.snt', $dir, ++$count;
  open my $out, '>', $path or die $!;
  binmode $out;
  print $out $_[0];
  close $out;
  return $path;
}

my $good = "graph \@g(%x: f32[4]) {\n  %a = add %x, 1.0\n  return y=%a\n}\n";
my ($signal, $exit) = run_sinter('run', model($good), '--device', 'host');
is($exit, 0, 'a good model runs');
{
  # what a first run shows: each output, and nothing where something else was asked for
  my $ramp = model("graph \@g(%x: f32[4]) {\n  %i: f32[4] = iota axis=0\n  %n = mul %x, 0.0\n  %a = add %i, %n\n  %b = lt %a, 2.0\n  return y=%a, z=%b\n}\n");
  my (undef, $shown) = says("$sinter run $ramp --device host");
  is($shown, "y f32[4]: least 0, mean 1.5, largest 3; 0 1 2 3\nz bool[4]: least 0, mean 0.5, largest 1; 1 1 0 0\n", 'a run shows its outputs');
  my $ends = model("graph \@g(%x: f32[2]) {\n  %i: u64[2] = iota axis=0\n  %t = sub 18446744073709551615, %i\n  %l: i64[2] = iota axis=0\n  %j = sub %l, 1234567\n"
      . "  %z = mul %x, 0.0\n  %n = div %z, %z\n  %k: f32[2] = cast %i\n  %s = sub %k, 0.5\n  %o = div %s, 0.0\n  %e = slice %x, starts=[0], sizes=[0]\n"
      . "  return t=%t, j=%j, n=%n, o=%o, e=%e\n}\n");
  (undef, $shown) = says("$sinter run $ends --device host");
  is($shown, "t u64[2]: least 18446744073709551614, mean 1.84467e+19, largest 18446744073709551615; 18446744073709551615 18446744073709551614\n"
      . "j i64[2]: least -1234567, mean -1.23457e+06, largest -1234566; -1234567 -1234566\nn f32[2]: 2 NaN; nan nan\n"
      . "o f32[2]: least -inf, mean nan, largest inf; -inf inf\ne f32[0]\n", 'whole numbers are shown whole, a NaN without a sign');
  (undef, $shown) = says("$sinter run $ramp --device host $_"), is($shown, '', "not with $_") for '--quiet', "--output y=$dir/y.npy";
}

my @texts = (
  ['an empty text', '', qr/1:1/],
  ['no graph', "hello\n", qr/1:1/],
  ['zero bytes', "\0" x 100, qr/1:1/],
  ['an unknown operator', $good =~ s/add/frobnicate/r, qr/2:\d+.*frobnicate/],
  ['an operand missing', $good =~ s/, 1\.0//r, qr/2:\d+: add/],
  ['an unknown element type', $good =~ s/f32/f31/r, qr/1:\d+/],
  ['no bracket', $good =~ s/\[4\]/[4/r, qr/1:\d+/],
  ['no end', $good =~ s/\}\n$//r, qr/4:\d+/],
  ['no return', $good =~ s/  return.*\n//r, qr/return/],
  ['a value before its definition', "graph \@g(%x: f32[4]) {\n  %a = add %b, %x\n  %b = add %a, %x\n  return y=%b\n}\n", qr/2:\d+.*%b is used before line 3/],
  ['a value that feeds itself', "graph \@g(%x: f32[4]) {\n  %a = add %a, %x\n  return y=%a\n}\n", qr/2:\d+.*%a/],
  ['a value defined twice', "graph \@g(%x: f32[4]) {\n  %a = neg %x\n  %a = abs %x\n  return y=%a\n}\n", qr/3:\d+.*twice/],
  ['shapes that do not meet', "graph \@g(%x: f32[4], %y: f32[5]) {\n  %a = add %x, %y\n  return z=%a\n}\n", qr/2:\d+: add/],
  ['a matmul that does not fit', "graph \@g(%x: f32[4,3], %y: f32[5,2]) {\n  %a = matmul %x, %y\n  return z=%a\n}\n", qr/2:\d+: contract: axis 0 of operand 2/],
  ['an axis that is not there', "graph \@g(%x: f32[4]) {\n  %a = reduce.sum %x, axes=[3]\n  return y=%a\n}\n", qr/2:\d+: reduce\.sum: axes 3/],
  ['an extent of 2^70', $good =~ s/\[4\]/[1180591620717411303424]/r, qr/1:\d+/],
  ['a size of 2^90', $good =~ s/\[4\]/[1073741824,1073741824,1073741824]/r, qr/1:\d+.*2\^56 elements/],
  ['data in a file that is not there', "graph \@g(%x: f32[4]) {\n  %c: f32[4] = const data=\"nowhere.bin\"\n  %a = add %x, %c\n  return y=%a\n}\n", qr/2:\d+.*nowhere\.bin/],
  ['data outside the folder', "graph \@g(%x: f32[4]) {\n  %c: f32[4] = const data=\"../../etc/passwd\"\n  %a = add %x, %c\n  return y=%a\n}\n", qr/2:\d+/],
  ['brackets in brackets', "graph \@g(%x: f32[" . '(' x 5000 . "4]) {\n return y=%x\n}\n", qr/1:\d+/],
  ['a line of 1 MB', "graph \@g(%x: f32[4]) {\n  %a = " . 'a' x 1_000_000 . " %x\n  return y=%a\n}\n", qr/2:\d+/],
);
refuses($_->[0], 1, $_->[2], 'run', model($_->[1]), '--device', 'host') for @texts;

my $model = model($good);
{ open my $out, '>', "$dir/junk.npy" or die $!; print $out 'junk' x 100 }
my @commands = (
  ['no command', 2, qr/usage/],
  ['an unknown command', 2, qr/dance/, 'dance'],
  ['an unknown option', 2, qr/--sideways|usage/, 'run', $model, '--sideways'],
  ["another command's option", 2, qr/explain takes no option "--check"/, 'explain', $model, '--check'],
  ['an option of those that compile', 2, qr/devices takes no option "--numerics"/, 'devices', '--numerics', 'strict'],
  ['no model', 2, qr/usage|model/, 'run'],
  ['an absent file', 2, qr/nothing-here/, 'run', "$dir/nothing-here.snt", '--device', 'host'],
  ['a folder as a model', 2, qr/\Q$dir\E/, 'run', $dir, '--device', 'host'],
  ['an unknown device', 2, qr/abacus/, 'run', $model, '--device', 'abacus'],
  ['an unknown OpenCL device', 1, qr/opencl/i, 'run', $model, '--device', 'opencl:nobody'],
  ['an unknown profile', 2, qr/abacus/, 'explain', $model, '--profile', 'abacus'],
  ['an unknown mask', 2, qr/"legs=4" is no KEY=NUMBER; keys: bindings items .* float_controls subgroups .* robust; or vulkan11-min/, 'run', $model, '--device', 'interp', '--mask', 'legs=4'],
  ['a mask without a number', 2, qr/many/, 'run', $model, '--device', 'interp', '--mask', 'bindings=many'],
  ['an unknown target', 2, qr/pascal/, 'compile', $model, '--target', 'pascal', '-o', "$dir/out"],
  ['no folder to write to', 2, qr/-o/, 'compile', $model],
  ['an unknown port', 2, qr/nobody/, 'run', $model, '--device', 'host', '--input', 'nobody=random'],
  ['an input of a wrong kind', 2, qr/\bx\b/, 'run', $model, '--device', 'host', '--input', 'x=picture.gif'],
  ['an input that is not there', 2, qr/gone\.npy/, 'run', $model, '--device', 'host', '--input', "x=$dir/gone.npy"],
  ['an input that is no array', 2, qr/npy/, 'run', $model, '--device', 'host', '--input', 'x=' . model('not an array')],
  ['an array file of nonsense', 1, qr/junk\.npy/, 'run', $model, '--device', 'host', '--input', "x=$dir/junk.npy"],
  ['a symbol that is not there', 2, qr/depth/, 'run', $model, '--device', 'host', '--dim', 'depth=4'],
  ['an unknown pass', 2, qr/polish/, 'opt', $model, '--run', 'polish'],
);
for my $c (@commands) {
  refuses(@$c);
}
done_testing;
