#!/usr/bin/perl
# sinter inspect-kernel, and what it has to say of contractions in local memory: contiguous accesses, no conflicts of banks, no spills; with a GPU's profile
# forced they are right on every device here, also where rows, columns and terms do not fill a tile. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my ($code, $said);
sub inspect { my ($code, $said) = says("$sinter inspect-kernel @_ --json"); return $code ? [] : decode_json($said) }

# ---- the figures ----

for my $case (['h100', 'matmul', 1], ['h100', 'matmul_f16', 1], ['h100', 'matmul_i8', 1], ['h100', 'deep_f16', 2], ['h100', 'mlp', 3], ['h100', 'deep', 2], ['dgpu', 'matmul', 1], ['dgpu', 'matmul_f16', 1],
              ['igpu', 'mlp', 2]) {
  my ($profile, $model, $kernels) = @$case;
  my $list = inspect("tests/inspect/$model.snt --profile $profile --sample 2");
  is(scalar @$list, $kernels, "$model on $profile: $kernels kernels");
  for my $k (@$list) {
    my $name = "$model on $profile, $k->{kernel}";
    next if $k->{kernel} =~ /sum/ && cmp_ok($k->{mix}{local}, '==', 0, "$name: adds the parts of sums of few tiles and many terms");
    cmp_ok($k->{excess}, '<=', 1.1, "$name: sectors near the fewest possible");
    cmp_ok($k->{conflicts}, '==', 0, "$name: no conflicts of banks");
    cmp_ok($k->{mix}{local}, '>', 0, "$name: through local memory");
    my $adds = $k->{mix}{fma} + $k->{mix}{float} + 128 * $k->{mix}{matrix}; # 16 x 16 x 16 of 32 items
    cmp_ok($adds, '>', 3 * $k->{mix}{local}, "$name: several multiply-adds a read of local memory");
    ok($k->{mix}{matrix} > 0 || $model !~ /f16|i8/ || $profile ne 'h100', "$name: on matrix units where there are some");
    ok($k->{mix}{copy} > 0 || $profile ne 'h100', "$name: copied ahead where that can be done");
    cmp_ok($k->{flops}, '>', 2e7, "$name: operations of the whole dispatch");
  }
}

# ---- a kernel's text: compilers of drivers end at twelve to twenty-four thousand statements in a row, or take minutes ----
for my $case (['stencil_of_joined_borders', 'rusticl'], ['sums_of_functions_beside_themselves', 'rusticl'], ['product_of_functions', 'rusticl'],
              ['sums_far_apart_and_reversed', 'pocl']) {
  my ($graph, $profile) = @$case;
  says("$sinter compile tests/fuzz/seeds/$graph.snt --target opencl --profile $profile -o $dir/$graph");
  my @lines = map { scalar split /\n/, slurp($_) } glob "$dir/$graph/*.cl";
  ok(@lines && !(grep { $_ > 5000 } @lines), "$graph: kernels of at most 5000 lines: @lines");
}

# pattern 30: multiply-adds where the device is fast at them and the mode leaves the rounding of products open
for my $graph (qw(polynomial disguise1 disguise2)) {
  for my $profile (qw(pocl dgpu igpu mobile h100 lavapipe)) {
    my %made = map { $_ => inspect("tests/patterns/p30_$graph.snt --profile $profile --numerics $_")->[0]{mix}{fma} } qw(default fast strict reproducible);
    my $formed = $profile ne 'lavapipe';
    ok(($made{$_} > 0) == $formed, "$graph on $profile, $_: ".($formed ? 'multiply-adds' : 'none')) for qw(default fast);
    is($made{$_}, 0, "$graph on $profile, $_: none") for qw(strict reproducible);
  }
}

# reads of texels where a view reaches: what is larger is read as storage by the same tiles, padded or not
{
  my ($mixed) = @{inspect('tests/inspect/conv3x3.snt --profile swiftshader --sample 2')};
  my ($wide) = @{inspect('tests/inspect/conv3x3.snt --profile lavapipe --sample 2')};
  is($mixed->{kernel}, $wide->{kernel}, 'conv3x3 on swiftshader, whose source no view reaches: the tile of a contraction');
  cmp_ok($mixed->{mix}{float}, '>', 4 * $mixed->{mix}{global}, 'conv3x3 on swiftshader: several multiply-adds a read');
}

# how many terms are read before they are summed: no other operations, less that lives at once
{
  my $one = put('one.profile', "base = lavapipe\nname = one\ntrip_terms = 1\n");
  my ($four) = @{inspect('tests/inspect/matmul.snt --profile lavapipe --sample 2')};
  my ($apart) = @{inspect("tests/inspect/matmul.snt --profile $one --sample 2")};
  is_deeply([@{$apart->{mix}}{'float', 'fma', 'global'}], [@{$four->{mix}}{'float', 'fma', 'global'}], 'terms one by one: the same products, sums and reads');
  cmp_ok($apart->{live_words}, '<', $four->{live_words}, "terms one by one: $apart->{live_words} words live, of four $four->{live_words}");
  my ($code, $said) = says("$sinter run tests/inspect/matmul.snt --device vulkan:llvmpipe --profile $one --check");
  SKIP: {
    skip(lacks('vulkan:llvmpipe'), 1) if lacks('vulkan:llvmpipe');
    is($code, 0, 'terms one by one: right on llvmpipe') or diag($said);
  }
}

