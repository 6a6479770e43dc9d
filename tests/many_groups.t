#!/usr/bin/perl
# More groups than one queue prices at once (4096): they begin as cones and meet block by block, and what the plan computes is, bit by bit in strict numerics, what
# a kernel for every primitive computes, and what the reference computes within bounds. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my ($nodes, $sums) = (3000, 4);

my $state = 4711;
sub dice { my ($n) = @_; $state = ($state * 1103515245 + 12345) % 2147483648; return int($state / 65536) % $n }

# Values stay small: products and differences go through a function that bounds them. What nobody reads is added up, so that everything is needed.
my ($text, @unread) = ("graph \@many(%v0: f32[4,8], %v1: f32[4,8]) {\n", 1, 1);
for my $i (2 .. $nodes + 1) {
  my $kind = dice(100);
  my $near = $i - 1 - dice($i < 4 ? $i : 4);
  my $far = $i - 1 - dice($i < 500 ? $i : 500);
  if ($kind < 35) { $text .= "  %v$i = " . (qw(tanh sigmoid neg abs))[dice(4)] . " %v$near\n" }
  elsif ($kind < 75) { $text .= "  %p$i = " . (qw(mul sub max min))[dice(4)] . " %v$near, %v$far\n  %v$i = tanh %p$i\n" }
  elsif ($kind < 85) { $text .= "  %v$i = softmax %v$near, axis=1\n" }
  elsif ($kind < 92) { $text .= "  %t$i = transpose %v$near, perm=[1,0]\n  %v$i = reshape %t$i, shape=[4,8]\n" }
  else { $text .= "  %r$i = reduce.sum %v$near, axes=[1], keep\n  %e$i: f32[4,8] = broadcast %r$i\n  %s$i = sub %v$far, %e$i\n  %v$i = tanh %s$i\n" }
  $unread[$near] = 0;
  $unread[$far] = 0 if ($kind >= 35 && $kind < 75) || $kind >= 92;
  $unread[$i] = 1;
}
my @ends = grep { $unread[$_] } 0 .. $#unread;
for my $k (0 .. $sums - 1) {
  my @own = map { "v$_" } grep { $_ % $sums == $k } @ends;
  for (my $n = 0; @own > 1; $n++) { $text .= "  %a${k}x$n = add %$own[0], %$own[1]\n"; @own = (@own[2 .. $#own], "a${k}x$n") }
  $text .= "  %y$k = mul %$own[0], 0.125\n";
}
$text .= '  return ' . join(', ', map { "y$_=%y$_" } 0 .. $sums - 1) . "\n}\n";
open my $out, '>', "$dir/many.snt" or die $!;
print $out $text;
close $out;

sub results { my ($name, $options) = @_;
  my $said = `$sinter run $dir/many.snt --device interp --numerics strict $options @{[map { "--output y$_=$dir/$name$_.npy" } 0 .. $sums - 1]} 2>&1`;
  is($?, 0, "$name: the interpreter runs it") or diag($said);
  return map { slurp("$dir/$name$_.npy") } 0 .. $sums - 1;
}
my @fused = results('fused', '');
my @unfused = results('unfused', '--unfused');
ok(length $fused[$_] >= 128 && $fused[$_] eq $unfused[$_], "y$_: strict numerics do not see the groups") for 0 .. $sums - 1;
isnt($fused[0], $fused[1], 'and there is something to see');
my $said = `$sinter run $dir/many.snt --device interp --check 2>&1`;
is($?, 0, 'within bounds of the reference') or diag($said);

my $explained = `$sinter explain $dir/many.snt --json --profile mobile 2>&1`;
my %taken;
$taken{$1}++ while $explained =~ /"taken": true, "rule": "([^"]*)"/g;
ok(($taken{'only reader'} // 0) > 500 && ($taken{saves} // 0) > 500, 'cones and blocks are what made them')
  or diag(join ', ', map { "$_ $taken{$_}" } sort keys %taken);
ok(($taken{'first reader'} // 0) > 200, 'and small ones joined the first of their readers') or diag($taken{'first reader'} // 0);
my @said = $explained =~ /would fuse with \d+ bindings; this device has 8|us together/g;
ok(@said > 100, 'what is refused is told') or diag(scalar @said);
my @few = grep { $_ <= 8 } $explained =~ /would fuse with (\d+) bindings; this device has 8/g;
is(scalar @few, 0, 'what is refused for its bindings says how many, more than there are');
unlike($explained, qr/apart: 0\.00 us together|-\d[.\d]* us less/, 'and what loses says by how much');
# As many ports as a language model's cache has: keys and values of a hundred layers, in and out, each with a file.
my $ports = 200;
open my $writer, '>', "$dir/ports.snt" or die $!;
print $writer 'graph @ports(', join(', ', map {"%x$_: f32[8]"} 1 .. $ports), ") {\n", (map {"  %y$_ = add %x$_, $_.0\n"} 1 .. $ports),
  '  return ', join(', ', map {"y$_=%y$_"} 1 .. $ports), "\n}\n";
close $writer;
my $files = join ' ', map {"--output y$_=$dir/y$_.npy"} 1 .. $ports;
my $told = `$sinter run $dir/ports.snt --device interp --check $files 2>&1`;
ok($? == 0 && $told =~ /kernels/, "$ports ports in and as many out") or diag($told);
is(scalar(grep {-s "$dir/y$_.npy"} 1 .. $ports), $ports, 'each has its file');
done_testing;
