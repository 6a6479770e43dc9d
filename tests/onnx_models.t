#!/usr/bin/perl
# Whole models with constant weights (the light models of the onnx package: SNT_LIGHT_MODELS names their folder), given other weights by
# tests/onnx/reseed, on every device against the host's evaluator. One model and one seed here, all and two with SNT_TEST_FULL. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Temp qw(tempdir);
use FindBin;
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";
my $sinter = ($ENV{SNT_BUILD} // 'build/release') . '/sinter';
my $folder = $ENV{SNT_LIGHT_MODELS} // '';
plan skip_all => 'SNT_LIGHT_MODELS names no folder of light models' unless -d $folder;
my $dir = tempdir(CLEANUP => 1);
my @models = sort(glob("$folder/light_*/model.onnx"), glob("$folder/light_*.onnx"));
plan skip_all => "no light models in $folder" unless @models;
@models = grep { /squeezenet/ } @models unless $ENV{SNT_TEST_FULL};

sub numbers {    # the f32 values of a .npy file
  my ($path) = @_;
  open my $in, '<:raw', $path or return;
  my $bytes = do { local $/; <$in> };
  my $start = 10 + unpack 'v', substr $bytes, 8, 2;
  return unpack 'f<*', substr $bytes, $start;
}
sub worst {      # the greatest relative difference; values below a millionth of the greatest are measured by that
  my ($got, $want) = @_;
  return 'inf' if @$got != @$want || !@$want;
  my ($size) = sort { $b <=> $a } map { abs } @$want;
  my $worst = 0;
  for (0 .. $#$want) {
    my $floor = abs $want->[$_] > 1e-6 * $size ? abs $want->[$_] : 1e-6 * $size;
    my $error = $floor > 0 ? abs($got->[$_] - $want->[$_]) / $floor : 'inf';
    return 'inf' if $error ne 'inf' && $error != $error;
    $worst = $error if $error > $worst;
  }
  return $worst;
}

for my $model (@models) {
  my ($name) = $model =~ /(light_\w+)/;
  my $said = `$sinter import $model -o $dir/$name.snt 2>&1`;
  is($?, 0, "$name is imported") or diag($said);
  for my $seed ($ENV{SNT_TEST_FULL} ? (1000, 2000) : 1000) {
    my $text = "$dir/$name-$seed.snt";
    system("tests/onnx/reseed $seed <$dir/$name.snt >$text");
    my ($output) = do { open my $in, '<', $text; grep { /^\s*return / } <$in> };
    my ($port) = grep { defined } $output =~ /return (?:"([^"]*)"|([^\s,=]+))=/;
    my $run = sub { my ($device) = @_; my $said = `$sinter run $text --device $device --output '$port=$dir/out.npy' 2>&1`; return ($?, $said, numbers("$dir/out.npy")) };
    my ($code, $words, @want) = $run->('host');
    is($code, 0, "$name, seed $seed: host") or diag($words);
    my ($low, $high) = (sort { $a <=> $b } @want)[0, -1];
    ok(@want && $high > $low, "$name, seed $seed: its output is no constant");
    for my $device ('opencl:pocl', 'vulkan:llvmpipe') {
      SKIP: {
        my ($code, $words, @got) = $run->($device);
        skip("$device: $words", 1) if $code && $words =~ /no (OpenCL|Vulkan)? ?device|cannot open/;
        my $error = $code ? 'inf' : worst(\@got, \@want);
        ok($error ne 'inf' && $error < 1e-3, "$name, seed $seed: $device differs by $error") or diag($words);
      }
    }
  }
}
done_testing();
