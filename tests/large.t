#!/usr/bin/perl
# Constants larger than a binding: tables and weights work in parts on every device, bit by bit as whole ones do; what cannot be split is refused by name.
# The limit is narrowed by a mask; SNT_TEST_FULL also takes what is too large for llvmpipe as it is. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub model { my ($name, $text) = @_; return put("$name.snt", $text) }

my $rows = join ', ', 0, 1, 95, 96, 97, 98, 99, 192, 300, 384, 499, 500, 1000, -1, -500, 2147483647;
my $tables = model('tables', <<"END");
graph \@tables(%n: i32[2,8], %j: i32[4]) {
  %c: i32[2,8] = const [$rows]
  %d = sub %n, %n
  %i = add %c, %d
  %t: i32[500,4,64] = const uniform seed=1 scale=0x1p+20
  %y = gather %t, %i, axis=0
  %o = gather %t, %i, axis=0, zero
  %e: i32[4] = const [0, 150, 599, 450]
  %f = sub %j, %j
  %k = add %e, %f
  %m: f32[4,64,600] = const uniform seed=2 scale=0x1p+0
  %z = gather %m, %k, axis=2
  %h: f16[500,256] = const uniform seed=3 scale=0x1p+0
  %w = cast %h, dtype=f32
  %r = gather %w, %i, axis=0
  return y=%y, o=%o, z=%z, r=%r
}
END
my $products = model('products', <<'END');
graph @products(%x: f32[2,64], %u: f32[1,64,2,3]) {
  %t: f32[64,2000] = const uniform seed=1 scale=0x1p-4
  %b: f32[2000] = const uniform seed=2 scale=0x1p-4
  %s: f32[2,2000] = broadcast %b, axes=[1]
  %p = matmul %x, %t
  %q = add %p, %s
  %y = tanh %q
  %w: f32[700,64,1,1] = const uniform seed=3 scale=0x1p-4
  %c = conv %u, %w
  return y=%y, c=%c
}
END
my $whole = model('whole', <<'END');
graph @whole(%x: f32[200,200]) {
  %mask: f32[200,200] = const uniform seed=1 scale=0x1p-4
  %y = add %x, %mask
  return y=%y
}
END
my $narrow = '--mask range=100000,texels=6000';
for my $device ('interp', 'opencl:pocl', 'opencl:rusticl', 'vulkan:llvmpipe', 'vulkan:swiftshader') {
  SKIP: {
    my $said = `$sinter run $tables --device $device $narrow --check 2>&1`;
    skip(lacks($device), 4) if lacks($device);
    is($?, 0, "$device: tables") or diag($said);
    $said = `$sinter run $products --device $device $narrow --check 2>&1`;
    is($?, 0, "$device: products") or diag($said);
    for my $mask ('', $narrow) {
      my $out = $mask ? 'parts' : 'one';
      $said = `$sinter run $products --device $device --numerics strict $mask --output y=$dir/$out.npy 2>&1`;
      diag($said) if $?;
    }
    ok(length slurp("$dir/one.npy") > 16000 && slurp("$dir/one.npy") eq slurp("$dir/parts.npy"), "$device: strict numerics do not see the parts");
    unlink "$dir/one.npy", "$dir/parts.npy";
    $said = `$sinter run $whole --device $device $narrow 2>&1`;
    like($said, qr/constant mask has 160000 bytes and is read whole; the device binds \d+/, "$device: what is read whole is refused by its name");
  }
}
SKIP: {
  skip('SNT_TEST_FULL is not set', 2) unless $ENV{SNT_TEST_FULL};
  my $table = model('table', <<'END');
graph @table(%n: i32[8]) {
  %d = sub %n, %n
  %c: i32[8] = const [0, 1, 131071, 131072, 150000, 199998, 199999, 114688]
  %i = add %c, %d
  %t: i32[200000,256] = const uniform seed=1 scale=0x1p+20
  %y = gather %t, %i, axis=0
  return y=%y
}
END
  my $weights = model('weights', <<'END');
graph @weights(%x: f32[2,1024]) {
  %h: f16[1024,110000] = const uniform seed=1 scale=0x1p-4
  %w = cast %h, dtype=f32
  %y = matmul %x, %w
  return y=%y
}
END
  for my $model ($table, $weights) {
    my $said = `$sinter run $model --device vulkan:llvmpipe --check 2>&1`;
    is($?, 0, "vulkan:llvmpipe: $model") or diag($said);
  }
}
done_testing;
