#!/usr/bin/perl
# --tune: choices tried on the device, kept in a folder. A tuned model gives the answers of an untuned one; the second time nothing is measured; a damaged
# entry is a miss with a message, and other options are another entry. On the interpreter, which is everywhere, and on PoCL where it is. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Find;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan skip_all => "$sinter is not built" unless -x $sinter;
my $model = "$dir/m.snt";
open my $out, '>', $model or die $!;
print $out <<'GRAPH';
graph @m(%x: f32[24,40], %w: f32[40,16]) {
  %a = tanh %x
  %b = exp %a
  %h = matmul %b, %w
  %r = relu %h
  %s = reduce.sum %a, axes=[1], keep
  %t = broadcast %s, shape=[24,40]
  %u = div %b, %t
  return r=%r, u=%u
}
GRAPH
close $out;

sub run_model {
  my ($device, @more) = @_;
  my $said = `$sinter run $model --device $device --check --output r=$dir/r.npy --output u=$dir/u.npy @more 2>&1`;
  return ($?, $said, [numbers("$dir/r.npy")], [numbers("$dir/u.npy")]);
}
sub close_to {
  my ($got, $want) = @_;
  return 0 if @$got != @$want || !@$want;
  for (0 .. $#$want) { return 0 if !(abs($got->[$_] - $want->[$_]) <= 1e-5 * (1 + abs $want->[$_])) }
  return 1;
}
sub entries { my ($folder) = @_; my @found; find(sub { push @found, $File::Find::name if -f && !/lock/ }, $folder); return @found }

for my $device ('interp', 'opencl:pocl') {
  SKIP: {
    my ($code, $said, @plain) = run_model($device);
    skip(lacks($device), 1) if lacks($device);
    is($code, 0, "$device: runs untuned") or diag($said);
    (my $folder = "$dir/$device") =~ s/://;
    ($code, $said, my @tuned) = run_model($device, "--tune $folder");
    is($code, 0, "$device: runs tuned, within bounds of the reference") or diag($said);
    like($said, qr/--tune: [1-9]\d* candidates, \d+ kept: [\d.]+ ms to [\d.]+ ms, A\/A/, "$device: says what was tried") or diag($said);
    ok(close_to($tuned[$_], $plain[$_]), "$device: output $_ is that of the untuned model") for 0, 1;
    my @entries = entries($folder);
    is(scalar @entries, 1, "$device: one entry");
    my $entry = do { open my $in, '<:raw', $entries[0] or die $!; local $/; <$in> };
    like($entry, qr/# \d{4}-\d\d-\d\d.*\n# \d+ candidates in turns/, "$device: the entry says how it was measured");
    ($code, $said, @tuned) = run_model($device, "--tune $folder");
    ok($code == 0 && $said !~ /candidates/, "$device: the second time nothing is measured") or diag($said);
    ok(close_to($tuned[$_], $plain[$_]), "$device: and output $_ is the same") for 0, 1;
    substr($entry, -2, 1) ^= "\x01";
    open my $bad, '>:raw', $entries[0] or die $!;
    print $bad $entry;
    close $bad;
    ($code, $said, @tuned) = run_model($device, "--tune $folder");
    ok($code == 0 && $said =~ /is damaged, so it is measured again/ && $said =~ /candidates/, "$device: a damaged entry is a miss, and said") or diag($said);
    run_model($device, "--tune $folder", '--numerics strict');
    is(scalar(entries($folder)), 2, "$device: other numerics are another entry");
  }
}
# A product too long for a run in a second of the interpreter: time is up before anything is decided, which is kept, and tried again where there is more time.
{
  my $folder = "$dir/slow";
  open my $slow, '>', "$dir/slow.snt" or die $!;
  print $slow "graph \@slow(%x: f32[192,192], %w: f32[192,192]) {\n  %a = tanh %x\n  %h = matmul %a, %w\n  %r = relu %h\n  return r=%r\n}\n";
  close $slow;
  my $run = "$sinter run $dir/slow.snt --device interp --tune $folder";
  my $began = time;
  my $said = `$run --timeout 1 2>&1`;
  like($said, qr/--tune: 0 candidates of [1-9]\d* in the 1 s of --timeout, 0 kept/, 'time that is up is said');
  is($?, 0, 'and the model runs');
  is(scalar(entries($folder)), 1, 'that it was stopped is kept');
  $said = `$run --timeout 1 2>&1`;
  ok(!$? && $said !~ /candidates/, 'and not tried again in as little time') or diag($said);
  $said = `$run --timeout 2 2>&1`;
  ok(!$? && $said =~ /candidates of [1-9]\d* in the 2 s of --timeout/, 'but with more') or diag($said);
  cmp_ok(time - $began, '<', 60, 'all within what was given, and runs that were under way');
  $said = `$sinter run $dir/slow.snt --device interp --timeout 1 2>&1`;
  ok($? >> 8 == 2 && $said =~ /--timeout means nothing without --tune/, 'without --tune it means nothing') or diag($said);
}
# --learn: kernels that the driver says spill are split; the answers stay, in strict numerics to the bit. PoCL says what its kernels use; the interpreter says nothing.
for my $device ('cuda-text', 'opencl:pocl') {
  SKIP: {
    for my $strict ('', '--numerics strict') {
      my ($plain_exit, $plain, @plain) = run_model($device, $strict);
      skip "$device: not here", 8 if lacks($device);
      is $plain_exit, 0, "$device: runs before it learns $strict" or diag $plain;
      my ($exit, $said, @learnt) = run_model($device, '--learn', $strict);
      is $exit, 0, "$device --learn $strict: runs, within its bounds";
      like $said, qr/learn: \d+ kernels split for what they spilled; the driver says what \d+ of \d+ kernels use/, "$device: says what it heard";
      my $same = $strict ? "@{$learnt[0]} @{$learnt[1]}" eq "@{$plain[0]} @{$plain[1]}" : close_to($learnt[0], $plain[0]) && close_to($learnt[1], $plain[1]);
      ok $same, "$device: the same answers $strict";
    }
  }
}
done_testing;
