#!/usr/bin/perl
# Long sums of contractions are made in parts (fusion/contract/sums.c): their error, and right at every length. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
sub profile { my ($lanes) = @_; return put("kir$lanes.profile", "base = pocl\nname = wide\ntarget = kir\nlanes = $lanes\nregisters = 32\n") }
sub product { my ($rows, $terms, $columns) = @_; return "graph \@g(%x: f32[$rows,$terms], %w: f32[$terms,$columns]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n" }

# 4096 terms: sums of 256 each, which are then summed, where vectors are explicit; where work-items are lanes sums of four, or of a window's taps. One after
# another they are off by more than three times as much, and twice.
my @lanes = qw(vulkan:llvmpipe vulkan:swiftshader);
my @explicit = ('opencl:pocl', map { 'interp --profile ' . profile($_) } 8, 16);
my %times = ((map { $_ => 2 } @lanes, 'opencl:rusticl'), map { $_ => 3 } @explicit);
my @cases = (['product', put('long.snt', product(4, 4096, 32)), @explicit, @lanes, 'opencl:rusticl'],
             ['window', put('windows.snt', "graph \@g(%x: f32[1,512,8,8], %w: f32[32,512,3,3]) {\n  %y = conv %x, %w, pads=[1,1,1,1]\n  return y=%y\n}\n"), @lanes]);
sub off {
  my ($model, $device) = @_;
  my ($code, $said) = says("$sinter run $model --device $device --check --quiet");
  return $code ? diag($said) && 1 : $said =~ /error \/ bound\) ([\d.e-]+)/ ? $1 : 1;
}
for my $case (@cases) {
  my ($kind, $model, @devices) = @$case;
  for my $device (@devices) {
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my ($parts, $order) = (off($model, $device), off($model, "$device --numerics strict"));
      cmp_ok($times{$device} * $parts, '<', $order, "a $kind of 4096 or more terms on $device: $parts of the bound, one after another $order");
    }
  }
}
# Whole parts, a last one of few terms, one of all but few, too few for two parts, and an odd number.
for my $terms (512, 520, 764, 508, 521) {
  my $graph = put('terms.snt', product(5, $terms, 24));
  for my $device ('opencl:pocl', 'vulkan:llvmpipe', 'interp --profile ' . profile(8)) {
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my ($code, $said) = says("$sinter run $graph --device $device --check --quiet");
      is($code, 0, "$terms terms on $device") or diag($said);
    }
  }
}
done_testing();
