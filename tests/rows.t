#!/usr/bin/perl
# Norms of rows whose results are moved: to other rows, which a kernel of rows does not take in (fusion/schedule/row_legal.c), or along the row, where a sum that is
# known is not computed again below a condition (fusion/emit/value.c); matrices times a vector; elements by number. How many kernels and loops there are, and the answer on each device here. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# `sinter run` with these arguments answers within the bounds on each of these devices that is here.
sub right {
  my ($run, $what, @devices) = @_;
  for my $device (@devices) {
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      my ($code, $said) = says("$sinter run $run --device $device --check --quiet");
      is($code, 0, "@{[$device =~ s!/\S*/!!r]}: $what") or diag($said);
    }
  }
}

my $norm = <<'END';
graph @g(%x: f32[1,14,14,96]) {
  %m = mean %x, axes=[3], keep
  %mb = broadcast %m, axes=[0,1,2,3], shape=[1,14,14,96]
  %d = sub %x, %mb
  %q = mul %d, %d
  %v = mean %q, axes=[3], keep
  %r = rsqrt %v
  %rb = broadcast %r, axes=[0,1,2,3], shape=[1,14,14,96]
  %n = mul %d, %rb
END
my $roll = "  %s1 = slice %n, starts=[0,3,0,0], sizes=[1,11,14,96]\n  %s2 = slice %n, sizes=[1,3,14,96]\n  %c = concat %s1, %s2, axis=1\n";
my $halves = "  %h1 = slice %n, starts=[0,0,0,48], sizes=[1,14,14,48]\n  %h2 = slice %n, sizes=[1,14,14,48]\n  %h = neg %h1\n  %c = concat %h, %h2, axis=3\n";
my @cases = ( # name, kernels, most loops in the first of them, what follows the norm
  ['norm', 1, 12, "  return y=%n\n"],
  ['rolled', 2, 12, "$roll  return y=%c\n"],
  ['rolled twice', 2, 12, "$roll  %t1 = slice %c, starts=[0,0,3,0], sizes=[1,14,11,96]\n  %t2 = slice %c, sizes=[1,14,3,96]\n  %y = concat %t1, %t2, axis=2\n  return y=%y\n"],
  ['rolled and added', 2, 12, "$roll  %e = exp %x\n  %y = add %e, %c\n  return y=%y\n"],
  ['shifted', 2, 12, "  %s = slice %n, starts=[0,3,0,0], sizes=[1,11,14,96]\n  %y = pad %s, low=[0,0,0,0], high=[0,3,0,0]\n  return y=%y\n"],
  ['turned', 2, 12, "  %y = transpose %n, perm=[0,2,1,3]\n  return y=%y\n"],
  ['turned in another shape', 2, 12, "  %a = reshape %n, shape=[56,56,6]\n  %t = transpose %a, perm=[1,0,2]\n  %y = max %a, %t\n  return y=%y\n"],
  ['picked', 2, 12, "  %i: i32[14] = const [13,12,11,10,9,8,7,6,5,4,3,2,1,0]\n  %y = gather %n, %i, axis=1\n  return y=%y\n"],
  ['in windows', 1, 12, "  %a = reshape %n, shape=[1,2,7,2,7,96]\n  %y = transpose %a, perm=[0,1,3,2,4,5]\n  return y=%y\n"],
  ['half by half', 1, 12, "$halves  %cx = mul %c, %x\n  %y = add %n, %cx\n  return y=%y\n"],
);
for my $case (@cases) {
  my ($name, $kernels, $loops, $rest) = @$case;
  (my $file = "$dir/$name") =~ s/ /_/g;
  open my $out, '>', "$file.snt" or die $!;
  print $out "$norm$rest}\n";
  close $out;
  my @kinds = `$sinter explain $file.snt --profile pocl --json` =~ /"kind": "(\w+)"/g;
  is(scalar(@kinds), $kernels, "$name: @kinds");
  system("$sinter compile $file.snt --target opencl --profile pocl -o $file.out >/dev/null 2>&1");
  my ($first) = sort glob "$file.out/k0_*.cl";
  my $many = $first ? () = `cat '$first'` =~ /\bfor \(/g : 0;
  ok($many > 0 && $many <= $loops, "$name: $many loops");
  right("$file.snt", $name, 'interp', 'opencl:pocl', 'vulkan:llvmpipe');
}

# A matrix times a vector (fusion/rewrite/rewrite.c): a sum of products where the terms lie beside each other, else columns in vectors.
for my $case (['as it lies', 'reduce', '64,512', ''], ['turned', 'contract', '512,64', "  %m = transpose %s, perm=[1,0]\n"]) {
  my ($name, $kind, $shape, $turn) = @$case;
  (my $file = "$dir/$name") =~ s/ /_/g;
  my $matrix = $turn ? '%m' : '%s';
  open my $out, '>', "$file.snt" or die $!;
  print $out "graph \@g(%x: f32[1,512], %q: i8[$shape]) {\n  %c = cast %q, dtype=f32\n  %s = mul %c, 0.125\n$turn  %y = contract %x, $matrix, lhs=[0,1], out=[0,2], rhs=[2,1]\n  return y=%y\n}\n";
  close $out;
  my ($is) = `$sinter explain $file.snt --profile pocl --json` =~ /"kind": "(\w+)"/;
  is($is, $kind, "a matrix, $name, times a vector");
  right("$file.snt", "a matrix, $name, times a vector", 'interp', 'opencl:pocl', 'vulkan:llvmpipe');
}

# A sum or an extreme down long columns, several of them one after another, and what is stored of whole columns behind them: up to four vectors of columns at once, as many as divide their
# number (fusion/schedule/row.c).
my $kir = put('kir.profile', "base = pocl\nname = kir\ntarget = kir\n");
for my $columns (1024, 1000, 520) {
  my $centred = "%t = reduce.sum %x, axes=[0], keep\n  %m = mul %t, 0x1p-7\n  %b = broadcast %m, shape=[130,$columns]\n  %d = sub %x, %b\n  %q = mul %d, %d\n  %v = reduce.sum %q, axes=[0], keep\n";
  for my $body ('%s = reduce.sum %x, axes=[0]', "%a = abs %x\n  %s = reduce.max %a, axes=[0]",
                "%q = mul %x, %x\n  %t = reduce.sum %q, axes=[0]\n  %m = reduce.min %x, axes=[0]\n  %s = add %t, %m\n  must_fuse %t, %s\n  must_fuse %m, %s",
                "$centred  %s = add %v, %m\n  must_fuse %d, %v", "$centred  %w = broadcast %v, shape=[130,$columns]\n  %s = div %d, %w\n  must_fuse %t, %s\n  must_fuse %v, %s") {
    my $file = put('down.snt', "graph \@g(%x: f32[130,$columns]) {\n  $body\n  return s=%s\n}\n");
    my ($what) = $body =~ /(reduce\.\w+)/;
    right($file, "$what down $columns columns", "interp --profile $kir", 'opencl:pocl', 'vulkan:llvmpipe');
    next if $columns != 1024;
    system("rm -rf $file.out; $sinter compile $file --target opencl --profile pocl -o $file.out --quiet >/dev/null 2>&1");
    my ($first) = sort glob "$file.out/k0_*.cl";
    my @chains = $first ? `cat '$first'` =~ /^ +float8 v\d+ = \(float8\)\(/mg : ();
    my @sweeps = $body =~ /reduce\.\w+/g;
    is(scalar @chains, 4 * @sweeps, 'four vectors of them at once, in each of ' . @sweeps . ' sweeps');
  }
}

# Layers of quantised activations: what is made of a row's own vector is made once a work-item, not in each row (fusion/schedule/row.c); weights of several products, which each would
# widen, are panels of f32 (fusion/rewrite/rewrite.c).
my $layer = sub { my ($q, $x, $y) = @_; return "  %t$y = tanh $x\n  %m$y = mul %t$y, 0x1p+6\n  %r$y = round %m$y\n  %c$y = cast $q, dtype=f32\n  %y$y = contract %r$y, %c$y, lhs=[0,1], out=[0,2], rhs=[2,1]\n" };
for my $case (['one layer', 'reduce', 1], ['two layers of the same weights', 'contract', 2]) {
  my ($name, $kind, $layers) = @$case;
  (my $short = $name) =~ s/ /_/g;
  my $file = put("$short.snt", "graph \@g(%x: u8[1,128]) {\n  %q: i8[128,128] = const normal seed=1 scale=40\n  %y0 = cast %x, dtype=f32\n" . join("", map { $layer->('%q', '%y' . ($_ - 1), $_) } 1 .. $layers) . "  return y=%y$layers\n}\n");
  my @kinds = `$sinter explain $file --profile pocl --json` =~ /"kind": "(\w+)"/g;
  is($kinds[-1], $kind, "$name: @kinds");
  if ($layers == 1) {
    system("$sinter compile $file --target opencl --profile pocl -o $file.out >/dev/null 2>&1");
    my ($first) = glob "$file.out/*_reduce.cl";
    my $before = $first ? `cat '$first'` =~ /^(.*?\bfor \(.*?)\bfor \(/s ? $1 : '' : '';
    like($before, qr/0x1.715476p\+0f/, "$name: tanh before the rows");
  }
  right($file, $name, 'interp', 'opencl:pocl', 'vulkan:llvmpipe');
}

# Products of one constant with steps of a sequence are steps of one product (fusion/rewrite/steps.c), where they take most of the steps: the products that there are then.
for my $case (['most steps', 7, 5, 0, 1], ['few steps', 20, 5, 0, 5], ['steps of two sides', 6, 6, 1, 2]) {
  my ($name, $length, $steps, $turned, $products) = @$case;
  (my $short = $name) =~ s/ /_/g;
  my ($lines, $y) = ('', '%h');
  for my $i (0 .. $steps - 1) {
    my $at = $length - 1 - $i;
    $lines .= "  %s$i = slice %x, starts=[0,$at,0], sizes=[2,1,48]\n  %r$i = reshape %s$i, shape=[2,48]\n  %p$i = contract %r$i, %w, lhs=[0,1], out=[0,2], rhs=[1,2]\n  %a$i = add %p$i, $y\n  %h$i = tanh %a$i\n";
    $lines .= "  %q$i = contract %v, %r$i, lhs=[2,1], out=[0,2], rhs=[0,1]\n  %b$i = add %q$i, %h$i\n" if $turned;
    $y = $turned ? "%b$i" : "%h$i";
  }
  my $file = put("$short.snt", "graph \@g(%x: f32[2,$length,48], %h: f32[2,32]) {\n  %w: f32[48,32] = const normal seed=1 scale=0.1\n  %v: f32[32,48] = const normal seed=2 scale=0.1\n${lines}  return y=$y\n}\n");
  my $found_products = () = `$sinter opt $file --run canonicalise,decompose,rewrite,canonicalise --profile pocl` =~ / = contract /g;
  is($found_products, $products, "$name: products");
  right($file, $name, 'interp', 'opencl:pocl', 'vulkan:llvmpipe');
}

# Squares and cubes by pow are products (fusion/rewrite/rewrite.c); other powers are not, nor one number to powers that are many. Special values come out the same.
my $kinds = npy('kinds.npy', '<f4', [16], pack 'f<*', 0, -0.0, 9**9**9, -9**9**9, 9**9**9 / 9**9**9, 1e13, -1e13, 1e20, 1e-20, 1.1, -1.1, -3, 1e-13, 0.3, 1, -1);
for my $case (['square', '%x', '2.0', 1, 0], ['cube', '%x', '3.0', 2, 0], ['power of half', '%x', '2.5', 0, 1], ['one number', '%y', '%z', 0, 1]) {
  my ($name, $base, $order, $muls, $powers) = @$case;
  (my $short = $name) =~ s/ /_/g;
  my $file = put("$short.snt", "graph \@g(%x: f32[16], %y: f32[]) {\n  %z: f32[16] = const 2.0\n  %p = pow $base, $order\n  %o = add %p, %x\n  return o=%o\n}\n");
  my $after = `$sinter opt $file --run decompose,rewrite --profile pocl`;
  is(join(' ', scalar(() = $after =~ / = mul /g), scalar(() = $after =~ / = pow /g)), "$muls $powers", "$name: products, powers") or diag($after);
  right("$file --input x=$kinds", $name, 'interp', 'opencl:pocl', 'vulkan:llvmpipe');
}

# Elements by numbers without a sign: kept in by one bound, by none where what they are made of says that they lie inside (fusion/emit/compute.c). Some lie outside.
my $near = put('near.snt', <<'TEXT');
graph @near(%x: f32[8], %i: u32[64]) {
  %far: u32[4] = const [4294967295, 8, 2147483648, 7]
  %a = gather %x, %far, axis=0
  %bound = min %i, 3
  %twice = mul %bound, 2
  %odd = add %twice, 1
  %b = gather %x, %odd, axis=0
  %even = mul %odd, 2
  %c = gather %x, %even, axis=0
  %most = mul %odd, 858993460
  %d = gather %x, %most, axis=0
  return a=%a, b=%b, c=%c, d=%d
}
TEXT
for my $output (['b', 1], ['c', 2], ['d', 2]) {
  my ($name, $bounds) = @$output;
  (my $text = `cat $near`) =~ s/return .*/return $name=%$name/;
  my $kernel = `$sinter compile ${\put("near_$name.snt", $text)} --profile interp --target opencl -o $dir/near_$name 2>&1; cat $dir/near_$name/*.cl`;
  my @bounds = $kernel =~ / = (v\d+) < \d+u \? \1 : \d+u;/g;
  my @reads = $kernel =~ /float v\d+ = p\d\[/g;
  is(@reads ? @bounds / @reads : $kernel, $bounds, "$name: bounds an element") or diag($kernel);
}
right($near, "numbers without a sign, some of which lie outside", 'interp', 'opencl:pocl', 'vulkan:llvmpipe');

# Rows with a transcendental function, stored while the next one is swept (fusion/schedule/row_trail.c), where a vector is a line: columns left over down to one, several axes of
# rows, one row a work-item (nothing to store meanwhile), rows that are kept apart as stores stream, and what must not wait: where elements of the row are read at other places.
for my $case (['softmax', '700,320', 1], ['columns left over', '333,301', 1], ['axes of rows', '3,70,299', 1], ['one row a work-item', '4,4096', 0], ['logarithm', '300,256', 1], ['streamed', '300,256', 1, 1], ['logarithm streamed', '300,256', 0, 1], ['turned round', '300,256', 0, 1], ['logarithm chosen', '300,256', 0]) {
  my ($name, $shape, $trails, $streams) = @$case;
  (my $short = "trail $name") =~ s/ /_/g;
  my $axis = () = $shape =~ /,/g;
  my $kept = $shape =~ s/\d+$/1/r;
  my $rest = $name =~ /logarithm/ ? "  %l = log %s\n  %lb = broadcast %l, shape=[$shape]\n  %y = sub %d, %lb\n" : "  %sb = broadcast %s, shape=[$shape]\n  %y0 = div %e, %sb\n" .
    ($name =~ /turned/ ? "  %r = slice %y0, starts=[0,255], sizes=[$shape], steps=[1,-1]\n  %y = add %r, %x\n" : "  %y = mul %y0, 2.0\n");
  my $sum = $name =~ /chosen/ ? "  %i: i32[300,1] = iota axis=0\n  %h = mul %i, -1640531535\n  %c = lt %h, 0\n  %s0 = reduce.sum %e, axes=[$axis], keep\n  %s = select %c, %s0, 1.0\n" : "  %s = reduce.sum %e, axes=[$axis], keep\n";
  my $file = put("$short.snt", "graph \@g(%x: f32[$shape]) {\n  %m = reduce.max %x, axes=[$axis], keep\n  %mb = broadcast %m, shape=[$shape]\n  %d = sub %x, %mb\n  %e = exp %d\n$sum$rest  return y=%y, s=%s\n}\n");
  my @profile = map { put("trail_$_.profile", "base = pocl\nname = trail\nlanes = 16\nregisters = 32\ntarget = $_\n" . ($streams ? "stream_threshold = 4096 B\n" : '')) } qw(opencl kir);
  system("$sinter compile $file --target opencl --profile $profile[0] -o $file.out >/dev/null 2>&1");
  my ($first) = sort glob "$file.out/k0_*.cl";
  my $text = $first ? `cat '$first'` : '';
  is($text =~ /^  for \(uint (\w+) = .*\n(?:.*\n)*?    (v\d+) = \1;\n/m ? 1 : 0, $trails, "$name: the row before is carried") or diag($text);
  right($file, "stored behind the next: $name", "interp --profile $profile[1]", 'opencl:pocl', 'vulkan:llvmpipe');
}

# Rows across the unit stride keep what is dear of them packed beside the item (schedule_keeps_rows): exp stands once in the kernel, also where vectors are left over, where two axes are
# reduced and where four vectors go side by side; not of columns too long for the near cache, nor of an open length.
for my $case (['softmax', '4,96,48', '[1]', 1], ['vectors left over', '3,70,37', '[1]', 1], ['two axes', '6,5,7,64', '[1,2]', 1], ['side by side', '2,256,512', '[1]', 2, 'add'], ['too long', '5000,32', '[0]', 2], ['open', 'n,32', '[0]', 2]) {
  my ($name, $shape, $axes, $times, $cheap) = @$case;
  my $dear = $cheap ? "  %e = add %d, %d\n" : "  %e = exp %d\n";
  my $open = $shape =~ /n/ ? "symbols { n: min=1 max=4096 multiple_of=1 hint=200 }\n" : '';
  (my $short = "across $name") =~ s/ /_/g;
  my $all = join ',', 0 .. ($shape =~ tr/,//);
  my $file = put("$short.snt", "${open}graph \@g(%x: f32[$shape], %z: f32[$shape]) {\n  %w = add %x, %z\n  %m = reduce.max %w, axes=$axes, keep\n  %mb = broadcast %m, axes=[$all], shape=[$shape]\n" .
    "  %d = sub %w, %mb\n$dear  %s = reduce.sum %e, axes=$axes, keep\n  %sb = broadcast %s, axes=[$all], shape=[$shape]\n  %y = sub %e, %sb\n  return y=%y\n}\n");
  my @profile = map { put("across_$_.profile", "base = pocl\nname = across\nlanes = 16\nregisters = 32\nlaunch_ns = 1000000 ns\ntarget = $_\n") } qw(opencl kir);
  system("$sinter compile $file --target opencl --profile $profile[0] -o $file.out >/dev/null 2>&1");
  my @kernels = glob "$file.out/k*.cl";
  my $text = @kernels == 1 ? `cat '@kernels'` : '';
  my $wanted = $cheap ? qr/^ *float \w+\[\d+\] __attribute__/m : qr/ < \(float16\)\(\(-0x1\.68p\+8f/;
  my $found = () = $text =~ /$wanted/g;
  is($found, $times, "$name: " . scalar(@kernels) . ' kernel, ' . ($cheap ? 'what is kept' : 'how often exp of vectors stands there')) or diag($text);
  right($file, "across: $name", "interp --profile $profile[1]", 'opencl:pocl', 'vulkan:llvmpipe');
}

# A dear row that is kept for the last sweep has a loop of its own ahead of another dear function of the sweep that makes it (fusion/schedule/row.c), wherever it lies; alone it is made by the way.
for my $case (['kept', '16,512', '%t', '', 5], ['an output', '16,512', '%t', ', e=%e', 5], ['vectors left over', '16,677', '%t', '', 6], ['alone', '16,512', '%a', '', 4]) {
  my ($name, $shape, $early, $more, $loops) = @$case;
  (my $base = "ahead_$name") =~ s/ /_/g;
  my $file = put("$base.snt", "graph \@g(%x: f32[$shape], %z: f32[$shape]) {\n  %e = exp %x\n  %a = mul %e, %z\n  %s = reduce.sum %e, axes=[1], keep\n  %b = broadcast %s, shape=[$shape]\n  %d = div %a, %b\n" .
    "  %t = tanh %e\n  return d=%d, t=$early$more\n}\n");
  my @profile = map { put("ahead_$_.profile", "base = pocl\nname = ahead\nlaunch_ns = 1000000 ns\nmin_groups = 2\ntarget = $_\n") } qw(opencl kir);
  system("$sinter compile $file --target opencl --profile $profile[0] -o $file.out >/dev/null 2>&1");
  my @kernels = glob "$file.out/k*.cl";
  my $text = @kernels == 1 ? `cat '@kernels'` : '';
  is(scalar(() = $text =~ /\bfor \(/g), $loops, "$name: $loops loops") or diag($text);
  right($file, "ahead: $name", "interp --profile $profile[1]", 'opencl:pocl', 'vulkan:llvmpipe');
}

# Down columns: extremes take turns in four of them (each is compared, and told from NaN, behind the one before it), in a loop or written out; sums, one after the other, have
# neighbouring vectors in one loop where two groups are left for each unit.
for my $case (['extremes', '302,24', 'max', 3, 'v\d+ \+= 4u', 1], ['extremes in pieces', '2,97,24', 'min', 3, 'v\d+ \+= 4u', 1],
  ['few extremes', '33,24', 'max', 1, '0\.0f\)+ > ', 4], ['sums', '512,64', 'sum', 4, 'v\d+ \+ 8\)', 2]) {
  my ($name, $shape, $op, $groups, $text, $times) = @$case;
  my $axis = ($shape =~ tr/,//) - 1;
  (my $base = "down_$name") =~ s/ /_/g;
  my $file = put("$base.snt", "graph \@g(%x: f32[$shape]) {\n  %y = reduce.$op %x, axes=[$axis]\n  return y=%y\n}\n");
  system("$sinter compile $file --target opencl --profile pocl -o $file.out --quiet >/dev/null 2>&1");
  my ($first) = sort glob "$file.out/k0_*.cl";
  my $source = `cat '$first'`;
  is(scalar(() = $source =~ /$text/g), $times, "$name: $times of $text") or diag($source);
  like(`cat '$file.out/plan.txt'`, qr/groups=$groups\b/, "$name: $groups groups");
  right($file, $name, 'interp', 'opencl:pocl');
}

my ($kir_dgpu, $kir_lavapipe) = map { put("kir_$_.profile", "base = $_\nname = kir_$_\ntarget = kir\n") } qw(dgpu lavapipe);
# An output that reads no result of a sweep is stored in the sweep that computes what it is made of (fusion/schedule/row_sweeps.c), and that is kept for nobody: down columns, along rows,
# beside the place of an extremum, in the second sweep of two. The new value of a state, and what reads a result of a sweep, wait for the last one.
for my $case (
  ['product', [2, 2], '', '  %y = mul %v, %m', '  %c = reduce.max %v, axes=[AXIS]', 'y=%y, c=%c, v=%v'],
  ['place', [2, 2], '', '  %y = mul %v, %m', '  %c = reduce.argmin %v, axes=[AXIS]', 'y=%y, c=%c'],
  ['flags', [2, 2], '', '  %y = gt %v, %m', '  %c = reduce.sum %v, axes=[AXIS]', 'y=%y, c=%c'],
  ['state', [3, 4], ', state %p: f32[64,256]', "  %y = mul %v, %p\n  update %p, %y", '  %c = reduce.max %v, axes=[AXIS]', 'c=%c'],
  ['second', [2, 4], '', '  %y = mul %v, %m', "  %a = reduce.max %x, axes=[AXIS]\n  %c = reduce.sum %v, axes=[AXIS]", 'a=%a, y=%y, c=%c'],
  ['last', [3, 4], '', '  %y = mul %v, %m', "  %c = reduce.sum %v, axes=[AXIS], keep\n  %b = broadcast %c, shape=[64,256]\n  %z = sub %y, %b", 'y=%y, z=%z']) {
  my ($name, $loops, $more, $own, $sweeps, $outputs) = @$case;
  for my $axis (0, 1) {
    my $text = "graph \@g(%x: f32[64,256], %m: f32[64,256]$more) {\n  %v = exp %x\n$own\n$sweeps\n  return $outputs\n}\n" =~ s/AXIS/$axis/gr;
    my $file = put("early_${name}_$axis.snt", $text);
    system("$sinter compile $file --target opencl --profile pocl -o $file.out --quiet >/dev/null 2>&1");
    my @kernels = sort glob "$file.out/k*.cl";
    my $count = $kernels[0] ? () = `cat '$kernels[0]'` =~ /for \(/g : 0;
    is($count, $loops->[$axis], "stored early: $name, axis $axis: loops");
    right($file, "stored early: $name, axis $axis", 'interp', "interp --profile $kir_dgpu", "interp --profile $kir_lavapipe", "interp --numerics reproducible --profile $kir_dgpu", 'opencl:pocl', 'vulkan:llvmpipe');
  }
}

# Few steps of a recurrence (fusion/outline_trips.c): a loop, of which explicit vectors make one kernel, or launches, where there are less than five, the weights are more than the
# units' own caches hold, or lanes are vectors.
for my $case (['small', 8, 48, 1, 4, 16], ['both ways', 8, 48, 2, 4, 18], ['few', 4, 48, 1, 8, 9], ['large', 5, 320, 1, 10, 10], ['one', 1, 48, 1, 2, 2]) {
  my ($name, $steps, $hidden, $directions, @kernels) = @$case;
  my $gates = 4 * $hidden;
  my $file = put("steps_${steps}_${hidden}_$directions.snt", "graph \@g(%x: f32[$steps,1,$hidden]) {\n  %w: f32[$directions,$gates,$hidden] = const normal seed=1 scale=0.05\n" .
    "  %r: f32[$directions,$gates,$hidden] = const normal seed=2 scale=0.05\n  %y, %h, %c = lstm %x, %w, %r\n  return y=%y, c=%c\n}\n");
  for my $profile ('pocl', 'dgpu') {
    is(() = `$sinter explain $file --profile $profile` =~ /^  k\d+_/mg, $kernels[$profile eq 'dgpu'], "$name steps: kernels on $profile");
  }
  right($file, "$name steps", 'interp', "interp --profile $kir_dgpu", 'opencl:pocl');
}

# Terms whose vectors lie across a seam are read lane by lane, and so as long as many: not written out.
my $seam = put('seam.snt', "graph \@g(%x: f32[32,60], %z: f32[32,60]) {\n  %p = relu %x\n  %q = relu %z\n  %c = concat %p, %q, axis=1\n  %y = reduce.sum %c, axes=[0]\n  return y=%y\n}\n");
system("$sinter compile $seam --target opencl --profile pocl -o $seam.out --quiet >/dev/null 2>&1");
cmp_ok(-s "$seam.out/k0_reduce.cl" // 1e9, '<', 20000, 'sums across a seam: a loop') or diag(`ls -l $seam.out`);
right($seam, 'sums across a seam', 'interp', 'opencl:pocl');

done_testing;
