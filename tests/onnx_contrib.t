#!/usr/bin/perl
# Operators of ONNX Runtime's own domain (tests/onnx/contrib; tests/onnx_recent.t runs them): what is refused says why, and what the folders expect is what
# ONNX Runtime gives, where that is installed. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $python = python_with('numpy, onnx.helper', qw(onnx numpy));
is(system("$python tests/onnx/contrib $dir"), 0, 'the models are made');
my @folders = sort glob "$dir/*";

# What is refused says why.
for (`$python tests/onnx/contrib $dir/refused --refused`) {
  my ($name, $words) = /^(\S+) (.*)/;
  my $said = `$sinter import $dir/refused/$name/model.onnx -o $dir/refused.snt 2>&1`;
  ok($? && index($said, $words) >= 0 && $said =~ /\bnode\b/ && !-e "$dir/refused.snt", "$name is refused: $words") or diag($said);
}

# accuracy_level 4 is followed where that is said, and nowhere else.
my $rounded = "$dir/matmulnbits_level4";
my @want = unpack 'f<*', substr slurp("$rounded/test_data_set_0/output_0.pb"), -4 * 48; # raw data end the file
for my $option ('', '--accuracy-level') {
  my $said = `$sinter run $rounded/model.onnx --device host --quiet $option --input x0=$rounded/test_data_set_0/input_0.pb --output y0=$dir/y0.npy 2>&1`;
  my @got = numbers("$dir/y0.npy");
  my $off = 0;
  for (0 .. $#want) { my $by = abs($got[$_] - $want[$_]); $off = $by if $by > $off }
  ok(@got == @want && ($option ? $off < 1e-5 : $off > 1e-4 && $off < 0.1), $option ? 'rows are rounded where it is said' : 'no row is rounded unasked') or diag("$off $said");
}

SKIP: {
  my ($beside) = grep { !system("cd /; $_ -c 'import numpy, onnx, onnxruntime' 2>/dev/null") } "$FindBin::Bin/../build/bench-venv/bin/python", 'python3';
  skip('onnxruntime is not installed: what the folders expect is compared with nothing', 1) if !$beside;
  my $said = `$beside tests/onnx/beside_runtime @folders 2>&1`;
  is($?, 0, "ONNX Runtime's results are those that the folders expect") or diag(grep { !/^ok / } map { "$_\n" } split /\n/, $said);
}
done_testing();
