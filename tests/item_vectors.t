#!/usr/bin/perl
# Items of a flat loop that are lanes have vectors side by side where all that is read lies beside each other in them and the device keeps enough groups; else one:
# counted, and right on the interpreter. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub profile { my ($name, @rest) = @_; return put("$name.profile", join("\n", 'base = lavapipe', "name = $name", @rest) . "\n") }
my %profiles = (one => profile('one', 'item_vectors = 1', 'hand_texels = 0'), two => profile('two', 'item_vectors = 2', 'hand_texels = 0'), flushing => profile('flushing', 'item_vectors = 2', 'caps.flushes = 1'),
  map { ("kir$_" => profile("kir$_", 'target = kir', "item_vectors = $_")) } 1, 2);

sub graph { my ($inputs, @lines) = @_; return "graph \@g($inputs) {\n" . join('', map { "  $_\n" } @lines) . "}\n" }
sub items {
  my ($text, $profile) = @_;
  my ($code, $said) = says("$sinter inspect-kernel", put('items.snt', $text), '--profile', $profiles{$profile}, '--sample 4 --json');
  my @kernels = $code ? () : @{decode_json($said)};
  is(scalar @kernels, 1, 'one kernel') or diag($said);
  return @kernels ? $kernels[0]{groups} * $kernels[0]{items} : 0;
}

my %graphs = (
  'one shape' => [2, graph('%x: f32[512,256], %z: f32[512,256]', '%s = add %x, %z', '%y = exp %s', 'return y=%y, s=%s')],
  'odd rows of one shape' => [2, graph('%x: f32[512,255], %z: f32[512,255]', '%y = mul %x, %z', 'return y=%y')],
  'a row for all' => [2, graph('%x: f32[512,256], %b: f32[256]', '%r = broadcast %b, axes=[1], shape=[512,256]', '%y = add %x, %r', 'return y=%y')],
  'a column for all' => [2, graph('%x: f32[512,256], %b: f32[512]', '%r = broadcast %b, axes=[0], shape=[512,256]', '%y = add %x, %r', 'return y=%y')],
  'bytes' => [2, graph('%x: f32[512,256]', '%y = gt %x, 0.5', 'return y=%y')],
  'a seam at a vector of eight' => [2, graph('%x: f32[1024,120], %z: f32[1024,136]', '%j = concat %x, %z, axis=1', '%y = exp %j', 'return y=%y')],
  'a seam at a vector of four' => [1, graph('%x: f32[1024,124], %z: f32[1024,132]', '%j = concat %x, %z, axis=1', '%y = exp %j', 'return y=%y')],
  'a row of odd length for all' => [1, graph('%x: f32[512,252], %b: f32[252]', '%r = broadcast %b, axes=[1], shape=[512,252]', '%y = add %x, %r', 'return y=%y')],
  'short rows of twelve' => [1, graph('%x: f32[8192,12], %b: f32[12]', '%r = broadcast %b, axes=[1], shape=[8192,12]', '%y = add %x, %r', 'return y=%y')],
  'short rows of sixteen' => [2, graph('%x: f32[8192,16], %b: f32[16]', '%r = broadcast %b, axes=[1], shape=[8192,16]', '%y = add %x, %r', 'return y=%y')],
  'an angle, whose far ones have a way of their own' => [1, graph('%x: f32[512,256]', '%e = exp %x', '%y = cos %e', 'return y=%y')],
  'too few for the units' => [1, graph('%x: f32[32,256]', '%y = exp %x', 'return y=%y')],
);
for my $name (sort keys %graphs) {
  my ($factor, $text) = @{$graphs{$name}};
  my ($one, $two) = map { items($text, $_) } qw(one two);
  ok($one && $one == $factor * $two, "$name: $one items, $two of two vectors");
  for my $profile (qw(kir1 kir2)) {
    my ($code, $said) = says("$sinter run", put('run.snt', $text), "--device interp --profile $profiles{$profile} --check");
    ok($code == 0, "$name is right by $profile") or diag($said);
  }
}
# Rows: what is live of a row's vectors says how many there are.
sub live {
  my ($columns, $line, $profile) = @_;
  my ($code, $said) = says("$sinter inspect-kernel", put('row.snt', graph("%x: f32[16,$columns]", $line, 'return y=%y')), '--profile', $profiles{$profile}, '--sample 4 --json');
  return $code ? 0 : decode_json($said)->[0]{live_words};
}
for ([512, '%y = softmax %x', 1], [448, '%y = softmax %x', 0], [516, '%y = softmax %x', 0], [512, "%t = sin %x\n  %y = reduce.sum %t, axes=[1]", 0]) {
  my ($columns, $lines, $wider) = @$_;
  my ($one, $two) = map { live($columns, $lines, $_) } qw(one two);
  ok($one && ($wider ? $two > $one : $two == $one), 'rows of ' . $columns . ', ' . $lines =~ s/\n//r . ": $one words live, $two of two vectors an item");
}
for my $text (graph('%x: f32[16,512]', '%y = softmax %x', 'return y=%y'),
              graph('%x: f32[9,1024], %r: f32[9,1024], %g: f32[1024], %b: f32[1024]', '%s = add %x, %r', '%y = layernorm %s, %g, %b', 'return y=%y, s=%s')) {
  my ($code, $said) = says("$sinter run", put('row.snt', $text), "--device interp --profile $profiles{kir2} --check");
  ok($code == 0, 'rows of two vectors an item are right') or diag($said);
}
my ($code, $said) = says("$sinter inspect-kernel", put('exp.snt', $graphs{'one shape'}[1]), '--profile', $profiles{flushing}, '--numerics reproducible --sample 4 --json');
my @kernels = $code ? () : @{decode_json($said)};
is(@kernels ? $kernels[0]{groups} * $kernels[0]{items} : $said, 512 * 256, 'one element an item where denormals are made of integers');
done_testing();
