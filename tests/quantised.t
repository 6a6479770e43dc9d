#!/usr/bin/perl
# Products of quantised values by words of four bytes (fusion/quantised.c, words.c): which, where, and that no sum is off, on each device here. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

sub weights { my ($count, $low, $span) = @_; return join ', ', map { ($_ * 37 + 11) % $span + $low } 0 .. $count - 1 }

# A profile of a processor that multiplies four bytes at once, for a target of the tests. CUDA has no vectors: what is written lane by lane has few of them.
sub profile {
  my ($target) = @_;
  my $lanes = $target eq 'cuda' ? 4 : 16;
  return put("$target.profile", "base = pocl\nname = words\ntarget = $target\nlanes = $lanes\nregisters = 32\ncaps.dot4 = 1\n");
}

# One of a GPU whose launches cost nothing, so that small codes are stored once more where they lie otherwise.
sub lanes { my ($target, $more) = @_; return put("lanes-$target.profile", "base = dgpu\nname = lanes\ntarget = $target\nlaunch_ns = 0 ns\ncaps.dot4 = 1\n" . ($more // '')) }

# Activations as %d, of codes %a less %za times a scale, then weights as %w.
sub activations {
  my ($zero) = @_;
  return "  %f = cast %x, dtype=f32\n  %o = sub %f, $zero.0\n  %d = mul %o, 0.0625\n";
}
sub linear { # rows x terms times terms x columns; the weights' type, least value, span and zero point
  my ($type, $zero, $rows, $terms, $columns, $w, $low, $span, $zw) = @_;
  return "graph \@g(%x: $type\[$rows,$terms]) {\n" . activations($zero) .
    "  %q: $w\[$terms,$columns] = const [" . weights($terms * $columns, $low, $span) . "]\n  %s: f32[$columns] = const normal seed=5 scale=0.01\n" .
    "  %g = cast %q, dtype=f32\n  %h = sub %g, $zw.0\n  %t = broadcast %s, axes=[1], shape=[$terms,$columns]\n  %w = mul %h, %t\n" .
    "  %m = matmul %d, %w\n  %b: f32[$columns] = const normal seed=6\n  %v = broadcast %b, axes=[1], shape=[$rows,$columns]\n  %r = add %m, %v\n  %y = relu %r\n  return y=%y\n}\n";
}
sub whole { # of integers, whose zero point is known when it runs
  my ($rows, $terms, $columns) = @_;
  return "graph \@g(%x: u8[$rows,$terms], %z: u8) {\n  %w: i8[$terms,$columns] = const [" . weights($terms * $columns, -127, 255) . "]\n" .
    "  %xw = cast %x, dtype=i16\n  %zw = cast %z, dtype=i16\n  %a = sub %xw, %zw\n  %b = cast %w, dtype=i16\n  %y = matmul %a, %b, dtype=i32\n  return y=%y\n}\n";
}
sub left { # weights times codes, whose columns are the lanes
  my ($rows, $terms, $columns) = @_;
  return "graph \@g(%u: f32[$terms,$columns]) {\n  %k = mul %u, 100.0\n  %p = max %k, 0.0\n  %x = cast %p, dtype=u8\n  %q: i8[$rows,$terms] = const [" .
    weights($rows * $terms, -127, 255) . "]\n  %a = cast %x, dtype=i32\n  %b = cast %q, dtype=i32\n  %y = matmul %b, %a, dtype=i32\n  return y=%y\n}\n";
}
sub conv { # of codes behind an operator, so that layout puts channels last
  my ($channels, $out, $groups, $zero, $more) = @_;
  my $each = $channels / $groups;
  return "graph \@c(%u: f32[1,$channels,9,11]" . ($zero =~ /^%/ ? ", $zero: u8" : '') . ") {\n  %n = tanh %u\n  %k = mul %n, 100.0\n  %p = max %k, 0.0\n  %x = cast %p, dtype=u8\n" .
    "  %q: i8[$out,$each,3,3] = const [" . weights($out * $each * 9, -127, 255) . "]\n  %xw = cast %x, dtype=i16\n" .
    ($zero =~ /^%/ ? "  %zz = cast $zero, dtype=i16\n  %a = sub %xw, %zz\n" : "  %a = sub %xw, $zero\n") .
    "  %b = cast %q, dtype=i16\n  %y = conv %a, %b, pads=[1,1,1,1], groups=$groups, dtype=i32$more\n  return y=%y\n}\n";
}
sub layers { # weights of two layers that are one constant, with zero points and scales of theirs
  my ($scales, $axes) = @_;
  return "graph \@l(%x: u8[24,64]) {\n" . activations(100) . "  %q: u8[2,64,40] = const [" . weights(2 * 64 * 40, 0, 256) . "]\n  %z: f32[2] = const [128.0, 117.0]\n" .
    "  %s: f32[$scales] = const normal seed=5 scale=0.01\n  %g = cast %q, dtype=f32\n  %o2 = broadcast %z, axes=[0], shape=[2,64,40]\n  %h = sub %g, %o2\n" .
    "  %t = broadcast %s, axes=[$axes], shape=[2,64,40]\n  %w = mul %h, %t\n" .
    join('', map { "  %p$_ = slice %w, starts=[$_,0,0], sizes=[1,64,40]\n  %w$_ = reshape %p$_, shape=[64,40]\n  %y$_ = matmul %d, %w$_\n" } 0, 1) . "  return y=%y0, z=%y1\n}\n";
}
sub recurrence { # three steps in both directions
  my $weights = sub { my ($name, $in) = @_; return "  %$name: i8[2,160,$in] = const [" . weights(320 * $in, -127, 255) . "]\n  %${name}f = cast %$name, dtype=f32\n  %${name}s = mul %${name}f, 0.002\n" };
  return "graph \@r(%x: f32[3,2,64]) {\n" . $weights->('w', 64) . $weights->('r', 40) . "  %y, %h, %c = lstm %x, %ws, %rs, quantize\n  return y=%y, c=%c\n}\n";
}
my @cases = ( # name, contractions of words, what it is, text
  ['unsigned', 1, 'unsigned codes, signed weights, a scale a column', linear('u8', 100, 24, 64, 40, 'i8', -127, 255, 0)],
  ['signed', 1, 'signed codes', linear('i8', 3, 24, 64, 40, 'i8', -127, 255, 0)],
  ['middle', 1, 'unsigned weights around 128', linear('u8', 0, 24, 64, 40, 'u8', 0, 256, 128)],
  ['uneven', 2, 'unsigned weights around 117: the sums of the rows are of both', linear('u8', 9, 24, 64, 40, 'u8', 0, 256, 117)],
  ['none', 2, 'unsigned weights without a zero point', linear('u8', 9, 24, 64, 40, 'u8', 0, 256, 0) =~ s/  %h = sub %g, 0.0\n//r =~ s/mul %h/mul %g/r],
  ['bare', 1, 'signed codes without one', linear('i8', 3, 24, 64, 40, 'i8', -127, 255, 0) =~ s/  %o = sub %f, 3.0\n//r =~ s/mul %o/mul %f/r],
  ['turned', 0, 'columns turned round below their scales: as they are', linear('u8', 100, 24, 64, 40, 'i8', -127, 255, 0) =~ s/  %m = matmul %d, %w/  %back = slice %w, starts=[0,39], sizes=[64,40], steps=[1,-1]\n  %m = matmul %d, %back/r],
  ['left', 1, 'weights times codes', left(24, 64, 40)],
  ['row', 1, 'one row', linear('u8', 100, 1, 64, 40, 'i8', -127, 255, 0)],
  ['whole', 1, 'integers', whole(24, 400, 40)],
  ['long', 1, 'sums of integers beyond 24 bits', whole(4, 4096, 32)],
  ['conv', 1, 'a convolution: what pads is the zero point', conv(8, 24, 1, 7, '')],
  ['conv_zero', 1, 'a convolution whose zero point is known when it runs', conv(8, 24, 1, '%z', '')],
  ['strided', 1, 'every other position', conv(8, 24, 1, 7, ', stride=[2,2]')],
  ['grouped', 1, 'groups', conv(16, 32, 2, 7, '')],
  ['depthwise', 0, 'a channel each: nothing is summed along a word', conv(8, 8, 8, 7, '')],
  ['thirds', 1, 'words that bytes do not fill', linear('u8', 100, 24, 67, 40, 'i8', -127, 255, 0)],
  ['colours', 1, 'three channels are a word', conv(3, 24, 1, 7, '')],
  ['two', 0, 'two are not', conv(2, 24, 1, 7, '')],
  ['short', 0, 'too few terms', linear('u8', 100, 24, 12, 40, 'i8', -127, 255, 0)],
  ['layers', 3, 'a part of weights, with a zero point and a scale of its own: the sums of the rows are of both', layers(2, 0)],
  ['columns', 3, 'a scale of each of its columns', layers('2,40', '0,2')],
  ['recurrence', 6, 'an LSTM whose inputs and states are rounded: a product of each direction, and of each step behind the first', recurrence()],
  ['mean', 0, 'what is taken off is no whole number', linear('u8', 100, 24, 64, 40, 'i8', -127, 255, 0) =~ s/100\.0/100.5/r],
);
my $words = profile('opencl');
my $passes = 'outline,canonicalise,decompose,quantised,integers,rewrite,layout,words';
sub packed { my ($name, $profile, $more) = @_; my $said = `$sinter opt $dir/$name.snt --run $passes --profile $profile $more 2>&1`; my @found = $said =~ /\bpacked\b/g; return $? ? $said : scalar @found }
for my $case (@cases) {
  my ($name, $want, $why, $text) = @$case;
  put("$name.snt", $text);
  is(packed($name, $words, ''), $want, $why);
}
my $lanes = lanes('spirv');
is(packed($_->[0], $lanes, ''), $_->[1], "lanes: $_->[2]") for @cases;
is(packed('signed', 'dgpu', ''), 0, 'what is multiplied faster is less than a launch');
is(packed('unsigned', 'dgpu', ''), 1, 'where codes lie ready there is none');
is(packed('unsigned', put('texels.profile', "base = lavapipe\nname = texels\ncaps.dot4 = 1\n"), ''), 0, 'not where reads go through texels');
is(packed('unsigned', $_, ''), 0, "$_ has no product of mixed signs") for 'igpu', 'mobile';
for my $case (['i8', 0], ['u8', 1]) {
  my ($type, $words) = @$case;
  put("units-$type.snt", "graph \@u(%x: $type\[64,64]) {\n  %w: i8[64,64] = const [" . weights(4096, -127, 255) . "]\n  %y = matmul_integer %x, %w\n  return y=%y\n}\n");
  is(packed("units-$type", 'h100', ''), $words, "$type times i8: " . ($words ? 'matrix units multiply one type' : 'for matrix units'));
}
is(packed('unsigned', 'pocl', ''), 0, 'not where the device has no instruction');
is(packed('unsigned', $words, '--mask dot4=0'), 0, 'or is told that it has none');
my $compiled = `$sinter compile $dir/unsigned.snt --device interp --target kir -o $dir/interpreted 2>&1`;
like(join('', map { slurp($_) } glob "$dir/interpreted/*.kir"), qr/\bdot4 /, 'the interpreter is given them on any processor') or diag($compiled);
is(packed('unsigned', $words, '--numerics strict'), 0, 'scales behind sums are not for STRICT');
is(packed('whole', $words, '--numerics strict'), 1, 'integers are exact in every mode');
my $found = `$sinter devices 2>&1`;
my @runs = (['interp', '--profile ' . profile('interp'), 'kernels of words'], ['opencl:pocl', '', 'as the device is'], ['opencl:oclgrind', "--profile $words", 'without the instruction'],
  ['cuda-text', '--profile ' . profile('cuda'), 'as CUDA'], ['vulkan:llvmpipe', '', 'as the device is'],
  ['interp', '--profile ' . lanes('kir'), 'kernels of lanes'], ['cuda-text', '--profile ' . lanes('cuda'), 'lanes as CUDA'], ['opencl:pocl', '--profile ' . lanes('opencl'), 'lanes as OpenCL C'],
  ['vulkan:llvmpipe', "--profile $lanes", 'by its instruction'],
  ['vulkan:swiftshader', '--profile ' . lanes('spirv', join '', map { "caps.$_ = 0\n" } 'int8_storage', 'int16_storage', 'f16_storage', 'bf16_storage', 'int64', 'f64'), 'by its instruction']);
for my $run (@runs) {
  my ($device, $options, $how) = @$run;
  SKIP: {
    skip("$device is not here", scalar @cases) if $device !~ /interp|oclgrind/ && $found !~ /\Q$device\E/;
    for my $case (@cases) {
      my $command = "$sinter run $dir/$case->[0].snt --device $device $options --check --quiet 2>&1";
      my $said = `$command`;
      if ($device =~ /oclgrind/ && ($? & 127 || $? >> 8 > 128)) { # once in a hundred runs its LLVM ends in a null pointer
        diag("$device ended with $?; again");
        $said = `$command`;
      }
      skip("$device: $said", 1) if $said =~ /Oclgrind is not installed/;
      ok($? == 0, "$device, $how: $case->[2]") or diag($said);
    }
  }
}
# as SPIR-V and as PTX
SKIP: {
  my $out = "$dir/module";
  skip('no spirv-val or spirv-dis', 3) if grep { system("command -v $_ >/dev/null 2>&1") } 'spirv-val', 'spirv-dis';
  my $said = `$sinter compile $dir/conv.snt --target spirv --profile $lanes -o $out 2>&1`;
  is($?, 0, 'a convolution as SPIR-V') or diag($said);
  my @bad = grep { system("spirv-val --target-env vulkan1.1 $_ >/dev/null 2>&1") } glob "$out/*.spv";
  is("@bad", '', 'spirv-val takes its modules');
  my $dots = grep { `spirv-dis $_` =~ /OpSUDot %\w+ %\w+ %\w+ PackedVectorFormat4x8Bit/ } glob "$out/*.spv";
  is($dots, 1, 'one of them multiplies words');
}
SKIP: {
  my ($ptxas) = grep { -x $_ } split(/\n/, `command -v ptxas 2>/dev/null`), '/usr/local/cuda/bin/ptxas';
  skip('no ptxas or nvcc', 3) if !$ptxas;
  (my $nvcc = $ptxas) =~ s/ptxas$/nvcc/;
  my ($out, $model) = ("$dir/cuda", put('wide.snt', conv(64, 64, 1, 7, '')));
  my $said = `$sinter compile $model --target cuda --profile h100 -o $out 2>&1`;
  is($?, 0, 'a convolution as CUDA') or diag($said);
  my ($text) = grep { `cat $_` =~ /= snt_dot4\(/ } glob "$out/*.cu";
  my $spills = $text ? `$nvcc -x cu -std=c++17 -fmad=false -arch=sm_90 -ptx -o $dir/out.ptx $text 2>&1 && $ptxas -v -arch=sm_90 -o $dir/out.cubin $dir/out.ptx 2>&1` : 'no kernel multiplies words';
  like($spills, qr/ 0 bytes spill stores, 0 bytes spill loads/, 'nothing spills') or diag($spills);
  like(`cat $dir/out.ptx 2>&1`, qr/dp4a\.u32\.s32/, 'by its instruction');
}
done_testing;
