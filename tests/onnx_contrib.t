#!/usr/bin/perl
# Operators of ONNX Runtime's own domain: test folders that tests/onnx/contrib makes with python3-onnx, on the host and on llvmpipe, some of them (all with
# SNT_TEST_FULL) on PoCL, and what the folders expect beside ONNX Runtime where that is installed. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Temp qw(tempdir);
use FindBin;
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";
my $sinter = ($ENV{SNT_BUILD} // 'build/release') . '/sinter';
my $jobs = $ENV{SNT_JOBS} // 2;
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3'; # the system's, whose packages these are
plan skip_all => 'python3-onnx and python3-numpy are not installed' if system("cd /; $python -c 'import numpy, onnx.helper' 2>/dev/null");
plan skip_all => 'sinter was built without ONNX' if `$sinter onnx-test 2>&1` =~ /unknown command/;
my $dir = tempdir(CLEANUP => 1);
is(system("$python tests/onnx/contrib $dir"), 0, 'the models are made');
my @folders = sort glob "$dir/*";

sub verdicts {
  my ($device, @run) = @_;
  my (%said, $last);
  open my $out, '-|', $sinter, 'onnx-test', '--device', $device, '--jobs', $jobs, @run or die $!;
  while (<$out>) {
    if (my ($not, $name) = /^(not )?ok \d+ - (\S+)/) { $last = $name; $said{$name} = $not ? '' : 'passed' }
    elsif (defined $last && $said{$last} ne 'passed' && /^# (.*)/) { $said{$last} .= $1 }
  }
  close $out;
  return %said;
}

for my $device ('host', 'vulkan:llvmpipe', 'opencl:pocl') {
  my $step = $device eq 'opencl:pocl' && !$ENV{SNT_TEST_FULL} ? 10 : 1;
  my @run = @folders[grep { $_ % $step == 0 } 0 .. $#folders];
  SKIP: {
    my ($first) = values %{{verdicts($device, $run[0])}};
    skip("$device: $first", 1) if !defined $first || $first =~ /no such device|no device|cannot open|not found/;
    my %said = verdicts($device, @run);
    my %want = map { s{.*/}{}r => 'passed' } @run;
    is_deeply(\%said, \%want, "$device: all " . @run . ' pass');
  }
}

# What is refused says why.
for (`$python tests/onnx/contrib $dir/refused --refused`) {
  my ($name, $words) = /^(\S+) (.*)/;
  my $said = `$sinter import $dir/refused/$name/model.onnx -o $dir/refused.snt 2>&1`;
  ok($? && index($said, $words) >= 0 && $said =~ /\bnode\b/ && !-e "$dir/refused.snt", "$name is refused: $words") or diag($said);
}

SKIP: {
  my ($beside) = grep { !system("cd /; $_ -c 'import numpy, onnx, onnxruntime' 2>/dev/null") } "$FindBin::Bin/../build/bench-venv/bin/python", 'python3';
  skip('onnxruntime is not installed: what the folders expect is compared with nothing', 1) if !$beside;
  my $said = `$beside tests/onnx/beside_runtime @folders 2>&1`;
  is($?, 0, "ONNX Runtime's results are those that the folders expect") or diag(grep { !/^ok / } map { "$_\n" } split /\n/, $said);
}
done_testing();
