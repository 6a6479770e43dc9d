#!/usr/bin/perl
# Operators as operator sets 18 to 28 define them, which Debian's test data does not have, and ONNX Runtime's own: test folders that tests/onnx/recent and
# tests/onnx/contrib, tests/onnx/trees (forests of ai.onnx.ml) and tests/onnx/learned (rows of numbers of it) make with python3-onnx, on the host and on llvmpipe, some of them (all with SNT_TEST_FULL) on PoCL. SNT_ONLY is a
# regular expression of the folders to look at. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $jobs = $ENV{SNT_JOBS} // 2;
my $python = python_with('numpy, onnx.helper, PIL', qw(onnx numpy pil));
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

for my $set ('recent', 'contrib', 'trees', 'learned') {
  my @refused = `$python tests/onnx/$set $dir/$set`; # names, and the words for it
  is($?, 0, "$set: the models are made");
  for (@refused) {
    my ($name, $words) = /^(\S+) (.*)/;
    my $said = `$sinter run $dir/$set.refused/$name/model.onnx --device host 2>&1`;
    ok($? && index($said, $words) >= 0, "$name: $words") or diag($said);
  }
  my @folders = grep { s{.*/}{}r =~ ($ENV{SNT_ONLY} // '') } sort glob "$dir/$set/*";
  next unless @folders;
  for my $device ('host', 'vulkan:llvmpipe', 'opencl:pocl') {
    my $step = $device eq 'opencl:pocl' && !$ENV{SNT_TEST_FULL} ? 10 : 1;
    my @run = @folders[grep { $_ % $step == 0 } 0 .. $#folders];
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my %said = verdicts($device, @run);
      my %want = map { s{.*/}{}r => 'passed' } @run;
      is_deeply(\%said, \%want, "$set on $device: all " . @run . ' pass');
    }
  }
}
# Parts that are alike are joined by none of them.
for my $folder (sort glob "$dir/recent/alike_*") {
  my $said = `$sinter opt $folder/model.onnx --run canonicalise 2>&1`;
  is($said =~ /= concat (?:%\S+, ){8}/ ? 1 : 0, $folder =~ /alike_unlike/ ? 1 : 0, $folder =~ s{.*/}{}r) or diag($said);
}
# Sequences that are all as long as the axis lie backwards: nothing is looked up.
for my $folder (sort glob "$dir/recent/reversesequence_10_*") {
  my $said = `$sinter opt $folder/model.onnx --run canonicalise 2>&1`;
  is($said =~ /= gather / ? 1 : 0, $folder =~ /_whole/ ? 0 : 1, $folder =~ s{.*/}{}r) or diag($said);
}
done_testing(), exit if defined $ENV{SNT_ONLY};
# How long it is is a number that the model computes and nothing in it bounds: 17 of at most 20, and of at most 4.
for my $most (20, 4) {
  my $folder = "$dir/recent.refused/counts_refused_length_some";
  my $said = `$sinter run $folder/model.onnx --device host --quiet --input x0=$folder/test_data_set_0/input_0.pb --dim n=$most --output y0=$dir/y0.npy --output y0.count=$dir/count.npy 2>&1`;
  my @y = unpack 'q<*', substr slurp("$dir/y0.npy"), 128;
  my ($count) = unpack 'q<', substr slurp("$dir/count.npy"), -8;
  is("$count: @y", $most == 20 ? '17: ' . join(' ', 1 .. 17, 0, 0, 0) : '4: 1 2 3 4', "a length of at most $most") or diag($said);
}
like(scalar `$sinter run $dir/recent/loop_13_open_count/model.onnx --device host --dim nowhere=3 2>&1`, qr/no extent is named nowhere/, 'a bound of nothing');
# As many trips as an extent that is known at run time only: none, a few, more than are written out.
for my $device ('host', 'vulkan:llvmpipe') {
  for my $trips (0, 5, 300) {
    SKIP: {
      my $said = `$sinter run $dir/recent/loop_13_open_count/model.onnx --device $device --open --dim n0=$trips --check --quiet 2>&1`;
      skip(lacks($device), 1) if lacks($device);
      ok($? == 0 && $said =~ /max\(error \/ bound\)/, "$device: a loop of $trips trips by an open extent") or diag($said);
    }
  }
}
done_testing();
