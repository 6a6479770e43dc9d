#!/usr/bin/perl
# Convolutional networks whose rows and columns are open: they are right at extents that tiles divide and at others, and take about as many operations as with the
# extents written in, so that what is staged is read from there, and 3x3 convolutions are Winograd's. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# a graph of h rows and w columns, as names or as numbers
my %graphs = (
  stride => sub { my ($h, $w) = @_; <<"END" },
graph \@stride(%x: f32[1,24,$h,$w]) {
  %u: f32[32,24,3,3] = const normal seed=1 scale=0.1
  %v: f32[16,32,1,1] = const normal seed=2 scale=0.1
  %c = conv %x, %u, pads=[1,1,1,1], stride=[2,2]
  %r = max %c, 0
  %y = conv %r, %v
  return y=%y
}
END
  same => sub { my ($h, $w) = @_; <<"END" },
graph \@same(%x: f32[1,16,$h,$w]) {
  %u: f32[12,16,5,5] = const normal seed=1 scale=0.05
  %v: f32[16,12,5,5] = const normal seed=2 scale=0.05
  %c = conv %x, %u, pads=[2,2,2,2]
  %r = max %c, 0
  %y = conv %r, %v, pads=[2,2,2,2]
  return y=%y
}
END
  winograd => sub { my ($h, $w) = @_; <<"END" },
graph \@winograd(%x: f32[1,32,$h,$w]) {
  %u: f32[32,32,3,3] = const normal seed=1 scale=0.05
  %v: f32[32,32,3,3] = const normal seed=2 scale=0.05
  %c = conv %x, %u, pads=[1,1,1,1]
  %r = max %c, 0
  %y = conv %r, %v, pads=[1,1,1,1]
  return y=%y
}
END
  pool => sub { my ($h, $w) = @_; <<"END" },
graph \@pool(%x: f32[1,16,$h,$w]) {
  %u: f32[24,16,1,1] = const normal seed=1 scale=0.1
  %v: f32[16,24,1,1] = const normal seed=2 scale=0.1
  %c = conv %x, %u
  %m = maxpool %c, size=[2,2], pads=[0,0,1,1]
  %a = avgpool %m, size=[3,3], stride=[2,2], pads=[1,1,1,1]
  %y = conv %a, %v
  return y=%y
}
END
  quotients => sub { my ($h, $w) = @_; my ($h8, $w8) = $h =~ /^\d/ ? (int($h / 8) * 8, int($w / 8) * 8) : ("$h/8*8", "$w/8*8"); <<"END" },
graph \@quotients(%x: f32[1,24,$h,$w]) {
  %u: f32[12,24,5,5] = const normal seed=1 scale=0.05
  %s: f32[1,24,$h8,$w8] = slice %x, starts=[0,0,0,0], sizes=[1,24,$h8,$w8]
  %r = max %s, 0
  %y = conv %r, %u, pads=[2,2,2,2]
  return y=%y
}
END
  pyramid => sub { my ($h, $w) = @_; my ($h2, $w2) = $h =~ /^\d/ ? (2 * $h, 2 * $w) : ("$h*2", "$w*2"); <<"END" },
graph \@pyramid(%x: f32[1,16,$h,$w], %z: f32[1,16,$h2,$w2]) {
  %u: f32[12,32,3,3] = const normal seed=1 scale=0.05
  %r: f32[1,16,$h,2,$w,2] = broadcast %x, axes=[0,1,2,4]
  %b: f32[1,16,$h2,$w2] = reshape %r
  %c = concat %b, %z, axis=1
  %y = conv %c, %u, pads=[1,1,1,1]
  return y=%y
}
END
);
my $symbols = "symbols { h: min=1 max=2048 hint=40, w: min=1 max=2048 hint=48 }\n";

# ---- answers ----

sub near { my ($file, @more) = @_; my ($code, $said) = says("$sinter run $file --check", @more); return ($code == 0 || ($code == 3 && $said =~ /as a whole model/ && $said =~ /\) ([\d.]+) / && $1 < 4), $said) }
my ($found, $devices) = says("$sinter devices");
my @devices = ('interp', grep { $devices =~ /^\Q$_\E /m } 'opencl:pocl', 'vulkan:llvmpipe');
for my $name (sort keys %graphs) {
  my $file = put("$name.snt", $symbols . $graphs{$name}->('h', 'w'));
  for my $device (@devices) {
    for my $extents ([40, 48], [37, 29], [8, 13], [9, 70]) {
      my ($h, $w) = @$extents;
      my ($good, $said) = near($file, "--device $device --dim h=$h --dim w=$w");
      ok($good, "$name on $device, $h x $w") or diag($said);
    }
  }
}
SKIP: { skip('opencl:pocl is not here: answers on the interpreter only', 1) unless grep { $_ eq 'opencl:pocl' } @devices; pass('on a driver, too') }

# ---- work ----

# Operations of all kernels that run at the hints, all groups.
sub work {
  my ($file) = @_;
  my ($code, $said) = says("$sinter inspect-kernel $file --profile pocl --sample 64 --json");
  return undef if $code;
  my $sum = 0;
  for my $k (@{decode_json($said)}) { my $mix = $k->{mix}; $sum += $_ * $k->{groups} / $k->{sampled} for @$mix{qw(fma float special integer global local move)} }
  return $sum;
}
for my $name (sort keys %graphs) {
  my $open = work(put("$name.snt", $symbols . $graphs{$name}->('h', 'w')));
  my $fixed = work(put("$name.fixed.snt", $graphs{$name}->(40, 48)));
  my $ratio = $open && $fixed ? $open / $fixed : 0;
  ok($ratio > 0.3 && $ratio < 1.3, sprintf('%s: open extents take %.2f times the operations of fixed ones', $name, $ratio));
}
done_testing();
