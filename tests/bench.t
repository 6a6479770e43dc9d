#!/usr/bin/perl
# sinter bench: what a line says and when; times are not judged. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my $model = "$dir/two.snt";
open my $out, '>', $model or die $!;
print $out <<'END';
symbols { n: min=1 max=4096 hint=64 }
graph @two(%a: f32[n,32], %b: f32[32,16]) {
  %p = matmul %a, %b
  %y = relu %p
  return y=%y
}
END
close $out;

sub bench { my ($options) = @_; my $said = `$sinter bench $model --device interp $options 2>&1`; return ($? >> 8, $said) }

my ($code, $said) = bench('--json');
is($code, 0, 'it runs') or diag($said);
my $row = eval { decode_json($said) } // {};
cmp_ok($row->{runs} // 0, '>=', 5, 'without --runs at least five');
is(join(' ', map { $row->{$_} // 'none' } qw(kernels unfused_kernels bytes_moved max_diff)), '1 2 ' . 4 * (64 * 32 + 32 * 16 + 64 * 16) . ' 0', 'kernels, and bytes at the hints')
  or diag($said);
# a product's multiply-adds and relu's maxima
my $operations = ($row->{gflops} // 0) * ($row->{min_ms} // 0) * 1e6;
my $expected = 2 * 64 * 32 * 16 + 64 * 16;
cmp_ok(abs($operations - $expected), '<', 0.05 * $expected + 1e3, 'operations are those of the graph') or diag("$operations, $expected");

($code, $said) = bench('--json --runs 2 --dim n=8');
$row = eval { decode_json($said) } // {};
is($row->{runs}, 2, '--runs is how many') or diag($said);
is(join(' ', grep { exists $row->{$_} } qw(bytes_moved gbps gflops bytes_unfused)), '', 'at other extents than the hints what is known at the hints is not said');
ok(exists $row->{unfused_min_ms}, 'the times are');

($code, $said) = bench('--json --runs 2 --no-unfused');
$row = eval { decode_json($said) } // {};
is(join(' ', grep { /unfused|diff/ } keys %$row), '', '--no-unfused says nothing of it') or diag($said);

($code, $said) = bench('--runs 2');
like($said, qr/two\.snt: 1 kernel [\d.]+ ms \(median of 2 runs [\d.]+\), unfused 2, [\d.]+ ms, /, 'as a line');
system('cp', $model, "$dir/again.snt");
$said = `$sinter bench $dir --device interp --runs 2 2>&1`;
my @rows = split /\n/, $said;
my @cells = map { scalar(() = /\|/g) } @rows;
is("@cells", '13 13 13 13', 'a folder is a table, a row a model') or diag($said);

$said = `$sinter bench $dir/none.snt --device interp 2>&1`;
ok($? && $said =~ /none\.snt/, 'a file that is not there is named') or diag($said);
done_testing;
