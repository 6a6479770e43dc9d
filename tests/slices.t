#!/usr/bin/perl
# A vector of floats times constant weights of few bits as three vectors of 8 bits (fusion/rewrite/word_bytes.c): where that is done, that no result is off by more than
# docs/numerics.md says, whatever a block of the vector holds, and what becomes of infinities. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my ($blocks, $size) = (8, 32);
my $terms = $blocks * $size;

# Vectors, rows of weights, bits; what is taken off a weight, and what follows the product.
sub product {
  my ($vectors, $rows, $bits, $zero, $after) = @_;
  my $bytes = $size * $bits / 8;
  my $text = "graph \@g(%x: f32[$vectors,$terms]) {\n  %w: u8[$rows,$blocks,$bytes] = const uniform seed=1 scale=127\n  %s: f32[$rows,$blocks] = const normal seed=2\n";
  my $shape = $bits == 8 ? "[$rows,$blocks,$bytes]" : "[$rows,$blocks,$bytes,2]";
  $text .= "  %low = and %w, 15\n  %high = shr %w, 4\n  %l = reshape %low, shape=[$rows,$blocks,$bytes,1]\n  %h = reshape %high, shape=[$rows,$blocks,$bytes,1]\n" .
    "  %both = concat %l, %h, axis=3\n" if $bits == 4;
  return $text . '  %c = cast ' . ($bits == 8 ? '%w' : '%both') . ", dtype=f32\n  %d = sub %c, $zero\n  %sb = broadcast %s, shape=$shape, axes=[0,1]\n  %e = mul %d, %sb\n" .
    "  %m = reshape %e, shape=[$rows,$terms]\n  %y = linear %x, %m\n" . ($after // "  return y=%y\n") . "}\n";
}
my @cases = ( # name, products of words, why, text
  ['four', 24, 'three products of each word of a sum', product(1, 2048, 4, '8.0')],
  ['eight', 24, 'of whole bytes, too', product(1, 2048, 8, '128.0')],
  ['none', 24, 'nothing taken off', product(1, 2048, 4, '0.0')],
  ['small', 0, 'few rows: the slices cost more than they save', product(1, 256, 4, '8.0')],
  ['two', 0, 'two vectors', product(2, 2048, 4, '8.0')],
  ['half', 0, 'what is taken off is no whole number', product(1, 2048, 4, '7.5')],
  ['whole', 0, 'sums that are taken for whole numbers', product(1, 2048, 4, '8.0', "  %i = cast %y, dtype=i32\n  return y=%i\n")],
);
sub profile { my ($name, $more) = @_; return put("$name.profile", "base = pocl\nname = words\ntarget = opencl\nlanes = 16\nregisters = 32\ncaps.dot4 = 1\nlaunch_ns = 500 ns\n$more") }
my ($words, $pairs) = (profile('words', ''), profile('pairs', "dot4_steps = 2.5\n"));
sub dots {
  my ($name, $options) = @_;
  my $said = `$sinter opt $dir/$name.snt --run canonicalise,decompose,quantised,integers,rewrite $options 2>&1`;
  my @found = $said =~ /= dot4 /g;
  return $? ? $said : scalar @found;
}
for my $case (@cases) {
  my ($name, $want, $why, $text) = @$case;
  put("$name.snt", $text);
  is(dots($name, "--profile $words"), $want, $why);
}
is(dots('four', "--profile $words --mask dot4=0"), 0, 'not where the device has no such product');
is(dots('four', "--profile $pairs"), 0, 'nor where it takes several steps');
is(dots('four', "--profile $words --numerics $_"), 0, "not in $_") for qw(strict reproducible);
is(dots('four', "--profile $words --numerics fast"), 24, 'in FAST');

# A vector by what it holds, as numbers.
srand 1;
my @plain = map { rand(2) - 1 } 1 .. $terms;
my %vectors = (
  plain => [@plain],
  zeros => [(0) x $terms],
  ones => [map { $_ % 3 - 1 } 1 .. $terms], # the greatest of a block is its code, 127
  peaks => [map { $plain[$_] * ($_ % $size ? 1 : 1e8) } 0 .. $terms - 1],
  edges => [map { $plain[$_] * ($_ % $size == $size - 1 ? -1e30 : 1e-30) } 0 .. $terms - 1],
  large => [map { $_ * 1e34 } @plain],
  small => [map { $_ * 1e-33 } @plain], # below what scales are made of
  denormal => [map { $_ * 1e-41 } @plain],
  'a denormal block' => [map { $plain[$_] * ($_ < $size ? 1e-41 : 1) } 0 .. $terms - 1],
);
sub vector { my ($name, @at) = @_; return npy("x.npy", '<f4', [1, $terms], pack 'f<*', @at) }
my @runs = (['interp', "--profile " . put('interp.profile', "base = pocl\nname = words\ntarget = interp\nlanes = 16\nregisters = 32\ncaps.dot4 = 1\nlaunch_ns = 500 ns\n")], ['opencl:pocl', "--profile $words"]);
for my $run (@runs) {
  my ($device, $options) = @$run;
  SKIP: {
    skip(lacks($device), 2 * keys(%vectors) + 4) if lacks($device);
    for my $name (sort keys %vectors) {
      my $file = vector($name, @{ $vectors{$name} });
      for my $graph ('four', 'eight') {
        my $said = `$sinter run $dir/$graph.snt --device $device $options --input x=$file --check --quiet 2>&1`;
        ok($? == 0, "$device, $graph bits: $name") or diag($said);
      }
    }
    for my $odd (9**9**9, -sin(9**9**9)) {
      my @at = @plain;
      $at[70] = $odd;
      my $file = vector('odd', @at);
      my $said = `$sinter run $dir/four.snt --device $device $options --input x=$file --output y=$dir/y.npy --quiet 2>&1`;
      ok($? == 0, "$device: runs with one of $odd") or diag($said);
      my @finite = grep { $_ - $_ == 0 } numbers("$dir/y.npy");
      is(scalar @finite, 0, "$device: $odd reaches every result");
    }
  }
}

# What is left of the vector by three slices is a bit of f32: beside sums in double precision, a result is as near as the product of floats.
SKIP: {
  skip(lacks('opencl:pocl'), 1) if lacks('opencl:pocl');
  my $file = vector('plain', @plain);
  my @said = map { `$sinter run $dir/eight.snt --device opencl:pocl --profile $words --input x=$file --check $_ 2>&1` =~ /got (\S+), want (\S+), bound (\S+)\)/ ? abs($1 - $2) / $3 : 1 } '', '--no-rewrites';
  cmp_ok($said[0], '<', 0.01, "a hundredth of the bound ($said[0], sums of floats $said[1])");
}
done_testing();
