#!/usr/bin/perl
# Float controls of SPIR-V: strict and reproducible programs ask a driver to keep the sign of zeros, denormals and rounding where the profile says that it can
# be asked, others for NaN alone, whose tests are of the floats then; a device that cannot be asked refuses such a program, and so it does one of types that it lacks. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $model = 'tests/inspect/even.snt';

sub profile {
  my ($name, %caps) = @_;
  my $path = "$dir/$name.profile";
  open my $out, '>', $path or die $!;
  print $out "base = dgpu\nname = $name\ntarget = spirv\n", map { "caps.float_controls.$_ = $caps{$_}\n" } sort keys %caps;
  close $out;
  return $path;
}

# What the one module of the model asks for, as "mode width".
sub asked {
  my ($profile, $mode) = @_;
  system("rm -rf $dir/out");
  my ($code, $said) = says("$sinter compile $model --target spirv --profile $profile --numerics $mode -o $dir/out");
  return "error: $said" if $code;
  my ($file) = glob "$dir/out/*.spv";
  ($code, $said) = says("spirv-val --target-env vulkan1.2 $file");
  return "error: $said" if $code;
  ($code, $said) = says("spirv-dis $file");
  return join ', ', sort $said =~ /OpExecutionMode %\S+ ((?:Denorm|Signed|Rounding)\w+ \d+)/g;
}

my $all = profile('all', signed_zero => 112, denormals => 112, round_even => 112);
SKIP: {
  skip('no spirv-val or spirv-dis', 6) if grep { system("command -v $_ >/dev/null") } 'spirv-val', 'spirv-dis';
  my @zeros = map { "SignedZeroInfNanPreserve $_" } 16, 32, 64;
  is(asked($all, 'strict'), join(', ', @zeros), 'strict asks for zeros');
  is(asked($all, 'reproducible'), join(', ', sort @zeros, map { ("DenormPreserve $_", "RoundingModeRTE $_") } 16, 32, 64), 'reproducible asks for all');
  is(asked($all, $_), 'SignedZeroInfNanPreserve 32', "$_ asks for NaN") for 'default', 'fast';
  is(asked(profile('some', signed_zero => 32, denormals => 96), 'reproducible'), 'DenormPreserve 32, DenormPreserve 64, SignedZeroInfNanPreserve 32', 'the widths of the profile');
  is(asked('dgpu', 'reproducible'), '', 'a profile without asks for nothing');
}

# The greater of two, one of which may be NaN: found by the bits where the driver need not have any.
my $greater = put('greater.snt', "graph \@g(%x: f32[64], %z: f32[64]) {\n  %y = max %x, %z\n  return y=%y\n}\n");
SKIP: {
  skip('no spirv-dis', 2) if system('command -v spirv-dis >/dev/null');
  for (['dgpu', 1], [$all, 0]) {
    my ($profile, $bits) = @$_;
    my ($failed, $said) = says("$sinter compile $greater --target spirv --profile $profile -o $dir/greater && spirv-dis $dir/greater/*.spv");
    is($failed ? $said : $said =~ /2147483647/ ? 1 : 0, $bits, ($bits ? '' : 'no ') . 'tests of the bits');
  }
}

my $bytes = "$dir/bytes.snt";
open my $out, '>', $bytes or die $!;
print $out "graph \@bytes(%x: i8[64]) {\n  %y = neg %x\n  return y=%y\n}\n";
close $out;
my ($code, $devices) = says("$sinter devices");
my @vulkan = $devices =~ /^(vulkan:\S+)/mg;
SKIP: {
  skip('no Vulkan device here', 4) if !@vulkan;
  for my $device (@vulkan) {
    my ($bad, $said) = says("$sinter run $model --device $device --numerics strict --check --quiet");
    is($bad, 0, "$device: strict, as it can be asked") or diag($said);
    ($bad, $said) = says("$sinter run $model --device $device --mask float_controls=0 --numerics strict --check --quiet");
    is($bad, 0, "$device: strict, as if it could not") or diag($said);
    ($bad, $said) = says("$sinter run $model --device $device --profile $all --numerics strict --quiet");
    ok($bad == 0 || $said =~ /asks for float controls, which the device lacks/, "$device: runs what asks for everything, or refuses it by name") or diag("$bad: $said");
    ($bad, $said) = says("SNT_MASK=int8=0 $sinter run $bytes --device $device --profile dgpu --quiet");
    ok($bad == 1 && $said =~ /asks for caps\.int8_storage, which the device lacks/, "$device: refuses a module of a type that it lacks") or diag("$bad: $said");
  }
}
done_testing;
