#!/usr/bin/perl
# A padded operand that parts of a contraction would each copy is stored once, by a kernel before (fusion/contract/operands.c): where that is cheaper by the model,
# its extents are known and its rows whole vectors; the same bits as copies in STRICT. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# Behind a product, so that channels come last.
sub conv {
  my ($channels, $positions, $taps, $attrs, $type) = (@_, 'f32');
  my $ones = $taps =~ s/\d+/1/gr;
  return <<"END";
graph \@g(%x: $type\[2,32,$positions]) {
  %v: $type\[$channels,32,$ones] = const normal seed=1 scale=0x1p-3
  %w: $type\[256,$channels,$taps] = const normal seed=2 scale=0x1p-5
  %a = conv %x, %v
  %b = relu %a
  %c = conv %b, %w, $attrs
  %y = relu %c
  return y=%y
}
END
}
# how many such kernels there are on PoCL's profile
my $plane = 'pads=[1,1,1,1], stride=[2,2]';
my @cases = (
  ['stride', 1, 'strides of 2, many channels', conv(256, '20,20', '3,3', $plane)],
  ['line', 1, 'along one axis', conv(256, '181', '5', 'pads=[2,2], stride=[2]')],
  ['uneven', 0, 'channels that are no whole vectors', conv(252, '20,20', '3,3', $plane)],
  ['lines', 0, 'whole vectors of 8 that are no whole lines: rows of a workspace begin aligned', conv(248, '20,20', '3,3', $plane)],
  ['half', 1, 'halves, cast on the way', conv(256, '20,20', '3,3', $plane, 'f16')],
  ['open', 0, 'open extents', conv(256, 'h,h', '3,3', $plane) =~ s/graph/symbols { h: min=1 max=64 multiple_of=1 hint=20 }\ngraph/r],
  ['small', 0, 'a copy that costs less than a launch', conv(32, '4,4', '3,3', $plane)],
);
for my $case (@cases) {
  my ($name, $count, $why, $text) = @$case;
  my $file = put("$name.snt", $text);
  my (undef, $said) = says("$sinter explain $file --profile pocl");
  is(scalar(() = $said =~ /^  k\d+_pad /mg), $count, "$why: kernels that pad") or diag($said);
  next if !$count;
  SKIP: {
    skip("$why: " . lacks('opencl:pocl'), 2) if lacks('opencl:pocl');
    my ($code, $ran) = says("$sinter run $file --device opencl:pocl --check --quiet");
    is($code, 0, "$why: right") or diag($ran);
    ($code, $ran) = says("$sinter run $file --device opencl:pocl --numerics strict --input x=random:3 --output y=$dir/$_.npy $_") for '', '--unfused';
    ok(length slurp("$dir/.npy") && slurp("$dir/.npy") eq slurp("$dir/--unfused.npy"), "$why: the same bits in STRICT") or diag($ran);
  }
}
done_testing();
