#!/usr/bin/perl
# The tests of Debian's libonnx-testdata: all on the host device, every some on each other device and what it refuses; all on all with SNT_TEST_FULL
# (SNT_TEST_DEVICES chooses, separated by blanks). What fails is what tests/onnx/expected.txt names, with its reason, and what tests/onnx/reach.txt
# says a device refuses, in these words; docs/onnx-operators.md and reach.txt are what tests/onnx/list makes of that. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $data = '/usr/share/libonnx-testdata/data';
my $jobs = $ENV{SNT_JOBS} // 2;
plan skip_all => 'libonnx-testdata is not installed' unless -d "$data/node";
plan skip_all => 'sinter was built without ONNX' if `$build/sinter onnx-test 2>&1` =~ /unknown command/;

my @expected;
open my $in, '<', 'tests/onnx/expected.txt' or die $!;
while (<$in>) {
  next unless /^([^#\s:]+): (.*)/;
  my ($pattern, $why) = ($1, $2);
  my $match = join '.*', map { quotemeta } split /\*/, $pattern, -1;
  push @expected, [qr/^$match$/, $why, 0];
}
sub reason { my ($test) = @_; for (@expected) { if ($test =~ $_->[0]) { $_->[2] = 1; return $_->[1] } } return }

open my $list, '<', 'tests/onnx/reach.txt' or die $!;
my %refused;    # device => test => the words
while (<$list>) {
  next unless /^(\S+) in, but for (.*)/;
  my ($test, $lacks) = ($1, $2);
  $refused{$1}{$test} = $2 while $lacks =~ /([\w:-]+): ([^;]+)/g;
}

# Every which test a device runs: compiling a kernel takes PoCL a second, llvmpipe a tenth of one.
my %every = ('host' => 1, 'vulkan:llvmpipe' => 9, 'vulkan:swiftshader' => 21, 'opencl:rusticl' => 40, 'opencl:pocl' => 40, 'cuda-text' => 40);
my @folders = sort map { s{/model\.onnx$}{}r } map { glob "$data/$_/*/model.onnx" } 'node', 'pytorch-converted', 'pytorch-operator', 'simple';

sub run_all {    # test => [passed, what was said]
  my ($device, @run) = @_;
  my (%said, $last);
  open my $out, '-|', "$build/sinter", 'onnx-test', '--device', $device, '--jobs', $jobs, @run or die $!;
  my $at = 0;
  while (<$out>) {
    if (my ($not, $name) = /^(not )?ok \d+ - (\S+)/) {
      my ($set) = $run[$at++] =~ m{([^/]+)/[^/]+$};
      $last = "$set/$name";
      $said{$last} = [!$not, ''];
    } elsif (defined $last && /^# (.*)/) {
      $said{$last}[1] ||= $1;
    }
  }
  close $out;
  return %said;
}

for my $device (split ' ', $ENV{SNT_TEST_DEVICES} // 'host vulkan:llvmpipe vulkan:swiftshader opencl:rusticl opencl:pocl cuda-text') {
  my $step = $ENV{SNT_TEST_FULL} ? 1 : $every{$device};
  my @run = @folders[grep { $_ % $step == 0 || $refused{$device}{$folders[$_] =~ s{.*/(?=[^/]+/)}{}r} } 0 .. $#folders];
  SKIP: {
    skip(lacks($device), 3) if lacks($device);
    my %said = run_all($device, @run);
    my (@wrong, @surprise, @crashed);
    for my $test (sort keys %said) {
      my ($passed, $words) = @{$said{$test}};
      my $why = reason($test);
      if (defined(my $lack = $refused{$device}{$test})) {
        $why //= $lack;
        push @wrong, "$test: $words" if !$passed && $words !~ /unsupported: .*\Q$lack\E/;
      }
      push @wrong, "$test: $words" if !$passed && !defined $why;
      push @surprise, "$test is expected to fail: $why" if $passed && defined $why;
      push @crashed, "$test: $words" if $words =~ /crash|signal|killed|timed? ?out/;
    }
    is(scalar keys %said, scalar @run, "$device: a verdict on each of " . @run . ' tests');
    is_deeply([@wrong, @surprise], [], "$device: passes what it is expected to pass, and nothing else") or diag(join "\n", @wrong, @surprise);
    is_deeply(\@crashed, [], "$device: none crashes") or diag(join "\n", @crashed);
  }
}
is_deeply([map { $_->[1] } grep { !$_->[2] } @expected], [], 'each line of tests/onnx/expected.txt is about some test');
open my $doc, '<', 'docs/onnx-operators.md' or die $!;
my $kept = do { local $/; <$doc> };
ok($kept eq `tests/onnx/list $data`, 'docs/onnx-operators.md is what tests/onnx/list writes');
open my $reach, '<', 'tests/onnx/reach.txt' or die $!;
ok(do { local $/; <$reach> } eq `tests/onnx/list $data reach`, 'and tests/onnx/reach.txt');
done_testing();
