#!/usr/bin/perl
# Saved programs from the command line: compile -o FILE.sntp, run it, inspect it, pack it as a C array that holds the same bytes. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

open my $model, '>', "$dir/m.snt" or die $!;
print $model <<'END';
symbols { n: min=1 max=512 multiple_of=1 hint=64 }
graph @m(%x: f32[n,8]) {
  %w: f32[8,8] = const normal seed=3 scale=1.0
  %p: f32[n,8] = matmul %x, %w
  %y: f32[n,8] = softmax %p, axis=1
  return y=%y
}
END
close $model;

for my $device ('interp', 'opencl:pocl', 'vulkan:llvmpipe') {
  my ($target) = {'interp' => 'kir', 'opencl:pocl' => 'opencl', 'vulkan:llvmpipe' => 'spirv'}->{$device};
  SKIP: {
    my ($code, $said) = says("$sinter run $dir/m.snt --device $device --dim n=5 --input x=random:4 --output y=$dir/plain.npy");
    skip(lacks($device), 3) if lacks($device);
    is($code, 0, "$device: the model runs") or diag($said);
    ($code, $said) = says("$sinter compile $dir/m.snt --device $device --target $target -o $dir/m.sntp");
    is($code, 0, "$device: a program is saved") or diag($said);
    ($code, $said) = says("$sinter run $dir/m.sntp --device $device --dim n=5 --input x=random:4 --output y=$dir/saved.npy");
    is($code, 0, "$device: the saved program runs") or diag($said);
    ok(slurp("$dir/plain.npy") eq slurp("$dir/saved.npy"), "$device: the same bytes");
  }
}

my ($code, $said) = says("$sinter compile $dir/m.snt --target kir,spirv -o $dir/m.sntp --profile dgpu");
is($code, 0, 'two targets in one program') or diag($said);
($code, $said) = says("$sinter inspect $dir/m.sntp");
like($said, qr/^symbol 0: n from 1 to 512/m, 'inspect names the symbol');
like($said, qr/^port 0: input x f32\[n,8\]/m, 'inspect names the port');
like($said, qr/^kernel 0: .* spirv \d+ bytes kir \d+ bytes/m, 'inspect gives the code of both targets');
like($said, qr/^plan "m" \{/m, 'inspect prints the plan');
($code, $said) = says("$sinter run $dir/m.sntp --device interp --check");
like($said, qr/has no model/, '--check of a saved program says why not');
($code, $said) = says("$sinter inspect $dir/m.snt");
is($code, 2, 'inspect of a model is wrong usage');

# The array, compiled, is the file.
($code, $said) = says("$sinter pack $dir/m.sntp --header $dir/m.h");
is($code, 0, 'pack') or diag($said);
open my $c, '>', "$dir/out.c" or die $!;
print $c "#include \"m.h\"\n#include <stdio.h>\nint main(void) { return fwrite(m, 1, sizeof m, stdout) != sizeof m; }\n";
close $c;
($code, $said) = says("cc -std=c99 -Wall -Wextra -Werror -I$dir $dir/out.c -o $dir/out && $dir/out >$dir/back.sntp");
is($code, 0, 'the header compiles as C99') or diag($said);
ok(slurp("$dir/m.sntp") eq slurp("$dir/back.sntp"), 'the array holds the bytes of the file');

# A pack: a variant a profile; the device takes its own.
($code, $said) = says("$sinter compile $dir/m.snt --target spirv --profile dgpu,igpu,lavapipe,swiftshader -o $dir/p.sntp");
is($code, 0, 'four profiles make one pack') or diag($said);
($code, $said) = says("$sinter inspect $dir/p.sntp");
is(join(' ', $said =~ /^variant \d+: profile (\w+)/mg), 'dgpu igpu lavapipe swiftshader', 'inspect lists the variants');
for my $device ('vulkan:llvmpipe', 'vulkan:swiftshader') {
  SKIP: {
    ($code, $said) = says("$sinter run $dir/m.snt --device $device --dim n=5 --input x=random:4 --output y=$dir/plain.npy");
    skip(lacks($device), 2) if lacks($device);
    is($code, 0, "$device: the model runs") or diag($said);
    ($code, $said) = says("$sinter run $dir/p.sntp --device $device --dim n=5 --input x=random:4 --output y=$dir/packed.npy");
    is($code, 0, "$device runs a variant") or diag($said);
    my @apart = map { abs } map { my ($plain, $packed) = @$_; $plain - $packed } do { my @plain = numbers("$dir/plain.npy"); my @packed = numbers("$dir/packed.npy"); map { [$plain[$_], $packed[$_] // 'inf'] } 0 .. $#plain };
    is(scalar(grep { $_ < 1e-6 } @apart), 40, "$device: its 40 numbers");
  }
}
($code, $said) = says("$sinter run $dir/p.sntp --device interp");
like($said, qr/none of the 4 variants fits/, 'a device that no variant fits says so');

# Damage is an error, never a crash.
my $bytes = slurp("$dir/m.sntp");
for my $at (0, 9, 40, 200, length($bytes) / 2, length($bytes) - 1) {
  my $wrong = $bytes;
  substr($wrong, $at, 1) = chr(ord(substr($wrong, $at, 1)) ^ 0x40);
  open my $out, '>:raw', "$dir/wrong.sntp" or die $!;
  print $out $wrong;
  close $out;
  ($code, $said) = says("$sinter run $dir/wrong.sntp --device interp");
  ok($code == 1, sprintf 'a wrong byte at %d is refused', $at) or diag("$code $said");
}
done_testing();
