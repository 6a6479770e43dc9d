#!/usr/bin/perl
# Sums that the items of a group share on devices whose lanes are items: down few columns (schedule/row.c, items_down), and in slices of a product's terms
# (schedule/contract_local.c); rows, which wait in registers where they are short and else in the output that they become. By the shape of the group in the kernel, right on the interpreter. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub profile { my ($name, @rest) = @_; return put("$name.profile", join("\n", 'base = h100', "name = $name", @rest) . "\n") }
my $kir = profile('kir', 'target = kir');
sub graph { my ($inputs, @lines) = @_; return "graph \@g($inputs) {\n" . join('', map { "  $_\n" } @lines) . "  return y=%y\n}\n" }
sub down { my ($op, $shape, $axes) = @_; return graph("%x: f32[$shape]", "%y = reduce.$op %x, axes=[$axes]") }

# Items of the first kernel's group; a graph; arguments.
my %graphs = (
  'down columns' => ['8,64,1', down('sum', '256,64', 0)],
  'an extremum' => ['8,64,1', down('max', '256,64', 0)],
  'a product' => ['8,16,1', down('prod', '64,64', 0)],
  'columns of several planes' => ['8,64,1', down('sum', '3,257,64', 1)],
  'more than a stage' => ['8,64,1', graph('%x: f32[256,64], %z: f32[256,64]', '%d = sub %x, %z', '%e = abs %d', '%s = reduce.sum %e, axes=[0]', '%y = mul %s, 0x1p-8')],
  'whole numbers' => ['8,64,1', graph('%x: i32[256,64]', '%y = reduce.sum %x, axes=[0]')],
  'two results' => ['8,64,1', graph('%x: f32[256,64]', '%m = reduce.sum %x, axes=[0]', '%b = broadcast %m, axes=[1], shape=[256,64]', '%d = sub %x, %b',
    '%q = mul %d, %d', '%y = reduce.sum %q, axes=[0]')],
  'places of extrema' => ['8,64,1', down('argmax', '256,64', 0)],
  'few rows' => ['16,1,1', down('sum', '60,64', 0)],
  'columns that are no whole lines' => ['5,32,1', down('sum', '256,60', 0)],
  'columns that no width divides' => ['16,1,1', down('sum', '256,52', 0)],
  'an order that is kept' => ['16,1,1', down('sum', '256,64', 0), '--numerics strict'],
  'many short rows' => ['32,1,1', graph('%x: f32[17000,6,7]', '%y = reduce.sum %x, axes=[1,2]')],
  'slices' => ['256,1,1', graph('%x: f32[128,256], %w: f32[256,128]', '%y = matmul %x, %w')],
  'slices in parts, of tiles that are not whole' => ['256,1,1', graph('%x: f32[100,256], %w: f32[256,136]', '%p = matmul %x, %w', '%y = relu %p')],
);
for my $name (sort keys %graphs) {
  my ($items, $text, $how) = @{$graphs{$name}};
  $how //= '';
  my $model = put('shared.snt', $text);
  my ($failed, $said) = says("$sinter compile", $model, "$how --target kir --profile $kir -o", "$dir/kernels");
  my $kernel = $failed ? $said : slurp((sort glob "$dir/kernels/k0*.kir")[0]);
  is($kernel =~ /items=\((\S+)\)/ ? $1 : $kernel, $items, "$name: items");
  my ($wrong, $error) = says("$sinter run", $model, "$how --device interp --profile $kir --check");
  ok(!$wrong, "$name is right") or diag($error);
  unlink glob "$dir/kernels/*";
}

# Rows of few whole trips are read once: how often the kernel for CUDA reads vectors of its first operand, right through the C++ compiler.
my $cuda = profile('cuda', 'target = cuda');
my %rows = (
  'a row of two trips' => [2, graph('%x: f32[4,1024]', '%y = softmax %x')],
  'three trips of half as many items' => [3, graph('%x: f32[4,768], %g: f32[768], %b: f32[768]', '%y = layernorm %x, %g, %b')],
  'rows that are not whole' => [1, graph('%x: f32[4,1000]', '%y = softmax %x')],
);
for my $name (sort keys %rows) {
  my ($reads, $text) = @{$rows{$name}};
  my $model = put('rows.snt', $text);
  my ($failed, $said) = says("$sinter compile", $model, "--target cuda --profile $cuda -o", "$dir/rows");
  my $kernel = $failed ? $said : slurp("$dir/rows/k0_row.cu");
  is(() = $kernel =~ /\*\(const snt_vec<float, 4> \*\)\(p0 /g, $reads, "$name: reads") or diag($kernel);
  my ($kept) = $kernel =~ /__shared__ float p\d+\[(\d{4})\]/;
  is($kept // 0, $name =~ /not/ ? 1008 : 0, "$name: what is kept in local memory");
  my ($wrong, $error) = says("$sinter run", $model, "--device cuda-text --profile $cuda --check");
  ok(!$wrong, "$name is right") or diag($error);
}
my $model = put('long.snt', graph('%x: f32[3,8192]', '%y = softmax %x'));
my ($failed, $plan) = says("$sinter compile", $model, "--target kir --profile $kir -o", "$dir/kernels");
$plan = slurp("$dir/kernels/plan.txt");
like($plan, qr/^  scratch=0$/m, 'long rows: no memory beside the output');
my ($wrong, $error) = says("$sinter run", $model, "--device interp --profile $kir --check");
ok(!$wrong, 'long rows are right') or diag($error);
# Of no results nothing is divided.
my ($crashed, $opted) = says("$sinter opt", put('none.snt', graph('%x: f32[0,100000]', '%y = reduce.sum %x, axes=[1]')), '--run stages --profile h100');
ok(!$crashed, 'a long reduction without results') or diag($opted);
done_testing();
