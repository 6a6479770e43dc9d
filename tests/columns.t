#!/usr/bin/perl
# Contractions whose columns are no whole vectors: where half a vector is left, one sum holds it for two rows (24 columns are three multiply-adds for two rows, not
# four); where channels are too few for vectors these lie along the positions, behind channels that lie last, too; where they are lanes, positions of rows that
# fill no tile are one row. Counted, and right for every form of the operands, number of rows and mode, on vectors of 4, 8 and 16. Output: TAP.
use strict;
use warnings;
use Test::More;
use JSON::PP;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
sub profile {
  my ($lanes, $target, $more) = @_;
  return put("$target$lanes.profile", "base = pocl\nname = wide\ntarget = $target\nlanes = $lanes\nregisters = 32\n" . ($more // ''));
}

sub linear {
  my ($rows, $terms, $columns) = @_;
  return <<"END";
graph \@linear(%x: f32[$rows,$terms]) {
  %w: f32[$columns,$terms] = const normal seed=1 scale=0.1
  %b: f32[$columns] = const normal seed=2 scale=1.0
  %p: f32[$rows,$columns] = linear %x, %w, %b
  %y: f32[$rows,$columns] = relu %p
  return y=%y
}
END
}
sub product {
  my ($rows, $terms, $columns, $type) = @_;
  return "graph \@product(%x: ${type}[3,$rows,$terms], %w: ${type}[3,$terms,$columns]) {\n  %y = matmul %x, %w\n  return y=%y\n}\n";
}
sub given {
  my ($rows, $terms, $columns) = @_;
  return "graph \@given(%x: f32[$rows,$terms], %w: f32[$columns,$terms]) {\n  %y = linear %x, %w\n  return y=%y\n}\n";
}
sub reaches { return <<'END' }
graph @reaches(%x: f32[2,32,13,29]) {
  %f: f32[32,1,3,3] = const normal seed=1 scale=0.5
  %w: f32[24,32,1,1] = const normal seed=2 scale=0.2
  %d = conv %x, %f, pads=[1,1,1,1], stride=[1,1], groups=32
  %r = clip %d, 0.0, 6.0
  %y = conv %r, %w
  return y=%y
}
END

# An image of few channels at the end of a network.
sub tail {
  my ($channels, $taps) = @_;
  my $pads = join ',', (($taps - 1) / 2) x 4;
  return <<"END";
graph \@tail(%x: f32[1,16,24,48]) {
  %v: f32[32,16,3,3] = const normal seed=1 scale=0.1
  %h = conv %x, %v, pads=[1,1,1,1]
  %r = relu %h
  %w: f32[$channels,32,$taps,$taps] = const normal seed=2 scale=0.1
  %c = conv %r, %w, pads=[$pads]
  %y = relu %c
  return y=%y
}
END
}

# The same behind channels that became positions.
sub enlarged {
  my $text = tail(@_);
  $text =~ s/x: f32\[1,16,24,48\]/x: f32[1,16,12,24]/;
  $text =~ s/v: f32\[32,/v: f32[128,/;
  return $text =~ s/relu %h/relu %e/r =~ s{(  %h = [^\n]*\n)}{$1  %s = reshape %h, shape=[1,32,2,2,12,24]\n  %t = transpose %s, perm=[0,1,4,2,5,3]\n  %e = reshape %t, shape=[1,32,24,48]\n}r;
}

# The same behind a concatenation whose last part is a smaller map: neighbours of it are one element.
sub joined {
  my ($channels) = @_;
  return <<"END";
graph \@joined(%x: f32[1,16,24,48], %z: f32[1,16,24,24]) {
  %f: f32[1,16,24,24] = neg %z
  %r: f32[1,16,24,24,2] = broadcast %f, axes=[0,1,2,3]
  %u = reshape %r, shape=[1,16,24,48]
  %p = concat %x, %u, axis=1
  %w: f32[$channels,32,3,3] = const normal seed=2 scale=0.1
  %c = conv %p, %w, pads=[1,1,1,1]
  %y = relu %c
  return y=%y
}
END
}

# ---- how many ----

for my $case ([16, 24, 3], [16, 32, 4], [8, 12, 3], [8, 20, 5], [16, 28, 4]) {
  my ($lanes, $columns, $of_two) = @$case;
  my ($code, $said) = says("$sinter inspect-kernel", put('count.snt', linear(64, 96, $columns)), '--profile', profile($lanes, 'opencl'), '--sample 64 --json');
  my $k = $code ? {} : decode_json($said)->[0];
  is(($k->{mix}{fma} // 0) * ($k->{groups} // 0), 32 * 96 * $of_two, "$columns columns in vectors of $lanes: $of_two multiply-adds of two rows") or diag($said);
}

for my $case ([1, 5], [2, 3], [3, 3], [3, 9], [6, 11], [1, 5, 1], [3, 3, 1]) {
  my ($channels, $taps, $enlarged) = @$case;
  my $graph = put('count.snt', $enlarged ? enlarged($channels, $taps) : tail($channels, $taps));
  my ($code, $said) = says("$sinter inspect-kernel", $graph, '--profile', profile(16, 'opencl'), '--sample 64 --json');
  my @kernels = $code ? () : @{decode_json($said)};
  my ($fma, $loads) = @kernels ? map { $kernels[-1]{mix}{$_} * $kernels[-1]{groups} } qw(fma global) : (0, 0);
  my $least = $channels * 32 * $taps * $taps * 24 * 48 / 16;
  ok($fma >= $least && $fma <= 1.4 * $least, "$channels channels of $taps x $taps taps" . ($enlarged ? ', enlarged' : '') . ": $fma multiply-adds of vectors, $least at least") or diag($said);
  ok($loads <= 2 * $fma, "and $loads loads and stores") or diag($said);
}

# Twelve are turned: tiles, not element by element.
for my $case (['enlarged', enlarged(12, 3)], ['several positions in one element', joined(12)], ['of few channels', joined(3)]) {
  my ($code, $said) = says("$sinter inspect-kernel", put('count.snt', $case->[1]), '--profile', profile(16, 'opencl'), '--sample 64 --json');
  ok(!$code && (grep { $_->{kernel} =~ /_contract$/ } @{decode_json($said)}), "$case->[0]: tiles") or diag($said);
}

# Products that share their columns in one tile read these once for all of them, and what they do not share leaves them as many registers: 16 hold three rows of two.
{
  my $graph = put('count.snt', "graph \@two(%a: f32[48,64], %b: f32[48,64], %m: f32[64,64]) {\n  %x = matmul %a, %m\n  %y = matmul %b, %m\n  must_fuse %x, %y\n  return x=%x, y=%y\n}\n");
  my ($code, $said) = says("$sinter inspect-kernel", $graph, '--profile', put('few.profile', "base = pocl\nname = few\ntarget = opencl\n"), '--sample 64 --json');
  my @kernels = $code ? () : @{decode_json($said)};
  my ($fma, $loads) = @kernels == 1 ? map { $kernels[0]{mix}{$_} } qw(fma global) : (0, 0);
  ok($fma > 0 && $loads < 0.8 * $fma, "two products beside one matrix: $loads loads and stores for $fma multiply-adds") or diag($said);
}

# Weights that are given at run time are packed by whole vectors: blocks of their rows are turned in registers.
{
  my ($code, $said) = says("$sinter compile", put('count.snt', given(256, 512, 512)), '--target opencl --profile', profile(16, 'opencl'), "-o $dir/given");
  my $kernel = `cat $dir/given/k0_contract.cl 2>/dev/null`;
  my ($whole, $single) = map { scalar(() = $kernel =~ /$_/g) } qr/^\s*\*\(__global float16 \*\)\([^=]*\) = /m, qr/^\s*\w+\[[^=]*\] = v/m;
  ok(!$code && $whole >= 16 && $single == 0, "weights of a run: $whole stores of whole vectors, $single of elements") or diag($said);
}

# Columns of two axes that lie together in the constant are as many as both have: real and imaginary parts of a transform.
{
  my $graph = put('count.snt', "graph \@fourier(%x: f32[1,4096,1], %w: f32[128]) {\n  %y = stft %x, %w, step=64, onesided\n  return y=%y\n}\n");
  my ($code, $said) = says("$sinter inspect-kernel", $graph, '--profile', profile(16, 'opencl'), '--sample 64 --json');
  my ($k) = $code ? () : grep { $_->{kind} eq 'contract' } @{decode_json($said)};
  my ($fma, $least) = (($k->{mix}{fma} // 0) * ($k->{groups} // 0), 63 * 128 * 130 / 16);
  ok($fma >= $least && $fma <= 1.25 * $least, "a transform to 65 complex bins: $fma multiply-adds of vectors, $least at least") or diag($said);
}

# Lanes along positions: a convolution of one tap goes over all of a map as over one row of as many.
sub one_tap {
  my ($height, $width, $images) = @_;
  return "graph \@tap(%x: f32[$images,24,$height,$width]) {\n  %w: f32[40,24,1,1] = const normal seed=1 scale=0.1\n  %c = conv %x, %w\n  %y = relu %c\n  return y=%y\n}\n";
}
sub done {
  my ($code, $said) = says("$sinter inspect-kernel", put('count.snt', one_tap(@_)), '--profile lavapipe --sample 64 --json');
  my @kernels = $code ? () : @{decode_json($said)};
  return @kernels == 1 ? join ' ', map({ $kernels[0]{$_} } qw(groups items)), map({ "$_ $kernels[0]{mix}{$_}" } qw(float integer global)) : $said;
}
for my $case ([14, 14, 1], [7, 7, 2], [3, 20, 1]) {
  my ($height, $width, $images) = @$case;
  is(done($height, $width, $images), done(1, $height * $width, $images), "$height x $width positions are one row");
}

{ # rows of unknown number stay rows: columns of a tile are a literal
  my ($code, $said) = says("$sinter inspect-kernel", put('open.snt', "symbols { n: min=1 max=64 multiple_of=1 hint=14 }\n" . one_tap('n', 14, 1)), '--profile lavapipe --sample 64 --json');
  my ($k) = $code ? () : @{decode_json($said)};
  ok(($k->{mix}{float} // 0) > 1000, 'n x 14 positions are tiles') or diag($said);
}

# ---- and right ----

my %graphs = ('few channels of several positions in one' => joined(3), 'twelve' => joined(12), map({ my ($c, $t) = @$_; ("$c channels of $t x $t taps" => tail($c, $t)) } [1, 3], [2, 5], [3, 3], [3, 9], [6, 5]),
              map({ my ($c, $t) = @$_; ("$c channels of $t x $t taps, enlarged" => enlarged($c, $t)) } [1, 3], [3, 3], [12, 3]),
              map({ my ($r, $k, $n) = @$_; ("linear $r x $k x $n" => linear($r, $k, $n)) } [64, 96, 24], [7, 33, 24], [1, 64, 12], [50, 2048, 24], [2, 5, 56], [13, 40, 6]),
              map({ my ($r, $k, $n, $t) = @$_; ("product $r x $k x $n of $t" => product($r, $k, $n, $t)) } [16, 48, 24, 'f32'], [9, 31, 12, 'f16'], [6, 8, 40, 'i32']),
              map({ my ($r, $k, $n) = @$_; ("given $r x $k x $n" => given($r, $k, $n)) } [64, 64, 64], [7, 48, 32], [33, 40, 24]),
              'stencil and columns' => reaches());
for my $name (sort keys %graphs) {
  my $graph = put('right.snt', $graphs{$name});
  for my $device ('interp', 'opencl:pocl') {
    for my $lanes (4, 8, 16) {
      my $profile = profile($lanes, $device eq 'interp' ? 'kir' : 'opencl');
      my $run = "$sinter run $graph --device $device --profile $profile --check";
      my ($code, $said) = says($run);
      SKIP: {
        skip(lacks($device), 1) if lacks($device);
        my @bad = map { my ($c, $s) = says("$run --numerics $_"); $c ? "$_: $s" : () } $lanes == 16 ? qw(strict fast reproducible) : ();
        ok(!$code && !@bad, "$name in vectors of $lanes on $device" . ($lanes == 16 ? ', in every mode' : '')) or diag($said, @bad);
      }
    }
  }
}
for my $case ([14, 14, 1], [7, 7, 2], [3, 20, 1], [5, 9, 3]) {
  my ($code, $said) = says("$sinter run", put('tap.snt', one_tap(@$case)), '--device interp --profile', put('kir_lanes.profile', "base = lavapipe\nname = kir_lanes\ntarget = kir\n"), '--check');
  ok(!$code, "positions of @$case in lanes are right") or diag($said);
}

# ---- and near ----

# 25600 times a tenth: one sum after another is off by 1e-5 of it, sums of the rows' sums are not.
{
  my $graph = put('mean.snt', "graph \@mean(%x: f32[1,160,160,16]) {\n  %y = mean %x, axes=[1,2]\n  return y=%y\n}\n");
  my $input = npy('tenths.npy', '<f4', [1, 160, 160, 16], pack('f<', 0.1) x (160 * 160 * 16));
  my $tenth = unpack 'f<', pack 'f<', 0.1;
  for my $device ('opencl:pocl', 'vulkan:llvmpipe') {
    my ($code, $said) = says("$sinter run $graph --device $device --input x=$input --output y=$dir/y.npy --quiet");
    SKIP: {
      skip(lacks($device), 1) if lacks($device);
      open my $in, '<:raw', "$dir/y.npy" or do { fail("$device: $said"); next };
      local $/;
      my ($worst) = sort { $b <=> $a } map { abs($_ - $tenth) } unpack 'f<*', substr <$in>, 128;
      ok(!$code && $worst <= 1e-7, "the mean of 25600 tenths on $device is off by $worst") or diag($said);
    }
  }
}

# Where a port takes a vector in two parts, columns that vectors of a port's width waste less of lie in those, and no row shares one with another; whole ones, and those of
# which either wastes as little, do not: half as many loads.
for my $case ([24, 8], [72, 8], [32, 16], [40, 16], [1013, 16]) {
  my ($columns, $lanes) = @$case;
  my $model = put("parts$columns.snt", linear(96, 50, $columns));
  my ($code, $said) = says("$sinter compile $model --target opencl --profile " . profile(16, 'opencl', "port_lanes = 8\n") . " -o $dir/parts$columns");
  my %sums = map { $_ => 1 } map { slurp($_) =~ /(float\d+) v\d+ = \(float\d+\)\(0x0p\+0f\)/g } glob "$dir/parts$columns/*.cl";
  is(join(' ', $code, sort keys %sums), "0 float$lanes", "$columns columns, a port of 8 lanes: sums of $lanes") or diag($said);
  ($code, $said) = says("$sinter run $model --device interp --profile " . profile(16, 'kir', "port_lanes = 8\n") . ' --check');
  is($code, 0, "$columns columns, a port of 8 lanes: they are right") or diag($said);
}
# Channels that vectors leave over, in Winograd's transforms and the padded source that is staged for them: one more vector, which begins before those; right on each device.
my $left = put('left.snt', <<'END');
graph @left(%x: f32[1,53,23,21], %r: f32[1,61,23,21]) {
  %w: f32[61,53,3,3] = const normal seed=1 scale=0.1
  %c = conv %x, %w, pads=[1,1,1,1]
  %s = add %c, %r
  %y = relu %s
  return y=%y
}
END
{
  my ($code, $said) = says("$sinter compile $left --target opencl --profile " . profile(16, 'opencl') . " -o $dir/left");
  my @transforms = map { slurp($_) } glob "$dir/left/*_winograd.cl";
  is(scalar(@transforms), 2, 'channels left over: two transforms') or diag($said);
  is(scalar(grep { /< (?:53|61)u; v\d+ \+= [1-9]u\)/ } @transforms), 0, 'channels left over: none goes alone') or diag(@transforms);
  for my $run ('interp --profile ' . profile(16, 'kir'), 'opencl:pocl --profile ' . profile(16, 'opencl'), 'opencl:pocl', 'vulkan:llvmpipe') {
    my ($device) = $run =~ /^(\S+)/;
    SKIP: {
      skip(lacks($device), 1) if $device ne 'interp' && lacks($device);
      ($code, $said) = says("$sinter run $left --device $run --check --quiet");
      is($code, 0, "channels left over: right on $device") or diag($said);
    }
  }
}
# Weights of a transposed convolution, of more elements than are folded: their taps are turned and joined, which no strides say, and they are in panels all the same.
put('turned.w', pack 'f<*', map { sin $_ } 1 .. 64 * 128 * 36);
my $turned = put('turned.snt', <<'END');
graph @turned(%x: f32[1,64,24]) {
  %w: f32[64,128,36] = const data="turned.w"
  %y = conv_transpose %x, %w, stride=[12], pads=[4,4]
  return y=%y
}
END
my ($made, $words) = says("$sinter compile $turned --target opencl --profile pocl -o $dir/turned --quiet");
is(scalar(() = glob "$dir/turned/*_contract.cl"), 1, 'weights of a transposed convolution are in panels') or diag($words);
($made, $words) = says("$sinter run $turned --device interp --check");
is($made, 0, 'and right') or diag($words);
# One position has no neighbours that its taps could meet, whatever the stride is: a product, and no sum over a padded map. With an axis of several beside it, too.
for (['1,16,1,1', '4,4', 1, '0,0,0,0', qr/output f32\[1,24,4,4\].* flops=0x1\.8p\+13 /s], ['1,16,1,6', '3,4', 2, '1,1,0,1', qr/output f32\[1,24,2,12\]/]) {
  my ($extents, $taps, $stride, $pads, $says) = @$_;
  my $position = put('position.snt', <<"END");
graph \@position(%x: f32[$extents]) {
  %w: f32[16,24,$taps] = const normal seed=1 scale=0.1
  %y = conv_transpose %x, %w, stride=[$stride,$stride], pads=[$pads]
  return y=%y
}
END
  ($made, $words) = says("$sinter compile $position --target opencl --profile pocl -o $dir/position --quiet");
  like(slurp("$dir/position/plan.txt"), $says, "transposed, of $extents: as many operations as a product has") or diag($words);
  ($made, $words) = says("$sinter run $position --device interp --check");
  is($made, 0, '.. and right') or diag($words);
}
# A convolution along one axis is shared out by its rows, and each part copies all of the padded source: a part for each unit.
my $line = put('line.snt', <<'END');
graph @line(%x: f32[1,32,4096]) {
  %w: f32[32,32,5] = const normal seed=1 scale=0.1
  %s = relu %x
  %y = conv %s, %w, pads=[2,2]
  return y=%y
}
END
($made, $words) = says("$sinter compile $line --target opencl --profile pocl -o $dir/line --quiet");
like(slurp("$dir/line/plan.txt"), qr/_contract kernel=0 groups=2 \(rw b0\[0, 1049600\]/, 'along one axis: a copy for each unit') or diag($words);
($made, $words) = says("$sinter run $line --device interp --profile " . profile(16, 'kir') . ' --check');
is($made, 0, 'and right') or diag($words);
done_testing;
