#!/usr/bin/perl
# How kernels on a processor with vectors go through memory that no cache holds: what a loop reads is asked for early, and what it writes either
# passes the caches by or is asked for early as well, by profile.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub kernels {
  my ($model, $profile) = @_;
  my $said = `$sinter compile $model --target opencl --profile $profile -o $dir/out 2>&1`;
  return "exit $?: $said" if $?;
  my $text = join '', map { local (@ARGV, $/) = $_; scalar <> } glob "$dir/out/*.cl";
  $text =~ s/^#.*?\n(?=__kernel)//ms;
  unlink glob "$dir/out/*";
  return $text;
}

sub count { my ($text, $what) = @_; return scalar(() = $text =~ /$what/g) }

open my $in, '<', 'cost_targets/profiles/pocl.profile' or die $!;
my $pocl = do { local $/; <$in> };
my $plain_stores = put('plain.profile', "${pocl}plain_runs = 1\n");
(my $none = $pocl) =~ s/^caps\.stream = 1$/caps.stream = 0/m or die 'the profile has no caps.stream';
my $no_streams = put('none.profile', $none);

my $large = put('large.snt', "graph \@large(%x: f32[16777216]) {\n  %y = abs %x\n  return y=%y\n}\n");
my $small = put('small.snt', "graph \@small(%x: f32[65536]) {\n  %y = abs %x\n  return y=%y\n}\n");
my $sums = put('sums.snt', "graph \@sums(%x: f32[16,1048576]) {\n  %y = reduce.sum %x, axes=[1]\n  return y=%y\n}\n");
my $turned = put('turned.snt', "graph \@turned(%x: f32[4096,4096]) {\n  %y = transpose %x, perm=[1,0]\n  return y=%y\n}\n");

my $text = kernels($large, 'pocl');
cmp_ok(count($text, 'SNT_STREAM\('), '>', 0, 'large: stores pass the caches by');
cmp_ok(count($text, 'SNT_PREFETCH\(p0 .*, 0\);'), '>', 0, 'large: reads are asked for early');
is(count($text, 'SNT_PREFETCH\(p1'), 0, 'large: what passes the caches by is not fetched');

$text = kernels($large, $plain_stores);
is(count($text, 'SNT_STREAM\('), 0, 'plain stores: none passes the caches by');
cmp_ok(count($text, 'SNT_PREFETCH\(p0 .*, 0\);'), '>', 0, 'plain stores: reads are asked for early');
cmp_ok(count($text, 'SNT_PREFETCH\(p1 .*, 1\);'), '>', 0, 'plain stores: so is what will be written');

$text = kernels($small, 'pocl');
is(count($text, 'SNT_STREAM\(|SNT_PREFETCH\('), 0, 'small: neither');

cmp_ok(count(kernels($sums, 'pocl'), 'SNT_PREFETCH\(p0 .*, 0\);'), '>', 0, 'sums along long rows are asked for early');

# Rows in one loop are asked for four rows ahead, or go on where they end, each a part of the work-item's rows from the others.
my $rows_of_vector = put('rows.snt', "graph \@rows(%x: f32[1,4096], %w: f32[4096,4096]) {\n  %y = linear %x, %w\n  return y=%y\n}\n");
(my $unasked = $pocl) =~ s/^run_fetch_lanes = \d+/run_fetch_lanes = 0/m or die 'the profile has no run_fetch_lanes';
for my $case (['pocl', 4, 4], [put('unasked.profile', $unasked), 0, 16]) {
  my ($profile, $asked, $rows) = @$case;
  $text = kernels($rows_of_vector, $profile);
  is(count($text, 'SNT_PREFETCH\('), $asked, "four rows, asked for $asked times");
  my @far = grep { $_ && $_ % 4096 == 0 } $text =~ /\(p\d+ \+ \(long\)\(int\)v\d+ \+ (\d+)\)/g;
  is("@far[0..2]", join(' ', map { $_ * $rows * 1024 } 1 .. 3), 'how far they are from each other') or diag($text);
}

