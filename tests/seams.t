#!/usr/bin/perl
# Between the seams of concatenations and pads an elementwise kernel computes only what lies there, along any axis, and its code grows with the parts: counted, and right on every
# form of vectors, on lanes and in every mode. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
sub profile { my ($base, $name, @rest) = @_; return put("$name.profile", join("\n", "base = $base", "name = $name", @rest) . "\n") }
sub joined {
  my ($axis, $dims) = @_;
  return "graph \@joined(%a: f32[$dims], %b: f32[$dims], %c: f32[$dims]) {\n  %p = tanh %a\n  %q = sin %b\n  %r = exp %c\n  %j = concat %p, %q, %r, axis=$axis\n  %y = mul %j, 2.0\n"
       . "  must_fuse %p, %y\n  must_fuse %q, %y\n  must_fuse %r, %y\n  return y=%y\n}\n";
}
sub many {
  my ($parts, $each) = @_;
  return "graph \@many(%x: f32[$each]) {\n" . join('', map { "  %p$_ = mul %x, $_.5\n" } 1 .. $parts) . '  %y = concat ' . join(', ', map { "%p$_" } 1 .. $parts) . ", axis=0\n  return y=%y\n}\n";
}

# ---- how much ----

sub operations {
  my ($graph, $profile) = @_;
  my ($code, $said) = says("$sinter inspect-kernel", put('count.snt', $graph), '--profile', $profile, '--sample 64 --json');
  my @kernels = $code ? () : @{decode_json($said)};
  is(scalar @kernels, 1, 'one kernel') or diag($said);
  return @kernels ? ($kernels[0]{mix}{fma} // 0) * $kernels[0]{groups} : 0;
}
my ($wide, $masked) = (profile('pocl', 'wide', 'target = opencl'), profile('pocl', 'masked', 'target = opencl', 'both_sides = 1'));
my ($rows, $columns, $all) = (operations(joined(0, '96,256'), $wide), operations(joined(1, '96,256'), $wide), operations(joined(0, '96,256'), $masked));
ok($rows > 0 && $rows <= 1.1 * $columns, "parts below each other take $rows multiply-adds, beside each other $columns");
ok($all >= 2 * $rows, "where a branch computes both of its sides $all: parts are chosen from");
{
  my @bytes = map { my $n = $_; my ($code, $said) = says("$sinter compile", put('count.snt', many($n, 300)), '--profile', $wide, "--target opencl -o $dir/many$n"); -s "$dir/many$n/k0_loop.cl" || 0 } 20, 40;
  ok($bytes[0] && $bytes[1] < 2.5 * $bytes[0], "the code of 20 and 40 parts: @bytes bytes");
}

# Rows that are put together of two parts: a seam between vectors leaves vectors, another one elements.
sub parted {
  my ($first, $all) = (@_, 128);
  my $second = $all - $first;
  return "graph \@parted(%a: f32[64,$first], %b: f32[64,$second]) {\n  %r = concat %a, %b, axis=1\n  %e = exp %r\n  %s = reduce.sum %e, axes=[1], keep\n  %t: f32[64,$all] = broadcast %s\n"
       . "  %y = div %e, %t\n  must_fuse %e, %y\n  return y=%y\n}\n";
}
sub sectors {
  my ($code, $said) = says("$sinter inspect-kernel", put('count.snt', $_[0]), '--profile', $wide, '--sample 64 --json');
  my @kernels = $code ? () : @{decode_json($said)};
  is(scalar @kernels, 1, 'one kernel') or diag($said);
  return @kernels ? $kernels[0]{sectors} : 0;
}
my ($between, $within) = map { sectors(parted($_)) } 64, 61;
ok($between > 0 && 3 * $between < $within, "a seam between vectors takes $between sectors, one within a vector $within");

# Taps of a window that is reduced: between the columns where the first and the last of them leave the rows they are vectors.
sub summed {
  my ($dims, $axis, $window) = @_;
  my @axes = map { $_ + split(/,/, $dims) } 0, 1;
  return "graph \@summed(%x: f32[$dims]) {\n  %w = window %x, axis=$axis, $window\n  %y = reduce.sum %w, axes=[" . join(',', @axes) . "]\n  return y=%y\n}\n";
}
my ($inside, $over) = map { sectors(summed('64,256', 0, $_)) } 'size=[3,3], low=[1,0], high=[1,0]', 'size=[3,3], low=[1,1], high=[1,1]';
ok($inside > 0 && $over < 1.5 * $inside, "taps beyond the ends of rows take $over sectors, within them $inside");

# ---- and right ----

my %graphs = ('rows' => joined(0, '7,33'), 'planes' => joined(0, '3,5,40'), 'between' => joined(1, '3,5,40'), 'columns of few rows' => joined(1, '2,300'), 'columns' => joined(2, '5,9,130'),
              'many parts' => many(40, 37), 'a part of one element' => joined(0, '1'),
              'two axes' => "graph \@two(%a: f32[6,20], %b: f32[9,20], %c: f32[15,13]) {\n  %p = concat %a, %b, axis=0\n  %j = concat %p, %c, axis=1\n  %y = exp %j\n  return y=%y\n}\n",
              'a pad of rows and columns' => "graph \@pad(%a: f32[4,9,30]) {\n  %t = tanh %a\n  %p = pad %t, low=[0,2,1], high=[0,3,2], value=1.5\n  %y = mul %p, 2.0\n  return y=%y\n}\n",
              'taps' => summed('40,72', 0, 'size=[3,3], low=[1,1], high=[1,1]'), 'taps far apart' => summed('3,19,90', 1, 'size=[3,5], low=[2,6], high=[2,7], dilation=[2,3]'),
              'taps wider than the rows' => summed('9,6', 0, 'size=[3,9], low=[1,4], high=[1,4]'), 'every second place of taps' => summed('20,70', 0, 'size=[3,3], low=[1,1], high=[1,1], stride=[2,2]'),
              'taps of taps' => "graph \@twice(%x: f32[30,77]) {\n  %w = window %x, axis=0, size=[3,3], low=[1,1], high=[1,1]\n  %s = reduce.max %w, axes=[2,3]\n  %v = window %s, axis=0, size=[3,5], low=[1,2], high=[1,2]\n"
                . "  %t = reduce.sum %v, axes=[2,3]\n  %y = sub %x, %t\n  return y=%y\n}\n",
              'rows of whole vectors' => parted(64), 'rows of vectors and of half of one' => parted(72), 'rows of no whole vector' => parted(61),
              'an open number of rows' => "symbols { n: min=1 max=64 hint=9 }\ngraph \@open(%a: f32[n,40], %b: f32[3,40]) {\n  %p = tanh %a\n  %q = exp %b\n  %y = concat %p, %q, axis=0\n  return y=%y\n}\n");
my @profiles = (map({ ['interp', profile('pocl', "kir$_", 'target = kir', "lanes = $_")] } 4, 16), map({ ['interp', profile($_, "kir_$_", 'target = kir')] } 'h100', 'mobile'), map({ ['opencl:pocl', profile('pocl', "cl$_", 'target = opencl', "lanes = $_")] } 8, 16));
for my $name (sort keys %graphs) {
  my $graph = put('right.snt', $graphs{$name});
  for my $on (@profiles) {
    my ($device, $profile) = @$on;
    my $run = "$sinter run $graph --device $device --profile $profile --check";
    my ($code, $said) = says($run);
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my @bad = map { my ($c, $s) = says("$run --numerics $_"); $c ? "$_: $s" : () } qw(strict fast);
      ok(!$code && !@bad, "$name on $device by " . ($profile =~ m{([^/]+)$})[0]) or diag($said, @bad);
    }
  }
}
done_testing();