# transcendental functions behind the sums of a tile, a wide one and one of few columns: written once, for a row by number
for my $case ([64, 128, 256], [13, 8, 13]) {
  my ($n, $k, $m) = @$case;
  my $text = "graph \@g(%x: f32[$n,$k], %w: f32[$k,$m]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n";
  put('product.snt', $text);
  put('gelu.snt', $text =~ s/%y = (.*)/%m = $1\n  %y = gelu %m/r);
  my $any = put('any.profile', "base = rusticl\nname = any\ndear_elements = 0\n");
  my ($none, $all, $few) = map { my $said = `rm -rf $dir/gelu; $sinter compile $dir/$_->[0].snt --target opencl --profile $_->[1] -o $dir/gelu 2>&1`; $? ? 0 : scalar(() = `cat $dir/gelu/*.cl` =~ /;/g) } ['product', 'rusticl'], ['gelu', $any], ['gelu', 'rusticl'];
  cmp_ok(5 * ($few - $none), '<', $all - $none, "gelu behind a product of $n x $m on rusticl: $few statements of $none, $all written for each row of a tile");
  my ($code, $said) = says("$sinter run $dir/gelu.snt --device opencl:rusticl --check");
  SKIP: {
    skip(lacks('opencl:rusticl'), 1) if lacks('opencl:rusticl');
    is($code, 0, 'and right there') or diag($said);
  }
}

for my $case (['h100', 'softmax'], ['igpu', 'softmax'], ['h100', 'layernorm'], ['h100', 'chain'], ['h100', 'conv1x1'], ['h100', 'conv3x3'],
              ['h100', 'attention'], ['dgpu', 'attention'], ['igpu', 'attention'], ['h100', 'attention_causal'], ['h100', 'attention_f16'],
              ['h100', 'attention_40_f16']) {
  my ($profile, $model) = @$case;
  my $list = inspect("tests/inspect/$model.snt --profile $profile --sample 2");
  is(scalar @$list, 1, "$model on $profile: one kernel");
  cmp_ok($_->{excess}, '<=', 1.1, "$model on $profile: sectors near the fewest possible") for @$list;
  cmp_ok($_->{conflicts}, '==', 0, "$model on $profile: no conflicts of banks") for @$list;
  ok((grep { $_->{mix}{copy} > 0 } @$list), "$model: copied ahead, zeros around it too") if $model =~ /conv/;
  for my $k ($model =~ /attention/ ? @$list : ()) {
    my $adds = $k->{mix}{fma} + $k->{mix}{float} + 128 * $k->{mix}{matrix};
    cmp_ok($adds, '>', 3 * $k->{mix}{local}, "$model on $profile: several multiply-adds a read of local memory");
    is(($k->{mix}{matrix} > 0) + 0, ($model =~ /f16/) + 0, "$model on $profile: both products on matrix units where the elements have some");
  }
  next if $model !~ /softmax|layernorm/;
  cmp_ok($_->{barriers}, '<=', 4, "$model on $profile: a barrier a reduction, since subgroups reduce") for @$list;
}

# rows that begin anywhere: neighbours read neighbours, a sector more than there are at most; no more items than a row has fours, or a subgroup
for my $case ([1021, 'f32', 1.25, 128], [577, 'f32', 1.25, 128], [197, 'f32', 1.25, 32], [77, 'f32', 1.25, 32], [50, 'f32', 1.25, 32], [1021, 'f16', 1.5, 128]) {
  my ($columns, $type, $most, $items) = @$case;
  my ($k) = @{inspect(put('rows.snt', "graph \@rows(%x: ${type}[4096,$columns]) {\n  %y = softmax %x\n  return y=%y\n}\n") . ' --profile h100 --sample 8')};
  cmp_ok($k->{excess}, '<=', $most, "softmax of $columns $type on h100: neighbours read neighbours");
  is($k->{items}, $items, "softmax of $columns $type on h100: items");
  is($k->{conflicts}, 0, "softmax of $columns $type on h100: no conflicts of banks");
}

# sums down few columns: parts of the rows, so that the device has groups enough, of whose items no two walk the same; and the parts
for my $case (['65536,64', '0', 500], ['64,4096,8', '0,1', 500], ['4096,1024', '0', 500], ['32,16,64,64', '0,2,3', 250], ['100000,20', '0', 250]) {
  my ($shape, $axes, $groups) = @$case;
  my $list = inspect(put('down.snt', "graph \@down(%x: f32[$shape]) {\n  %y = reduce.sum %x, axes=[$axes]\n  return y=%y\n}\n") . ' --profile h100 --sample 3');
  is(scalar @$list, 2, "sums of $shape along $axes on h100: in parts");
  cmp_ok($list->[0]{groups}, '>=', $groups, "sums of $shape along $axes on h100: groups");
  cmp_ok($list->[0]{items}, '>=', 64, "sums of $shape along $axes on h100: items");
  cmp_ok($list->[0]{excess}, '<=', 1.05, "sums of $shape along $axes on h100: sectors near the fewest possible");
}

# Winograd's tiles: what they share an item has of those beside, in local memory; planes whose rows are no whole vectors go through it as they lie
for my $case (['h100', 64, 56, 1.01], ['dgpu', 64, 56, 1.01], ['igpu', 128, 28, 1.06], ['h100', 128, 28, 1.06], ['h100', 256, 14, 1.08], ['h100', 512, 7, 1.08]) {
  my ($profile, $channels, $side, $most) = @$case;
  my $name = "conv 3x3 of $channels x $side x $side on $profile";
  my $text = "graph \@tiles(%x: f32[8,$channels,$side,$side]) {\n  %w: f32[$channels,$channels,3,3] = const normal seed=1 scale=0.05\n  %y = conv %x, %w, pads=[1,1,1,1]\n  return y=%y\n}\n";
  my @tiles = grep { $_->{kernel} =~ /winograd/ } @{inspect(put('tiles.snt', $text) . " --profile $profile --sample 4")};
  is(scalar @tiles, 2, "$name: tiles, and results of them");
  for my $k (@tiles) {
    cmp_ok($k->{excess}, '<=', $most, "$name, $k->{kernel}: sectors near the fewest possible");
    is($k->{conflicts}, 0, "$name, $k->{kernel}: no conflicts of banks");
  }
}

