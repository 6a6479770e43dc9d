#!/usr/bin/perl
# Sums that a select leaves out behind a count (fusion/emit/wanted.c): products and reductions are right whatever the count is, and what is not wanted is not
# computed. inspect-kernel's inputs are zeros, so that there a condition below the count wants nothing and its opposite everything. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub number { my ($value) = @_; return npy("n$value.npy", '<i8', [], pack 'q<', $value) }

my %graphs = (
  product => sub { <<"END" },
graph \@product(%x: f32[61,96], %n: i64) {
  %w: f32[96,80] = const normal seed=1 scale=0.1
  %s = contract %x, %w, lhs=[0,2], out=[0,1], rhs=[2,1]
  %i: i64[61,80] = iota axis=0
  %most = broadcast %n, axes=[], shape=[61,80]
  %wanted = $_[0] %i, %most
  %none: f32[61,80] = const 0.0
  %y = select %wanted, %s, %none
  return y=%y
}
END
  batches => sub { <<"END" }, # neighbouring items differ in what is wanted
graph \@batches(%x: f32[61,5,96], %n: i64) {
  %w: f32[61,96,24] = const normal seed=2 scale=0.1
  %s = contract %x, %w, lhs=[0,1,2], out=[0,1,3], rhs=[0,2,3]
  %i: i64[61,5,24] = iota axis=0
  %most = broadcast %n, axes=[], shape=[61,5,24]
  %wanted = $_[0] %i, %most
  %none: f32[61,5,24] = const 0.0
  %y = select %wanted, %s, %none
  return y=%y
}
END
  rows => sub { <<"END" },
graph \@rows(%x: f32[61,640], %n: i64) {
  %e = exp %x
  %s = reduce.sum %e, axes=[1]
  %i: i64[61] = iota axis=0
  %most = broadcast %n, axes=[], shape=[61]
  %wanted = $_[0] %i, %most
  %none: f32[61] = const 0.0
  %y = select %wanted, %s, %none
  return y=%y
}
END
  regions => sub { <<"END" }, # sums of a few terms, across the lanes
graph \@regions(%x: f32[61,6,6,24], %n: i64) {
  %e = exp %x
  %p = reshape %e, shape=[61,3,2,3,2,24]
  %s = reduce.sum %p, axes=[2,4]
  %i: i64[61,3,3,24] = iota axis=0
  %most = broadcast %n, axes=[], shape=[61,3,3,24]
  %wanted = $_[0] %i, %most
  %none: f32[61,3,3,24] = const 0.0
  %y = select %wanted, %s, %none
  return y=%y
}
END
);

for my $name (sort keys %graphs) {
  my $below = put("$name.snt", $graphs{$name}->('lt'));
  for my $device (split ' ', $ENV{SNT_TEST_DEVICES} // 'interp opencl:pocl vulkan:llvmpipe') {
    SKIP: { skip(lacks($device), 1) if lacks($device) }
    for my $numerics (lacks($device) ? () : ('default', 'strict')) {
      my @wrong;
      for my $count (-1, 0, 1, 7, 8, 60, 61, 1000) {
        my ($code, $said) = says("$sinter run $below --device $device --numerics $numerics --input n=" . number($count) . ' --check');
        push @wrong, "$count: $said" if $code;
      }
      is("@wrong", '', "$name on $device, $numerics: right for each count");
    }
  }
  my %arithmetic;
  for my $relation ('lt', 'ge') {
    my ($code, $said) = says("$sinter inspect-kernel " . put("$name.$relation.snt", $graphs{$name}->($relation)) . ' --profile pocl --json');
    is($code, 0, "$name, $relation: inspected") or diag $said;
    my $list = $code ? [] : decode_json($said);
    is(scalar @$list, 1, "$name, $relation: one kernel");
    $arithmetic{$relation} += $_->{mix}{float} + $_->{mix}{fma} for @$list;
  }
  cmp_ok($arithmetic{lt} * 20, '<', $arithmetic{ge}, "$name: what is not wanted is not computed ($arithmetic{lt} and $arithmetic{ge} operations an item)");
}
# Places that nobody reads: each group does its part of every one that is wanted, whatever their number is.
my $unread = <<'END';
graph @unread(%x: f32[61,14,14,64], %n: i64) {
  %p = reshape %x, shape=[61,7,2,7,2,64]
  %s = reduce.sum %p, axes=[2,4]
  %i: i64[61,7,7,64] = iota axis=0
  %one = max %n, 1:i64
  %most = broadcast %one, axes=[], shape=[61,7,7,64]
  %wanted = lt %i, %most
  %none: f32[61,7,7,64] = const 0.0
  %u = select %wanted, %s, %none, unread
  %r: i64[61] = iota axis=0
  %few = broadcast %n, axes=[], shape=[61]
  %own = lt %r, %few
  %far: i64[61] = const 64
  %j = select %own, %r, %far
  %z: f32[64,7,7,64] = broadcast 0x0p+0
  %y = scatter.set %z, %j, %u, axis=0
  return y=%y
}
END
{
  my $model = put('unread.snt', $unread);
  for my $device (split ' ', $ENV{SNT_TEST_DEVICES} // 'interp opencl:pocl vulkan:llvmpipe') {
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my @wrong;
      for my $count (0, 1, 7, 60, 61) {
        my ($code, $said) = says("$sinter run $model --device $device --input n=" . number($count) . ' --check');
        push @wrong, "$count: $said" if $code;
      }
      is("@wrong", '', "unread on $device: right for each count");
    }
  }
  my ($code) = says("$sinter compile $model --target opencl --profile pocl -o $dir/unread");
  my @loops = map { [slurp($_) =~ /\bfor \(uint \w+ = (\w+); \w+ < (\w+);/] } glob "$dir/unread/*_reduce.cl";
  ok(!$code && @loops == 1 && "@{$loops[0]}" eq '0u 61u', 'unread: a group goes through the places of the first axis') or diag explain \@loops;
}
{
  my ($code, $said) = says("$sinter inspect-kernel " . put('shared.snt', $graphs{regions}->('lt')) . ' --profile pocl --json');
  my @groups = $code ? () : map { $_->{groups} } @{decode_json($said)};
  ok(@groups == 1 && $groups[0] <= 32, "regions: sums of a few terms share a group (@groups groups of 549 regions)") or diag $said;
}
done_testing;
