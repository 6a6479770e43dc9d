#!/usr/bin/perl
# A language model with a cache (tests/onnx/decoder): what it says behind a text that it was given word by word, with the cache of the word before, is what it
# says behind all of it at once. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $python = python_with('numpy, onnx.helper', qw(onnx numpy));
is(system("$python tests/onnx/decoder $dir"), 0, 'the model is made');
my @caches = map { ("$_.key", "$_.value") } 0, 1;

# One run: words and mask, the caches in files NAME_TAG.npy; '' or what is wrong.
sub run_model {
  my ($device, $ids, $ones, $past, $options) = @_;
  my $inputs = join ' ', "--input input_ids=$dir/$ids.npy --input attention_mask=$dir/ones_$ones.npy",
    map { "--input past.$_=" . ($past ? "$dir/${_}_$past.npy" : "$dir/empty.npy") } @caches;
  my $outputs = join ' ', "--output logits=$dir/logits_$ones.npy", map { "--output present.$_=$dir/${_}_$ones.npy" } @caches;
  my $said = `$sinter run $dir/decoder.onnx --device $device --quiet $options $inputs $outputs 2>&1`;
  return $? ? $said || 'failed' : '';
}

for my $device ('host', 'vulkan:llvmpipe', 'opencl:pocl') {
  SKIP: {
    skip("$device is not here", 3) if $device ne 'host' && `$sinter devices 2>&1` !~ /\Q$device\E/;
    is(run_model($device, 'ids', 5, 0, ''), '', "$device: all words at once, no cache");
    my @all = numbers("$dir/logits_5.npy");
    my @want = @all[4 * 50 .. 5 * 50 - 1];
    for my $options ('', '--open') {
      my $wrong = run_model($device, 'id_0', 1, 0, '');
      $wrong ||= run_model($device, "id_" . ($_ - 1), $_, $_ - 1, $options) for 2 .. 5;
      my @got = numbers("$dir/logits_5.npy");
      my ($off) = sort { $b <=> $a } map { abs($got[$_] - $want[$_]) } 0 .. $#want;
      ok(!$wrong && @all == 5 * 50 && @got == 50 && $off < 1e-5, "$device: word by word is the same $options") or diag($wrong || "by $off");
    }
  }
}
# The example: one program for the prompt and each word behind it. A longer prompt goes on as the shorter one did.
my $example = $sinter =~ s{sinter$}{examples/decoder}r;
for my $device ('host', 'vulkan:llvmpipe', 'opencl:pocl') {
  SKIP: {
    skip("$device is not here, or $example is not built", 1) if !-x $example || $device ne 'host' && `$sinter devices 2>&1` !~ /\Q$device\E/;
    my @words = split ' ', `$example $dir/decoder.onnx $device 5 3 17 42 2>&1`;
    my @rest = split ' ', `$example $dir/decoder.onnx $device 3 3 17 42 @words[0, 1] 2>&1`;
    ok(@words == 5 && @rest == 3 && "@rest" eq "@words[2 .. 4]", "$device: the example's words @words") or diag("@rest");
  }
}
# All of it in f16, as exporters write such: within the bounds of the reference.
mkdir "$dir/half";
system("$python tests/onnx/decoder $dir/half --half") == 0 or die 'the model was not made';
my $inputs = join ' ', "--input input_ids=$dir/half/ids.npy --input attention_mask=$dir/half/ones_5.npy", map {"--input past.$_=$dir/half/empty.npy"} @caches;
for my $device ('vulkan:llvmpipe', 'opencl:pocl') {
  SKIP: {
    skip("$device is not here", 1) if `$sinter devices 2>&1` !~ /\Q$device\E/;
    my $said = `$sinter run $dir/half/decoder.onnx --device $device --check $inputs 2>&1`;
    is($?, 0, "$device: in f16") or diag($said);
  }
}
my $said = `$example $dir/decoder.onnx host 3 2>&1`;
ok($? && $said =~ /usage: decoder/, 'the example without words') if -x $example;
done_testing();
