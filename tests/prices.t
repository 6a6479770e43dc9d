#!/usr/bin/perl
# Prices of what kernels are made of (fusion/group/facts.c, group/lanes.c, group/panels.c): pairs of graphs of which one has the thing, by profiles alone. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use JSON::PP;
use List::Util qw(sum0);
use lib $FindBin::Bin;
use Sinter;

my %profile = ((map { $_ => $_ } 'pocl', 'lavapipe', 'dgpu', 'h200', 'swiftshader', 'rusticl'), wide => put('wide.profile', "base = pocl\nname = wide\nlanes = 16\nregisters = 32\n"),
               plain => put('plain.profile', "base = pocl\nname = plain\nlanes = 16\nregisters = 32\ncaps.permute = 0\n"),
               single => put('single.profile', "base = lavapipe\nname = single\ngroup_shares = 0\n"),
               branching => put('branching.profile', "base = lavapipe\nname = branching\nboth_sides = 0\n"),
               ported => put('ported.profile', "base = pocl\nname = ported\nlanes = 16\nregisters = 32\nport_lanes = 8\n"),
               words => put('words.profile', "base = pocl\nname = words\nlanes = 16\nregisters = 32\ncaps.dot4 = 1\n"),
               greedy => put('greedy.profile', "base = pocl\nname = greedy\nleast_saving = 1e9 ns\n"));

# Microseconds of all kernels, and how many there are.
sub price {
  my ($text, $profile, @more) = @_;
  my $model = put('g.snt', $text);
  my $said = `$sinter explain $model --profile $profile{$profile} @more --json`;
  my $plan = decode_json($said);
  return (sum0(map { $_->{est_us} } @{$plan->{kernels}}), scalar @{$plan->{kernels}});
}

