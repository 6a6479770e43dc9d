#!/usr/bin/perl
# OpenCL kernels for processors of 64-bit ARM, whose PoCL inlines nothing of its library: clang compiles them for AArch64, and of what they compute nothing may
# be a call. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my ($clang) = grep { `$_ --print-targets 2>/dev/null` =~ /^\s*aarch64\b/m } qw(clang-14 clang);
plan skip_all => 'no clang that compiles for AArch64' unless $clang;

my $profile = slurp("cost_targets/profiles/pocl.profile");
$profile =~ s/^lanes = \d+/lanes = 4/m;
$profile =~ s/^registers = \d+/registers = 32/m;
my $arm = put('arm.profile', $profile);
my $model = put('arm.snt', <<'END');
graph @arm(%a: f32[64,96], %b: f32[96,80]) {
  %m = matmul %a, %b
  %t = tanh %m
  %k = abs %t
  %s = softmax %m, axis=1
  return k=%k, s=%s
}
END
my ($code, $said) = says("$sinter compile $model --target opencl --profile $arm -o $dir/kernels --quiet");
is($code, 0, 'kernels of a device with four lanes and 32 registers') || diag($said);

# A kernel is no function that this target can call: PoCL makes one of it, and what a group's number is comes from it.
my $options = "-x cl -cl-std=CL1.2 -D__kernel= '-Dreqd_work_group_size(x,y,z)=unused' -Xclang -finclude-default-header -O2 -S -o -";
my ($products, $sums, $factors) = (0, 0, 0);
for my $kernel (sort glob("$dir/kernels/*.cl")) {
  my $text = `$clang --target=aarch64-linux-gnu $options $kernel 2>&1`;
  my ($name) = $kernel =~ m{([^/]+)$};
  is($?, 0, "$name compiles") or diag($text);
  is(join(' ', sort grep { !/get_(group_id|num_groups)/ } $text =~ /^\s+bl\s+(\S+)/mg), '', "$name calls nothing");
  $products += () = $text =~ /^\s+fmla\s/mg;
  $sums += () = $text =~ /^\s+fadd\s+v\d+/mg;
  $factors += () = $text =~ /^\s+fmul\s+v\d+/mg;
}
cmp_ok($products, '>', 200, 'multiply-adds are one instruction');
cmp_ok($sums < $factors ? $sums : $factors, '<', $products / 4, 'and not two, a product and a sum');
done_testing();
