#!/usr/bin/perl
# What a graph costs to compile does not hang on how often its values are joined, or on how many ways lead down from one: chains whose nodes read the node before
# twice have twice the ways with each, and few nodes. Seconds of processor time of each compile, on profiles with vectors, with texels and with dear launches. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $seconds = 5; # none takes one

# Lines of a chain from %x: `$step` says what node number i is, of the node before.
sub chain {
  my ($links, $step) = @_;
  my ($last, @lines) = ('x');
  for my $i (0 .. $links - 1) { push @lines, $step->($i, $last); $last = "v$i" }
  return ($last, @lines);
}
sub graph { my ($shape, $last, @lines) = @_; return "graph \@joined(%x: f32[$shape]) {\n" . join('', map { "  $_\n" } @lines) . "  return y=%$last\n}\n" }

my ($whole, @doubled) = chain(18, sub { "%v$_[0] = concat %$_[1], %$_[1], axis=0" });
my ($cut, @cuts) = chain(40, sub {
  my ($i, $v) = @_;
  ("%t$i = transpose %$v, perm=[1,0]", "%p$i = concat %$v, %t$i, axis=0", "%v$i = slice %p$i, starts=[4,0], sizes=[8,8], steps=[1,1]") });
sub spread {
  my ($i, $v, $s) = @_;
  return ("%t$i = transpose %$v, perm=[1,0]", "%p$i = concat %$v, %t$i, axis=1", "%$s$i = slice %p$i, starts=[0,0], sizes=[8,8], steps=[1,2]") }
my ($spread, @spreads) = chain(40, sub { spread(@_, 'v') });
my ($negated, @negations) = chain(40, sub { (spread(@_, 's'), "%v$_[0] = neg %s$_[0]") });
my ($product, @products) = chain(60, sub { "%v$_[0] = mul %$_[1], %$_[1]" });
my ($turned, @turns) = chain(40, sub { my ($i, $v) = @_; ("%t$i = transpose %$v, perm=[1,0]", "%v$i = mul %t$i, %$v") });
my ($split, @splits) = chain(40, sub { my ($i, $v) = @_; ("%e$i = mul %$v, 1.5", "%l$i = add %$v, 0.5", "%v$i = min %e$i, %l$i") });
# one more part with each step, as a loop written out puts its results together: parts of several operators, so that no kernel of many results makes them all
my ($grown, @growing) = chain(70, sub { my ($i, $v) = @_; ("%e$i = softmax %z$i", $i ? "%v$i = concat %$v, %e$i, axis=1" : "%v$i = neg %e$i") });
my $table = "%r = reshape %$whole, shape=[256,1024]";
my %graphs = (
  doubled => graph('1', $whole, @doubled),
  doubled_exp => graph('1', 'y', @doubled, "%y = exp %$whole"),
  doubled_softmax => graph('1', 'y', @doubled, $table, '%y = softmax %r'),
  doubled_product => graph('1', 'y', @doubled, $table, '%y = matmul %r, %r, transpose_b'),
  cut => graph('8,8', $cut, @cuts),
  cut_product => graph('8,8', 'y', @cuts, "%y = matmul %$cut, %x"),
  above_product => graph('8,8', $cut, map({ s/%x\b/%c/gr } @cuts), ) =~ s/\{\n/{\n  %c = matmul %x, %x\n/r,
  spread => graph('8,8', $spread, @spreads),
  spread_neg => graph('8,8', $negated, @negations),
  powers => graph('64', $product, @products),
  turned => graph('8,8', $turned, @turns),
  turned_sum => graph('8,8', 'y', @turns, "%y = reduce.sum %$turned, axes=[1]"),
  split => graph('8,8', $split, @splits),
  split_sum => graph('8,8', 'y', @splits, "%y = reduce.sum %$split, axes=[1]"),
  grown => graph('1,70,8', 'y', map({ "%z$_ = slice %x, starts=[0,$_,0], sizes=[1,1,8], steps=[1,1,1]" } 0 .. 69), @growing, "%s = add %$grown, %x", "%y = mul %s, %x"),
  split_product => graph('8,8', 'y', @splits, "%y = matmul %$split, %$split"),
);
for my $profile (qw(pocl lavapipe dgpu)) {
  for my $name (sort keys %graphs) {
    put("$name.snt", $graphs{$name});
    my ($rc, $said) = says("ulimit -t $seconds; $sinter compile $dir/$name.snt --profile $profile --target opencl,spirv -o $dir/$name.sntp");
    is($rc, 0, "$name on $profile: within $seconds seconds") or diag($said);
  }
}
# And it is what it was: each element of a doubled one is the first.
put('doubled.snt', graph('1', $whole, @doubled[0 .. 8]) =~ s/y=%\w+/y=%v8/r);
for my $name (qw(doubled spread spread_neg grown)) {
  my ($rc, $said) = says("$sinter run $dir/$name.snt --device interp --check");
  is($rc, 0, "$name: within bounds of the reference") or diag($said);
}
done_testing;
