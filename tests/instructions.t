#!/usr/bin/perl
# Instructions that compiling takes, by callgrind, against the counts in tests/instructions.txt: more than 3 % more fails, fewer asks for a new count.
# The counts belong to gcc's -O2; with --bless they are written anew. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $bless = grep { $_ eq '--bless' } @ARGV;
my $pins = 'tests/instructions.txt';
my $limit = 0.03;
my @models = ('examples/postprocess.snt', 'tests/golden/graph/convolution.snt', 'tests/golden/graph/transformer.snt');

sub compiler {
  open my $cache, '<', "$build/CMakeCache.txt" or return 'unknown';
  my %is = map { /^(\w+):\w+=(.*)/ ? ($1, $2) : () } <$cache>;
  my ($version) = `$is{CMAKE_C_COMPILER} -dumpfullversion 2>/dev/null` =~ /^(\d+)/;
  my ($name) = `$is{CMAKE_C_COMPILER} --version 2>/dev/null` =~ /^(\w+)/;
  return join ' ', ($name // '') eq 'cc' ? 'gcc' : $name // 'unknown', $version // '?', $is{CMAKE_BUILD_TYPE} || 'plain', $is{SINTER_SANITIZE} || 'bare';
}

sub count {
  my ($model) = @_;
  my $said = `SNT_CACHE_DIR= valgrind --tool=callgrind --callgrind-out-file=/dev/null $build/sinter compile $model --target opencl --profile pocl -o $dir/out --quiet 2>&1`;
  return $? == 0 && $said =~ /Collected : (\d+)/ ? $1 : (undef, $said);
}

plan skip_all => 'valgrind is not installed' if system('command -v valgrind >/dev/null');
my $now = compiler();
my (%pinned, $then);
if (open my $in, '<', $pins) {
  while (<$in>) { /^# (.*)/ ? ($then //= $1) : /^(\d+) (\S+)/ && ($pinned{$2} = $1) }
}
plan skip_all => "the counts are those of \"$then\", this is \"$now\"" if !$bless && ($then // '') ne $now;

my %counted;
for my $model (@models) {
  my ($got, $said) = count($model);
  ok(defined $got, "$model is compiled") or diag($said);
  next unless defined $got;
  $counted{$model} = $got;
  my $was = $pinned{$model};
  next if $bless;
  ok(defined $was && $got <= $was * (1 + $limit), sprintf '%s: %d instructions, %d pinned (%+.1f %%)', $model, $got, $was // 0, 100 * ($got / ($was || $got) - 1));
  diag("$model takes fewer: tests/instructions.t --bless keeps that") if defined $was && $got < $was * (1 - $limit);
}
if ($bless) {
  open my $out, '>', $pins or die $!;
  print $out "# $now\n", map { "$counted{$_} $_\n" } sort keys %counted;
  close $out;
}
done_testing;
