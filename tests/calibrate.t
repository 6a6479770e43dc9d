#!/usr/bin/perl
# sinter calibrate: a profile measured on each device here says how it was measured, is read again, and programs compiled by it run. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

open my $model, '>', "$dir/m.snt" or die $!;
print $model <<'END';
graph @m(%x: f32[64,96]) {
  %w: f32[96,32] = const normal seed=3 scale=1.0
  %p: f32[64,32] = matmul %x, %w
  %y: f32[64,32] = softmax %p, axis=1
  return y=%y
}
END
close $model;

for my $device ('interp', 'opencl:pocl', 'vulkan:llvmpipe') {
  SKIP: {
    my ($code, $said) = says("$sinter run $dir/m.snt --device $device");
    skip(lacks($device), 9) if lacks($device);
    is($code, 0, "$device runs the model") or diag($said);
    my $profile = "$dir/measured.profile";
    my ($text, %measured);
    for my $try (1 .. 8) { # what a busy host's noise hides is left out of a profile
      ($code, $said) = says("$sinter calibrate --device $device --quick --timeout 8 -o $profile");
      $text = slurp($profile);
      %measured = (%measured, $text =~ /^(\S+) = (\S+).*# measured, \+-[\d.]+ %: \S/mg);
      last if $code || 3 == grep { $measured{$_} } qw(launch_ns cache_gbs cycles.sub.f32);
    }
    is($code, 0, "$device: calibrated") or diag($said);
    like($text, qr/^# device: \Q$device\E: \S/m, "$device: the device is named");
    like($text, qr/^# load average before and after: [\d.]+, [\d.]+;/m, "$device: and the load");
    my @noise = $text =~ /# measured, \+-([\d.]+) %/g;
    ok(!(grep { $_ > 50 } @noise), "$device: no number is mostly noise") or diag($text);
    ok(scalar(grep { $measured{$_} } qw(launch_ns cache_gbs)) == 2, "$device: launches and memory are measured") or diag($text);
    ok(($measured{'cycles.sub.f32'} // 0) > 0, "$device: cycles of an operator are measured");
    unlike($text, qr/^(?!#)(?!\S+ = \S.* # \S)./m, "$device: every number says where it is from");
    ($code, $said) = says("$sinter run $dir/m.snt --device $device --profile $profile --check");
    is($code, 0, "$device: a program made by the measured profile is right") or diag($said);
    ($code, $said) = says("$sinter explain $dir/m.snt --profile $profile --mask bindings=4");
    is($code, 0, "$device: the profile is taken where no device is") or diag($said);
  }
}

open my $broken, '>', "$dir/broken.profile" or die $!;
print $broken "base = pocl\nlaunch_ns = fast ns\n";
close $broken;
my ($code, $said) = says("$sinter explain $dir/m.snt --profile $dir/broken.profile");
ok($code != 0 && $said =~ /line 2: bad value for launch_ns/, 'a broken profile is refused with its line') or diag($said);
($code, $said) = says("$sinter explain $dir/m.snt --profile $dir/none.profile");
ok($code != 0 && $said =~ /none\.profile/, 'a missing one by its name') or diag($said);
($code, $said) = says("$sinter explain $dir/m.snt --profile pocI");
ok($code != 0 && $said =~ /no profile "pocI": pocl lavapipe/, 'an unknown name with the names there are') or diag($said);
done_testing;