# stencils of stride 1: an item goes down a column, neighbours beside each other, and has what the next row reads in registers; also where a group has few columns
for my $case (['depthwise', 'f32[1,96,56,56]', 'conv %x, %w, pads=[1,1,1,1], groups=96', 1.16, 900], ['depthwise', 'f32[8,96,14,14]', 'conv %x, %w, pads=[1,1,1,1], groups=96', 1.3, 1050]) {
  my ($name, $type, $made, $most, $sectors) = @$case;
  my $graph = put("$name.snt", "graph \@down(%x: $type) {\n  %w: f32[96,1,3,3] = const normal seed=1\n  %y = $made\n  return y=%y\n}\n");
  my ($k) = @{inspect("$graph --profile h100 --sample 3")};
  my $results = 1;
  $results *= $_ for $type =~ /(\d+)(?=[,\]])/g;
  like($k->{kernel}, qr/window/, "$name of $type on h100: down columns");
  cmp_ok($k->{excess}, '<=', $most, "$name of $type on h100: sectors near the fewest possible");
  cmp_ok($k->{sectors} * $k->{groups} / $results * 1024, '<=', $sectors, "$name of $type on h100: sectors for 1024 results");
  ($code, $said) = says("$sinter run $graph --device cuda-text --profile h100 --check --quiet");
  is($code, 0, "$name of $type: right on cuda-text") or diag($said);
}

# scans along memory: a group walks a line, or a chunk of a long one, its items beside each other; every unit has some of one line of 4 Mi
for my $case (['4194304', 0, 2, 512, 1.01], ['4096,1024', 1, 1, 4096, 1.01], ['64,1021', 1, 1, 64, 1.25]) {
  my ($shape, $axis, $kernels, $groups, $most) = @$case;
  my $list = inspect(put('scan.snt', "graph \@scan(%x: f32[$shape]) {\n  %y = scan.sum %x, axis=$axis\n  return y=%y\n}\n") . ' --profile h100 --sample 3');
  is(scalar @$list, $kernels, "scan of $shape on h100: kernels");
  cmp_ok($list->[-1]{groups}, '>=', $groups, "scan of $shape on h100: groups");
  for my $k (@$list) {
    cmp_ok($k->{excess}, '<=', $most, "scan of $shape on h100, $k->{kernel}: sectors near the fewest possible");
    is($k->{conflicts}, 0, "scan of $shape on h100, $k->{kernel}: no conflicts of banks");
  }
}

# what neighbours read lies two elements apart: an item for each shares sectors with more of them than one for four
for my $case (['depthwise', 'f32[1,96,56,56]', 'conv %x, %w, pads=[1,1,1,1], stride=[2,2], groups=96', 1.6, 620], ['maxpool', 'f32[1,96,112,112]', 'maxpool %x, size=[3,3], pads=[1,1,1,1], stride=[2,2]', 1.6, 520],
              ['avgpool', 'f32[1,96,112,112]', 'avgpool %x, size=[2,2], stride=[2,2]', 1.01, 160]) {
  my ($name, $type, $made, $most, $sectors) = @$case;
  my $w = $name eq 'depthwise' ? "  %w: f32[96,1,3,3] = const normal seed=1\n" : '';
  my $graph = put("$name.snt", "graph \@apart(%x: $type) {\n$w  %y = $made\n  return y=%y\n}\n");
  my ($k) = @{inspect("$graph --profile h100 --sample 3")};
  cmp_ok($k->{excess}, '<=', $most, "$name of stride 2 on h100: sectors near the fewest possible");
  cmp_ok($k->{sectors} * 256 / $k->{items}, '<=', $sectors, "$name of stride 2 on h100: sectors for 256 results");
  ($code, $said) = says("$sinter run $graph --device cuda-text --profile h100 --check --quiet");
  is($code, 0, "$name of stride 2: right on cuda-text") or diag($said);
}

# what is read along another axis than it is stored along, and results stored in another order than their sums have: a tile in local memory
for my $case (['h100', 'transpose', 1.05], ['dgpu', 'transpose', 1.05], ['igpu', 'transpose', 1.05], ['h100', 'transpose_bytes', 1.1], ['h100', 'conv1x1_q8', 1.1]) {
  my ($profile, $model, $most) = @$case;
  for my $k (@{inspect("tests/inspect/$model.snt --profile $profile")}) {
    cmp_ok($k->{excess}, '<=', $most, "$model on $profile, $k->{kernel}: sectors near the fewest possible");
    cmp_ok($k->{conflicts}, '==', 0, "$model on $profile, $k->{kernel}: no conflicts of banks");
  }
}

# on lanes that read texels, four of them an item, which are four vectors of the result; and of storage a stencil's item goes down 32 rows of four columns
# and reads each row once: six elements one by one and four results a row, two rows above and the taps before (eight rows written out: 101 elements for 32 results)
for my $case (['transpose', 'lavapipe', 9, 16], ['transpose_bytes', 'lavapipe', 8, 16], ['stencil', 'swiftshader', 338, 128], ['stencil', 'rusticl', 338, 128]) {
  my ($model, $profile, $most, $results) = @$case;
  my ($k) = @{inspect("tests/inspect/$model.snt --profile $profile --sample 4")};
  cmp_ok($k->{mix}{global}, '<=', $most, "$model on $profile, $k->{kernel}: at most $most accesses for $results results");
}

