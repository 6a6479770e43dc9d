#!/usr/bin/perl
# Products of quantised values by words of four bytes (fusion/quantised.c, words.c): which, where, and that no sum is off, on each device here. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Temp qw(tempdir);
use FindBin;
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";
my $sinter = ($ENV{SNT_BUILD} // 'build/release') . '/sinter';
my $dir = tempdir(CLEANUP => 1);

sub file { my ($name, $text) = @_; open my $out, '>', "$dir/$name" or die $!; print $out $text; close $out; return "$dir/$name" }
sub weights { my ($count, $low, $span) = @_; return join ', ', map { ($_ * 37 + 11) % $span + $low } 0 .. $count - 1 }

# A profile of a processor that multiplies four bytes at once, for a target of the tests.
sub profile { my ($target) = @_; return file("$target.profile", "base = pocl\nname = words\ntarget = $target\nlanes = 16\nregisters = 32\ncaps.dot4 = 1\n") }

# Activations as %d, of codes %a less %za times a scale, then weights as %w.
sub activations {
  my ($zero) = @_;
  return "  %f = cast %x, dtype=f32\n  %o = sub %f, $zero.0\n  %d = mul %o, 0.0625\n";
}
sub linear { # rows x terms times terms x columns; the weights' type, least value, span and zero point
  my ($type, $zero, $rows, $terms, $columns, $w, $low, $span, $zw) = @_;
  return "graph \@g(%x: $type\[$rows,$terms]) {\n" . activations($zero) .
    "  %q: $w\[$terms,$columns] = const [" . weights($terms * $columns, $low, $span) . "]\n  %s: f32[$columns] = const normal seed=5 scale=0.01\n" .
    "  %g = cast %q, dtype=f32\n  %h = sub %g, $zw.0\n  %t = broadcast %s, axes=[1], shape=[$terms,$columns]\n  %w = mul %h, %t\n" .
    "  %m = matmul %d, %w\n  %b: f32[$columns] = const normal seed=6\n  %v = broadcast %b, axes=[1], shape=[$rows,$columns]\n  %r = add %m, %v\n  %y = relu %r\n  return y=%y\n}\n";
}
sub whole { # of integers, whose zero point is known when it runs
  my ($rows, $terms, $columns) = @_;
  return "graph \@g(%x: u8[$rows,$terms], %z: u8) {\n  %w: i8[$terms,$columns] = const [" . weights($terms * $columns, -127, 255) . "]\n" .
    "  %xw = cast %x, dtype=i16\n  %zw = cast %z, dtype=i16\n  %a = sub %xw, %zw\n  %b = cast %w, dtype=i16\n  %y = matmul %a, %b, dtype=i32\n  return y=%y\n}\n";
}
sub conv { # of codes behind an operator, so that layout puts channels last
  my ($channels, $out, $groups, $zero, $more) = @_;
  my $each = $channels / $groups;
  return "graph \@c(%u: f32[1,$channels,9,11]" . ($zero =~ /^%/ ? ", $zero: u8" : '') . ") {\n  %n = tanh %u\n  %k = mul %n, 100.0\n  %p = max %k, 0.0\n  %x = cast %p, dtype=u8\n" .
    "  %q: i8[$out,$each,3,3] = const [" . weights($out * $each * 9, -127, 255) . "]\n  %xw = cast %x, dtype=i16\n" .
    ($zero =~ /^%/ ? "  %zz = cast $zero, dtype=i16\n  %a = sub %xw, %zz\n" : "  %a = sub %xw, $zero\n") .
    "  %b = cast %q, dtype=i16\n  %y = conv %a, %b, pads=[1,1,1,1], groups=$groups, dtype=i32$more\n  return y=%y\n}\n";
}
my @cases = ( # name, contractions of words, what it is, text
  ['unsigned', 1, 'unsigned codes, signed weights, a scale a column', linear('u8', 100, 24, 64, 40, 'i8', -127, 255, 0)],
  ['signed', 1, 'signed codes', linear('i8', 3, 24, 64, 40, 'i8', -127, 255, 0)],
  ['middle', 1, 'unsigned weights around 128', linear('u8', 0, 24, 64, 40, 'u8', 0, 256, 128)],
  ['uneven', 2, 'unsigned weights around 117: the sums of the rows, too', linear('u8', 9, 24, 64, 40, 'u8', 0, 256, 117)],
  ['none', 2, 'unsigned weights without a zero point', linear('u8', 9, 24, 64, 40, 'u8', 0, 256, 0) =~ s/  %h = sub %g, 0.0\n//r =~ s/mul %h/mul %g/r],
  ['bare', 1, 'signed codes without one', linear('i8', 3, 24, 64, 40, 'i8', -127, 255, 0) =~ s/  %o = sub %f, 3.0\n//r =~ s/mul %o/mul %f/r],
  ['turned', 0, 'columns turned round below their scales: as they are', linear('u8', 100, 24, 64, 40, 'i8', -127, 255, 0) =~ s/  %m = matmul %d, %w/  %back = slice %w, starts=[0,39], sizes=[64,40], steps=[1,-1]\n  %m = matmul %d, %back/r],
  ['row', 1, 'one row', linear('u8', 100, 1, 64, 40, 'i8', -127, 255, 0)],
  ['whole', 1, 'integers', whole(24, 400, 40)],
  ['long', 1, 'sums of integers beyond 24 bits', whole(4, 4096, 32)],
  ['conv', 1, 'a convolution: what pads is the zero point', conv(8, 24, 1, 7, '')],
  ['conv_zero', 1, 'a convolution whose zero point is known when it runs', conv(8, 24, 1, '%z', '')],
  ['strided', 1, 'every other position', conv(8, 24, 1, 7, ', stride=[2,2]')],
  ['grouped', 1, 'groups', conv(16, 32, 2, 7, '')],
  ['depthwise', 0, 'a channel each: nothing is summed along a word', conv(8, 8, 8, 7, '')],
  ['thirds', 1, 'words that bytes do not fill', linear('u8', 100, 24, 67, 40, 'i8', -127, 255, 0)],
  ['colours', 1, 'three channels are a word', conv(3, 24, 1, 7, '')],
  ['two', 0, 'two are not', conv(2, 24, 1, 7, '')],
  ['short', 0, 'too few terms', linear('u8', 100, 24, 12, 40, 'i8', -127, 255, 0)],
  ['mean', 0, 'what is taken off is no whole number', linear('u8', 100, 24, 64, 40, 'i8', -127, 255, 0) =~ s/100\.0/100.5/r],
);
my $words = profile('opencl');
my $passes = 'canonicalise,decompose,quantised,integers,rewrite,layout,words';
sub packed { my ($name, $profile, $more) = @_; my $said = `$sinter opt $dir/$name.snt --run $passes --profile $profile $more 2>&1`; my @found = $said =~ /\bpacked\b/g; return $? ? $said : scalar @found }
for my $case (@cases) {
  my ($name, $want, $why, $text) = @$case;
  file("$name.snt", $text);
  is(packed($name, $words, ''), $want, $why);
}
is(packed('unsigned', 'pocl', ''), 0, 'not where the device has no instruction');
is(packed('unsigned', $words, '--mask dot4=0'), 0, 'or is told that it has none');
is(packed('unsigned', $words, '--numerics strict'), 0, 'scales behind sums are not for STRICT');
is(packed('whole', $words, '--numerics strict'), 1, 'integers are exact in every mode');
my $found = `$sinter devices 2>&1`;
my @runs = (['interp', '--profile ' . profile('interp'), 'kernels of words'], ['opencl:pocl', '', 'as the device is'], ['opencl:oclgrind', "--profile $words", 'without the instruction'],
  ['cuda-text', '--profile ' . profile('cuda'), 'as CUDA'], ['vulkan:llvmpipe', '', 'as the device is']);
for my $run (@runs) {
  my ($device, $options, $how) = @$run;
  SKIP: {
    skip("$device is not here", scalar @cases) if $device !~ /interp|oclgrind/ && $found !~ /\Q$device\E/;
    for my $case (@cases) {
      my $said = `$sinter run $dir/$case->[0].snt --device $device $options --check --quiet 2>&1`;
      skip("$device: $said", 1) if $said =~ /Oclgrind is not installed/;
      ok($? == 0, "$device, $how: $case->[2]") or diag($said);
    }
  }
}
done_testing;
