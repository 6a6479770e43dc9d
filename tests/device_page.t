#!/usr/bin/perl
# bench/device, which is for devices that nobody has looked at yet: it says what is right, what a kernel takes and what has failed, and ends within its limit.
# Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan(skip_all => 'no python3') if system('command -v python3 >/dev/null');
local $ENV{SNT_BUILD} = $build;
my $page = "bench/device --folder $dir --quick";

my ($code, $said) = says("$page --only right --filter half interp");
is($code, 0, 'the interpreter computes a product of halves') or diag($said);
like($said, qr{^- interp: interp .*^\| half \| 0\.\d+ \|$}ms, 'of which the page has the error over its bound');
($code, $said) = says("$page --only right,times --filter half interp nobody:0");
is($code, 1, 'a device that is not there is said, the others go on');
like($said, qr{^- nobody:0: \*\*not listed.*^\| half \| 0\.\d+ \|$}ms, 'in its row') or diag($said);
($code, $said) = says("$page --only right --filter i --limit 0 interp");
is($code, 1, 'a limit that is too short ends it');
like($said, qr{^\| linear_f16 \| no time left \|$}m, 'and what was left out is said') or diag($said);
my $texts = "import sys; exec(open('bench/device').read().rsplit('main()', 1)[0].replace('__file__', repr('bench/device')))\n"
  . "for i, w in enumerate(WORKLOADS):\n  if not w.graph.isidentifier(): open(f'{sys.argv[1]}/workload{i}.snt', 'w').write(w.graph)\n";
put("$dir/texts.py", $texts);
($code, $said) = says("python3 $dir/texts.py $dir");
my @wrong = grep { (says("$sinter opt $_ --run canonicalise"))[0] } glob("$dir/workload*.snt");
is("$code @wrong", '0 ', 'each workload that is a text is a graph') or diag($said);
($code, $said) = says("$page --only wrong interp");
is($code, 2, 'a part that there is not is wrong usage') or diag($said);
SKIP: {
  skip(lacks('opencl:pocl'), 3) if lacks('opencl:pocl');
  ($code, $said) = says("$page --only times --filter 'softmax 4096' opencl:pocl");
  is($code, 0, 'softmax is timed on PoCL') or diag($said);
  my ($row) = $said =~ /^(\| softmax 4096 x 1024 \| opencl:pocl \|.*)$/m;
  my (undef, undef, undef, $kernels, $us, $rate, undef, $predicted) = split / *\| */, $row // '';
  is($kernels, 1, 'one kernel') or diag($said);
  ok($us > 0 && $rate > 0 && $predicted > 0, "with its time, bytes a second and what was predicted") or diag($row);
}
done_testing();
