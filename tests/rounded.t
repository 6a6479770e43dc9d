#!/usr/bin/perl
# Products of rows that are rounded to 8 bits block by block with weights of few bits (fusion/rewrite/word_bytes.c): which become sums of words times codes, and that
# no sum is off, on each device here. The codes are inputs, so that the bound is the one of a sum of products, without a step of the rounding. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# Vectors, rows of weights, blocks of a row, terms of a block, bits; what is taken off a weight: a number, "byte" a block, or "real".
sub product {
  my ($vectors, $rows, $blocks, $size, $bits, $zero) = @_;
  my ($fields, $mask) = (8 / $bits, (1 << $bits) - 1);
  my ($bytes, $terms) = ($size / $fields, $blocks * $size);
  my $text = "graph \@g(%q: i8[$vectors,$blocks,$size], %a: f32[$vectors,$blocks,1]) {\n  %w: u8[$rows,$blocks,$bytes] = const uniform seed=1 scale=127\n" .
    "  %s: f32[$rows,$blocks] = const normal seed=2\n";
  my $shape = "[$rows,$blocks,$bytes" . ($fields > 1 ? ",$fields]" : ']');
  for my $i ($fields > 1 ? 0 .. $fields - 1 : ()) {
    $text .= $i ? "  %m$i = shr %w, " . $i * $bits . "\n" : "  %m0 = and %w, $mask\n";
    $text .= $i && $i + 1 < $fields ? "  %n$i = and %m$i, $mask\n" : "  %n$i = and %m$i, 255\n";
    $text .= "  %f$i = reshape %n$i, shape=[$rows,$blocks,$bytes,1]\n";
  }
  $text .= '  %both = concat ' . join(', ', map {"%f$_"} 0 .. $fields - 1) . ", axis=3\n" if $fields > 1;
  $text .= '  %c = cast ' . ($fields > 1 ? '%both' : '%w') . ", dtype=f32\n";
  my $off = "  %d = sub %c, $zero\n";
  my $spread = "broadcast %zf, shape=$shape, axes=[0,1]\n  %d = sub %c, %zb\n";
  $off = "  %z: u8[$rows,$blocks] = const uniform seed=3 scale=7\n  %zf = cast %z, dtype=f32\n  %zb = $spread" if $zero eq 'byte';
  $off = "  %zf: f32[$rows,$blocks] = const normal seed=3\n  %zb = $spread" if $zero eq 'real';
  return $text . $off . "  %sb = broadcast %s, shape=$shape, axes=[0,1]\n  %e = mul %d, %sb\n  %matrix = reshape %e, shape=[$rows,$terms]\n" .
    "  %qf = cast %q, dtype=f32\n  %ab = broadcast %a, shape=[$vectors,$blocks,$size], axes=[0,1,2]\n  %x = mul %qf, %ab\n  %v = reshape %x, shape=[$vectors,$terms]\n" .
    "  %y = linear %v, %matrix\n  return y=%y\n}\n";
}
my @cases = ( # name, products of words, what it is, text
  ['one', 8, 'one vector', product(1, 256, 8, 32, 4, '8.0')],
  ['wide', 8, 'many rows: four vectors of them beside each other', product(1, 4096, 2, 32, 4, '8.0')],
  ['long', 8, 'blocks of several sums', product(1, 256, 2, 128, 4, '8.0')],
  ['short', 4, 'blocks of two words', product(1, 256, 16, 16, 4, '8.0')],
  ['bytes', 8, 'a zero of each block', product(1, 256, 8, 32, 4, 'byte')],
  ['none', 8, 'nothing taken off', product(1, 256, 8, 32, 4, '0.0')],
  ['pairs', 8, 'four fields a byte', product(1, 2048, 8, 32, 2, '2.0')],
  ['two', 8, 'two vectors', product(2, 256, 8, 32, 4, '8.0')],
  ['three', 8, 'three, a zero of each block', product(3, 2048, 4, 32, 4, 'byte')],
  ['five', 8, 'five, blocks of several sums', product(5, 256, 4, 64, 4, '8.0')],
  ['whole', 8, 'bytes of one field', product(1, 256, 8, 32, 8, '128.0')],
  ['whole_two', 8, 'bytes, a zero of each block, two vectors', product(2, 2048, 4, 64, 8, 'byte')],
  ['whole_short', 4, 'bytes, blocks of four words', product(3, 256, 16, 16, 8, '128.0')],
  ['real', 0, 'what is taken off is no whole number', product(1, 256, 8, 32, 4, 'real')],
  ['half', 0, 'nor is this', product(1, 256, 8, 32, 4, '7.5')],
  ['narrow', 0, 'scales of f16, two vectors', product(2, 256, 8, 32, 4, '8.0') =~ s/%a: f32/%a: f16/r =~ s/%qf = cast %q, dtype=f32/%qf = cast %q, dtype=f16/r =~ s/%v = reshape %x, (.*)/%v16 = reshape %x, $1\n  %v = cast %v16, dtype=f32/r],
  ['uneven', 0, 'blocks that are not those of the weights', product(1, 256, 8, 32, 4, '8.0') =~ s/i8\[1,8,32\]/i8[1,16,16]/r =~ s/f32\[1,8,1\]/f32[1,16,1]/r =~ s/shape=\[1,8,32\]/shape=[1,16,16]/r],
);
sub profile {
  my ($target) = @_;
  my $lanes = $target eq 'cuda' ? 4 : 16;
  return put("$target.profile", "base = pocl\nname = words\ntarget = $target\nlanes = $lanes\nregisters = 32\ncaps.dot4 = 1\n");
}
sub dots {
  my ($name, $profile, $more) = @_;
  my $said = `$sinter opt $dir/$name.snt --run canonicalise,decompose,quantised,integers,rewrite --profile $profile $more 2>&1`;
  my @found = $said =~ /= dot4 /g;
  return $? ? $said : scalar @found;
}
my $words = profile('opencl');
for my $case (@cases) {
  my ($name, $want, $why, $text) = @$case;
  put("$name.snt", $text);
  is(dots($name, $words, ''), $want, $why);
}
is(dots('one', $words, '--mask dot4=0'), 0, 'not where the device has no such product');
is(dots('one', $words, '--numerics strict'), 0, 'scales behind sums are not for STRICT');
is(dots('one', 'dgpu', ''), 0, 'lanes take the floats');
my @runs = (['interp', '--profile ' . profile('interp')], ['opencl:pocl', ''], ['opencl:pocl', "--profile $words"], ['cuda-text', '--profile ' . profile('cuda')], ['vulkan:llvmpipe', ''], ['vulkan:swiftshader', '']);
for my $run (@runs) {
  my ($device, $options) = @$run;
  SKIP: {
    skip(lacks($device), scalar @cases) if lacks($device);
    for my $case (@cases) {
      my $said = `$sinter run $dir/$case->[0].snt --device $device $options --check --quiet 2>&1`;
      ok($? == 0, "$device $options: $case->[2]" =~ s{\Q$dir/\E}{}r) or diag($said);
    }
  }
}
done_testing();
