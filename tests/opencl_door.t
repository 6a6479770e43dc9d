#!/usr/bin/perl
# The OpenCL door: examples/opencl on every OpenCL of this machine, inside the application's own context, between its events. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
$ENV{RUSTICL_ENABLE} //= 'llvmpipe';
for my $platform ('Portable', 'rusticl') {
  my $said = `$build/examples/opencl $platform 2>&1`;
  SKIP: {
    skip("$platform: $said", 3) if $said =~ /no OpenCL platform/;
    is($?, 0, "$platform: the kernels wait for the application's events, and it for theirs") or diag($said);
    like($said, qr/^kernels: 1$/m, "$platform: bias, relu and softmax are one kernel");
    my ($uses) = $said =~ /the context has (\d+) use/;
    # rusticl's own objects hold the context, too
    ok($platform eq 'rusticl' || ($uses // 0) == 1, "$platform: what was borrowed is given back") or diag($said);
  }
}
done_testing();
