#!/usr/bin/perl
# Winograd's convolutions where work-items are lanes: taken by price, in tiles side by side where reads are of texels, by single ones else; rows and columns that tiles do
# not divide; right on every device. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub profile { my ($base, @rest) = @_; return put("$base.profile", join("\n", "base = $base", 'name = here', @rest) . "\n") }
sub conv {
  my ($x, $k, $pads, @more) = @_;
  my ($n, $c, $h, $w) = split /,/, $x;
  my ($y, $z) = map { $_ - 2 + 2 * $pads } $h, $w;
  return <<"END";
graph \@conv(%x: f32[$x], %r: f32[$n,$k,$y,$z]) {
  %w: f32[$k,$c,3,3] = const normal seed=1 scale=0.1
  %c = conv %x, %w, pads=[$pads,$pads,$pads,$pads]
  %s = add %c, %r
  %y = relu %s
  return y=%y
}
END
}
sub transforms { my ($file, @options) = @_; my (undef, $said) = says("$sinter explain $file @options"); return scalar(() = $said =~ /^  k\d+_winograd/mg) }

my %taken = (
  'whole tiles' => [2, conv('1,64,32,32', 64, 1)],
  'rows and columns that tiles do not divide' => [2, conv('1,61,29,27', 47, 1)],
  'no padding' => [2, conv('1,64,30,31', 64, 0)],
  'few channels' => [0, conv('1,4,32,32', 64, 1)],
);
my $kir = profile('lavapipe', 'target = kir');
for my $name (sort keys %taken) {
  my ($count, $text) = @{ $taken{$name} };
  my $file = put($name =~ tr/ /_/r . '.snt', $text);
  is(transforms($file, '--profile lavapipe'), $count, "$name: transforms");
  is(transforms($file, '--profile lavapipe --numerics strict'), 0, "$name: none in strict numerics");
  for my $run ("interp --profile $kir", 'vulkan:llvmpipe', 'vulkan:swiftshader') {
    my ($device) = $run =~ /^(\S+)/;
    SKIP: {
      skip(lacks($device), 1) if $device ne 'interp' && lacks($device);
      my ($code, $said) = says("$sinter run $file --device $run --check --quiet");
      is($code, 0, "$name: right on $device") or diag($said);
    }
  }
}

# Where reads are of storage an item has one tile. The price is a GPU's of few units here, so that a small convolution is enough.
my $plain = profile('dgpu', 'target = kir', 'units = 1', 'launch_ns = 100 ns');
my $file = put('storage.snt', conv('1,32,19,22', 32, 1));
is(transforms($file, "--profile $plain"), 2, 'storage: transforms');
my ($code, $said) = says("$sinter run $file --device interp --profile $plain --check --quiet");
is($code, 0, 'storage: right') or diag($said);

# Items have of each other what their tiles share, in local memory: of whole rows, or of whole planes where rows are no whole vectors; where groups of them are
# not even, or what stands around the operand is not one of zeros, each reads all.
for my $of (['vulkan:llvmpipe', 'spirv'], ['vulkan:swiftshader', 'spirv'], ['opencl:pocl', 'opencl'], ['cuda-text', 'cuda'], ['interp', 'kir']) {
  my ($device, $target) = @$of;
  my $shared = profile('dgpu', "target = $target", 'units = 1', 'launch_ns = 100 ns');
  for my $case (['1,32,28,28', 1, 1], ['2,32,14,14', 1, 1], ['4,32,7,6', 1, 1], ['1,32,12,32', 1], ['2,48,25,13', 1], ['1,32,30,128', 1], ['1,37,13,13', 1], ['1,32,30,30', 0], ['1,32,28,28', 2]) {
    my ($x, $pads, $everywhere) = @$case;
    next unless $everywhere || $device eq 'interp';
    my $file = put('shared.snt', conv($x, 40, $pads));
    is(transforms($file, "--profile $shared"), 2, "$x, padded by $pads: transforms") if $device eq 'interp';
    SKIP: {
      skip(lacks($device), 1) if $device ne 'interp' && lacks($device);
      is(system("$sinter run $file --device $device --profile $shared $_ --check --quiet >$dir/said 2>&1"), 0, "$x, padded by $pads, $_: right on $device") or diag(slurp("$dir/said"))
        for '', $device eq 'interp' ? ('--numerics fast', '--mask subgroups=0') : ();
    }
  }
  my $around = put('around.snt', conv('1,32,14,14', 40, 0) =~ s/f32\[1,32,14,14\]/f32[1,32,12,12]/r =~ s/(%c = conv) %x/%p = pad %x, low=[0,0,1,1], high=[0,0,1,1], value=2\n  $1 %p/r);
  SKIP: {
    skip(lacks($device), 1) if $device ne 'interp' && lacks($device);
    is(system("$sinter run $around --device $device --profile $shared --check --quiet >$dir/said 2>&1"), 0, "twos around: right on $device") or diag(slurp("$dir/said"));
  }
}
done_testing();