# 5x5 of planes of 14 x 14: a group owns a plane, so that no lane is idle, and an item 32 results of 44 texels and seven of 25 weights in a row of 28; other
# lanes without local memory have a group for several rows
{
  my ($k) = @{inspect('tests/inspect/depthwise.snt --profile lavapipe')};
  is("$k->{groups} of $k->{items}", '240 of 8', 'depthwise on lavapipe: a group a plane');
  cmp_ok($k->{mix}{global}, '<=', 51, 'depthwise on lavapipe: each texel of it and of its weights once');
  like($_, qr/loop|window/, "depthwise: a stencil, $_") for map { inspect("tests/inspect/depthwise.snt --profile $_")->[0]{kernel} } qw(lavapipe swiftshader rusticl mobile);
}

# attention there: no item stands behind a condition, so that lanes share reads; four queries by sixteen keys an item, those left by halves (253: 15 x 16, 8, 4
# and 1; a texel a key and a query for each four terms, a value's 16 once); 61 elements a row begin anywhere, so rows are copied to whole texels
for my $case (['tails', 0, 16 * ((15 * 20 + 12 + 8 + 5) + 253 + 4)], ['uneven', 3, 9424]) {
  my ($model, $copies, $most) = @$case;
  my $list = inspect("tests/inspect/attention_$model.snt --profile lavapipe");
  my ($attends) = grep { $_->{kernel} !~ /rows/ } @$list;
  is(scalar @$list, 1 + $copies, "attention_$model on lavapipe: $copies operands are copied");
  cmp_ok($attends->{mix}{global}, '<=', $most, "attention_$model on lavapipe: accesses of an item");
  says("$sinter compile tests/inspect/attention_$model.snt --target kir --profile lavapipe -o $dir/$model");
  my $text = join '', map { slurp($_) } glob "$dir/$model/k${copies}_*.kir";
  unlike($text, qr/^\s*if\b/m, "attention_$model on lavapipe: no item stands apart");
  like($text, qr/\bloop\b/, "attention_$model on lavapipe: a listing");
}

# elements beside each other that an item reads one by one: an address and an access for four
for my $case (['matmul', 0.1], ['conv1x1', 0.15]) {
  my ($model, $most) = @$case;
  my ($tile) = @{inspect("tests/inspect/$model.snt --profile mobile --sample 2")};
  cmp_ok($tile->{mix}{integer}, '<=', 4 * $most * $tile->{mix}{fma}, "$model on mobile: at most $most integer instructions a multiply-add");
}

