#!/usr/bin/perl
# libsinter-runtime: what it is made of, what it weighs, and a program that has nothing else running what the compiler saved. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $library = "$build/libsinter-runtime.so";
my $sanitized = `nm -D $library 2>/dev/null` =~ /__asan_|__ubsan_|__tsan_/;

# ---- what it is
my @wanted = split /\n/, `cat cmake/sinter-runtime.symbols`;
my @exported = sort map { (split)[-1] } grep { / [A-Z] / } split /\n/, `nm -D --defined-only $library`;
is("@exported", "@wanted", 'it exports the calls to load, attach and record, and nothing else');
my @loose = sort grep { !/^snt_/ } map { (split)[-1] } grep { /^\S+ [A-Z] / } split /\n/, `nm -g --defined-only $build/libsinter-runtime.a 2>/dev/null`;
SKIP: {
  skip('sanitizers keep names of their own', 4) if $sanitized;
  is("@loose", '', 'the static one shows only snt_*');
  my @needed = `readelf -d $library` =~ /\(NEEDED\).*\[([^\]]+)\]/g;
  is(join(' ', grep { !/^lib(c|m)\.so/ && !/^ld-linux/ } @needed), '', 'it needs only libc and libm: no dlopen');
  my @compiler = grep { /^(fusion|codegen|spv|ocl|cuda|ctext|kir_run|kir_interp|ir_graph_parse|emit)_?/ } map { (split)[-1] } split /\n/, `nm $library`;
  is("@compiler", '', 'nothing of the compiler is in it');
  system("strip -o $dir/stripped.so $library") == 0 or diag('strip failed');
  my $bytes = -s "$dir/stripped.so";
  my $debug = `nm $library` =~ /__assert_fail/;
  ok($debug || $bytes <= 100 * 1024, "stripped it has $bytes bytes, at most 100 KiB");
  # The whole library: a fence, so that growth is noticed. The aim is 600 KB.
  system("strip -o $dir/whole.so $build/libsinter.so") == 0 or diag('strip failed');
  my $whole = -s "$dir/whole.so";
  ok($debug || $whole <= 1232 * 1024, "libsinter.so stripped has $whole bytes, at most 1232 KiB");
}

# ---- a program of two kernels or more with weights, a symbol, and a fused post-process with a value of each frame
my %models = (
  mlp => <<'END',
symbols { n: min=1 max=64 multiple_of=1 hint=5 }
graph @mlp(%x: f32[n,24]) {
  %w: f32[24,16] = const normal seed=3 scale=0.25
  %h = matmul %x, %w
  %r = relu %h
  %y = softmax %r, axis=1
  return y=%y, hidden=%r
}
END
  tone => <<'END',
symbols { h: min=1 max=64 multiple_of=1 hint=9, w: min=1 max=64 multiple_of=1 hint=13 }
graph @tone(%lit: f32[3,h,w], %exposure: f32[]) {
  %e: f32[3,h,w] = broadcast %exposure, axes=[], shape=[3,h,w]
  %x = mul %lit, %e
  %d = add %x, 1.0
  %tone = div %x, %d
  %shown = sqrt %tone
  return shown=%shown
}
END
);
$models{$_} = <<'END' for qw(bytes halves narrow);
symbols { n: min=1 max=64 multiple_of=1 hint=5 }
graph @few(%x: f32[n,96]) {
  %w: f32[96,64] = const normal seed=3 scale=0.1
  %p = matmul %x, %w
  %y = tanh %p
  return y=%y
}
END
# What a program of them is compiled with: bytes and halves are few in the file alone (vectors read panels of f32), narrow also in memory.
my %flags = (bytes => ['--profile pocl', '--weights int8'], halves => ['--profile pocl', '--weights f16'], narrow => ['--profile dgpu', '--weights int8']);
my %sizes = (mlp => [['y', 5, 16], ['hidden', 5, 16]], tone => [['shown', 3, 9, 13]], map { $_ => [['y', 5, 64]] } qw(bytes halves narrow));

sub floats {
  my ($path, $tail) = @_;
  open my $in, '<:raw', $path or return ();
  local $/;
  my $bytes = <$in> // '';
  $bytes = substr $bytes, -$tail if $tail;
  return unpack 'f*', $bytes;
}

sub product { my $p = 1; $p *= $_ for @_; return $p }

