#!/usr/bin/perl
# Where the profile says so (hand_texels) what lanes store of large loops, and of rows that are written out, has one address for all of a subgroup: counted by the
# scalars that such a kernel has, right on the interpreter, which holds stores of one address to the same bits. Groups of several subgroups likewise. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub profile { my ($name, @rest) = @_; return put("$name.profile", join("\n", 'base = lavapipe', "name = $name", @rest) . "\n") }
my $kir = profile('kir', 'target = kir');
sub graph { my ($inputs, @lines) = @_; return "graph \@g($inputs) {\n" . join('', map { "  $_\n" } @lines) . "}\n" }

# By hand or not.
my %graphs = (
  'sixteen texels an item' => [1, graph('%x: f32[1024,128]', '%y = neg %x', 'return y=%y')],
  'two outputs, a row and a column for all' => [1, graph('%x: f32[256,512], %b: f32[512], %c: f32[256]', '%r = broadcast %b, axes=[1], shape=[256,512]',
    '%d = broadcast %c, axes=[0], shape=[256,512]', '%s = add %x, %r', '%y = mul %s, %d', 'return y=%y, s=%s')],
  'two functions' => [0, graph('%x: f32[1024,128]', '%e = exp %x', '%y = tanh %e', 'return y=%y')],
  'too much to compute' => [0, graph('%x: f32[1024,128]', '%a = exp %x', '%b = tanh %a', '%c = sigmoid %b', '%d = erf %c', '%y = log %d', 'return y=%y')],
  'few groups of eight texels an item' => [0, graph('%x: f32[512,128]', '%y = neg %x', 'return y=%y')],
  'whole numbers' => [1, graph('%x: i32[1024,128]', '%y = neg %x', 'return y=%y')],
  'bytes' => [0, graph('%x: f32[1024,128]', '%y = gt %x, 0.5', 'return y=%y')],
  'no whole share' => [0, graph('%x: f32[1023,131]', '%y = neg %x', 'return y=%y')],
  'few groups' => [0, graph('%x: f32[256,128]', '%y = neg %x', 'return y=%y')],
  'a length that is not known' => [0, "symbols { n: min=1 max=4096 hint=1024 }\n" . graph('%x: f32[n,128]', '%y = neg %x', 'return y=%y')],
  'rows' => [1, graph('%x: f32[256,512]', '%y = softmax %x', 'return y=%y')],
  'rows of twelve trips' => [1, graph('%x: f32[256,768], %g: f32[768]', '%y = rmsnorm %x, %g', 'return y=%y')],
  'rows that end inside of a trip' => [0, graph('%x: f32[256,500]', '%y = softmax %x', 'return y=%y')],
  'rows with a result in a sweep of their own' => [0, graph('%x: f32[256,512]', '%e = exp %x', '%y = reduce.sum %e, axes=[1]', 'must_fuse %e, %y', 'return y=%y, e=%e')],
);
for my $name (sort keys %graphs) {
  my ($hand, $text) = @{$graphs{$name}};
  my $model = put('hand.snt', $text);
  my ($failed, $said) = says("$sinter compile", $model, "--target kir --profile $kir -o", "$dir/kernels");
  my $kernel = $failed ? $said : join '', map { slurp($_) } glob "$dir/kernels/*.kir";
  my $digits = $kernel =~ /scalar %s15: u32 at=60 min=15 max=15/;
  is($digits ? 1 : 0, $hand, "$name: by hand or not") or diag($kernel);
  my ($wrong, $error) = says("$sinter run", $model, ($text =~ /symbols/ ? '--dim n=40' : ()), "--device interp --profile $kir --check");
  ok(!$wrong, "$name is right") or diag($error);
  unlink glob "$dir/kernels/*";
}
my ($failed, $said);
# Two vectors that lie beside each other, an item's or two items', go out as one of four words of 64 bits.
my $one = profile('one', 'item_vectors = 1');
SKIP: {
  skip('spirv-val or spirv-dis is not here', 6) if grep { system("command -v $_ >/dev/null 2>&1") } 'spirv-val', 'spirv-dis';
  for (['sixteen texels an item', 'lavapipe', 4], ['rows', 'lavapipe', 4], ['sixteen texels an item', $one, 4]) {
    my ($name, $profile, $words) = @$_;
    ($failed, $said) = says("$sinter compile", put('hand.snt', $graphs{$name}[1]), "--target spirv --profile $profile -o", "$dir/spirv");
    my @modules = glob "$dir/spirv/*.spv";
    my ($bad, $why) = says('spirv-val --target-env vulkan1.1', @modules);
    ok(!$failed && @modules == 1 && !$bad, "$name: spirv-val") or diag($said, $why);
    my ($none, $text) = says('spirv-dis', @modules);
    is(join(' ', $text =~ /_runtimearr_v(\dulong)/g) =~ /^(\d)/ ? $1 : 0, $words, "$name: words of 64 bits a store") or diag($text);
    unlink @modules;
  }
}
# Lanes of a device that tells no size of subgroups.
my $none = profile('none', 'target = kir', 'caps.subgroups = 0', 'caps.subgroup_size = 0');
($failed, $said) = says("$sinter compile", put('hand.snt', $graphs{'sixteen texels an item'}[1]), "--target kir --profile $none -o", "$dir/kernels");
ok(!$failed && join('', map { slurp($_) } glob "$dir/kernels/*.kir") !~ /s15/, 'no subgroups: not by hand') or diag($said);
# What is printed for OpenCL, too, has no digits.
($failed, $said) = says("$sinter compile", put('hand.snt', $graphs{'sixteen texels an item'}[1]), "--target opencl,spirv --profile lavapipe -o", "$dir/both");
ok(!$failed, 'for OpenCL and Vulkan: not by hand') or diag($said);
# Several subgroups of a group do a share or a row each, where the profile says so, sums meet in subgroups, and groups are left.
my $four = profile('four', 'target = kir', 'group_shares = 4');
my $alone = profile('alone', 'target = kir', 'group_shares = 0');
my $rows = graph('%x: f32[256,256]', '%y = reduce.sum %x, axes=[1]', '%m = reduce.max %x, axes=[1]', 'return y=%y, m=%m');
for (['sixteen texels an item', $graphs{'sixteen texels an item'}[1], $kir, 64], ['rows', $graphs{rows}[1], $kir, 64], ['sums of rows', $rows, $kir, 64],
     ['sums of rows, four a group', $rows, $four, 32], ['sums of rows, one', $rows, $alone, 8], ['by hand, one', $graphs{rows}[1], $alone, 8],
     ['an odd number of rows', $rows =~ s/256,256/255,256/r, $kir, 8], ['few rows', $rows =~ s/256,256/16,256/r, $kir, 16],
     ['products meet in memory', $rows =~ s/reduce.max/reduce.prod/r, $kir, 8], ['sums in their order', $rows, $kir, 8, '--numerics strict'],
     ['no subgroups', $rows, $none, 8]) {
  my ($name, $text, $profile, $items, @mode) = @$_;
  my $model = put('shares.snt', $text);
  unlink glob "$dir/kernels/*";
  ($failed, $said) = says("$sinter compile", $model, "--target kir --profile $profile -o", "$dir/kernels", @mode);
  is(join(' ', map { slurp($_) =~ /items=\((\d+),/ } glob "$dir/kernels/*.kir"), $items, "$name: $items items a group") or diag($said);
  my ($wrong, $error) = says("$sinter run", $model, "--device interp --profile $profile --check", @mode);
  ok(!$wrong, "$name: right") or diag($error);
}
($failed, $said) = says("$sinter compile", put('shares.snt', $rows), "--target opencl,spirv --profile lavapipe -o", "$dir/both");
ok(!$failed, 'for OpenCL and Vulkan: a row a group') or diag($said);
done_testing();
