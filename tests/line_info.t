#!/usr/bin/perl
# SPIR-V with debug information (--line-info): the kernel IR as the source, a line for each instruction, names of values and of the user's nodes; nothing else of
# the module differs, and nothing at all without it. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
if (grep { system("command -v $_ >/dev/null") } 'spirv-val', 'spirv-dis') { print "1..0 # SKIP no spirv-val or spirv-dis\n"; exit 0 }


# What a module says without debug information, ids in the order in which they come.
sub bare {
  my ($text) = @_;
  $text =~ s/^\s*OpSource Unknown.*?"\n//msg; # several lines
  $text =~ s/^\s*(%\d+ = OpString|OpName|OpLine|OpSourceContinued|;).*\n//mg;
  my (%number, $next);
  $text =~ s/%(\d+)/'%' . ($number{$1} \/\/= ++$next)/ge;
  $text =~ s/^ +//mg;
  return $text;
}

open my $out, '>', "$dir/named.snt" or die $!;
print $out <<'END';
symbols { n: min=1 max=512 multiple_of=1 hint=64 }
graph @named(%x: f32[n,48], %s: f32[48]) {
  %twice = mul %x, 2.0
  %wide: f32[n,48] = broadcast %s, axes=[1]
  %moved = add %twice, %wide
  return y=%moved
}
END
close $out;

my @models = ("$dir/named.snt", 'examples/encoder_layer.snt', 'examples/postprocess.snt', glob('tests/patterns/p0[58]_*.snt tests/patterns/p15_*.snt tests/patterns/p33*.snt'));
for my $profile ('dgpu', 'lavapipe', 'swiftshader') {
  for my $model (@models) {
    system("rm -rf $dir/plain $dir/debug");
    my ($code, $said) = says("$sinter compile $model --profile $profile --target spirv -o $dir/plain");
    my ($too, $also) = says("$sinter compile $model --profile $profile --target spirv --line-info -o $dir/debug");
    if ($code || $too) { fail("$profile: $model") or diag("$said$also"); next }
    my ($count, @bad) = 0;
    for my $file (glob "$dir/debug/*.spv") {
      (my $plain = $file) =~ s/debug/plain/;
      $count++;
      my ($wrong, $why) = says("spirv-val --target-env vulkan1.1 $file");
      push @bad, "$file: $why" if $wrong;
      my ($with, $without) = map { (says("spirv-dis --raw-id $_"))[1] } $file, $plain;
      push @bad, "$plain has debug information" if $without =~ /OpLine|OpSource|OpString/;
      push @bad, "$file: more than debug information differs" if bare($with) ne bare($without);
      my ($source) = $with =~ /OpSource Unknown 0 %\d+ "(.*?)"\n/s;
      my @lines = split /\n/, $source // '';
      my @at = $with =~ /OpLine %\d+ (\d+) 0$/mg;
      push @bad, "$file: a line outside of the source" if grep { !$_ || $_ > @lines } @at;
      push @bad, "$file: few lines" if @at < 3;
      for my $op (['OpFMul', qr/= mul /], ['OpFAdd', qr/= add /], ['OpExtInst', qr/= \w+ /]) { # what stands first behind its line is what the line says
        my @first = $with =~ /OpLine %\d+ (\d+) 0\n\s*%\d+ = \Q$op->[0]\E/g;
        push @bad, "$file: $op->[0] at line $_: $lines[$_ - 1]" for grep { $lines[$_ - 1] !~ /$op->[1]|= (fma|sub|min|max|exp|hred|ix|clamp)\b/ } @first;
      }
      my %printed = map { $_ => 1 } $source =~ /%(\d+)(?=[:, ])/g;
      push @bad, "$file: no value is named" if !grep { $printed{$_} } $with =~ /OpName %\d+ "v(\d+)"/g;
    }
    ok($count && !@bad, "$profile: $model, $count modules") or diag(join "\n", @bad[0 .. ($#bad < 3 ? $#bad : 3)]);
  }
}

system("rm -rf $dir/debug");
says("$sinter compile $dir/named.snt --profile dgpu --target spirv --line-info -o $dir/debug");
my ($text) = map { (says("spirv-dis $_"))[1] } glob "$dir/debug/*.spv";
like($text, qr/OpSource Unknown 0 %\d+ "# k0\w* computes .*\bmoved\b/, 'the source says which nodes of the graph it computes');
like($text, qr/= OpString "\w+\.kir"/, 'and what it is');
like($text, qr/OpName %\w+ "p0"/, 'memories have their names');

# Drivers take it.
for my $device ('vulkan:llvmpipe', 'vulkan:swiftshader') {
  SKIP: {
    my ($code, $said) = says("$sinter run $dir/named.snt --device $device --input x=random:4 --output y=$dir/plain.npy");
    skip(lacks($device), 2) if lacks($device);
    ($code, $said) = says("$sinter run $dir/named.snt --device $device --line-info --input x=random:4 --output y=$dir/debug.npy");
    is($code, 0, "$device runs it") or diag($said);
    ok(slurp("$dir/plain.npy") eq slurp("$dir/debug.npy"), "$device: the same bytes");
  }
}
done_testing();
