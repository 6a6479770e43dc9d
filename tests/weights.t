#!/usr/bin/perl
# Factors of channels in the weights before them: what the pass makes of tests/golden/scales (--bless writes it), and each reason to leave a product as
# it is. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $bless = grep { $_ eq '--bless' } @ARGV;
my $passes = 'canonicalise,decompose,scales';

for my $model (sort glob 'tests/golden/scales/*.snt') {
  (my $golden = $model) =~ s/snt$/txt/;
  my $said = `$sinter opt $model --run $passes 2>&1`;
  if ($bless) { open my $out, '>', $golden or die $!; print $out $said }
  is($said, slurp($golden), $golden);
}

# Each a product with a factor; what is left of `mul` after the pass.
my @base = ('graph @g(%x: f32[4,2]) {', '  %w: f32[2,2] = const [0x1p+0, 0x1p+1, 0x1p+2, 0x1p+3]', '  %s: f32[2] = const [0x1p+1, 0x1p+2]',
  '  %c = matmul %x, %w', '  %b = broadcast %s, axes=[1], shape=[4,2]', '  %m = mul %c, %b', '  return y=%m', '}');
my @cases = (
  ['a factor of columns', 0, sub { }],
  ['the product is an output', 1, sub { s/return y=%m/return y=%m, c=%c/ }],
  ['the product has another reader', 1, sub { s/return y=%m/%e = exp %c\n  return y=%m, e=%e/ }],
  ['the weights have another reader', 1, sub { s/return y=%m/%e = exp %x\n  %f = matmul %e, %w\n  return y=%m, f=%f/ }],
  ['the weights are read in another shape', 1, sub { s/return y=%m/%v = reshape %w, shape=[4,1]\n  %e = exp %x\n  %f = reshape %e, shape=[2,4]\n  %k = matmul %f, %v\n  return y=%m, k=%k/ }],
  ['a factor of rows, which the weights do not have', 1, sub { s/f32\[2\] = const \[0x1p\+1, 0x1p\+2\]/f32[4,1] = const [0x1p+1, 0x1p+2, 0x1p+3, 0x1p+4]/; s/axes=\[1\]/axes=[0,1]/ }],
  ['a factor that is no constant', 1, sub { s/%x: f32\[4,2\]/%x: f32[4,2], %s: f32[2]/; s/\n  %s: [^\n]*// }],
  ['weights that are no constant', 1, sub { s/%x: f32\[4,2\]/%x: f32[4,2], %w: f32[2,2]/; s/\n  %w: [^\n]*// }],
  ['a product that overflows', 1, sub { s/0x1p\+3/0x1p+127/ }],
  ['a product that is not normal any more', 1, sub { s/0x1p\+3/0x1p-100/; s/\[0x1p\+1, 0x1p\+2\]/[0x1p+1, 0x1p-100]/ }],
  ['an infinite factor', 1, sub { s/\[0x1p\+1, 0x1p\+2\]/[0x1p+1, inf]/ }],
  ['a shift that is no constant', 1, sub { s/%m = mul %c/%a = add %c, %x\n  %m = mul %a/ }],
  ['a factor of the divisor', 0, sub { s/= mul/= div/ }, 'div'],
  ['a quotient by the product', 1, sub { s/%m = mul %c, %b/%m = div %b, %c/ }, 'div'],
);
for my $case (@cases) {
  my ($name, $left, $edit, $op) = @$case;
  local $_ = join("\n", @base) . "\n";
  my $whole = $_;
  $edit->();
  open my $out, '>', "$dir/case.snt" or die $!;
  print $out $_;
  close $out;
  $op //= 'mul';
  my $said = `$sinter opt $dir/case.snt --run $passes 2>&1`;
  ok($? == 0 && ($edit == $cases[0][2] || $_ ne $whole) && (() = $said =~ /= $op /g) == $left, $name) or diag("$_\n$said");
}
my @models = glob 'tests/golden/scales/*.snt';
for my $flags ('', '--numerics strict', '--numerics reproducible', '--no-rewrites') {
  my $bad = 0;
  for my $model (@models) { $bad++ if system("$sinter run $model --device interp --check $flags >$dir/said 2>&1"); diag(slurp("$dir/said")) if $? }
  is($bad, 0, 'within the bound, ' . ($flags || 'default numerics'));
}
sub muls { my ($flags) = @_; mkdir "$dir/d"; unlink glob "$dir/d/*"; `SNT_DUMP_DIR=$dir/d $sinter run tests/golden/scales/grouped.snt --device interp $flags 2>&1`; return join '', map { slurp($_) =~ /= mul / ? 1 : 0 } glob "$dir/d/*-group.txt" }
is(muls(''), '0', 'default numerics: the factor is gone when kernels are made');
is(muls("--numerics $_"), '1', "$_ numerics: it stays") for qw(strict reproducible);
is(muls('--no-rewrites'), '1', 'without rewrites: it stays');

# ---- constant fields of bytes: words of four bytes with rows in lanes where vectors are explicit and the order of terms is free ----
sub constants { my ($model, $profile, $flags) = @_; `$sinter compile $model --target opencl --profile $profile $flags -o $dir/words`; my @found = slurp("$dir/words/plan.txt") =~ /constant (\S+)/g; return join ' ', sort @found }
my $words = 'tests/patterns/p39_words.snt';
is(constants($words, 'pocl', ''), 'f32[24,8,8] f32[24,8,8] u32[24,8,4,8]', '4-bit weights of 192 rows: words, scales and zeros, 8 rows beside each other');
like(constants($words, @$_), qr/u8\[192,8,16\]/, "@$_: bytes as they were") for ['pocl', '--numerics strict'], ['dgpu', ''], ['lavapipe', ''];
my $folded = constants("tests/patterns/p39_words_folded.snt", "pocl", "");
is($folded, "f32[40,8,8] f32[40,8,8] u32[40,8,4,8]", "fields that are one axis below the scales: words as well");
my $norm = 'tests/patterns/p39_words_vector.snt';
constants($norm, 'pocl', '--fuse must:y0,y');
like(slurp("$dir/words/k1_reduce.cl"), qr{float p0\[256\].*float8 \*\)\(p0 .*for .*p0\[}s, 'a vector that is made beside the words, as a contract wants it: once a work-item, in vectors');
constants($norm, 'pocl', '');
unlike(slurp("$dir/words/k1_reduce.cl"), qr/float p0\[/, 'without a contract: not once a work-item, where it is finished before');
like(constants("tests/patterns/p39_words_rows.snt", "pocl", ""), qr{u32\[160,8,4,8\]}, "beside several rows: words, a vector of rows");
like(constants("tests/patterns/p39_words_rows.snt", @$_), qr{u8\[1280,8,16\]}, "@$_: bytes as they were") for ["pocl", "--numerics strict"], ["dgpu", ""];
open my $odd, '>', "$dir/odd.snt" or die $!;
print $odd slurp($words) =~ s/192/188/gr;
close $odd;
like(constants("$dir/odd.snt", 'pocl', ''), qr/u8\[188,8,16\]/, 'rows that the lanes do not divide: bytes as they were');
# What rewriting takes in is computed nowhere, and a contract about it holds.
open my $held, '>', "$dir/held.snt" or die $!;
print $held slurp('tests/patterns/p39_words_rows.snt') =~ s/\n}\s*$/\n  must_fuse %d, %y\n}\n/r;
close $held;
my $said = `$sinter explain $dir/held.snt --profile pocl 2>&1`;
is($?, 0, 'must_fuse of the weights and their product') or diag($said);

# ---- weights of fewer bytes that several products take: one constant of f32 for all, made once ----
my $widened = <<'END';
  %w: i8[640,640] = const uniform seed=1 scale=100
  %s: f32[640] = const uniform seed=2 scale=0.001
  %f = cast %w, dtype=f32
  %b = broadcast %s, shape=[640,640], axes=[0]
  %d = mul %f, %b
END
my $shared = put('shared.snt', <<"END");
graph \@shared(%x: f32[5,640]) {
$widened  %p = linear %x, %d
  %q = linear %p, %d
  %y = linear %q, %d
  return y=%y
}
END
my $trips = put('trips.snt', <<"END");
graph \@trips(%x: f32[5,640]) {
$widened  %h: f32[5,640] = repeat trips=40 (%p: f32[5,640] = %x) {
    %q = linear %p, %d
    %t = tanh %q
    yield %t
  }
  return h=%h
}
END
constants($shared, 'pocl', '');
is(scalar(() = slurp("$dir/words/plan.txt") =~ /constant f32\[\d+\] bytes=\d{7}/g), 1, 'three products of the same weights read one constant');
constants($trips, 'pocl', '');
unlike(slurp("$dir/words/plan.txt"), qr/constant i8/, 'weights of a product in a repeat are not widened in each run');
is(system("$sinter run $_ --device interp --check >$dir/said 2>&1"), 0, 'within the bound') or diag(slurp("$dir/said")) for $shared, $trips;
done_testing;