($code, $said) = says("$sinter inspect-kernel tests/inspect/even.snt --profile h100");
is($code, 0, 'a table') or diag($said);
like($said, qr/^kernel +groups +items +words +local B +sectors +\/ideal +conflicts/m, 'with a head');
like($said, qr/^k0_contract +4 +\d+ .* fma \d+/m, 'and a line a kernel');
($code, $said) = says("$sinter inspect-kernel tests/inspect/even.snt --profile h100 --kernel contract");
like($said, qr/^ +%\d+ +load +t\d+ +local +\d+ +\d+/m, 'a kernel access by access');
($code, $said) = says("$sinter inspect-kernel tests/inspect/even.snt --profile h100 --kernel nobody");
ok($code == 2 && $said =~ /no kernel that runs is named "nobody"/, 'an unknown kernel is an error') or diag($said);
# a step on matrix units is copies, fragments and products: which buffer is whose is known, and nothing is asked
for my $model ('matmul_f16', 'matmul_i8') {
  my ($tile) = @{inspect("tests/inspect/$model.snt --profile h100 --sample 2")};
  cmp_ok($tile->{mix}{integer}, '<=', $tile->{mix}{matrix}, "$model on h100: no more integer instructions than products of fragments");
}
# many terms: a line of a row a step, three steps on their way beside it, results through what the panels leave
{
  my ($tile) = @{inspect('tests/inspect/matmul_f16.snt --profile h100 --sample 2')};
  cmp_ok($tile->{barriers}, '<=', 17, 'matmul_f16 on h100: a barrier for 64 of 1024 terms, and one before the results');
  cmp_ok($tile->{local_bytes}, '>', 48 << 10, 'matmul_f16 on h100: in more local memory than a kernel has unasked');
  cmp_ok($tile->{conflicts}, '==', 0, 'matmul_f16 on h100: results leave without conflicts of banks');
}
# few tiles of many terms: no group goes through all of them
for my $model ('deep_f16', 'deep_u8') {
  my ($tile, $sum) = @{inspect("tests/inspect/$model.snt --profile h100 --sample 2")};
  ok($tile->{mix}{matrix} > 0 && $sum && !$sum->{mix}{matrix}, "$model on h100: parts on matrix units, and a kernel that adds them");
  cmp_ok($tile->{barriers}, '<=', 8, "$model on h100: a group makes no more than eight steps of 64 or 128");
}
# units take bytes as they are: widening them is no work that many tiles do again
my $wide = inspect(put('wide.snt', "graph \@wide(%x: i8[1280,1280], %w: i8[1280,1280]) {\n  %y = matmul_integer %x, %w\n  return y=%y\n}\n") . ' --profile h100 --sample 1');
ok(@$wide == 1 && $wide->[0]{mix}{matrix} > 0, 'a product of bytes of many tiles on h100: one kernel, on matrix units') or diag(encode_json($wide));
# channels last, which the source is turned to: whole vectors of one tap are copied, zeros around them; one choice of an address, one address
my ($turned, $stepped) = @{inspect('tests/inspect/conv3x3_f16.snt --profile h100 --sample 2')};
my $products = 8 * 64 * 56 * 56 * 64 * 9 / 4096; # that the convolution has: a tile of 128 columns would make as many again, of columns that are not there
ok($turned->{kernel} =~ /transpose/ && $stepped->{mix}{matrix} > 0, 'conv3x3_f16 on h100: its source is turned, then it is on matrix units') or diag(encode_json([$turned, $stepped]));
cmp_ok($stepped->{mix}{integer} * $stepped->{groups} * $stepped->{items} / 32, '<=', 4 * $products, 'conv3x3_f16 on h100: at most four integer instructions a product of fragments');
cmp_ok($stepped->{mix}{global}, '<=', 16, 'conv3x3_f16 on h100: but for its results everything is copied');
cmp_ok($stepped->{excess}, '==', 1, 'conv3x3_f16 on h100: whole sectors');
is($stepped->{conflicts}, 0, 'conv3x3_f16 on h100: no conflicts of banks');
# rows of results that leave are sectors
for my $model ('matmul_f16', 'matmul_i8') {
  my ($tile) = @{inspect("tests/inspect/$model.snt --profile h100 --sample 2")};
  ok($tile->{excess} == 1 && $tile->{conflicts} == 0, "$model on h100: the fewest sectors, no conflicts") or diag(encode_json($tile));
}
# a first convolution of three channels: the last fragment of its terms ends in zeros, and what follows finds channels last
my ($stem, $behind) = @{inspect('tests/inspect/stem_f16.snt --profile h100')};
ok($stem->{mix}{matrix} > 0 && !$stem->{mix}{fma} && $behind->{mix}{matrix} > 0, 'stem_f16 on h100: two kernels, both on matrix units') or diag(encode_json([$stem, $behind]));
cmp_ok($behind->{mix}{copy}, '>=', 20, 'stem_f16 on h100: 40 channels are whole vectors, copied');
# strides of such a convolution pay for its source once more, positions of four channels beside each other: rows of taps are whole vectors, copied
{
  my $wide = sub { my ($taps, $out, $pads) = @_; return "graph \@stem(%x: f16[32,3,224,224]) {\n  %w: f16[$out,3,$taps,$taps] = const normal seed=1 scale=0x1p-4\n  %c = conv %x, %w, pads=[$pads], stride=[2,2]\n  return y=%c\n}\n" };
  for my $case ([7, 64, '3,3,3,3', 14 * 8], [3, 32, '1,1,1,1', 3 * 8]) {
    my ($taps, $out, $pads, $fragments) = @$case;
    my ($turned, $rows) = @{inspect(put("stem_$taps.snt", $wide->($taps, $out, $pads)) . ' --profile h100 --sample 3')};
    ok($turned->{kernel} =~ /loop/ && $rows->{mix}{copy} > 0, "stem of $taps x $taps on h100: its source is stored once more, rows of taps are copied") or diag(encode_json([$turned, $rows]));
    cmp_ok($rows->{excess}, '<=', 1.01, "stem of $taps x $taps on h100: whole sectors");
    is($rows->{conflicts}, 0, "stem of $taps x $taps on h100: no conflicts of banks");
    cmp_ok($rows->{mix}{integer}, '<', 450, "stem of $taps x $taps on h100: an address for a vector of eight, not for an element");
  }
  my $free = put('free.profile', "base = h100\nname = free\ntarget = cuda\nlaunch_ns = 0 ns\n");
  my @small = (['f16', '2,3,19,22', '24,3,3,3', '1,1,1,1', '2,2'], ['f16', '3,5,30,31', '17,5,4,4', '1,1,2,2', '1,2'], ['bf16', '1,2,15,33', '16,2,3,7', '1,3,1,3', '1,4']);
  for my $case (@small) {
    my ($type, $x, $w, $pads, $stride) = @$case;
    my $graph = put("stem_$type.snt", "graph \@stem(%x: ${type}[$x]) {\n  %w: ${type}[$w] = const normal seed=1 scale=0x1p-2\n  %c = conv %x, %w, pads=[$pads], stride=[$stride]\n  return y=%c\n}\n");
    my $kernels = inspect("$graph --profile $free");
    ok(@$kernels == 2 && $kernels->[1]{mix}{matrix} > 0, "stem of $type, $w: rows of taps, on matrix units") or diag(encode_json($kernels));
    for my $run (['cuda-text', $free], ['interp', put('free_interp.profile', slurp($free) =~ s/cuda/interp/r)]) {
      ($code, $said) = says("$sinter run $graph --device $run->[0] --profile $run->[1] --check --quiet");
      is($code, 0, "stem of $type, $w: right on $run->[0]") or diag($said);
    }
  }
}
# and where it does not pay, of f32 and at small batches: items side by side take patches of positions by taps, and weights that are no whole vectors along their
# taps have the results' channels beside each other
{
  my @stems = (['f32', '1,3,224,224', '64,3,7,7', '3,3,3,3', '2,2', 1.1], ['f32', '1,3,224,224', '32,3,3,3', '1,1,1,1', '2,2', 1.1], ['f32', '8,3,224,224', '64,3,7,7', '3,3,3,3', '2,2', 1.1],
               ['f16', '1,3,224,224', '64,3,7,7', '3,3,3,3', '2,2', 1.2], ['f16', '1,3,224,224', '32,3,3,3', '1,1,1,1', '2,2', 1.21]);
  for my $case (@stems) {
    my ($type, $x, $w, $pads, $stride, $most) = @$case;
    my ($k) = @{inspect(put('first.snt', "graph \@first(%x: ${type}[$x]) {\n  %w: ${type}[$w] = const normal seed=1 scale=0x1p-4\n  %c = conv %x, %w, pads=[$pads], stride=[$stride]\n  return y=%c\n}\n") . ' --profile h100 --sample 3')};
    cmp_ok($k->{excess}, '<=', $most, "first convolution of $type, $x by $w: sectors near the fewest possible");
    is($k->{conflicts}, 0, "first convolution of $type, $x by $w: no conflicts of banks");
  }
  # a product of 1 x 1 taps: rows of 14 positions are no whole vectors, all 196 are; of 49 neighbours store neighbours
  for my $case (['f32', 14, 1.1], ['f16', 14, 1.2], ['f16', 7, 1.2]) {
    my ($type, $side, $most) = @$case;
    my $graph = put('first.snt', "graph \@first(%x: ${type}[1,256,$side,$side]) {\n  %w: ${type}[128,256,1,1] = const normal seed=1 scale=0x1p-4\n  %c = conv %x, %w\n  return y=%c\n}\n");
    my ($k) = @{inspect("$graph --profile h100 --sample 3")};
    cmp_ok($k->{excess}, '<=', $most, "1 x 1 of $type, $side x $side: sectors near the fewest possible");
    cmp_ok($k->{mix}{global}, '<=', 8, "1 x 1 of $type, $side x $side: whole vectors are copied") if $side == 14;
    is($k->{conflicts}, 0, "1 x 1 of $type, $side x $side: no conflicts of banks");
    ($code, $said) = says("$sinter run $graph --device cuda-text --profile h100 --check --quiet");
    is($code, 0, "1 x 1 of $type, $side x $side: right on cuda-text") or diag($said);
  }
  my @edges = (['f32', '2,3,19,22', '24,3,3,3', '1,1,1,1', '2,2'], ['f32', '1,5,30,31', '20,5,4,4', '1,1,2,2', '1,2'], ['f32', '2,2,15,33', '16,2,3,7', '1,3,1,3', '1,4'], ['f16', '1,3,19,22', '24,3,3,3', '1,1,1,1', '3,3'],
               ['f32', '2,9,20,24', '12,9,3,3', '1,1,1,1', '1,1']);
  my $edges = put('edges.profile', "base = h100\nname = edges\ntarget = interp\n");
  for my $case (@edges) {
    my ($type, $x, $w, $pads, $stride) = @$case;
    my $graph = put('first.snt', "graph \@first(%x: ${type}[$x]) {\n  %w: ${type}[$w] = const normal seed=1 scale=0x1p-2\n  %c = conv %x, %w, pads=[$pads], stride=[$stride]\n  return y=%c\n}\n");
    for my $device ("interp --profile $edges", "cuda-text --profile h100") {
      ($code, $said) = says("$sinter run $graph --device $device --check --quiet");
      is($code, 0, "first convolution of $type, $x by $w: right on $device") or diag($said);
    }
  }
}
# attention on units whose lanes hold what is known: a barrier for the keys of a tile and one for its values, and of local memory nothing but panels (copied in vectors of four,
# read by fragments: 20 of queries and keys, 16 of values)
my ($attends) = @{inspect('tests/inspect/attention_f16.snt --profile h100 --sample 2')};
cmp_ok($attends->{barriers}, '<=', 2 * 8, 'attention_f16 on h100: two barriers a tile of 64 keys');
cmp_ok($attends->{mix}{local}, '<=', 8 + 8 * (16 + 20 + 16), 'attention_f16 on h100: weights never leave the lanes that make them');
# where groups of 128 queries are enough for the device, a subgroup has two fragments of their rows: what it fetches of keys and values multiplies both
put('few.profile', "base = h100\nname = few\nunits = 2\n");
put('few-interp.profile', "base = h100\nname = few\nunits = 2\ntarget = interp\n");
put('tall.snt', "graph \@attention(%q: f16[2,256,64], %k: f16[2,200,64], %v: f16[2,200,64]) {\n  %y = attention %q, %k, %v, causal\n  return y=%y\n}\n");
my ($tall, $low) = map { inspect("$dir/tall.snt --profile $_")->[0] } "$dir/few.profile", 'h100';
ok($tall->{groups} == 4 && $low->{groups} == 8, 'tall attention: 128 queries a group') or diag(encode_json([$tall, $low]));
cmp_ok($tall->{mix}{local}, '<', 1.4 * $low->{mix}{local}, 'tall attention: twice the queries, hardly more of local memory');
for my $device ("interp --profile $dir/few-interp.profile", "cuda-text --profile $dir/few.profile") {
  ($code, $said) = says("$sinter run $dir/tall.snt --device $device --check --quiet");
  is($code, 0, "tall attention: right on $device") or diag($said);
}
# what conflicts and strides cost is seen: a transpose without a tile reads a sector an item
my $strided = inspect('tests/inspect/strided.snt --profile h100 --unfused');
ok((grep { $_->{excess} > 2 } @$strided), 'strided accesses are more sectors than the fewest') or diag(encode_json($strided));