sub scaled { my ($by) = @_; return "graph \@g(%x: f32[64,784], %s: f32[64]) {\n$by  %b = broadcast %k, axes=[0], shape=[64,784]\n  %y = mul %x, %b\n  return y=%y\n}\n" }
sub sums { my ($rows) = @_; return "graph \@g(%x: f32[1024,128], %z: f32[1024,128], %w: f32[1024,256]) {\n$rows  %y = reduce.sum %r, axes=[1]\n  return y=%y\n}\n" }
sub seams { my ($x, $z) = @_; return "graph \@g(%x: f32[1024,$x], %z: f32[1024,$z]) {\n  %r = concat %x, %z, axis=1\n  %y = reduce.sum %r, axes=[1]\n  return y=%y\n}\n" }
sub picked { # places of a table of so many parts, which an output is, too
  my ($parts, $places) = @_;
  return "graph \@g(%i: i32[$places], " . join(', ', map {"%x$_: f32[1,400]"} 1 .. $parts) . ") {\n  %c = concat " . join(', ', map {"%x$_"} 1 .. $parts) .
    ", axis=0\n  %f: f32[" . 400 * $parts . "] = reshape %c\n  %y = gather %f, %i, axis=0\n  return y=%y\n}\n";
}
sub pooled { my ($of, $made, $fused) = @_; return "graph \@g(%x: f32[256,256]) {\n$made  %w = window %$of, axis=0, size=[3,3], low=[1,1], high=[1,1]\n  %y = reduce.sum %w, axes=[2,3]\n$fused  return y=%y\n}\n" }
sub both_directions { # a rounded LSTM, whose directions are two long kernels of one group, with a short one between them
  my $weights = sub { my ($name, $seed) = @_; return "  %$name: i8[2,2048,512] = const uniform seed=$seed scale=100\n  %${name}f = cast %$name, dtype=f32\n  %${name}s = mul %${name}f, 0.001\n" };
  return "graph \@g(%x: f32[32,1,512]) {\n" . $weights->('w', 1) . $weights->('r', 2) . "  %y, %h, %c = lstm %x, %ws, %rs, quantize\n  return y=%y\n}\n";
}
sub row_sums { my ($rows, $terms) = @_; return "graph \@g(%x: f32[$rows,$terms]) {\n  %y = reduce.sum %x, axes=[1]\n  return y=%y\n}\n" }
sub dequantised { my ($value) = @_; return "  %f$value = cast %$value, dtype=f32\n  %o$value = sub %f$value, 8.0\n  %p$value = linear %x, %o$value\n" }
sub followed { my ($by) = @_; return "graph \@g(%x: f32[512,64], %w: f32[64,512]) {\n  %a = matmul %x, %w\n$by}\n" }
sub clamped { my ($by) = @_; return "graph \@g(%x: f32[512,512], %z: f32[512,512]) {\n" . join('', map { "  %a$_ = max %" . ($_ ? 'b' . ($_ - 1) : 'x') . ", $by\n  %b$_ = mul %a$_, %x\n" } 0 .. 2) . "  return y=%b2\n}\n" }
sub gathered { my ($second) = @_; return "graph \@g(%x: f32[512,256], %i: i32[512], %j: i32[512]) {\n  %s = sin %x\n  %u = sin %s\n  %a = gather %u, %i, axis=0\n  %b = gather %$second, %j, axis=0\n  %y = add %a, %b\n  return y=%y\n}\n" }
sub gated { # products of rows with weights that are computed, in one kernel
  my ($product, @values) = @_;
  my $fused = join '', map { my $v = $_; map { "  must_fuse %$_$v, %y\n" } 'f', 'o', 'p' } @values;
  return "graph \@g(%x: f32[64,512], " . join(', ', map { "%$_: u8[1408,512]" } @values) . ") {\n" . join('', map { dequantised($_) } @values) . "  %y = $product\n$fused  return y=%y\n}\n";
}
sub stored_turned { my ($rows) = @_; return "graph \@g(%x: f32[$rows,64], %w: f32[64,64]) {\n  %h = matmul %x, %w\n  %t = transpose %h, perm=[1,0]\n  return y=%t\n}\n" }
sub ended { my ($both) = @_; return "graph \@g(%x: f32[784,64], %w: f32[64,64], %z: f32[784,64]) {\n$both  %y = add %h, %e\n  must_fuse %e, %y\n  must_fuse %h, %y\n  return y=%y\n}\n" }
sub scores { my ($keys, $how) = @_; return "graph \@g(%q: f32[4,64], %k: f32[$keys]) {\n  %y = matmul %q, %k$how\n  return y=%y\n}\n" }
sub scanned { my ($op) = @_; return "graph \@g(%x: f32[1024,1024]) {\n  %a = $op %x\n  %y = scan.sum %a, axis=1\n  must_fuse %a, %y\n  return y=%y\n}\n" }
sub negated { my ($elements) = @_; return "graph \@g(%x: f32[$elements]) {\n  %y = neg %x\n  return y=%y\n}\n" }
sub normalised { my ($columns) = @_; return "graph \@g(%x: f32[512,$columns]) {\n  %y = softmax %x\n  return y=%y\n}\n" }
sub bits { # weights of four bits, with so many rows beside them
  my ($rows) = @_;
  return <<"END";
graph \@g(%x: f32[$rows,512]) {
  %c: u8[1024,16,16] = const uniform seed=1 scale=120
  %s: f32[1024,16] = const uniform seed=2 scale=0.01
  %a = and %c, 15
  %h = shr %c, 4
  %l = reshape %a, shape=[1024,16,16,1]
  %u = reshape %h, shape=[1024,16,16,1]
  %j = concat %l, %u, axis=3
  %f = cast %j, dtype=f32
  %o = sub %f, 8.0
  %b = broadcast %s, shape=[1024,16,16,2], axes=[0,1]
  %d = mul %o, %b
  %m = reshape %d, shape=[1024,512]
  %y = linear %x, %m
  return y=%y
}
END
}
sub bytes { my ($rows) = @_; return bits($rows) =~ s/and %c/xor %c/r =~ s/shr %c/xor %c/r } # whole ones there
sub narrowed { my ($type) = @_; return "graph \@g(%x: f32[64,1024]) {\n  %r = round %x\n  %y = cast %r, dtype=$type\n  return y=%y\n}\n" }
sub masked { my ($type, $count) = @_; return "graph \@g(%x: $type\[$count]) {\n  %y = and %x, 15\n  return y=%y\n}\n" }
sub cached { my ($rows) = @_; return "graph \@g(%x: f32[8,127,64], %z: f32[8,1,64], %w: f32[8,128,64]) {\n$rows  return y=%y\n}\n" }

