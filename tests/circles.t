#!/usr/bin/perl
# No file of the library calls, by way of others, one that calls it: the files of a folder stand above each other. What is left stands below with
# what it does: things that are made of their own kind. By the names that object files define and want. Needs nm. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan skip_all => 'nm is not here' unless grep { -x "$_/nm" } split /:/, $ENV{PATH};

# The first file of each circle => how it comes about.
my %known = (
  'api/exec.c' => 'a device is probed for its rounding by a program that is compiled and run on it',
  'codegen_common/ctext.c' => 'a cell of the table is a text with indices of memory in it, and a memory access is a cell',
  'fusion/branch.c' => 'branches and bodies of loops are grouped and scheduled like the graph that they are in; groups ask schedules for prices',
  'fusion/emit/compute.c' => 'values are emitted out of values',
  'fusion/schedule/row.c' => 'a row is stored while the next one is swept, which is swept as any',
  'ir/expr/corner.c' => 'quotients are proven by ranges, ranges by sums, and sums have quotients in them',
  'ir/graph/define.c' => 'a definition is a graph, with definitions',
  'ir/kir/emit.c' => 'what is folded while it is emitted is emitted',
  'ir/kir/widen.c' => 'words are taken apart by narrow values, which are made of words',
  'onnx/alike.c' => 'a call asks what is known of its operands, and what is known is known by calls',
  'onnx/counted.c' => 'an operator may be a graph of operators: a function, a branch, the body of a loop',
);

my (%defined, %wanted);
my @objects = map { glob "$build/CMakeFiles/$_.dir/$_/{*,*/*}.o" } qw(api codegen_common codegen_cuda codegen_opencl codegen_spirv cost_targets door fusion ir onnx runtime);
plan skip_all => 'the library is not built here' unless @objects;
open my $names, '-|', 'nm', '-A', @objects or BAIL_OUT("nm: $!");
while (<$names>) {
  my ($file, $kind, $name) = m{\.dir/([^:]*)\.o:[0-9a-f ]+ (\w) (\S+)} or next;
  if ($kind eq 'U') { $wanted{$file}{$name} = 1 }
  elsif ($kind =~ /[TDBRVW]/) { $defined{$name} = $file, $wanted{$file} //= {} }
}
close $names;

my %calls;
for my $file (keys %wanted) {
  my %to = map { $_ => 1 } grep { defined && $_ ne $file } map { $defined{$_} } keys %{$wanted{$file}};
  $calls{$file} = [sort keys %to];
}

# Tarjan's components, without recursion: each frame is a file and the number of its calls that were followed.
my (%index, %low, %open, @stack, @circles);
for my $root (sort keys %calls) {
  next if defined $index{$root};
  my @frames = ([$root, 0]);
  while (@frames) {
    my ($file, $next) = @{$frames[-1]};
    if ($next == 0) {
      $index{$file} = $low{$file} = scalar keys %index;
      push @stack, $file;
      $open{$file} = 1;
    }
    if ($next < @{$calls{$file}}) {
      my $to = $calls{$file}[$next];
      $frames[-1][1]++;
      if (!defined $index{$to}) { push @frames, [$to, 0] }
      elsif ($open{$to} && $index{$to} < $low{$file}) { $low{$file} = $index{$to} }
      next;
    }
    pop @frames;
    $low{$frames[-1][0]} = $low{$file} if @frames && $low{$file} < $low{$frames[-1][0]};
    next if $low{$file} != $index{$file};
    my @circle;
    do { push @circle, pop @stack; delete $open{$circle[-1]} } while $circle[-1] ne $file;
    push @circles, [sort @circle] if @circle > 1;
  }
}

cmp_ok(scalar keys %calls, '>', 300, 'the files of the library are looked at: ' . keys %calls);
my %seen;
for my $circle (sort { $a->[0] cmp $b->[0] } @circles) {
  my $first = $circle->[0];
  $seen{$first} = 1;
  ok($known{$first}, "$first and " . (@$circle - 1) . ' more call each other: ' . ($known{$first} // 'not known')) or diag "@$circle";
}
ok($seen{$_}, "the circle of $_ is still there") for sort keys %known;
done_testing;
