#!/usr/bin/perl
# docs/quirks.md: what drivers do otherwise, a row each. Files and tests that a row names are there, each flag of a family of OpenCL drivers has its row, and code that
# names a version of a driver is code that a row names. And what a text alone shows of the rows that are about compilers. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my (@wrong, %named, $rows);
my $page = slurp('docs/quirks.md');
for (grep { /^\| / && !/^\| driver/ } split /\n/, $page) {
  my (undef, $driver, $habit, $done, $in, $since, $looked, $held) = split /\s*\|\s*/;
  my ($code) = $in =~ /^`([^`]+)`$/;
  my ($test, $words) = $held =~ /^`([^`]+)`: (.+)$/;
  $rows++;
  push @wrong, "$driver: no file $in" unless defined $code && -e $code;
  push @wrong, "$driver: $held" unless defined $test && index(slurp($test), $words) >= 0;
  push @wrong, "$driver: $since, $looked" if grep { !/^20\d\d-[01]\d-[0-3]\d$/ } $since, $looked or $since gt $looked;
  push @wrong, "$driver: nothing is said" unless length $habit && length $done;
  $named{$code} = 1 if defined $code;
}
ok($rows && $rows > 20, 'there is a table');
is("@wrong", '', 'every row names code that is there, a test that is there, and days');

my ($families) = slurp('runtime/opencl/device.c') =~ /families\[\] = \{(.*?)\n\};/s;
my %flag = map { $_ => 1 } grep { !/^(?:platform|name|profile)$/ } $families =~ /\.(\w+) = /g;
is(join(' ', grep { $page !~ /`$_`/ } sort keys %flag), '', 'every flag of a family has its row');
my @sources = split /\n/, `ls ir/*.[ch] ir/*/*.[ch] fusion/*.[ch] fusion/*/*.[ch] codegen_*/*.[ch] runtime/*.[ch] runtime/*/*.[ch] door/*.[ch] api/*.[ch]`;
my @unnamed = grep { !$named{$_} && slurp($_) =~ /(?:Mesa|PoCL|rusticl|lavapipe|SwiftShader|Oclgrind|layers) \d/ } @sources;
is("@unnamed", '', 'and so has code that names a version of a driver');

sub compiled {
  my ($name, $text, $target, $profile) = @_;
  open my $out, '>', "$dir/$name.snt" or die $!;
  print $out $text;
  close $out;
  my $said = `$sinter compile $dir/$name.snt --target $target --profile $profile -o $dir/$name 2>&1`;
  diag($said) if $?;
  return glob "$dir/$name/*." . ($target eq 'spirv' ? 'spv' : 'cl');
}
my $softmax = "graph \@m(%x: f32[33,40]) {\n  %s = softmax %x, axis=0\n  return s=%s\n}\n";
my @lines = map { split /\n/, slurp($_) } compiled('columns', $softmax, 'opencl', 'rusticl');
ok(@lines && @lines < 2000, 'a softmax of 33 rows has few lines for rusticl: ' . @lines);
SKIP: {
  skip('no spirv-dis', 3) if system('command -v spirv-dis >/dev/null');
  open my $flushing, '>', "$dir/flushing.profile" or die $!;
  print $flushing slurp('cost_targets/profiles/swiftshader.profile'), "caps.flushes = 1\n";
  close $flushing;
  my $power = "symbols { n: min=1 max=64 multiple_of=1 hint=17 }\ngraph \@m(%x: f16[n,65], %y: f16[n,65]) {\n  %p = pow %x, %y\n  return p=%p\n}\n";
  my @power = map { `spirv-dis $_` } compiled('power', $power, 'spirv', "$dir/flushing.profile --numerics reproducible");
  ok(@power > 1000 && @power < 10000, 'a power of integers\' denormals has few lines for SwiftShader: ' . @power);
  my $across = "graph \@m(%x: f32[16,65]) {\n  %s = softmax %x, axis=0\n  return s=%s\n}\n";
  my @across = map { `spirv-dis $_` } compiled('across', $across, 'spirv', "$dir/flushing.profile --numerics reproducible");
  ok(@across > 500 && @across < 10000, 'nor has a softmax down the columns many: ' . @across);
  my ($loops, $phis) = (0, 0);
  for my $module (compiled('rows', "graph \@m(%x: f32[40,333]) {\n  %s = softmax %x, axis=1\n  return s=%s\n}\n", 'spirv', 'lavapipe')) {
    for my $block (split /(?==\s*OpLabel)/, `spirv-dis $module`) {
      next unless $block =~ /OpLoopMerge/;
      $loops++;
      $phis += $block =~ /OpPhi/;
    }
  }
  ok($loops && !$phis, "there is no phi where a loop begins: $loops loops");
}
done_testing();
