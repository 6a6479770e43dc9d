#!/usr/bin/perl
# Models put together as exporters do it (tests/onnx/exported): arithmetic on shapes, extents that are open in the file and come from the files of
# --input, operands that are known only once they are. The answers against numpy's. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $python = python_with('numpy, onnx.helper', qw(onnx numpy));
my @cases = `$python tests/onnx/exported $dir`;
is($?, 0, 'the models are made');

sub differ { # '' or what is wrong
  my ($got, $want) = @_;
  return "shape ($got->[0]), expected ($want->[0])" if $got->[0] ne $want->[0] || @$got != @$want;
  for my $i (1 .. $#$want) {
    return "[@{[$i - 1]}]: $got->[$i], expected $want->[$i]" if !(abs($got->[$i] - $want->[$i]) <= 1e-4 * (1 + abs $want->[$i]));
  }
  return '';
}

# Those whose extents can stay open, where the answer hangs on them: rules make halves equal, a range ends at an extent.
my %open = map { $_ => 1 } qw(halves halves_beside unnamed dotted anchors decoder pyramid settled same last_places enlarged one_row rows_alike pairs rows_left states);
for my $device ('host', 'vulkan:llvmpipe', 'opencl:pocl') {
  my $found = `$sinter devices 2>&1`;
  for my $case (map { ([$_, ''], /^(\S+)/ && $open{$1} ? [$_, '--open'] : ()) } @cases) {
    SKIP: {
      skip("$device is not here", 1) if $device ne 'host' && $found !~ /\Q$device\E/;
      my ($name, $options) = $case->[0] =~ /^(\S+) (.*)/;
      my $said = `$sinter run $dir/$name.onnx --device $device --quiet $case->[1] $options --output y=$dir/y.npy 2>&1`;
      my $wrong = $? ? $said : differ([array("$dir/y.npy")], [array("$dir/$name.want.npy")]);
      is($wrong, '', "$device: $name $case->[1]");
      unlink "$dir/y.npy";
    }
  }
}

# What the tool says of an extent that does not do.
my $said = `$sinter run $dir/halves.onnx --device host --dim h=10 --dim w=24 2>&1`;
ok($? && $said =~ /do not broadcast/, 'halves of an extent that does not divide') or diag($said);
$said = `$sinter run $dir/halves.onnx --device host --dim h=8 --dim v=24 2>&1`;
ok($? && $said =~ /no extent is named v/, 'an extent that the model has not') or diag($said);
$said = `$sinter run $dir/halves.onnx --device host --dim h=eight 2>&1`;
ok($? && $said =~ /h: not an extent: "eight"/, 'an extent that is no number') or diag($said);
$said = `$sinter run $dir/squeeze.onnx --device host 2>&1`;
ok($? && $said =~ /no axes are named, and whether axis 0 has extent 1 is open/, 'axes that hang on an open extent') or diag($said);
$said = `$sinter run $dir/squeeze.onnx --device host --dim batch=1 --dim m=3 2>&1`;
ok($? && $said =~ /no extent is named m/, 'a fixed extent that the model has not') or diag($said);
$said = `$sinter run $dir/halves.onnx --device host --open --dim h=10 --dim w=24 2>&1`;
ok($? && $said =~ /extent h must be a multiple of 4/, 'an open extent that does not divide') or diag($said);
$said = `$sinter run $dir/squeeze.onnx --device host --open --dim batch=1 2>&1`;
ok($? && $said =~ /whether axis 0 has extent 1 is open/, 'an extent that is open by wish') or diag($said);
# What --dim says of an extent that the model makes a number, or the same as another, holds or is refused.
for (['one_row', '--dim n=2', qr/extent n is 1 by what the model does with it, not 2/], ['rows_alike', '--dim m=2 --dim n=3', qr/extent n is 2 by .*, not 3/],
     ['one_row', '--dim n=0', qr/Reshape_y .*f32\[0,4,3\] has 0 elements/], ['rows_alike', '--dim m=2 --dim n=0', qr/extent m must be 0/],
     ['rows_alike', '--dim n=0', qr/^$/], ['one_row', '--dim n=1', qr/^$/], ['rows_alike', '--dim m=2 --dim n=2', qr/^$/]) {
  $said = `$sinter run $dir/$_->[0].onnx --device host --open $_->[1] --quiet 2>&1`;
  like($said, $_->[2], "$_->[0] --open $_->[1]");
}
system("$sinter run $dir/rows_alike.onnx --device host --open --dim n=2 --quiet --output y=$dir/y.npy");
is((array("$dir/y.npy"))[0], '2 3', 'what is said of one name holds for the other');
my ($branch) = grep { /^branch / } @cases;
my ($options) = $branch =~ /^\S+ (.*)/;
$said = `$sinter run $dir/branch.onnx --device host $options 2>&1`;
ok(!$? && $said =~ /for the values of integer inputs given only; without /, 'what is for the values given only says so') or diag($said);
$said = `$sinter import $dir/halves.onnx -o $dir/h.snt --dim h=8 2>&1; head -3 $dir/h.snt`;
ok($said =~ /symbols \{ n: .*w: min=4 .*multiple_of=4/ && $said =~ /f32\[n,2,8,w\]/, 'import fixes what --dim says') or diag($said);
done_testing();