sub turned { my ($other) = @_; return "graph \@g(%x: f32[512,512]) {\n  %w = window %x, axis=0, size=[3,3], low=[1,1], high=[1,1]\n  %s = reduce.sum %w, axes=[2,3]\n  %e = exp %s\n  %v = sigmoid %e\n$other  %y = add %t, %v\n  return y=%y\n}\n" }
sub joined { my ($axis, $shape) = @_; return "graph \@g(%a: f32[$shape], %b: f32[$shape], %c: f32[$shape]) {\n  %p = tanh %a\n  %q = sin %b\n  %r = exp %c\n  %j = concat %p, %q, %r, axis=$axis\n  %y = mul %j, 2.0\n  must_fuse %p, %y\n  must_fuse %q, %y\n  must_fuse %r, %y\n  return y=%y\n}\n" }
sub cast_rows { my ($type) = @_; return "graph \@g(%x: $type\[1024,512], %w: f32[512,32]) {\n  %a = " . ($type eq 'f16' ? 'cast %x, dtype=f32' : 'abs %x') . "\n  %y = matmul %a, %w\n  must_fuse %a, %y\n  return y=%y\n}\n" }
sub product { my ($rows, $type) = @_; return "graph \@g(%x: $type\[$rows,512], %w: $type\[512,512]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n" }
sub heads { my ($queries, $type) = @_; return "graph \@g(%q: $type\[12,$queries,64], %k: $type\[12,256,64], %v: $type\[12,256,64]) {\n  %y = attention %q, %k, %v\n  return y=%y\n}\n" }
sub bordered { my ($before) = @_; return "graph \@g(%x: u8[1,64,28,28]) {\n  %w: f32[64,64,3,3] = const normal seed=1 scale=0.1\n  %a = cast %x, dtype=f32\n  %b = $before\n  %y = conv %b, %w, pads=[1,1,1,1]\n  must_fuse %a, %y\n  must_fuse %b, %y\n  return y=%y\n}\n" }
sub down { my ($axis) = @_; return "graph \@g(%x: f32[1024,1024]) {\n  %b = mul %x, %x\n  %s = reduce.sum %b, axes=[$axis]\n  must_fuse %b, %s\n  return b=%b, s=%s\n}\n" }

sub stored_down { my ($op, $columns) = @_; return "graph \@g(%x: f32[256,$columns]) {\n  %b = $op %x\n  %s = reduce.sum %b, axes=[0]\n  return b=%b, s=%s\n}\n" }
sub centred { my ($columns, $beside) = @_; return "graph \@g(%x: f32[512,$columns]) {\n  %s = reduce.sum %x, axes=[0], keep\n  %b = broadcast %s, shape=[512,$columns]\n  %d = sub %x, %b\n  %n = neg %d\n  return $beside" . "d=%d\n}\n" }

sub told { my ($reader) = @_; return "graph \@g(%x: f32[512,256]) {\n  %b = mul %x, %x\n  %s = reduce.sum %b, axes=[0]\n  must_fuse %b, %s\n$reader, s=%s\n}\n" } # whose result lies down columns

