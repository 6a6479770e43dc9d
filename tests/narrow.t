#!/usr/bin/perl
# Weights stored as f16 or int8 (--weights): which they are, that every device computes with the same numbers, that they are off by no more than is said, and
# what a saved program weighs. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub model { my ($name, $text) = @_; return put("$name.snt", $text) }

my %models = (
  dense => model('dense', <<'END'),
symbols { n: min=1 max=512 multiple_of=1 hint=40 }
graph @dense(%x: f32[n,128]) {
  %w: f32[128,64] = const normal seed=3 scale=0.1
  %v: f32[96,64] = const normal seed=4 scale=0.1
  %b: f32[96] = const normal seed=6 scale=0.1
  %p = matmul %x, %w
  %r = relu %p
  %t = transpose %v, perm=[1,0]
  %q = matmul %r, %t
  %bb: f32[n,96] = broadcast %b, axes=[1]
  %y = add %q, %bb
  return y=%y
}
END
  conv => model('conv', <<'END'),
graph @conv(%x: f32[1,16,12,12]) {
  %w: f32[32,16,3,3] = const normal seed=3 scale=0.1
  %s: f32[32] = const uniform seed=5 scale=1.0
  %c = conv %x, %w, pads=[1,1,1,1]
  %ss: f32[1,32,12,12] = broadcast %s, axes=[1]
  %y = mul %c, %ss
  return y=%y
}
END
  tied => model('tied', <<'END'),
graph @tied(%i: i32[7], %z: f32[7,64]) {
  %t: f32[100,64] = const normal seed=3 scale=1.0
  %e = gather %t, %i, axis=0
  %h = add %e, %z
  %u = transpose %t, perm=[1,0]
  %y = matmul %h, %u
  return y=%y
}
END
  vector => model('vector', <<'END'),
graph @vector(%x: f32[128,1]) {
  %w: f32[96,128] = const normal seed=3 scale=0.1
  %y = matmul %w, %x
  return y=%y
}
END
  half => model('half', <<'END'),
graph @half(%x: f32[9,128]) {
  %w: f16[128,64] = const normal seed=3 scale=0.1
  %v = cast %w, dtype=f32
  %y = matmul %x, %v
  return y=%y
}
END
);

