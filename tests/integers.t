#!/usr/bin/perl
# Products of small integers summed in f32 (fusion/integers.c): which, where, and that not one sum is off, on each device here. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub graph { my ($name, $text) = @_; return put("$name.snt", $text) }
sub weights { my ($count, $value) = @_; return join ', ', map { $value->($_) } 0 .. $count - 1 }

# rows x terms times terms x columns, of u8 less a zero point and of i8, which are $value of their number
sub product {
  my ($rows, $terms, $columns, $value) = @_;
  return "graph \@g(%x: u8[$rows,$terms], %z: u8) {\n  %w: i8[$terms,$columns] = const [" . weights($terms * $columns, $value) . "]\n" .
    "  %xw = cast %x, dtype=i16\n  %zw = cast %z, dtype=i16\n  %a = sub %xw, %zw\n  %b = cast %w, dtype=i16\n  %y = matmul %a, %b, dtype=i32\n  return y=%y\n}\n";
}
my $varied = sub { ($_[0] * 37 + 11) % 255 - 127 };
my $steep = sub { 127 };
my %floats = ('pocl' => 1, 'lavapipe' => 1, 'dgpu' => 0, 'h100' => 0);
for my $profile (sort keys %floats) {
  my $said = `$sinter opt ${\graph('types', product(24, 400, 8, $steep))} --run canonicalise,decompose,integers --profile $profile 2>&1`;
  is($? == 0 && $said =~ /f32\[24,8\] = contract/ ? 1 : 0, $floats{$profile}, "$profile: " . ($floats{$profile} ? '' : 'not ') . 'in f32') or diag($said);
}
my $square = "graph \@c(%x: u8[1,32,16,16]) {\n  %w: i8[32,32,3,3] = const [" . weights(32 * 32 * 9, sub { ($_[0] * 37 + 11) % 7 - 3 }) . "]\n" .
  "  %a = cast %x, dtype=i16\n  %b = cast %w, dtype=i16\n  %y = conv %a, %b, pads=[1,1,1,1], dtype=i32\n  return y=%y\n}\n";
my @cases = (
  ['types', 1, '400 terms of at most 255 * 128: by their types'],
  ['columns', 1, 'more terms: by the sums of the columns', product(24, 1200, 8, sub { $_[0] % 1200 < 400 ? -127 : 1 })],
  ['uneven', 1, 'of columns that differ', product(24, 1200, 8, sub { ($_[0] * 37 + 11) % 1201 < 400 ? -127 : $_[0] % 5 })],
  ['large', 0, 'a column of 520 terms of 255 * 127 may leave 24 bits', product(24, 520, 8, $steep)],
  ['row', 0, 'weights of one row are read once: bytes', product(1, 400, 8, $varied)],
  ['wide', 0, 'integers of 32 bits', product(24, 16, 8, $varied) =~ s/i16/i32/gr =~ s/u8/i32/gr],
  ['square', 1, 'a convolution', $square],
);
for my $case (@cases) {
  my ($name, $want, $why, $text) = @$case;
  graph($name, $text) if $text;
  my $said = `$sinter opt $dir/$name.snt --run canonicalise,decompose,integers --profile pocl 2>&1`;
  is($? ? $said : ($said =~ /: f32\S* = contract/ || $said =~ /= contract [^\n]*\n[^\n]*= cast [^\n]*i32/ ? 1 : 0), $want, $why) or diag($said);
}
# Winograd's transforms round: whole sums are not to.
my $whole = `$sinter opt $dir/square.snt --run canonicalise,decompose,integers,rewrite,layout,winograd --profile pocl 2>&1`;
my @contractions = $whole =~ /= contract /g;
is(scalar @contractions, 1, 'a convolution of integers is one contraction') or diag($whole);
my $found = `$sinter devices 2>&1`;
for my $device ('interp', 'opencl:pocl', 'vulkan:llvmpipe') {
  for my $case (@cases) {
    SKIP: {
      skip("$device is not here", 1) if $device ne 'interp' && $found !~ /\Q$device\E/;
      my $said = `$sinter run $dir/$case->[0].snt --device $device --check --quiet 2>&1`;
      ok($? == 0, "$device: $case->[2]") or diag($said);
    }
  }
}
done_testing;