sub both_ways { # a row's sum of what is also read turned
  my ($turned) = @_;
  return <<"END";
graph \@g(%x: f32[512,512]) {
  %v = floor %x
  %t = $turned
  %y = add %t, %v
  %s = reduce.sum %v, axes=[1], keep
  %b = broadcast %s, shape=[512,512]
  %d = div %v, %b
  must_fuse %v, %y
  must_fuse %v, %d
  return y=%y, d=%d
}
END
}
sub summed { my ($window) = @_; return "graph \@g(%x: f32[512,512]) {\n$window  return y=%y\n}\n" }
sub turned_twice { # a sum with its own transpose, of such a sum
  return <<"END";
graph \@g(%x: f32[64,64]) {
  %t = transpose %x, perm=[1,0]
  %r = add %t, %x
  %v = floor %r
  %u = transpose %v, perm=[1,0]
  %y = add %u, %v
  must_fuse %r, %y
  return r=%r, y=%y
}
END
}

sub read_both_ways { return "graph \@readers(%x0: f32[128,128], %x1: f32[128,128], %m: f32[128,128]) {\n  %u0_0 = neg %x0\n  %v0 = sigmoid %u0_0\n  %s1 = reduce.sum %v0, axes=[1], keep\n  %b1 = broadcast %s1, shape=[128,128]\n  %r1 = div %v0, %b1\n  %r2 = mul %v0, %x1\n  %u1_0 = neg %r2\n  %u1_1 = neg %u1_0\n  %v1 = neg %u1_1\n  %r3 = mul %v1, %x1\n  %r4 = reduce.max %v1, axes=[0]\n  return y1=%r1, y2=%r2, y3=%r3, y4=%r4\n}\n" } # sums along rows, extrema down columns
sub turned_beside { my ($more) = @_; return "graph \@g(%x: f32[784,64]) {\n  %a = add %x, 1.0\n  %t = transpose %a, perm=[1,0]\n  %y = floor %t\n  must_fuse %a, %y\n  return ${more}y=%y\n}\n" }
sub vector_beside { return "graph \@g(%x: f32[512,512], %b: f32[512]) {\n  %t = tanh %b\n  %e = broadcast %t, shape=[512,512]\n  %p = mul %x, %e\n  %y = reduce.sum %p, axes=[1]\n  return y=%y\n}\n" }
sub value_a_row { # of a square, whose rows are as many as their elements
  my ($op) = @_;
  return "graph \@g(%x: f32[512,512]) {\n  %s = reduce.sum %x, axes=[1]\n  %t = $op %s\n  %e = broadcast %t, axes=[0], shape=[512,512]\n  %y = mul %x, %e\n  must_fuse %s, %y\n  return y=%y\n}\n";
}
sub beside { return "graph \@g(%a: f32[128,128], %b: f32[128,128], %c: f32[128,128]) {\n  %y = matmul %a, %b\n  %z = sigmoid %c\n  return y=%y, z=%z\n}\n" }

sub dear_product { my ($operands) = @_; return "graph \@g(%x: f32[256,256], %w: f32[256,256]) {\n  %e = exp %x\n  %y = matmul $operands\n  must_fuse %e, %y\n  return y=%y\n}\n" }

my $inputs = '(' . join(', ', map { "%x$_: f32[16384]" } 0 .. 3) . ', %z: f32[65536])';
sub four { my ($parts) = @_; return "graph \@g$inputs {\n$parts  %j = concat %p0, %p1, %p2, %p3, axis=0\n  %y = mul %j, 2.0\n" . join('', map { "  must_fuse %p$_, %y\n" } 0 .. 3) . "  return y=%y\n}\n" }
sub butterflies { return four("  %p0 = add %x0, %x1\n  %p1 = sub %x0, %x1\n  %p2 = add %x2, %x3\n  %p3 = sub %x2, %x3\n") }
sub read_back { my ($of) = @_; return "graph \@g$inputs {\n  %j = concat %x0, %x1, %x2, %x3, axis=0\n  barrier %j\n  %y = mul $of, %z\n  return j=%j, y=%y\n}\n" }