# Rows of what takes many instructions to widen are asked for where hardware sees long runs, too: into the second cache, as far away as the next work-item's rows; not where it has no room for as many.
for my $case (['i8', 4096, 4], ['f16', 4096, 4], ['f32', 4096, 0], ['i8', 262144, 0]) {
  my ($dtype, $columns, $asked) = @$case;
  my $rows = (16 << 20) / $columns;
  my $model = put("narrow.snt", "graph \@narrow(%x: f32[1,$columns], %w: $dtype\[$rows,$columns]) {\n" .
    ($dtype eq 'f32' ? "  %f = abs %w\n" : "  %f = cast %w, dtype=f32\n") . "  %y = linear %x, %f\n  return y=%y\n}\n");
  $text = kernels($model, put('unasked.profile', $unasked));
  like($text, qr/__kernel/, "$dtype, rows of $columns");
  my @far = $text =~ /SNT_PREFETCH\(p\d+ \+ \(long\)\(int\)v\d+ \+ (\d+), \d+, 2\);/g;
  is(scalar(@far), $asked, "are asked for: $asked times") or diag($text);
  is(count($text, 'SNT_PREFETCH\(p'), $asked, 'and nothing else');
  next if !$asked;
  my ($group) = $text =~ /uint v\d+ = v\d+ << (\d+);/;
  is($far[0], $columns << $group, 'the next work-item\'s') or diag($text);
}

# Words of several weights take long: they are asked for on every processor, a line at a time, where no cache holds them and rows lie in lanes.
my $fields = <<'END';
graph @fields(%x: f32[1,4096]) {
  %w: u8[ROWS,128,16] = const uniform seed=1 scale=128
  %s: f32[ROWS,128] = const uniform seed=2 scale=0.01
  %low = and %w, 15
  %high = shr %w, 4
  %l = reshape %low, shape=[ROWS,128,16,1]
  %h = reshape %high, shape=[ROWS,128,16,1]
  %both = concat %l, %h, axis=3
  %f = cast %both, dtype=f32
  %c = sub %f, 8.0
  %sb = broadcast %s, shape=[ROWS,128,16,2], axes=[0,1]
  %d = mul %c, %sb
  %m = reshape %d, shape=[ROWS,4096]
  %y = linear %x, %m
  return y=%y
}
END
for my $case ([2048, 'some'], [64, 'none']) {
  my ($rows, $some) = @$case;
  (my $model = $fields) =~ s/ROWS/$rows/g;
  $text = kernels(put("fields$rows.snt", $model), put('unasked.profile', $unasked));
  like($text, qr/__kernel/, "words of $rows rows");
  my @asked = $text =~ /SNT_PREFETCH\(p\d+ .*, (\d+), 0\);/g;
  is(scalar(@asked) ? 'some' : 'none', $some, "are asked for: $some");
  is(scalar(grep { $_ > 64 } @asked), 0, 'no more than a line at once');
}