# ---- registers ----

SKIP: {
  skip('nvcc is not here: no figures of registers and spills', 48) if system('command -v nvcc >/dev/null 2>&1');
  put('large_f16.snt', "graph \@large(%x: f16[4096,4096], %w: f16[4096,4096]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n");
  put('large_i8.snt', "graph \@large(%x: i8[4096,4096], %w: i8[4096,4096]) {\n  %y = matmul_integer %x, %w\n  return y=%y\n}\n");
  put('large_stem.snt', "graph \@large(%x: f16[8,3,224,224]) {\n  %w: f16[64,3,7,7] = const normal seed=1\n  %y = conv %x, %w, pads=[3,3,3,3], stride=[2,2]\n  return y=%y\n}\n");
  put('large_attention.snt', "graph \@attention(%q: f16[8,256,96], %k: f16[8,256,96], %v: f16[8,256,112]) {\n  %y = attention %q, %k, %v\n  return y=%y\n}\n");
  for my $model ('large_f16', 'large_i8', 'large_attention', 'large_stem', 'matmul', 'matmul_f16', 'matmul_i8', 'mlp', 'conv3x3', 'attention', 'attention_causal', 'attention_f16', 'attention_odd_f16', 'attention_filled', 'attention_filled_f16', 'attention_40_f16', 'attention_causal_bf16', 'conv3x3_f16', 'stem_f16') {
    says("$sinter compile " . ($model =~ /large/ ? $dir : 'tests/inspect') . "/$model.snt --profile h100 --target cuda -o $dir/$model");
    for my $source (glob "$dir/$model/*.cu") {
      for my $arch ('sm_80', 'sm_90') {
        (undef, $said) = says("nvcc -arch=$arch -cubin -fmad=false -Xptxas -v -o $dir/x.cubin $source");
        like($said, qr/ 0 bytes spill stores, 0 bytes spill loads/, "$model, " . ($source =~ s{.*/}{}r) . " on $arch: nothing spills") or diag($said);
      }
    }
  }
}

