#!/usr/bin/perl
# The renderer of examples/frame on the software drivers of this machine, under the validation layers: frames of the sizes that its dynamic
# resolution asks for, no message of the layers, and the same pictures from two drivers that share no code. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $frames = $ENV{SNT_TEST_FULL} ? 24 : 8;

# Width and height from a PNG's header.
sub png_size {
  my ($path) = @_;
  open my $in, '<:raw', $path or return (0, 0);
  read $in, my $head, 24;
  return unpack 'N2', substr($head, 16);
}

# A number that a model gives: the last element of a .npy.
sub last_float { return (numbers(@_))[-1] // 'nan' }

open my $model, '>', "$dir/compare.snt" or die $!;
print $model <<'END';
symbols { h: min=1 max=4096 multiple_of=1 hint=360, w: min=1 max=4096 multiple_of=1 hint=640 }
graph @compare(%a: f32[1,3,h,w], %b: f32[1,3,h,w]) {
  %d = sub %a, %b
  %e = abs %d
  %mean = mean %e, axes=[0,1,2,3]
  %level = mean %a, axes=[0,1,2,3]
  %top = reduce.max %a, axes=[0,1,2,3]
  return mean=%mean, level=%level, top=%top
}
END
close $model;

my @drivers = (['llvmpipe', 'lavapipe'], ['SwiftShader', 'SwiftShader']);
my @percent = (100, 100, 83, 67, 50, 67, 83, 91);
my @drawn;
for my $driver (@drivers) {
  my ($part, $name) = @$driver;
  my $out = "$dir/$name";
  mkdir $out;
  my $said = `$build/examples/frame --device $part --frames $frames --validate --out $out 2>&1`;
  SKIP: {
    skip("$name: $said", 3) if $said =~ /^frame: (?:no Vulkan device|libvulkan|VK_LAYER_KHRONOS)/;
    is($?, 0, "$name: the frames are drawn and the layers say nothing") or diag($said);
    like($said, qr/$frames frames, [123] kernels a frame/, "$name: the post-process is at most three kernels");
    my @wrong = grep {
      my ($w, $h) = png_size(sprintf '%s/frame%03d.png', $out, $_);
      my $p = $percent[$_ % 8];
      $w != int(640 * $p / 100) || $h != int(360 * $p / 100);
    } 0 .. $frames - 1;
    is("@wrong", '', "$name: every frame has the resolution of its time");
    push @drawn, $out;
  }
}

# One more with the checks of what shaders reach, which take seconds a frame.
my $said = `$build/examples/frame --device llvmpipe --frames 1 --validate-gpu --out $dir 2>&1`;
SKIP: {
  skip("lavapipe: $said", 1) if $said =~ /^frame: (?:no Vulkan device|libvulkan|VK_LAYER_KHRONOS)/;
  is($?, 0, 'lavapipe: GPU-assisted checks say nothing either') or diag($said);
}

SKIP: {
  skip('two drivers are needed', 3) if @drawn < 2;
  my ($worst, $dark, $dim) = (0, 1, 1);
  for my $i (0 .. 7) {
    my $file = sprintf 'frame%03d.png', $i;
    my ($w, $h) = png_size("$drawn[0]/$file");
    my $said = `$build/sinter run $dir/compare.snt --device host --dim h=$h --dim w=$w --input a=$drawn[0]/$file:nchw --input b=$drawn[1]/$file:nchw --output mean=$dir/mean.npy --output level=$dir/level.npy --output top=$dir/top.npy 2>&1`;
    diag($said) if $?;
    my ($mean, $level, $top) = map { last_float("$dir/$_.npy") } qw(mean level top);
    $worst = $mean if !($mean <= $worst);
    $dark = $level if !($level >= $dark);
    $dim = $top if !($top >= $dim);
  }
  ok($worst < 0.005, 'both drivers give the same pictures') or diag("they differ by $worst in the mean");
  ok($dark > 0.2 && $dark < 0.8, 'the pictures are neither black nor white') or diag("level $dark");
  ok($dim > 0.99, 'the lamp is white') or diag("brightest $dim");
}
done_testing();
