#!/usr/bin/perl
# Long sums of contractions are made in parts where vectors are explicit (fusion/contract_sums.c): their error, and right at every length. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
sub profile { my ($lanes) = @_; return put("kir$lanes.profile", "base = pocl\nname = wide\ntarget = kir\nlanes = $lanes\nregisters = 32\n") }
sub product { my ($rows, $terms, $columns) = @_; return "graph \@g(%x: f32[$rows,$terms], %w: f32[$terms,$columns]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n" }

# 4096 terms of a product: sums of 256 each, which are then summed. One after another they are off by more than four times as much.
my $model = put('long.snt', product(4, 4096, 32));
sub off {
  my ($code, $said) = says("$sinter run $model --device $_[0] --check --quiet");
  return $code ? diag($said) && 1 : $said =~ /error \/ bound\) ([\d.e-]+)/ ? $1 : 1;
}
for my $device ('opencl:pocl', map { 'interp --profile ' . profile($_) } 8, 16) {
  SKIP: {
    skip(lacks($device), 1) if lacks($device);
    my ($parts, $order) = (off($device), off("$device --numerics strict"));
    cmp_ok(3 * $parts, '<', $order, "a sum of 4096 products on $device: $parts of the bound, one after another $order");
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
