#!/usr/bin/perl
# The tests of operators that a newer onnx package makes than Debian has: SNT_ONNX_PYTHON names a Python with one (and pillow). All on the host device,
# every ninth on llvmpipe; SNT_TEST_DEVICES names devices that run all. What fails is what tests/onnx/newer.txt names. Attention in 16-bit types may
# differ by a few units of its last place, as the order of its roundings is not given. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $jobs = $ENV{SNT_JOBS} // 2;
my $python = $ENV{SNT_ONNX_PYTHON};
plan skip_all => 'SNT_ONNX_PYTHON names no Python with the onnx package' unless $python;
plan skip_all => 'sinter was built without ONNX' if `$sinter onnx-test 2>&1` =~ /unknown command/;
is(system("$python tests/onnx/newer $dir >$dir/log 2>&1"), 0, 'the tests are made') or diag(`tail -3 $dir/log`);
my @folders = sort glob "$dir/node/test_*";

my @expected;
open my $in, '<', 'tests/onnx/newer.txt' or die $!;
while (<$in>) {
  next unless /^(!?)([^#!\s:]+): (.*)/;
  my ($not, $pattern, $why) = ($1, $2, $3);
  my $match = join '.*', map { quotemeta } split /\*/, $pattern, -1;
  push @expected, [qr/^$match$/, "$pattern: $why", 0, $not];
}

sub expected {
  my ($test) = @_;
  my ($out, $in) = (0, 0);
  for (grep { $test =~ $_->[0] } @expected) { $_->[2] = 1; if ($_->[3]) { $in = 1 } else { $out = 1 } }
  return $out && !$in;
}

sub run_all {    # test => '' or what was said
  my ($device, $options, @run) = @_;
  my (%said, $last);
  return () unless @run;
  open my $list, '-|', "$sinter onnx-test --device $device --jobs $jobs $options " . join(' ', @run) or die $!;
  while (<$list>) {
    if (my ($not, $name) = /^(not )?ok \d+ - (\S+)/) { $last = $name; $said{$name} = $not ? 'fails' : '' }
    elsif (defined $last && $said{$last} eq 'fails' && /^# (.*)/) { $said{$last} = $1 }
  }
  close $list;
  return %said;
}
sub lacks_type { my ($words) = @_; return $words =~ /^unsupported: .*64-bit floats/ }

for my $device ('host', $ENV{SNT_TEST_DEVICES} ? split / /, $ENV{SNT_TEST_DEVICES} : 'vulkan:llvmpipe') {
  my $step = $device eq 'host' || $ENV{SNT_TEST_DEVICES} ? 1 : 9;
  my @run = @folders[grep { $_ % $step == 0 } 0 .. $#folders];
  SKIP: {
    skip(lacks($device), 2) if lacks($device);
    my @loose = grep { /attention.*(?:bf16|fp16|float16)/ } @run;
    my %said = run_all($device, '', grep { !/attention.*(?:bf16|fp16|float16)/ } @run);
    %said = (%said, run_all($device, '--rtol 2e-2 --atol 1e-3', @loose));
    is(scalar keys %said, scalar @run, "$device: a verdict on each of " . @run . ' tests');
    my @wrong = map { "$_: " . ($said{$_} || 'passes') } grep { expected($_) ? !$said{$_} : $said{$_} && !lacks_type($said{$_}) } sort keys %said;
    my $passed = grep { !$_ } values %said;
    is_deeply(\@wrong, [], "$device: $passed pass, all in reach") or diag(join "\n", @wrong);
  }
}
is_deeply([map { $_->[1] } grep { !$_->[2] } @expected], [], 'each line of tests/onnx/newer.txt is about some test');
done_testing();