# ---- f16 that is read: an element that a window shows at many taps is widened once, not at each for a tile of columns; what became f32 is compared as f32 (LLVM would
# compare vectors of f16, lane by lane), and less than four are widened by the instruction that four have
my $window = model('window', <<'END');
graph @window(%x: f16[1,64,24,24]) {
  %w: f16[32,64,5,5] = const normal seed=3 scale=0.02
  %y = conv %x, %w
  return y=%y
}
END
my $relu = model('relu', <<'END');
graph @relu(%x: f16[19,13], %z: f16[19,3]) {
  %c = concat %x, %z, axis=1
  %m = max %c, 0x0p+0
  %y = cast %m, dtype=f32
  return m=%m, y=%y
}
END
says("$sinter compile $window --profile pocl --target opencl -o $dir/window --quiet");
unlike(slurp($_), qr/snt_f32_from_f16_\(v/, "$_ widens no element by itself") for glob "$dir/window/*contract.cl";
says("$sinter compile $relu --profile pocl --target opencl -o $dir/relu --quiet");
like(slurp($_), qr/#ifdef __F16C__\n#define SNT_OWN\(x\) __asm__.*SNT_OWN\(w\);/s, "$_ says what F16C has") for glob "$dir/relu/*.cl";
# columns that are a constant are widened once where rows are many and the caches have room for twice the bytes
for my $case ([16, 64, 256, 'f16', 'few rows'], [64, 64, 256, 'f32', 'many rows'], [64, 2048, 1024, 'f16', 'many bytes']) {
  my ($rows, $terms, $columns, $type, $why) = @$case;
  my $graph = model("constant_${rows}_$terms", "graph \@g(%x: f16[$rows,$terms]) {\n  %w: f16[$terms,$columns] = const normal seed=3 scale=0.05\n  %y = matmul %x, %w\n  return y=%y\n}\n");
  like((says("$sinter opt $graph --run canonicalise,decompose,rewrite,widen --profile pocl"))[1], qr/%w: $type\[/, "$why beside a constant: $type");
}
for my $device ('interp', 'opencl:pocl', 'opencl:rusticl', 'vulkan:llvmpipe') {
  SKIP: {
    skip(lacks($device), 2) if lacks($device);
    for my $graph ($window, $relu) {
      my ($code, $said) = says("$sinter run $graph --device $device --check");
      is($code, 0, "$device: $graph") or diag($said);
    }
  }
}

# ---- every device computes with the numbers that are stored, and these are off by at most what is said
my %constants = (dense => 2, conv => 1, tied => 2, vector => 1, half => 1);
for my $device ('host', 'interp', 'opencl:pocl', 'vulkan:llvmpipe', 'vulkan:swiftshader') {
  my ($code, $said) = says("$sinter run $models{half} --device $device");
  SKIP: {
    skip(lacks($device), 4 * keys %models) if lacks($device);
    is($code, 0, "$device runs halves") or diag($said);
    for my $name (sort keys %models) {
      my %apart;
      for my $weights ('f16', 'int8') {
        ($code, $said) = says("$sinter run $models{$name} --device $device --weights $weights --check");
        is($code, 0, "$device: $name, $weights, within the bound") or diag($said);
        my ($off, $largest) = $said =~ /^weights as $weights: y is at most (\S+) from what the weights as given make, its largest value is (\S+)/m;
        $apart{$weights} = ($off // 1) / ($largest || 1);
        ok($apart{$weights} < {f16 => 1e-3, int8 => 2e-2}->{$weights}, "$device: $name, $weights, what it costs") or diag($said);
      }
    }
  }
}
my ($code, $said) = says("$sinter run $models{half} --device host --weights f16 --check");
like($said, qr/y is at most 0 from/, 'what is f16 already loses nothing');
for my $numerics ('strict', 'fast', 'reproducible') {
  ($code, $said) = says("$sinter run $models{$_} --device interp --weights int8 --numerics $numerics --check"), is($code, 0, "$_, $numerics") || diag($said) for sort keys %models;
}

# ---- by how much a weight is off: a product with the unit matrix is the weights
sub floats { my ($path, $count) = @_; return unpack 'f*', substr slurp($path), -4 * $count }
my $unit = model('unit', "graph \@unit(%x: f32[64,64]) {\n  %w: f32[64,80] = const normal seed=3 scale=1.0\n  %y = matmul %x, %w\n  return y=%y\n}\n");
npy('unit.npy', '<f4', [64, 64], pack 'f<*', map { int($_ / 64) == $_ % 64 ? 1 : 0 } 0 .. 4095);
my %of;
for my $weights ('given', 'f16', 'int8') {
  ($code, $said) = says("$sinter run $unit --device host --weights $weights --input x=$dir/unit.npy --output y=$dir/$weights.npy");
  is($code, 0, "the weights as $weights") or diag($said);
  $of{$weights} = [floats("$dir/$weights.npy", 64 * 80)];
}
my (@most, $wrong_half, $wrong_byte);
for my $i (0 .. 5119) { my $v = abs $of{given}[$i]; $most[$i % 80] = $v if $v > ($most[$i % 80] // 0) }
for my $i (0 .. 5119) {
  my $v = $of{given}[$i];
  $wrong_half++ if abs($of{f16}[$i] - $v) > abs($v) * 2**-11 + 2**-25;
  $wrong_byte++ if abs($of{int8}[$i] - $v) > $most[$i % 80] / 254 * 1.00001;
}
is($wrong_half // 0, 0, 'f16: each within 2^-11 of its size');
is($wrong_byte // 0, 0, 'int8: each within half a step of its channel');
ok((grep { $of{int8}[$_] != $of{given}[$_] } 0 .. 5119) > 4000, 'int8: they are not what was given');

# ---- what stays as it is
my $stays = 'has no weights to store as i8';
my $base = slurp($models{half}) =~ s/f16\[128,64\]/f32[128,64]/r =~ s/  %v = cast.*\n//r =~ s/matmul %x, %v/matmul %x, %w/r;
for my $case (
  ['a small one', $stays, sub { s/128/32/g }],
  ['one that few numbers are summed of', $stays, sub { s/128,64/16,1024/; s/9,128/9,16/ }],
  ['one whose exact numbers somebody else reads', $stays, sub { s/  return y=%y/  %e = exp %w\n  return y=%y, e=%e/ }],
  ['one that is a result', $stays, sub { s/return y=%y/return y=%y, w=%w/ }],
  ['one that holds an infinity', $stays, sub { s/const normal.*/'const [' . join(', ', map { $_ == 77 ? 'inf' : '0x1p+0' } 0 .. 8191) . ']'/e }],
  ['whole numbers', $stays, sub { s/f32/i32/g; s/normal seed=3 scale=0.1/uniform seed=3 scale=9.0/ }],
  ['the base itself is stored', '', sub { }],
) {
  my ($name, $why, $edit) = @$case;
  local $_ = $base;
  $edit->();
  my $path = model('case', $_);
  ($code, $said) = says("$sinter run $path --device host --weights int8");
  ok($why ? $code == 1 && $said =~ /unsupported: the graph \Q$why\E/ : $code == 0, $name) or diag($said);
}
my $large = model('large', $base =~ s/scale=0.1/scale=1e5/r);
($code, $said) = says("$sinter run $large --device host --weights f16");
like($said, qr/has no weights to store as f16/, 'what f16 would overflow');
($code, $said) = says("$sinter run $large --device interp --weights int8 --check");
is($code, 0, 'as int8 it fits') or diag($said);
($code, $said) = says("$sinter run $models{dense} --weights int4");
ok($code == 2 && $said =~ /no weights "int4": given f16 int8/, 'a word that is none') or diag($said);

# ---- saved: fewer bytes, also of what a schedule laid out as f32; the same results
my %target = ('interp' => 'kir', 'opencl:pocl' => 'opencl', 'vulkan:llvmpipe' => 'spirv');
sub weights { my ($name, $count) = @_; open my $out, '>:raw', "$dir/$name" or die $!; print $out pack 'f*', map { sin($_ * 1.37) * 0.1 } 1 .. $count }
weights('w.bin', 512 * 384);
weights('v.bin', 96 * 384);
my $wide = model('wide', slurp($models{dense}) =~ s/128/512/gr =~ s/\b64\b/384/gr =~ s/normal seed=3 scale=0.1/data="w.bin"/r =~ s/normal seed=4 scale=0.1/data="v.bin"/r);
for my $device (sort keys %target) {
  my %size;
  for my $weights ('given', 'f16', 'int8') {
    SKIP: {
      ($code, $said) = says("$sinter run $wide --device $device --weights $weights --input x=random:4 --output y=$dir/direct.npy");
      skip(lacks($device), 3) if lacks($device);
      is($code, 0, "$device, $weights: runs") or diag($said);
      ($code, $said) = says("$sinter compile $wide --device $device --target $target{$device} --weights $weights -o $dir/m.sntp");
      is($code, 0, "$device, $weights: saved") or diag($said);
      $size{$weights} = -s "$dir/m.sntp";
      ($code, $said) = says("$sinter run $dir/m.sntp --device $device --input x=random:4 --output y=$dir/loaded.npy");
      is($code, 0, "$device, $weights: loaded and run") or diag($said);
      ok(slurp("$dir/direct.npy") eq slurp("$dir/loaded.npy"), "$device, $weights: the same bytes");
      my ($line) = says("$sinter inspect $dir/m.sntp");
      ($line) = (says("$sinter inspect $dir/m.sntp"))[1] =~ /^(weights: .*)/m;
      is($line // '', {given => '', f16 => 'weights: 2 constants as f16, 0.467 MB (0.934 MB as f32)', int8 => 'weights: 2 constants as i8, 0.233 MB (0.934 MB as f32)'}->{$weights}, "$device, $weights: inspect says so");
    }
  }
  next if !$size{given};
  my ($half, $byte) = map { $size{$_} / $size{given} } 'f16', 'int8';
  ok($half < 0.56, sprintf '%s: with f16 %.0f %% of the bytes', $device, 100 * $half);
  ok($byte < 0.32, sprintf '%s: with int8 %.0f %% of the bytes', $device, 100 * $byte);
}

# ---- factors go into weights before these are stored, and Winograd's filters are made of what is stored: as many kernels and constants as without the option
my %shape = (
  norm => model('norm', <<'END'),
graph @norm(%x: f32[1,64,15,15]) {
  %w: f32[96,64,1,1] = const normal seed=3 scale=0.1
  %s: f32[96] = const uniform seed=5 scale=1.0
  %b: f32[96] = const uniform seed=6 scale=1.0
  %e = exp %s
  %c = conv %x, %w
  %ss: f32[1,96,15,15] = broadcast %e, axes=[1]
  %bb: f32[1,96,15,15] = broadcast %b, axes=[1]
  %m = mul %c, %ss
  %y = add %m, %bb
  return y=%y
}
END
  winograd => model('winograd', <<'END'),
graph @winograd(%x: f32[1,64,28,28]) {
  %w: f32[64,64,3,3] = const normal seed=3 scale=0.1
  %c = conv %x, %w, pads=[1,1,1,1]
  %y = relu %c
  return y=%y
}
END
);
for my $name (sort keys %shape) {
  my (%kernels, %constants);
  for my $weights ('given', 'f16', 'int8') {
    ($code, $said) = says("$sinter compile $shape{$name} --profile pocl --target kir --weights $weights -o $dir/m.sntp");
    is($code, 0, "$name, $weights: compiled") or diag($said);
    my $plan = (says("$sinter inspect $dir/m.sntp"))[1];
    $kernels{$weights} = join ' ', $plan =~ /^  kernel (\S+)/mg;
    $constants{$weights} = join ' ', $plan =~ /: constant (\S+) bytes=\d+ align=\d+ life/g;
    ($code, $said) = says("$sinter run $shape{$name} --device interp --weights $weights --check");
    is($code, 0, "$name, $weights: within the bound") or diag($said);
  }
  is($kernels{$_}, $kernels{given}, "$name, $_: the same kernels") for 'f16', 'int8';
  is($constants{f16}, $constants{given}, "$name, f16: the same constants");
  like($kernels{int8}, qr/_winograd/, "$name: it is") if $name eq 'winograd';
}

# ---- a profile whose kernels read them as they are stored
for my $case (['f16', 'f16'], ['int8', 'i8']) {
  ($code, $said) = says("$sinter compile $wide --profile dgpu --target spirv --weights $case->[0] -o $dir/m.sntp");
  my $plan = (says("$sinter inspect $dir/m.sntp"))[1];
  is(() = $plan =~ /constant .*\b$case->[1]\[/g, 2, "dgpu, $case->[0]: the kernels' own constants are few bytes") or diag($plan);
}
done_testing();
