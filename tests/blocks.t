#!/usr/bin/perl
# Contractions whose panels are larger than the near cache take their terms in blocks and keep the sums in between: the same bits in STRICT as all terms at once.
# The cache is made small so that small contractions have large panels. The panel after the one at hand is fetched where the second cache has room for both. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my %graphs = (
  'rows that share out unevenly' => <<'END',
graph @g(%x: f32[33,1024]) {
  %w: f32[1024,80] = const normal seed=1 scale=0x1p-5
  %b: f32[80] = const normal seed=2 scale=0x1p+0
  %m = matmul %x, %w
  %bb: f32[33,80] = broadcast %b, axes=[1], shape=[33,80]
  %s = add %m, %bb
  %y = relu %s
  return y=%y
}
END
  'a padded convolution' => <<'END',
graph @g(%x: f32[1,96,7,7]) {
  %w: f32[80,96,3,3] = const normal seed=1 scale=0x1p-5
  %c = conv %x, %w, pads=[1,1,1,1]
  %y = relu %c
  return y=%y
}
END
  # channels that are no whole vectors: its padding is copied by each part, as it would else not be (tests/pads.t)
  'a convolution of stride 2' => <<'END',
graph @g(%x: f32[2,92,10,10]) {
  %w: f32[48,92,3,3] = const normal seed=1 scale=0x1p-5
  %y = conv %x, %w, pads=[1,1,1,1], stride=[2,2]
  return y=%y
}
END
);

sub spill { my ($file, $text) = @_; open my $out, '>', $file or die $!; print $out $text; close $out }

my $profile = slurp('cost_targets/profiles/pocl.profile');
ok($profile =~ s/^l2_bytes = \d+/l2_bytes = 16384/m, 'the profile has a near cache');
spill("$dir/small.profile", $profile);
my $pocl = `$sinter devices 2>&1` =~ /^opencl:pocl\b/m;
for my $name (sort keys %graphs) {
  spill("$dir/g.snt", $graphs{$name});
  my %loops;
  for my $cache ("$dir/small.profile", 'pocl') {
    my $said = `$sinter compile $dir/g.snt --target opencl --profile $cache --numerics strict -o $dir/out 2>&1`;
    is($?, 0, "$name compiles") or diag($said);
    $loops{$cache} = () = join('', map { slurp($_) } glob "$dir/out/*contract.cl") =~ /^ *for \(/mg;
  }
  cmp_ok($loops{"$dir/small.profile"}, '>', $loops{pocl}, "$name: the loops of blocks are there");
  SKIP: {
    skip "$name: no PoCL", 1 if !$pocl;
    my $said = `$sinter compile $dir/g.snt --target opencl --profile $dir/small.profile --numerics strict -o $dir/g.sntp 2>&1 &&
                $sinter run $dir/g.sntp --device opencl:pocl --input x=random:3 --output y=$dir/blocks.npy 2>&1 &&
                $sinter run $dir/g.snt --device opencl:pocl --numerics strict --unfused --input x=random:3 --output y=$dir/whole.npy 2>&1`;
    ok($? == 0 && length slurp("$dir/whole.npy") && slurp("$dir/blocks.npy") eq slurp("$dir/whole.npy"), "$name: the same bits") or diag($said);
  }
}

spill("$dir/g.snt", "graph \@g(%x: f32[49,2048]) {\n  %w: f32[2048,512] = const normal seed=1 scale=0x1p-5\n  %y = matmul %x, %w\n  return y=%y\n}\n");
for my $room (0, 2097152) {
  spill("$dir/room.profile", "base = pocl\nname = room\nlanes = 16\nregisters = 32\nsecond_bytes = $room B\n");
  my $said = `$sinter compile $dir/g.snt --target opencl --profile $dir/room.profile -o $dir/ahead 2>&1`;
  is($?, 0, 'a product of large panels compiles') or diag($said);
  is(slurp("$dir/ahead/k0_contract.cl") =~ /^ *SNT_PREFETCH\(/m ? 1 : 0, $room ? 1 : 0, "the next one is fetched ahead: $room bytes");
}
done_testing;
