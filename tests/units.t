#!/usr/bin/perl
# Matrix units: fragments of every size that devices have (Vulkan's are asked for), right on the interpreter, as CUDA, and on the Vulkan devices here that have
# some; as SPIR-V by the rules of spirv-val, where it knows them. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my @models = glob 'tests/inspect/{linear_f16,batch_bf16,conv_f16,conv_weights_f16,transposed_f16,linear_i8,rounds_f16,transposed_u8,attention_odd_f16,attention_filled_f16,attention_causal_bf16,deep_f16,deep_u8}.snt';

sub inspect { my ($code, $said) = says("$sinter inspect-kernel @_ --json"); return $code ? [] : decode_json($said) }
sub has_fragments { return scalar grep { $_->{mix}{matrix} > 0 } @{inspect(@_)} }
sub named { return $_[0] =~ s{.*/}{}r }

# A GPU whose subgroups of so many lanes multiply such fragments; least: other kernels may have smaller ones.
sub profile {
  my ($target, $lanes, $size, $least) = @_;
  $least ||= $lanes;
  my $path = "$dir/$target-$least-$lanes-$size.profile";
  my @lines = ('base = dgpu', "name = units$size", "target = $target", "subgroup_min = $least", "subgroup_max = $lanes", "caps.subgroup_size = $lanes",
    map { "caps.mma.$_ = $size" } 'f16', $target eq 'spirv' ? () : 'bf16', 'i8', 'u8');
  open my $out, '>', $path or die $!;
  print $out "$_\n" for @lines;
  close $out;
  return $path;
}

# lavapipe, Intel, NVIDIA, AMD by 32 and by 64, sides that differ, and Intel and AMD as they vary
my @units = ([8, '8x8x8'], [16, '8x16x16'], [32, '16x16x16'], [64, '16x16x16'], [32, '16x8x16'], [16, '8x16x32'], [32, '8x16x16', 8], [64, '16x16x16', 32]);
for (@units) {
  my ($lanes, $size) = @$_;
  my $profile = profile('interp', @$_);
  for my $model (@models) {
    my ($code, $said) = says("$sinter run $model --device interp --profile $profile --check --quiet");
    is($code, 0, "$size in $lanes lanes: " . named($model)) or diag($said);
  }
  ok(has_fragments("tests/inspect/$_.snt --profile $profile --sample 2"), "$size in $lanes lanes: $_ has fragments") for 'linear_f16', 'matmul_i8', $lanes > 8 ? 'attention_half' : (); # an item a row: none
}
# where it is known which lane holds what, weights of attention are made where scores are: two barriers a tile, and no local memory between
for ('16x16x16', '16x8x16') {
  my $profile = profile('interp', 32, $_);
  my ($through) = @{inspect("tests/inspect/attention_half.snt --profile $profile --sample 2")};
  open my $known, '>>', $profile or die $!;
  print $known "caps.fragment_lanes = 1\n";
  close $known;
  my ($k) = @{inspect("tests/inspect/attention_half.snt --profile $profile --sample 2")};
  ok($k->{mix}{matrix} == $through->{mix}{matrix} && $k->{barriers} <= $through->{barriers} / 2 && $k->{mix}{local} < $through->{mix}{local} * 0.7, "$_ whose lanes are known: scores stay in them") or diag(encode_json([$through, $k]));
  for my $model (grep { /attention/ } @models, 'tests/inspect/attention_dropped_f16.snt', 'tests/inspect/attention_half.snt') {
    my ($code, $said) = says("$sinter run $model --device interp --profile $profile --check --quiet");
    is($code, 0, "$_ whose lanes are known: " . named($model)) or diag($said);
  }
}
ok(!has_fragments('tests/inspect/linear_f16.snt --profile ' . profile('interp', 32, '24x16x16')), 'rows that lanes cannot share: no fragments');
my ($code, $said) = says("$sinter run tests/inspect/linear_f16.snt --device interp --profile " . profile('interp', 32, '16x16') . ' --quiet');
ok($code && $said =~ /line 7\b.*caps\.mma\.f16/, 'two sides are no size') or diag("$code: $said");

