#!/usr/bin/perl
# Sums that a select leaves out behind a count (fusion/emit_wanted.c): products and reductions are right whatever the count is, and what is not wanted is not
# computed. inspect-kernel's inputs are zeros, so that there a condition below the count wants nothing and its opposite everything. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Temp qw(tempdir);
use JSON::PP;
use FindBin;
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";
my $sinter = ($ENV{SNT_BUILD} // 'build/release') . '/sinter';
my $dir = tempdir(CLEANUP => 1);
sub says { my $said = `@_ 2>&1`; return ($? >> 8, $said) }
sub put { my ($name, $text) = @_; open my $out, '>:raw', "$dir/$name" or die $!; print $out $text; close $out; return "$dir/$name" }

sub number { # a scalar of i64 as .npy
  my ($value) = @_;
  my $header = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }";
  $header .= ' ' x (117 - length $header) . "\n";
  return put("n$value.npy", "\x93NUMPY\x01\x00" . pack('v', length $header) . $header . pack('q<', $value));
}

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
);

for my $name (sort keys %graphs) {
  my $below = put("$name.snt", $graphs{$name}->('lt'));
  for my $device (split ' ', $ENV{SNT_TEST_DEVICES} // 'interp opencl:pocl vulkan:llvmpipe') {
    for my $numerics ('default', 'strict') {
      my @wrong;
      my $absent = 0;
      for my $count (-1, 0, 1, 7, 8, 60, 61, 1000) {
        my ($code, $said) = says("$sinter run $below --device $device --numerics $numerics --input n=" . number($count) . ' --check');
        $absent = 1 if $said =~ /no such device|no device|cannot be opened/;
        push @wrong, "$count: $said" if $code;
      }
      SKIP: {
        skip "$device is not here", 1 if $absent;
        is("@wrong", '', "$name on $device, $numerics: right for each count");
      }
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
done_testing;
