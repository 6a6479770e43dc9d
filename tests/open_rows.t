#!/usr/bin/perl
# Programs whose extents are open, product by product: rows and columns of a product, rows and positions of a depthwise convolution, and rows beside a matrix of
# 4-bit words, for which one row is a branch of the plan (fusion/branch.c). They are right at one, a tile less one, a tile, a tile and one, and at others, and take
# about as many operations as with the extents written in: a product with open columns is no loop over elements, a depthwise convolution is not staged, one row
# beside words fills no panel. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# name: the graph of two extents, as names or as numbers; the extents it is tried at, of which the first are the hints
my %graphs = (
  scores => [sub { my ($m, $n) = @_; <<"END" }, [40, 200], [1, 1], [1, 63], [13, 64], [14, 65], [15, 16], [29, 17], [5, 3], [97, 129]],
graph \@scores(%q: f32[4,$m,64], %k: f32[4,$n,64]) {
  %s = contract %q, %k, lhs=[0,1,3], out=[0,1,2], rhs=[0,2,3]
  %y = mul %s, 0.125
  return y=%y
}
END
  beside => [sub { my ($m, $n) = @_; <<"END" }, [33, 200], [1, 1], [1, 47], [14, 64], [15, 65], [2, 5], [50, 16]],
graph \@beside(%x: f32[$m,96], %w: f32[96,$n]) {
  %p = contract %x, %w, lhs=[0,2], out=[0,1], rhs=[2,1]
  %y = max %p, 0
  return y=%y
}
END
  depthwise => [sub { my ($h, $w) = @_; <<"END" }, [12, 40], [1, 1], [2, 7], [3, 8], [5, 9], [7, 17], [30, 31]],
graph \@depthwise(%x: f32[1,$h,$w,40]) {
  %t = transpose %x, perm=[0,3,1,2]
  %u: f32[40,1,5,5] = const normal seed=1 scale=0.1
  %c = conv %t, %u, pads=[2,2,2,2], groups=40
  %r = max %c, 0
  %y = transpose %r, perm=[0,2,3,1]
  return y=%y
}
END
  strided => [sub { my ($h, $w) = @_; <<"END" }, [21, 81], [1, 1], [2, 3], [3, 15], [6, 16], [9, 17], [11, 33]],
graph \@strided(%x: f32[1,$h,$w,40]) {
  %t = transpose %x, perm=[0,3,1,2]
  %u: f32[40,1,3,3] = const normal seed=1 scale=0.1
  %c = conv %t, %u, pads=[1,1,1,1], stride=[2,2], groups=40
  %r = max %c, 0
  %y = transpose %r, perm=[0,2,3,1]
  return y=%y
}
END
  words => [sub { my ($b, $s) = @_; <<"END" }, [1, 1], [1, 2], [2, 1], [3, 5], [1, 40], [2, 33]],
graph \@words(%x: f32[$b,$s,256]) {
  %w: u8[1280,8,16] = const data="codes" offset=0
  %s: f32[1280,8] = const uniform seed=2 scale=0.1
  %z: u8[1280,8] = const uniform seed=3 scale=7
  %low = and %w, 15
  %high = shr %w, 4
  %l = reshape %low, shape=[1280,8,16,1]
  %h = reshape %high, shape=[1280,8,16,1]
  %both = concat %l, %h, axis=3
  %f = cast %both, dtype=f32
  %zf = cast %z, dtype=f32
  %zb = broadcast %zf, shape=[1280,8,16,2], axes=[0,1]
  %c = sub %f, %zb
  %sb = broadcast %s, shape=[1280,8,16,2], axes=[0,1]
  %d = mul %c, %sb
  %m = reshape %d, shape=[1280,256]
  %p = contract %x, %m, lhs=[0,1,2], out=[0,1,3], rhs=[3,2]
  %t = tanh %p
  %q: f32[1280,64] = const normal seed=4 scale=0.05
  %y = contract %t, %q, lhs=[0,1,2], out=[0,1,3], rhs=[2,3]
  return y=%y, t=%t
}
END
);
put('codes', pack 'C*', map { ($_ * 37 + ($_ >> 3) * 11 + ($_ >> 9)) % 256 } 1 .. 1280 * 128);
my %opened;
for my $name (sort keys %graphs) {
  my ($graph, $hints) = @{$graphs{$name}};
  $opened{$name} = put("$name.snt", "symbols { a: min=1 max=2048 hint=$hints->[0], b: min=1 max=2048 hint=$hints->[1] }\n" . $graph->('a', 'b'));
}

# ---- answers ----