# as CUDA, by the profile that has them
open my $forced, '>', "$dir/cuda.profile" or die $!;
print $forced "base = h100\nname = h100\ntarget = cuda # forced\n";
close $forced;
SKIP: {
  skip(lacks('cuda-text'), scalar @models) if lacks('cuda-text');
  for my $model (@models) {
    ($code, $said) = says("$sinter run $model --device cuda-text --profile $dir/cuda.profile --check --quiet");
    is($code, 0, 'cuda-text: ' . named($model)) or diag($said);
  }
}

# keys and values that have one panel by turns, where local memory has no room for two
my $wide = put('wide.snt', "graph \@wide(%q: f16[8,64,208], %k: f16[8,64,208], %v: f16[8,64,128]) {\n  %y = attention %q, %k, %v\n  return y=%y\n}\n");
is(inspect("$wide --profile h100 --sample 2")->[0]{barriers}, 8, 'panels by turns: four barriers a tile');
for my $device (['interp', put('known.profile', "base = h100\nname = known\ntarget = interp\n")], ['cuda-text', "$dir/cuda.profile"]) {
  SKIP: {
    skip(lacks($device->[0]), 1) if lacks($device->[0]);
    ($code, $said) = says("$sinter run $wide --device $device->[0] --profile $device->[1] --check --quiet");
    is($code, 0, "panels by turns: right on $device->[0]") or diag($said);
  }
}

# as SPIR-V; a profile that says more than SPIR-V has words for
($code, $said) = says("$sinter compile tests/inspect/attention_half.snt --target spirv --profile " . put('spirv.profile', "base = h100\nname = known\ntarget = spirv\n") . " -o $dir/known");
is($code, 0, 'lanes that a profile knows, and SPIR-V does not: through local memory') or diag($said);
for (@units) {
  my ($lanes, $size) = @$_;
  my $profile = profile('spirv', @$_);
  for my $model (@models) {
    my $out = "$dir/$size-" . named($model);
    ($code, $said) = says("$sinter compile $model --target spirv --profile $profile -o $out");
    is($code, 0, "$size as SPIR-V: " . named($model)) or diag($said);
    SKIP: {
      skip('spirv-val is not here', 1) if system('command -v spirv-val >/dev/null 2>&1');
      ($code, $said) = says("spirv-val --target-env vulkan1.2 $_") for glob "$out/*.spv";
      skip("spirv-val is older than cooperative matrices: $said", 1) if $code && $said =~ /capability operand|Unknown capability|6022|unknown extension/i;
      is($code, 0, "$size, spirv-val: " . named($model)) or diag($said);
    }
  }
}
($code, $said) = says("$sinter devices");
for my $device ($said =~ /^(vulkan:\S+)/mg) {
  my ($size) = grep {
    ($code, $said) = says("$sinter run tests/inspect/linear_f16.snt --device $device --quiet --profile " . profile('spirv', @$_));
    ok($code == 0 || $said =~ /needs mma\.f16\.f32\.$_->[1], which|subgroups of $_->[0] on|16-bit|float16|asks for caps\.(?:f16_arithmetic|int16_storage), which the device lacks/i, "$device: has $_->[1] in $_->[0] lanes, or says that it has not") or diag("$code: $said");
    $code == 0
  } @units;
  SKIP: {
    skip("$device has no matrix units", 2 * @models - 2) if !$size;
    for my $model (@models) {
      ($code, $said) = says("$sinter run $model --device $device --profile " . profile('spirv', @$size) . ' --check --quiet');
      is($code, 0, "$device, fragments: " . named($model)) or diag($said);
      ok(has_fragments("$model --profile " . profile('interp', @$size)), 'it has some') if $model !~ /attention/;
    }
  }
}
done_testing;