# A .npy of f32: the ramp that examples/saved fills its inputs with.
sub write_ramp { my ($path, @dims) = @_; npy($path, '<f4', \@dims, pack 'f*', map { $_ % 17 / 16 } 0 .. product(@dims) - 1) }

my %inputs = (mlp => [['x', 5, 24]], tone => [['lit', 3, 9, 13], ['exposure']], map { $_ => [['x', 5, 96]] } qw(bytes halves narrow));
for my $name (sort keys %models) {
  open my $out, '>', "$dir/$name.snt" or die $!;
  print $out $models{$name};
  close $out;
  my ($profile, $weights) = @{$flags{$name} // ['--profile dgpu', '']};
  my $said = `$build/sinter compile $dir/$name.snt --target spirv $profile --mask vulkan11-min $weights -o $dir/$name.sntp 2>&1`;
  is($?, 0, "$name is compiled and saved") or diag($said);
  write_ramp("$dir/$_->[0].npy", @{$_}[1 .. $#$_]) for @{$inputs{$name}};
  my $given = join ' ', map { "--input $_->[0]=$dir/$_->[0].npy" } @{$inputs{$name}};
  my $wanted = join ' ', map { "--output $_->[0]=$dir/$_->[0].npy" } @{$sizes{$name}};
  $said = `$build/sinter run $dir/$name.snt --device host $weights $given $wanted 2>&1`;
  is($?, 0, "$name runs on the host device") or diag($said);
  for my $driver ('llvmpipe', 'SwiftShader') {
    $said = `$build/examples/saved $dir/$name.sntp --device $driver --out $dir 2>&1`;
    SKIP: {
      skip("$driver: $said", 2) if $said =~ /no Vulkan device/;
      is($?, 0, "$name runs on $driver without a compiler") or diag($said);
      my $worst = 0;
      for my $output (@{$sizes{$name}}) {
        my ($port, @dims) = @$output;
        my @got = floats("$dir/$port.bin");
        my @want = floats("$dir/$port.npy", 4 * product(@dims));
        $worst = 1 if @got != @want;
        for my $i (0 .. $#want) {
          my $apart = abs($got[$i] - $want[$i]);
          $worst = $apart if !($apart <= $worst);
        }
        unlink "$dir/$port.bin";
      }
      ok($worst < 1e-5, "$name on $driver gives what the host device gives") or diag("$worst apart");
    }
  }
}

# ---- what it refuses
sub saved { my ($file) = @_; my $said = `$build/examples/saved $file --device llvmpipe 2>&1`; return ($?, $said) }
SKIP: {
  my ($code, $said) = saved("$dir/mlp.sntp");
  skip("llvmpipe: $said", 5) if $said =~ /no Vulkan device/;
  `$build/sinter compile $dir/mlp.snt --target spirv --profile dgpu --numerics reproducible -o $dir/same.sntp 2>&1`;
  is($?, 0, 'a reproducible program is compiled');
  ($code, $said) = saved("$dir/same.sntp");
  ok($code != 0 && $said =~ /probe.*libsinter-runtime has no compiler/, 'it needs a probe that the runtime cannot compile, and says so') or diag($said);
  open my $in, '<:raw', "$dir/mlp.sntp" or die $!;
  my $bytes = do { local $/; <$in> };
  my (@bad, @said);
  for my $case ((map { [0, int(length($bytes) * $_ / 16)] } 0 .. 15), map { [1, int(length($bytes) * $_ / 24) + 3] } 0 .. 23) {
    my ($flip, $at) = @$case;
    my $broken = $flip ? $bytes : substr $bytes, 0, $at;
    substr($broken, $at, 1) ^= "\x10" if $flip;
    open my $out, '>:raw', "$dir/broken.sntp" or die $!;
    print $out $broken;
    close $out;
    ($code, $said) = saved("$dir/broken.sntp");
    push @bad, $at if $code >> 8 != 1 || $said !~ /damaged program/;
  }
  is("@bad", '', 'cut and damaged programs are refused');
  `$build/sinter compile $dir/mlp.snt --target opencl --profile pocl -o $dir/cl.sntp 2>&1`;
  is($?, 0, 'a program for OpenCL alone is compiled');
  ($code, $said) = saved("$dir/cl.sntp");
  ok($code != 0 && $said =~ /not compiled for the target/, 'a program for another target is refused') or diag($said);
}
done_testing();