# Bytes times codes are a third of the operations for a line: hardware is early enough for vectors of a line.
(my $coded = $fields) =~ s/ROWS/2048/g;
$coded =~ s/%x: f32\[1,4096\]\) \{\n/%q: i8[1,128,32], %a: f32[1,128,1]) {\n  %qf = cast %q, dtype=f32\n  %ab = broadcast %a, shape=[1,128,32], axes=[0,1,2]\n  %qa = mul %qf, %ab\n  %x = reshape %qa, shape=[1,4096]\n/ or die 'the fields have no x';
$text = kernels(put('coded.snt', $coded), put("dots.profile", "base = pocl\nname = dots\nlanes = 16\nregisters = 32\nrun_fetch_lanes = 0\ncaps.dot4 = 1\n"));
like($text, qr/snt_dot4\(/, 'words times codes');
is(count($text, 'SNT_PREFETCH\(p'), 0, 'are not asked for');

# A line of 64 bytes is two blocks of 8 x 8, stored whole; four lines lie beside each other before the next rows are read. What lies far apart passes the
# caches by where long runs do not, too.
$text = kernels($turned, 'pocl');
my @steps = $text =~ /\+= (\d+)u\) \{/g;
is("@steps", '8 16', 'turned: rows of blocks, lines');
is(count($text, 'SNT_STREAM\(v\d+, \(__global float16'), 8, 'turned: lines pass the caches by');
is(count(kernels($turned, $plain_stores), 'SNT_STREAM\('), 8, 'turned: also where runs are stored plainly');
is(count(kernels($turned, $no_streams), 'SNT_STREAM\('), 0, 'turned: not where the device cannot');

# A product's tile of rows asks for the next one's, which lie behind its own, a part of them with every four terms: not where that would drive out its own, where
# rows are so short that hardware follows them, nor where they are some columns of longer ones.
sub product {
  my ($name, $terms, $longer) = @_;
  my $x = $longer ? "  %s = slice %x, starts=[0,0], sizes=[512,$terms]\n" : '';
  my $weights = "  %w: f32[256,$terms] = const normal seed=1\n";
  my $y = '  %y = linear ' . ($x ? '%s' : '%x') . ", %w\n";
  return kernels(put("$name.snt", "graph \@p(%x: f32[512," . ($longer // $terms) . "]) {\n$weights$x$y  return y=%y\n}\n"), 'pocl');
}
my $rows = product('rows', 384);
my ($further, $bytes) = $rows =~ /SNT_PREFETCH\(p1 \+ \(\(long\)\(int\)v\d+ \+ (\d+)\), (\d+), 0\)/;
ok($further && $bytes > 16 && $further == $bytes / 16 * 384, "the rows behind: $bytes bytes of four terms of each") or diag($rows);
is(count(product($_, $_), 'SNT_PREFETCH\(p1'), 0, "not rows of $_ terms") for 128, 4096;
my $part = product('part', 384, 400);
like($part, qr/__kernel/, 'columns of longer rows');
is(count($part, 'SNT_PREFETCH\(p1'), 0, 'their rows are not asked for');

# A row that is kept waits in the room of its result, where the values before it go out while the next are computed; where stores pass the caches by it is stored once.
for my $case ([65536, 1], [5120, 1], [2048, 0]) {
  my ($rows, $streams) = @$case;
  my $text = kernels(put("softmax$rows.snt", "graph \@s(%x: f32[$rows,1024]) {\n  %y = softmax %x, axis=1\n  return y=%y\n}\n"), 'pocl');
  is(count($text, 'float p\d+\[1024\]'), $streams, "softmax of $rows rows: " . ($streams ? 'a private row' : 'none'));
  is(count($text, 'SNT_STREAM\(') > 0 ? 1 : 0, $streams, "softmax of $rows rows: " . ($streams ? 'passes' : 'does not pass') . ' the caches by');
}

# Rows that begin inside of a line are stored by vectors that begin where lines do, and what is before and behind them by less than a vector: whole lines pass the caches by. Right for
# every place in a line that a row begins at, for several axes of rows, two results, of other types too, and rows of a few vectors; shorter ones are stored as they begin.
for my $case (['norm', '37,333', 1], ['norm', '2,19,1021', 1], ['softmax', '40,301', 1], ['two', '33,77', 1], ['half', '29,147', 1], ['norm', '50,65', 1], ['norm', '50,63', 0], ['norm', '50,320', 2]) {
  my ($what, $shape, $cut) = @$case;
  my $axis = () = $shape =~ /,/g;
  my $all = join ',', 0 .. $axis;
  my $row = $what eq 'softmax' ? "  %y = softmax %w, axis=$axis\n  return y=%y\n"
    : "  %m = mean %w, axes=[$axis], keep\n  %mb = broadcast %m, axes=[$all], shape=[$shape]\n  %d = sub %w, %mb\n  %q = mul %d, %d\n  %v = mean %q, axes=[$axis], keep\n" .
      "  %vb = broadcast %v, axes=[$all], shape=[$shape]\n  %y = div %d, %vb\n" .
      ($what eq 'two' ? "  %z = add %y, %x\n  return y=%y, z=%z\n" : $what eq 'half' ? "  %h = cast %y, dtype=f16\n  return y=%y, h=%h\n" : "  return y=%y\n");
  my $model = put("cut.snt", "graph \@g(%x: f32[$shape], %r: f32[$shape]) {\n  %w = add %x, %r\n$row}\n");
  my @profile = map { put("cut_$_.profile", "base = pocl\nname = cut\nlanes = 16\nregisters = 32\ntarget = $_\nstream_threshold = 4096 B\n") } qw(opencl kir);
  my $text = kernels($model, $profile[0]);
  my $streams = count($text, 'SNT_STREAM\(');
  $cut ? cmp_ok($streams, '>', 0, "$what $shape: stores pass the caches by") : is($streams, 0, "$what $shape: stores do not pass the caches by");
  for my $run ("interp --profile $profile[1]", "opencl:pocl --profile $profile[0]") {
    SKIP: {
      skip(lacks('opencl:pocl'), 1) if $run =~ /pocl/ && lacks('opencl:pocl');
      my ($code, $said) = says("$sinter run $model --device $run --check --quiet");
      is($code, 0, "$what $shape: right on " . ($run =~ /^(\S+)/)[0]) or diag($said);
    }
  }
}

# Of two inputs of a row the one is asked for where its last sum is made, the other where its results go out: memory is idle in neither.
my $two = kernels(put('two.snt', <<'END'), 'pocl');
graph @two(%x: f32[8192,1024], %r: f32[8192,1024]) {
  %w = add %x, %r
  %m = mean %w, axes=[1], keep
  %mb = broadcast %m, axes=[0,1], shape=[8192,1024]
  %d = sub %w, %mb
  %q = mul %d, %d
  %v = mean %q, axes=[1], keep
  %vb = broadcast %v, axes=[0,1], shape=[8192,1024]
  %y = div %d, %vb
  return y=%y
}
END
my @asked = map { join ' ', sort keys %{{ map { $_ => 1 } /SNT_PREFETCH\((p\d+)/g }} } split /^ *for /m, $two;
is(scalar(grep { /\S/ } @asked), 2, 'two inputs: asked for in two loops') or diag($two);
is(scalar(keys %{{ map { $_ => 1 } grep { /\S/ } @asked }}), 2, 'two inputs: one in each');

# Points of Winograd's tiles that would meet in a few sets of the near cache begin a line later each, where its source is made and where the product is read.
sub points {
  my ($name, $channels, $side) = @_;
  my $model = put("$name.snt", "graph \@p(%x: f32[1,$channels,$side,$side]) {\n  %w: f32[$channels,$channels,3,3] = const normal seed=1 scale=0.01\n" .
    "  %y = conv %x, %w, pads=[1,1,1,1]\n  return y=%y\n}\n");
  `$sinter compile $model --target opencl --profile pocl -o $dir/out 2>&1`;
  open my $plan, '<', "$dir/out/plan.txt" or return 'no plan';
  my @scratch = map { /: scratch f32\[((?:6,6|36),.*?)\]/ ? $1 : () } <$plan>;
  unlink glob "$dir/out/*";
  return "@scratch";
}
is(points('crowded', 64, 56), '6,6,12560 36,12560', 'points of 49 KiB begin a line later');
is(points('apart', 40, 56), '6,6,1,14,14,40 36,196,40', 'points that lie apart stay where they are');
# Of a padded source that is computed on the way, a work-item stages the channels that its columns read, where they are a part of all.
my $padded = put('padded.snt', <<'END');
graph @padded(%x: f32[1,512,3,80], %h: f32[1,512,3,80]) {
  %w: f32[512,1,5,5] = const normal seed=2 scale=0.1
  %p = mul %x, %h
  %y = conv %p, %w, pads=[2,2,2,2], groups=512
  return y=%y
}
END
`$sinter compile $padded --target opencl --profile pocl -o $dir/out 2>&1`;
my ($staged) = slurp("$dir/out/plan.txt") =~ /scratch f32\[\d+\] bytes=(\d+)/;
unlink glob "$dir/out/*";
is($staged // 'none', 4 * 3 * 5 * 84 * 512, 'three rows, each with its five, once');
for my $device ('interp', 'opencl:pocl') {
  SKIP: {
    my $lacks = lacks($device);
    skip $lacks, 1 if $lacks;
    my ($code, $said) = says("$sinter run $padded --device $device --check");
    is($code, 0, "the same on $device") || diag($said);
  }
}

# Rows of texels that begin on whole ones, of a value between strips and of one that the host reads, too.
my $between = put('between.snt', <<'END');
graph @between(%x: f32[1,3,40,57]) {
  %f: f32[3,1,3,3] = const normal seed=1 scale=0.3
  %g: f32[3,1,3,3] = const normal seed=2 scale=0.3
  %a = conv %x, %f, pads=[1,1,1,1], groups=3
  %b = conv %a, %g, pads=[1,1,1,1], groups=3
  %c = conv %b, %f, pads=[1,1,1,1], groups=3
  never_fuse %a, %b
  never_fuse %b, %c
  return a=%a, y=%c
}
END
# Constants that strips alone read have rows of whole texels, not one that a product reads, too.
put('taps.snt', <<'END');
graph @taps(%x: f32[1,6,14,13], %z: f32[1,3,14,13], %q: f32[6,1,3,3]) {
  %f: f32[6,1,5,5] = const normal seed=1 scale=0.3
  %g: f32[3,1,3,3] = const normal seed=2 scale=0.3
  %h: f32[6,1,3,3] = const normal seed=3 scale=0.3
  %a = conv %x, %f, pads=[2,2,2,2], groups=6
  %b = conv %a, %h, pads=[1,1,1,1], groups=6
  %c = conv %z, %g, pads=[1,1,1,1], groups=3
  %s = mul %h, %q
  never_fuse %a, %b
  return a=%a, b=%b, c=%c, s=%s
}
END
my ($kir, $kir_texels) = map { put("kir_$_.profile", "base = $_\nname = kir_$_\ntarget = kir\n") } qw(pocl lavapipe);
for my $case (['crowded', "interp --profile $kir"], ['crowded', 'opencl:pocl'], ['between', "interp --profile $kir_texels"], ['between', 'vulkan:llvmpipe'],
              ['taps', "interp --profile $kir_texels"], ['taps', 'vulkan:llvmpipe'], ['taps', 'vulkan:swiftshader']) {
  my ($name, $device) = @$case;
  SKIP: {
    skip(lacks($device), 1) if lacks($device);
    my ($code, $said) = says("$sinter run $dir/$name.snt --device $device --check --quiet");
    is($code, 0, "$name on $device") or diag($said);
  }
}
done_testing();