# ---- results ----

for my $device (['interp', 'interp'], ['opencl:pocl', 'opencl'], ['vulkan:llvmpipe', 'spirv'], ['vulkan:swiftshader', 'spirv'], ['cuda-text', 'cuda']) {
  my ($selector, $target) = @$device;
  for my $base ($target eq 'interp' ? ('h100', 'igpu') : ('h100')) {
    my $profile = "$dir/$base-$target.profile";
    open my $out, '>', $profile or die $!;
    print $out "base = $base\nname = $base\ntarget = $target # forced\n";
    print $out "caps.mma.f16 = 0\ncaps.mma.bf16 = 0\ncaps.mma.i8 = 0\ncaps.mma.u8 = 0\n" if $target eq 'spirv'; # of CUDA's sizes: tests/units.t
    close $out;
    SKIP: {
      skip(lacks($selector), 29) if lacks($selector);
      for my $model (glob 'tests/inspect/{rows_odd,scans,sums_down,stem_f16,inverted_f16,even,odd,batch,half,linear,symbolic,transposed,deep,deep_odd,transpose,transpose_bytes,transpose_odd,turned_product}.snt tests/inspect/attention_{odd,filled,window,causal,half,none,guarded,odd_f16,filled_f16,causal_bf16,dropped_f16}.snt') {
        next if $model =~ /rows_odd/ && $target eq 'spirv'; # subgroups of 32
        next if $model =~ /half|f16|transpose_|turned/ && $selector =~ /swiftshader/; # it has no 16-bit or 8-bit storage, which the profile promises
        ($code, $said) = says("$sinter run $model --device $selector --profile $profile --check --quiet");
        is($code, 0, "$selector as $base: " . ($model =~ s{.*/}{}r)) or diag($said);
      }
    }
  }
}
# Attention on matrix units: 64 queries, 128 keys and values of 64, by vectors of eight.
is((inspect('tests/inspect/attention_half.snt --profile h100'))->[0]{mix}{copy}, (64 + 128 + 128) * 64 / 8 / 128, 'attention_half: copies each vector of its operands once');
# Without asynchronous copies: the same through registers.
open my $plain, '>', "$dir/plain.profile" or die $!;
print $plain "base = h100\nname = plain\ntarget = interp\ncaps.async_copy = 0 # an older device\n";
close $plain;
for my $model ('even', 'linear_f16', 'attention_half', 'attention_causal_bf16') {
  ($code, $said) = says("$sinter run tests/inspect/$model.snt --device interp --profile $dir/plain.profile --check --quiet");
  is($code, 0, "$model without asynchronous copies") or diag($said);
  ok(!(grep { $_->{mix}{copy} > 0 } @{inspect("tests/inspect/$model.snt --profile $dir/plain.profile")}), "$model: has none of them then");
}
# What fills a device goes in tiles of 64 x 64 a subgroup, of which eight are on a unit: here the device is one unit. The terms of bytes are a fragment and a half.
for my $case (['interp', 'interp'], ['cuda-text', 'cuda']) {
  my ($selector, $target) = @$case;
  my $one = put("one-$target.profile", "base = h100\nname = one-$target\ntarget = $target\nunits = 1\n");
  for my $model ('tall_f16', 'padded_i8') {
    my ($tile) = @{inspect("tests/inspect/$model.snt --profile $one")};
    ok($tile->{groups} == 2 && $tile->{items} == 256 && $tile->{mix}{matrix} == 16 * 5, "$model on one unit: two groups of 256 items, sixteen fragments each, five times") or diag(encode_json($tile));
    is($tile->{conflicts}, 0, "$model: no conflicts of banks");
    SKIP: {
      skip(lacks($selector), 1) if lacks($selector);
      ($code, $said) = says("$sinter run tests/inspect/$model.snt --device $selector --profile $one --check --quiet");
      is($code, 0, "$model of sixteen fragments a subgroup: right on $selector") or diag($said);
    }
    next if $target eq 'interp';
    says("$sinter compile tests/inspect/$model.snt --target cuda --profile $one -o $dir/one-$model");
    like(join('', map { slurp($_) } glob "$dir/one-$model/*.cu"), qr/__launch_bounds__\(256, 1\)/, "$model: twice as many registers for half as many subgroups");
  }
}
# Strips of four columns read past what there is; where that is not harmless they read the last texel instead, and the interpreter holds them to it.
# Of storage strips are loops, down columns and along rows; 120 rows of 1080 are one.
for my $case (['lavapipe', 0], ['lavapipe', 1], ['swiftshader', 0], ['swiftshader', 1]) {
  my ($base, $robust) = @$case;
  open my $strips, '>', "$dir/strips.profile" or die $!;
  print $strips "base = $base\nname = strips\ntarget = interp\ncaps.oob_zero = $robust\n";
  close $strips;
  for my $extents ('h=13 w=1', 'h=13 w=3', 'h=13 w=37', 'h=13 w=40', 'h=1 w=2', 'h=250 w=5') {
    my ($h, $w) = split ' ', $extents;
    ($code, $said) = says("$sinter run examples/postprocess.snt --device interp --profile $dir/strips.profile --check --dim $h --dim $w --quiet");
    is($code, 0, "$base, strips of $extents, reads outside " . ($robust ? 'harmless' : 'guarded')) or diag($said);
  }
  next if $base eq 'swiftshader';
  for my $model ('transpose', 'transpose_odd', 'transpose_bytes', 'attention_tails', 'attention_uneven', 'attention_odd_f16', 'attention_causal', 'attention_guarded') {
    ($code, $said) = says("$sinter run tests/inspect/$model.snt --device interp --profile $dir/strips.profile --check --quiet");
    is($code, 0, "$model by texels, reads outside " . ($robust ? 'harmless' : 'guarded')) or diag($said);
  }
}
# What neighbours read, too, is fetched once: a texel for all channels, 24 of a row for 16 columns of nine taps; in a loop along the row one a column, eight before it.
for my $case (['lavapipe', 24], ['swiftshader', 9]) {
  my ($base, $texels) = @$case;
  ($code, $said) = says("$sinter compile examples/postprocess.snt --target kir --profile $base --image x=chw -o $dir/$base");
  is($code, 0, "$base: a stencil of an image") or diag($said);
  my ($across) = glob "$dir/$base/k0_*.kir";
  open my $listing, '<', $across or die "$across: $!";
  is(scalar(grep { /= tex\.load / } <$listing>), $texels, "$base: texels fetched");
}
# Attention through local memory, and where there are too few queries or keys, another kernel.
for my $extents ('n=1 m=1', 'n=31 m=64', 'n=32 m=31', 'n=32 m=32', 'n=33 m=65', 'n=96 m=200') {
  my ($n, $m) = split ' ', $extents;
  ($code, $said) = says("$sinter run tests/inspect/attention_symbolic.snt --device interp --profile $dir/h100-interp.profile --dim $n --dim $m --check --quiet");
  is($code, 0, "attention, $extents") or diag($said);
}
# a block of MobileNet-v2 whose positions are rows of 28 again behind one axis: results are computed once, by units alone, copied in whole vectors
{
  my ($wide, $apart) = @{inspect('tests/inspect/inverted_f16.snt --profile h100')};
  my $larger = put('inverted.snt', slurp('tests/inspect/inverted_f16.snt') =~ s/2,24,28,28/4,24,56,56/r);
  my ($sums) = @{inspect("$larger --profile h100 --sample 2")};
  ok($sums->{mix}{matrix} > 0 && $sums->{mix}{fma} == 0, 'inverted_f16 on h100, 56 x 56: nothing is computed again behind the sums') or diag(encode_json($sums));
  cmp_ok($_->{excess}, '<=', 1.01, "inverted_f16 on h100, $_->{kernel}: the fewest sectors, weights of a depthwise convolution along channels") for $wide, $apart;
}
# what an item copies, and elements that it has one by one, are pieces of rows whose banks differ
for my $model ('odd', 'odd_f16', 'filled', 'filled_f16') {
  my ($k) = @{inspect("tests/inspect/attention_$model.snt --profile h100 --sample 2")};
  is($k->{conflicts}, 0, "attention_$model: panels are filled without conflicts of banks");
  cmp_ok($k->{mix}{local}, '>', $k->{mix}{global} / 2, "attention_$model: through local memory");
}
for my $case (['odd_f16', 1], ['filled_f16', 1], ['causal_bf16', 1], ['half', 1], ['dropped_f16', 0]) {
  my ($model, $units) = @$case;
  my ($k) = @{inspect("tests/inspect/attention_$model.snt --profile h100 --sample 2")};
  is(($k->{mix}{matrix} > 0) + 0, $units, "attention, $model: " . ($units ? 'on matrix units' : 'on none'));
}
{
  my ($k) = @{inspect('tests/inspect/attention_decode.snt --profile h100 --sample 2')};
  is($k->{items}, 64, 'attention of few queries: two subgroups share one');
  is($k->{conflicts}, 0, 'and put their results together without conflicts of banks');
  my ($parts, $sum) = @{inspect('tests/inspect/attention_decode_long.snt --profile h100 --sample 2')};
  is($parts->{groups}, 8 * 16, 'a long cache: sixteen parts of 256 keys');
  is($sum->{groups}, 8, 'and a second kernel that puts them together');
  for my $run ('decode', map { "decode_long.snt --dim m=$_" } 1, 255, 257, 1000, 4096) {
    my ($model, $dim) = split /\.snt/, $run;
    for my $target ('interp', 'cuda-text') {
      my $forced = $target eq 'interp' ? " --profile $dir/h100-interp.profile" : '';
      ($code, $said) = says("$sinter run tests/inspect/attention_$model.snt " . ($dim // '') . " --device $target$forced --check --quiet");
      is($code, 0, "attention_$run: right on $target") or diag($said);
    }
  }
}
my ($causal) = @{inspect('tests/inspect/attention_causal.snt --profile h100 --sample 96')};
cmp_ok($causal->{mix}{fma}, '<', 0.7 * 12 * 256 * 256 * 64 * 2 / (96 * 128), 'tiles that a mask leaves out as a whole are not multiplied') or diag(encode_json($causal));
for my $rows (1, 15, 17, 200) {
  ($code, $said) = says("$sinter run tests/inspect/symbolic.snt --device interp --profile $dir/h100-interp.profile --dim n=$rows --check --quiet");
  is($code, 0, "$rows rows of an unknown number") or diag($said);
}
($code, $said) = says("$sinter run tests/inspect/odd.snt --device interp --profile $dir/h100-interp.profile --numerics reproducible --check --quiet");
is($code, 0, 'in order, reproducibly') or diag($said);
done_testing;
