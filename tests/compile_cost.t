#!/usr/bin/perl
# What compiling costs, in instructions: a chain of 100 nodes and a layer of a transformer down to SPIR-V, 10 000 and 20 000 random nodes grouped. The counts
# are pinned within 3 % in tests/compile_cost.expect for the compiler and build named there (--bless writes it); whatever the build, twice the nodes
# may cost at most 2.3 times as much. Needs valgrind. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $program = "$build/tests/compile_cost";
my $expect = 'tests/compile_cost.expect';
my $bless = grep { $_ eq '--bless' } @ARGV;
plan skip_all => 'valgrind is not here: no instructions are counted' unless grep { -x "$_/valgrind" } split /:/, $ENV{PATH};
plan skip_all => "$program is not built" unless -x $program;

sub cache { my ($key) = @_; open my $in, '<', "$build/CMakeCache.txt" or return ''; return (map { /^\Q$key\E:[^=]*=(.*)/ ? $1 : () } <$in>)[0] // '' }
plan skip_all => 'the sanitizers count for themselves' if cache('SINTER_SANITIZE') =~ /^(ON|1|TRUE|.*address.*)$/i;
my $compiler = cache('CMAKE_C_COMPILER');
my ($version) = `$compiler -dumpfullversion -dumpversion 2>/dev/null` =~ /(\S+)/;
my $here = join ' ', (`$compiler --version` =~ /clang/ ? 'clang' : 'gcc'), $version // '?', cache('CMAKE_BUILD_TYPE') || 'none', (split ' ', `uname -m`)[0];

sub instructions {
  my (@what) = @_;
    my $said = `valgrind --tool=callgrind --callgrind-out-file=$dir/out --toggle-collect=snt_compile $program @what 2>&1`;
  return $said =~ /Collected : (\d+)/ ? $1 : 0;
}

my %had;
my $made_for = '';
if (open my $in, '<', $expect) {
  while (<$in>) { $made_for = $1 if /^build (.+)$/; $had{$1} = $2 if /^(\S+:?\S*) = (\d+)/ }
}
my @cases = (['chain:100'], ['block'], ['random:10000', 'to=fission'], ['random:20000', 'to=fission']);
my %count;
for my $case (@cases) {
  my $name = $case->[0];
  $count{$name} = instructions(@$case);
  ok($count{$name} > 0, "$name is counted: $count{$name} instructions");
  SKIP: {
    skip "$name: pinned for $made_for, this is $here", 1 if !$bless && $made_for ne $here;
    ok($bless || ($had{$name} && abs($count{$name} - $had{$name}) <= 0.03 * $had{$name}), "$name: within 3 % of " . ($had{$name} // 'nothing'));
  }
}
my $ratio = $count{'random:10000'} ? $count{'random:20000'} / $count{'random:10000'} : 99;
ok($ratio < 2.3, sprintf 'twice the nodes cost %.2f times as much', $ratio);
if ($bless) {
  open my $out, '>', $expect or die $!;
  print $out "# Instructions of snt_compile; made by tests/compile_cost.t --bless\nbuild $here\n";
  print $out "$_->[0] = $count{$_->[0]}\n" for @cases;
  close $out;
}
done_testing;
