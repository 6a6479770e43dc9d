#!/usr/bin/perl
# The CUDA door: examples/cuda on this machine's GPU, inside the application's own context. Without one it is skipped aloud; tests/door_cuda runs the
# same calls against a driver of its own. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $said = `$build/examples/cuda 2>&1`;
SKIP: {
  skip("$said", 2) if $said =~ /no CUDA (?:driver|device)|libnvrtc/;
  is($?, 0, 'the kernels follow what the application put on its stream') or diag($said);
  like($said, qr/^kernels: 1$/m, 'bias, relu and softmax are one kernel');
}
done_testing();