my ($found, $devices) = says("$sinter devices");
my @devices = ('interp', grep { $devices =~ /^\Q$_\E /m } 'opencl:pocl', 'vulkan:llvmpipe');
for my $name (sort keys %graphs) {
  my (undef, @extents) = @{$graphs{$name}};
  for my $device (@devices) {
    my @wrong;
    for my $at (@extents) {
      my ($code, $said) = says("$sinter run $opened{$name} --device $device --dim a=$at->[0] --dim b=$at->[1] --check --quiet");
      push @wrong, "$at->[0] x $at->[1]: $said" if $code;
    }
    is(scalar(@wrong), 0, sprintf('%s on %s at %d extents', $name, $device, scalar @extents)) or diag(@wrong);
  }
}
SKIP: { skip('opencl:pocl is not here: answers on the interpreter only', 1) unless grep { $_ eq 'opencl:pocl' } @devices; pass('on a driver, too') }
# where the most that an extent can be is no whole tile, with and without a padded copy
my %few = (scores => $graphs{scores}[0], beside => $graphs{beside}[0], padded => sub { my ($h, $w) = @_; <<"END" });
graph \@padded(%x: f32[1,16,$h,$w]) {
  %u: f32[8,16,3,3] = const normal seed=1 scale=0.1
  %y = conv %x, %u, pads=[1,1,1,1]
  return y=%y
}
END
for my $name (sort keys %few) {
  my $path = put("few-$name.snt", "symbols { a: min=1 max=3 hint=2, b: min=1 max=9 hint=6 }\n" . $few{$name}->('a', 'b'));
  for my $device (@devices) {
    my @wrong = grep { $_->[2] } map { my ($code, $said) = says("$sinter run $path --device $device --dim a=$_->[0] --dim b=$_->[1] --check --quiet"); [@$_, $code ? $said : ''] } [1, 1], [2, 6], [3, 9];
    is(scalar(@wrong), 0, "$name on $device, of few rows and columns") or diag(map { "@$_" } @wrong);
  }
}
# one program, saved, for one row and for more: it chooses when it runs
my ($code, $said) = says("$sinter compile $opened{words} --profile pocl --target opencl -o $dir/words.sntp");
is($code, 0, 'a program of two branches is saved') or diag($said);
SKIP: {
  skip('opencl:pocl is not here', 2) unless grep { $_ eq 'opencl:pocl' } @devices;
  for my $at ([1, 1], [3, 5]) {
    my @sums = map { my ($bad, $text) = says("$sinter run $_ --device opencl:pocl --dim a=$at->[0] --dim b=$at->[1] --quiet --output y=$dir/y.npy"); $bad ? "$_: $text" : `cksum < $dir/y.npy` } "$dir/words.sntp", "$opened{words} --profile pocl";
    is($sums[0], $sums[1], "saved, $at->[0] x $at->[1]: the same bits");
  }
}

# ---- work ----

# Operations of all kernels that run at the hints, all groups.
sub work {
  my ($bad, $text) = says("$sinter inspect-kernel $_[0] --profile pocl --sample 64 --json");
  return 0 if $bad;
  my $sum = 0;
  for my $k (@{decode_json($text)}) { my $mix = $k->{mix}; $sum += $_ * $k->{groups} / $k->{sampled} for @$mix{qw(fma float special integer global local move)} }
  return $sum;
}
for my $name (sort keys %graphs) {
  my ($graph, $hints) = @{$graphs{$name}};
  my ($open, $fixed) = (work($opened{$name}), work(put("$name.fixed.snt", $graph->(@$hints))));
  my $ratio = $fixed ? $open / $fixed : 0;
  ok($ratio > 0.7 && $ratio < 1.5, sprintf('%s: open extents take %.2f times the operations of fixed ones', $name, $ratio));
}
# what both branches lay out alike is there once
($code, $said) = says("$sinter compile $opened{words} --profile pocl --target opencl -o $dir/plan");
open my $plan, '<', "$dir/plan/plan.txt" or die $!;
my @lines = <$plan>;
close $plan;
is(scalar(grep {/: constant u32\[.* bytes=163840 /} @lines), 1, 'the words are there once');
is_deeply([map { /loop \w+ trips=(\S.*) \{/ ? $1 : () } @lines], ['min(1,a*b-1)', '-min(1,a*b-1) + 1'], 'two branches') or diag(@lines);
# What writes nothing is not launched.
my $none = put('none.snt', <<'END');
symbols { n: min=0 max=300 hint=64 }
graph @none(%x: f32[6,n], %y: f32[n,6]) {
  %s = softmax %x, axis=1
  %t = softmax %y, axis=1
  %c = scan.sum %t, axis=1
  return s=%s, c=%c
}
END
for my $device (qw(interp opencl:pocl vulkan:llvmpipe)) {
  my @launched;
  for my $n (0, 3) {
    ($code, $said) = lacks($device) ? (0, '') : says("$sinter run $none --device $device --open --dim n=$n --trace $dir/launched --runs 1");
    push @launched, scalar(() = slurp("$dir/launched") =~ /"name": "k\d/g);
    is($code, 0, "$device: $n columns") or diag($said);
  }
SKIP: {
    skip lacks($device), 1 if lacks($device);
    ok(!$launched[0] && $launched[1], "$device: no launch for no elements") or diag("@launched");
  }
}
done_testing();