# How many groups the one kernel of a graph has, and those of its first part: by what its text says in front of the first condition.
sub dealt {
  my ($model) = @_;
  my $said = `$sinter compile $model --profile pocl --target opencl -o $dir/two --quiet 2>&1`;
  my ($all) = slurp("$dir/two/plan.txt") =~ /groups=(\d+)/ or return (0);
  my ($body) = slurp("$dir/two/k0_batch.cl") =~ /snt_group >= w0\) return;\n(.*?)\n  if /s or return (0);
  $body =~ s/mul_hi\((\w+), (\w+)\)/($1 * $2 >> 32)/g;
  $body =~ s/\b(?:uint|bool) //g;
  $body =~ s/(?<=\d)u\b//g;
  $body =~ s/\b(v\d+|snt_group)\b/\$v{$1}/g;
  return ($all, grep { my %v = (snt_group => $_); eval $body } 0 .. $all - 1);
}

my @pairs = ( # what, profile, with it, without; the least and the most that the one may cost beside the other
  ['what is the same for all lanes is computed once a row', 'pocl', scaled("  %k = sigmoid %s\n"), scaled("  %k = mul %s, 2.0\n"), 1, 1.3],
  ['rows of two parts are put together lane by lane', 'pocl', seams(124, 132), sums("  %r = mul %w, 1.0\n"), 4, 40],
  ['where the seam lies between vectors, each part is a vector and a selection', 'pocl', seams(128, 128), sums("  %r = mul %w, 1.0\n"), 1.5, 3.5],
  ['which wait for nobody', 'wide', seams(128, 128), sums("  %r = mul %w, 1.0\n"), 1, 1.3],
  ['nor do plain operators of several taps', 'wide', pooled('a', "  %a = mul %x, %x\n", "  must_fuse %a, %y\n"), pooled('x', '', ''), 1.3, 1.85],
  ['a row has an end, where its lanes become one', 'pocl', row_sums(8192, 32), row_sums(512, 512), 1.5, 3],
  ['of two products of one tile each has its panels', 'pocl', gated('mul %pa, %pb', 'a', 'b'), gated('mul %pa, 0.5', 'a'), 1.8, 1.9],
  ['a product that is stored turned has a store for each element', 'pocl', stored_turned(784), stored_turned(784) =~ s/  %t = .*\n//r =~ s/%t/%h/r, 1.1, 1.35],
  ['what only the end of a product reads is computed once, wherever it stands', 'pocl', ended("  %e = sigmoid %z\n  %h = matmul %x, %w\n"), ended("  %h = matmul %x, %w\n  %e = sigmoid %z\n"), 0.99, 1.01],
  ['a field of few bits takes a mask and a conversion, which wait for nobody', 'pocl', bits(1), bytes(1), 0.6, 0.8],
  ['bytes of wider results are brought together where they are stored', 'pocl', narrowed('i8'), narrowed('i32'), 1.15, 2],
  ['not where a vector has an instruction for it', 'wide', narrowed('i8'), narrowed('i32'), 0.5, 1],
  ['so are operands of few rows that lie the other way', 'pocl', scores('512,64', ', transpose_b'), scores('64,512', ''), 2, 10],
  ['both parts of a cache are read for all of it on texels', 'lavapipe', cached("  %y = concat %x, %z, axis=1\n"), cached("  %y = mul %w, 2.0\n"), 1.15, 2],
  ['functions beside a scan are computed one by one where an item walks a line', 'lavapipe', scanned('exp'), scanned('neg'), 1.25, 2],
  ['parts that are joined are computed for their part, along rows as along columns', 'wide', joined(0, '256,256'), joined(1, '256,256'), 0.95, 1.05],
  ['an element of two bytes that all columns share is widened for every tile of them', 'wide', cast_rows('f16'), cast_rows('f32'), 1.8, 4],
  ['rows across the unit stride are stored far apart', 'pocl', down(0), down(1), 1.3, 6],
  ['what a row reads turned takes a line for each element, once, though it reads it as it is, too', 'pocl', both_ways('transpose %v, perm=[1,0]'), both_ways('abs %x'), 3, 6],
  ['what a loop stores in two orders is not turned block by block', 'pocl', turned_beside('a=%a, '), turned_beside(''), 2, 6],
  ['taps of a window are loads and additions that do not wait for each other', 'pocl', summed("  %w = window %x, axis=0, size=[3,3], low=[1,1], high=[1,1]\n  %y = reduce.sum %w, axes=[2,3]\n"), summed("  %y = mul %x, %x\n"), 1, 1.5],
  ['what all lanes of a product share is computed element by element, for each tile of columns', 'pocl', dear_product('%e, %w'), dear_product('%w, %e'), 4, 20],
  ['each part that is joined loads its own operands there', 'lavapipe', butterflies(), four(join '', map { "  %p$_ = neg %x$_\n" } 0 .. 3), 1.25, 2.2],
  ['what is stored joined is read as any value', 'lavapipe', read_back('%j'), read_back('%z'), 0.95, 1.1],
  ['bytes are stored one by one there, and read by texels as words are', 'lavapipe', masked('u8', 262143), masked('i32', 262143), 0.75, 1.1],
  ['one value a row is computed once a row, also of as many rows as elements', 'lavapipe', value_a_row('tanh'), value_a_row('abs'), 0.95, 1.1],
  ['but where they fill words, as which they are stored', 'lavapipe', masked('u8', 262140), masked('i32', 262140), 0.5, 0.7],
  ['a large loop of whole shares stores by hand, for less', 'lavapipe', negated(262144), negated(262140), 0.5, 0.7],
  ['so do rows that are written out, which repeat no sweep', 'lavapipe', normalised(1024), normalised(1020), 0.4, 0.65],
);
for my $p (@pairs) {
  my ($what, $profile, $with, $without, $least, $most) = @$p;
  my ($one) = price($with, $profile);
  my ($other) = price($without, $profile);
  my $ratio = $one / $other;
  ok($ratio >= $least && $ratio <= $most, sprintf '%s: %.2f and %.2f us', $what, $one, $other) or diag("$ratio, not from $least to $most");
}
for my $case (['lavapipe', 2], ['pocl', 1]) {
  my ($profile, $count) = @$case;
  my (undef, $kernels) = price(vector_beside(), $profile);
  is($kernels, $count, "$profile: a vector beside rows " . ($count == 1 ? 'is made before the first of them' : 'would be made again by each, and is stored'));
}
my ($looked_up) = price(bits(1), 'wide');
my ($computed) = price(bits(1), 'plain');
ok($looked_up < 0.9 * $computed, sprintf 'fields of four bits are looked up where vectors are tables: %.1f and %.1f us', $looked_up, $computed);
my ($apart, $kernels) = price(bits(64), 'wide');
is($kernels, 1, 'a panel is computed once for all rows, so that unpacking joins its product');
(undef, $kernels) = price(bits(64), 'wide', '--numerics strict');
is($kernels, 2, 'not where its parts alternate');
for my $case ([256, 'pocl', 2], [1, 'pocl', 1], [256, 'lavapipe', 1], [256, 'dgpu', 1]) {
  my ($rows, $profile, $count) = @$case;
  (undef, $kernels) = price(product($rows, 'f16'), $profile);
  is($kernels, $count, "two operands of two bytes, $rows rows, $profile: those that are read often are stored wider");
  (undef, $kernels) = price(product($rows, 'f32'), $profile);
  is($kernels, 1, 'four bytes are not');
}
for my $case ([256, 'lavapipe', 2], [1, 'lavapipe', 1], [256, 'pocl', 1]) {
  my ($queries, $profile, $count) = @$case;
  (undef, $kernels) = price(heads($queries, 'f16'), $profile);
  ok($count == 1 ? $kernels == 1 : $kernels > 1, "keys and values of two bytes, $queries queries, $profile: stored wider where texels are read for many") or diag($kernels);
}
# Keys and values that no view of texels reaches (more than 65536 there; none on rusticl) are read for every query by itself: rather two products.
sub attended { my ($heads) = @_; return heads(256, 'f32') =~ s/\[12,/[$heads,/gr }
for (['lavapipe', 24, 1], ['swiftshader', 12, 1], ['swiftshader', 24, 0], ['rusticl', 4, 0]) {
  my ($profile, $heads, $one) = @$_;
  (undef, $kernels) = price(attended($heads), $profile);
  is($kernels == 1 ? 1 : 0, $one, "$profile: attention of $heads heads of 256 x 64 " . ($one ? 'is one kernel' : 'is several')) or diag("$kernels kernels");
}
my $tail = "  %b = mul %a, %a\n  %c = add %b, %a\n  %d = mul %c, %b\n  %e = add %d, %c\n  return y=%e\n";
my ($taken, $waited) = map { (price(followed($tail), $_))[0] - (price(followed("  return y=%a\n"), $_))[0] } 'wide', 'ported';
ok($taken < 0.7 * $waited, sprintf 'what follows the sums of a tile takes turns at the ports: %.1f us, where a vector is two turns %.1f', $taken, $waited);
ok((price(clamped('0.5'), 'pocl'))[0] < 0.8 * (price(clamped('%z'), 'pocl'))[0], 'an extremum against a number lets a NaN through for less');
for my $profile ('pocl', 'lavapipe') {
  (undef, $kernels) = price(gathered('u'), $profile);
  is($kernels, 2, "what is gathered at two places is not computed at both, $profile");
  (undef, $kernels) = price(gathered('x'), $profile);
  is($kernels, 1, 'at one it is');
}
for my $case (['exp', 1024, 2], ['exp', 1040, 1], ['exp', 256, 1], ['neg', 1024, 1]) {
  my ($op, $columns, $count) = @$case;
  (undef, $kernels) = price(stored_down($op, $columns), 'wide');
  is($kernels, $count, "$op of rows of $columns, and their sums down columns: " . ($count == 2 ? 'they meet in one set of the near cache' : 'one kernel'));
}
for my $case ([256, '', 1], [256, 'n=%n, ', 2], [16, 'n=%n, ', 1], [272, 'n=%n, ', 1]) {
  my ($columns, $beside, $count) = @$case;
  (undef, $kernels) = price(centred($columns, $beside), 'wide');
  is($kernels, $count, ($beside ? 'two arrays' : 'one array') . " of rows of $columns behind their sums down columns: " . ($count == 2 ? 'stored by a loop' : 'one kernel'));
}
for my $case (['wide', 1.5, 2], ['pocl', 0.99, 1.01]) { # a unit of two finds half of the lines with the other; of half lines nothing was measured
  my ($profile, $least, $most) = @$case;
  my ($unread) = price(told('  return b=%b'), $profile);
  my $read = (price(told("  %z = neg %b\n  never_fuse %b, %z\n  return z=%z"), $profile))[0] - (price(negated(512 * 256), $profile))[0];
  ok($read > $least * $unread && $read < $most * $unread, sprintf "stored down columns for another kernel, $profile: %.1f us, for none %.1f", $read, $unread);
}
my ($copied) = price(bordered('sub %a, 120.0'), 'pocl');
my ($stored) = price(bordered('sub %a, 120.0') =~ s/  must_fuse.*\n  must_fuse.*\n/  barrier %b\n/r, 'pocl');
ok($copied < 1.1 * $stored, sprintf 'a padded operand is computed into one copy: %.1f us, stored before %.1f', $copied, $stored);
(undef, $kernels) = price(turned("  %t = transpose %v, perm=[1,0]\n"), 'wide');
is($kernels, 2, 'what is read at two places is not computed at both');
(undef, $kernels) = price(turned_beside('a=%a, ') =~ s/  must_fuse.*\n//r, 'pocl');
is($kernels, 2, 'so the two orders are two kernels');
(undef, $kernels) = price(turned("  %t = abs %x\n"), 'wide');
is($kernels, 1, 'at one it is');
(undef, $kernels) = price(down(1) =~ s/  must_fuse.*\n//r, 'greedy');
is($kernels, 2, 'nothing is fused that saves less than the profile asks for (least_saving)');
(undef, $kernels) = price(beside(), 'lavapipe');
is($kernels, 2, 'idle items of a wider workgroup have a price where items are masked');
(undef, $kernels) = price(beside(), 'branching');
is($kernels, 1, 'and none where they are not');
(undef, $kernels) = price(read_both_ways(), 'single');
is($kernels, 1, 'what two kernels of rows read is computed in both where they need one launch then');
(undef, $kernels) = price(read_both_ways(), 'lavapipe');
is($kernels, 2, 'not where a group has several rows, which shares none');
(undef, $kernels) = price(read_both_ways(), 'branching');
is($kernels, 2, 'not where their workgroups may differ');
for my $rows (2, 12) {
  my $few = put('few.snt', scores('512,64', ', transpose_b') =~ s/f32\[4,/f32[$rows,/r);
  like(scalar `$sinter explain $few --profile pocl`, qr/k0_contract /, "$rows rows by an operand that lies the other way: it is turned once for all");
}
my ($us) = price(both_directions(), 'words');
cmp_ok($us, '<', 1200, "two long kernels of a group each are one launch, a short one between them is not beside the first ($us us, 1600)");
my ($all, @first) = dealt(put('two.snt', "graph \@g(%a: f32[64,64], %b: f32[64,64], %c: f32[128,64]) {\n  %y = matmul %a, %b\n  %z = reduce.sum %c, axes=[1]\n  return y=%y, z=%z\n}\n"));
my $early = grep { 2 * $_ < $all } @first;
ok(@first > 1 && @first < $all && abs(2 * $early - @first) <= 1, sprintf 'half of the groups of a batch have half of either part: %d of %d, in all %d', $early, scalar @first, $all);
my $model = put('g.snt', turned_twice());
my $plan = decode_json(scalar `$sinter explain $model --profile pocl --json`);
is($plan->{kernels}[0]{kind}, 'transpose', 'what is read turned twice at one place is turned in blocks');
(undef, $kernels) = price(picked(32, 12800), 'pocl');
is($kernels, 2, 'parts are put together before many places are picked of them');
(undef, $kernels) = price(picked(3, 16), 'pocl');
is($kernels, 1, 'a few are looked for in each part');
is(scalar(() = `$sinter explain examples/postprocess.snt --profile pocl` =~ /^ +k\d+_/mg), 1, 'what stands between two stencils takes turns in one kernel as in two');
my ($last) = `$sinter explain examples/postprocess.snt --profile dgpu --image x=chw --image y=chw` =~ /k2_image.*: (.*)/;
is($last, 'sharp floor result reshape.42', 'a tone curve is stored before an image\'s sharpening, which would compute it for each tap of a pixel');
# As an H200 took them (bench/results/h200.md): lanes reach a share of their rate in contractions; matrix units read each operand once for 128 of the other's rows.
sub square { my ($type, $n) = @_; return "graph \@g(%x: $type\[$n,$n], %w: $type\[$n,$n]) {\n  %y = " . ($type eq 'i8' ? 'matmul_integer' : 'matmul') . " %x, %w\n  return y=%y\n}\n" }
for my $case (['f32', 1024, 80.6], ['f16', 2048, 59.4], ['f16', 4096, 480], ['f16', 8192, 3727], ['i8', 2048, 33.9], ['i8', 4096, 249]) {
  my ($type, $n, $took) = @$case;
  my ($said) = price(square($type, $n), 'h200');
  ok($said < 1.3 * $took && $took < 1.3 * $said, sprintf 'a product of %s, %d^3: %.1f us, an H200 took %.1f', $type, $n, $said, $took);
}
my ($moved) = price(negated(16777216), 'h200');
ok($moved < 1.1 * 35.5 && 35.5 < 1.1 * $moved, sprintf '64 MiB there and back: %.1f us, an H200 took 35.5', $moved);
done_testing;
