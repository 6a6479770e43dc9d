#!/usr/bin/perl
# Equal groups are built once: layers that differ in their weights share code and are right; what looks alike and is not (data that decides, a result that
# somebody else reads, a state's room, another order of operands) keeps code of its own. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# A layer: a product with weights of its own, a bias, a row norm, a residual.
sub layer {
  my ($n, $seed, $from) = @_;
  return map { "  $_" } "%w$n: f32[64,64] = const uniform seed=$seed scale=0x1p-3", "%b$n: f32[64] = const uniform seed=${\($seed + 100)} scale=0x1p-1",
    "%m$n = matmul $from, %w$n", "%e$n: f32[n,64] = broadcast %b$n, axes=[1]", "%a$n = add %m$n, %e$n", "%s$n = softmax %a$n, axis=1", "%r$n = add %s$n, $from";
}
sub model {
  my ($name, @lines) = @_;
  open my $out, '>', "$dir/$name.snt" or die $!;
  print $out join "\n", 'symbols { n: min=1 max=512 multiple_of=1 hint=96 }', "graph \@$name(%x: f32[n,64]) {", @lines, '}', '';
  close $out;
}
sub right { my ($name, $device, $flags) = @_; my $said = `$sinter run $dir/$name.snt --device $device --check $flags 2>&1`; diag($said) if $?; return $? == 0 }

model('one', layer(1, 1, '%x'), '  return y=%r1');
model('four', layer(1, 1, '%x'), layer(2, 2, '%r1'), layer(3, 3, '%r2'), layer(4, 4, '%r3'), '  return y=%r4');
model('read', layer(1, 1, '%x'), layer(2, 2, '%r1'), layer(3, 3, '%r2'), layer(4, 4, '%r3'), '  return y=%r4, a=%a2, s=%s3');
my $mix = sub { my ($n, $from) = @_; my @w = map { ($_ * $n * 7) % 11 - 5 } 1 .. 16; local $" = ', ';
  return "  %t$n: f32[4,4] = const [@w]", "  %c$n = matmul $from, %t$n", "  %g$n = softmax %c$n, axis=1" };
model('mix', '  %q: f32[n,4] = slice %x, starts=[0,8], sizes=[n,4]', $mix->(1, '%q'), $mix->(2, '%g1'), $mix->(3, '%g2'), '  return y=%g3');
my $taps = sub { my ($n, $from) = @_; my @w = map { ($_ * $n * 5) % 13 - 6 } 1 .. 9; local $" = ', ';
  return "  %t$n: f32[1,1,3,3] = const [@w]", "  %c$n = conv $from, %t$n, pads=[1,1,1,1]", "  %g$n = tanh %c$n" };
model('taps', '  %q: f32[1,1,n,64] = reshape %x, shape=[1,1,n,64]', $taps->(1, '%q'), $taps->(2, '%g1'), $taps->(3, '%g2'), $taps->(4, '%g3'), '  return y=%g4');
model('sides', (map { my ($n, $from) = ($_, $_ == 1 ? '%x' : '%p' . ($_ - 1)); my @s = $n % 2 ? ("%q$n", $from) : ($from, "%q$n");
  "  %q$n = softmax $from, axis=1", "  %p$n = sub $s[0], $s[1]" } 1 .. 4), '  return y=%p4');

for my $name (qw(one four read mix taps sides)) {
  ok(right($name, 'interp', $_), "$name is right $_") for '', '--unfused', '--numerics strict', '--dim n=5';
  SKIP: {
    skip(lacks('opencl:pocl'), 1) if lacks('opencl:pocl');
    ok(right($name, 'opencl:pocl', ''), "$name is right on vectors");
  }
}

# What one more equal layer costs, in instructions, is a part of what the first one did.
SKIP: {
  skip('valgrind is not here', 1) unless grep { -x "$_/valgrind" } split /:/, $ENV{PATH};
  my ($more, %count) = (12);
  for my $layers (1, $more) {
    model("stack$layers", (map { layer($_, $_, $_ == 1 ? '%x' : '%r' . ($_ - 1)) } 1 .. $layers), "  return y=%r$layers");
    my $said = `SNT_CACHE_DIR= valgrind --tool=callgrind --callgrind-out-file=/dev/null $sinter compile $dir/stack$layers.snt --target opencl --profile pocl -o $dir/out --quiet 2>&1`;
    $count{$layers} = $said =~ /Collected : (\d+)/ ? $1 : 0;
  }
  skip('the sanitizers leave valgrind nothing to count', 1) unless $count{1} && $count{$more};
  ok($count{$more} < 3 * $count{1}, sprintf '%d layers cost %.2f times as much as one', $more, $count{$more} / $count{1});
}
done_testing;
