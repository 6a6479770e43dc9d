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

# A device that works by itself, behind a host that hands kernels over more slowly than they run: 5 us for one, 1.5 us between two, 10 items a nanosecond.
SKIP: {
  mkdir "$dir/slow";
  my $made = system("cc -std=c11 -O1 -shared -fPIC tests/lost/slow_host.c -o $dir/slow/libcuda.so.1 2>$dir/log && cp $dir/slow/libcuda.so.1 $dir/slow/libnvrtc.so.13");
  skip('no compiler makes a driver of our own', 3) if $made;
  my ($code, $said, %found);
  for my $try (1 .. 4) { # beside a busy machine's noise
    ($code, $said) = says("LD_LIBRARY_PATH=$dir/slow:\$LD_LIBRARY_PATH $sinter calibrate --device cuda:0 --quick --timeout 1 -o $dir/slow.profile");
    %found = $said =~ /^(\S+) +([\d.e+]+) +\+-/mg;
    last if $code || (abs(($found{launch_ns} // 0) - 1500) < 300 && abs(($found{cache_gbs} // 0) - 320) < 64);
  }
  is($code, 0, 'a device behind a slow host: calibrated') or diag($said);
  ok(abs(($found{launch_ns} // 0) - 1500) < 300 && ($found{submit_ns} // 0) > 4500, 'what remains between kernels is told from what handing them over takes') or diag($said);
  ok(abs(($found{cache_gbs} // 0) - 320) < 64, 'and work that a launch would hide from the launch') or diag($said);
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
