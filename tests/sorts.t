#!/usr/bin/perl
# Sorts of flags are parted, and sorts of which only the first places are read stop there (fusion/schedule/sort.c); scatters of rows into a number are gathers of their
# updates (fusion/rewrite/rows.c), of which those that say `unread` are not stored; sums of updates stay in registers where each item has one element (fusion/schedule/scatter.c). How many kernels each is, and the answer on each device here. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my $parted = "  %b = lt %x, 0x0p+0\n  %k: i32[SHAPE] = cast %b\n";
my %graphs = ( # kernels on the profile pocl, text, what else is asked
  flags => [3, flags('1500', '', 0)],
  flags_down => [3, flags('1500', ', descending', 0)],
  flags_of_rows => [3, flags('5,300', '', 1)],
  flags_of_columns => [3, flags('300,5', ', descending', 0)],
  flags_of_a_run => [2, flags('5,100', '', 1)],
  flags_open => [3, "symbols { n: min=1 max=9000 hint=1500 }\n" . flags('n,2', '', 0), '', '--dim n=1', '--dim n=130'],
  first => [10, "graph \@g(%x: f32[3,2100]) {\n  %o = argsort %x, axis=1, descending\n  %y = slice %o, starts=[0,0], sizes=[3,70], steps=[1,1]\n  return y=%y\n}\n"],
  few => [4, selection('f32[1,25000]', 5, ', descending')],
  few_of_rows => [4, selection('f32[3,2100]', 64, '')],
  few_of_an_odd_line => [4, selection('f16[2,131]', 1, ', descending')],
  few_numbers => [4, selection('i64[2,1001]', 7, '')],
  few_alike => [5, selection('f32[2,3000]', 9, ', descending', '  %x = floor %given')],
  few_columns => [4, "graph \@g(%x: f32[700,3]) {\n  %o = argsort %x, axis=0\n  %y = slice %o, starts=[0,0], sizes=[6,3], steps=[1,1]\n  return y=%y\n}\n"],
  first_of_two => [10, "graph \@g(%x: f32[2100,2]) {\n  %o = argsort %x, axis=0\n  %y = slice %o, starts=[0,0], sizes=[33,2], steps=[1,1]\n  %z = slice %o, starts=[0,1], sizes=[500,1], steps=[1,1]\n  return y=%y, z=%z\n}\n"],
  not_the_first => [10, "graph \@g(%x: f32[2100]) {\n  %o = argsort %x, axis=0\n  %y = slice %o, starts=[1], sizes=[70], steps=[1]\n  return y=%y\n}\n"],
  every_other => [10, "graph \@g(%x: f32[2100]) {\n  %o = argsort %x, axis=0\n  %y = slice %o, starts=[0], sizes=[70], steps=[2]\n  return y=%y\n}\n"],
  all_and_first => [10, "graph \@g(%x: f32[2100]) {\n  %o = argsort %x, axis=0\n  %y = slice %o, starts=[0], sizes=[70], steps=[1]\n  return o=%o, y=%y\n}\n"],
  levels => [4, "graph \@g(%i: i32[40], %u: f32[40,3,32], %j: i32[20], %v: f32[20,3,32]) {\n  %z: f32[64,3,32] = broadcast 0x0p+0\n  %a = scatter.set %z, %i, %u, axis=0\n  %y = scatter.set %a, %j, %v, axis=0\n  return y=%y\n}\n"],
  columns => [4, "graph \@g(%i: i64[40], %u: f32[3,40,70]) {\n  %z: f32[3,64,70] = broadcast 0x1p+0\n  %y = scatter.set %z, %i, %u, axis=1\n  return y=%y\n}\n"],
  maybe_none => [3, "symbols { n: min=0 max=4096 hint=512 }\ngraph \@g(%i: i32[n], %u: f32[n,128]) {\n  %z: f32[32,128] = broadcast 0x1p+1\n  %y = scatter.set %z, %i, %u, axis=0\n  return y=%y\n}\n", '', '--dim n=0', '--dim n=40'],
  into_a_value => [3, "graph \@g(%x: f32[64,70], %i: i32[40], %u: f32[40,70]) {\n  %e = exp %x\n  %y = scatter.set %e, %i, %u, axis=0\n  return y=%y\n}\n"],
  unread => [4, <<'END'],
graph @g(%x: f32[40,4,96]) {
  %n: i64 = const 7
  %p: i64[40,96] = iota axis=0
  %all: i64[40,96] = broadcast %n, axes=[], shape=[40,96]
  %used = lt %p, %all
  %s = reduce.sum %x, axes=[1]
  %none: f32[40,96] = const 0.0
  %u = select %used, %s, %none, unread
  %r: i64[40] = iota axis=0
  %few: i64[40] = broadcast %n, axes=[], shape=[40]
  %own = lt %r, %few
  %twice = mul %r, 2:i64
  %far: i64[40] = const 64
  %i = select %own, %twice, %far
  %z: f32[64,96] = broadcast 0x0p+0
  %y = scatter.set %z, %i, %u, axis=0
  return y=%y
}
END
);

sub selection {
  my ($type, $first, $way, $before) = @_;
  my ($rows) = $type =~ /\[(\d+)/;
  my $x = $before ? 'given' : 'x';
  return "graph \@g(%$x: $type) {\n" . ($before ? "$before\n" : '') . "  %o = argsort %x, axis=1$way\n  %y = slice %o, starts=[0,0], sizes=[$rows,$first], steps=[1,1]\n  return y=%y\n}\n";
}

sub flags {
  my ($shape, $way, $axis) = @_;
  return "graph \@g(%x: f32[$shape]) {\n" . $parted =~ s/SHAPE/$shape/r . "  %y = argsort %k, axis=$axis$way\n  return y=%y\n}\n";
}

my $found = `$sinter devices 2>&1`;
for my $name (sort keys %graphs) {
  my ($kernels, $text, @dims) = @{$graphs{$name}};
  put("$dir/$name.snt", $text);
  my ($first) = `$sinter explain $dir/$name.snt --profile pocl 2>&1` =~ /^(\d+ kernels?)/;
  is($first, "$kernels kernel" . ($kernels > 1 ? 's' : ''), "$name: kernels");
  for my $device ('interp', 'vulkan:llvmpipe', 'opencl:pocl') {
    SKIP: {
      skip("$device is not here", 1) if $device ne 'interp' && $found !~ /\Q$device\E/;
      my @wrong = grep { `$sinter run $dir/$name.snt --device $device --check --quiet $_ 2>&1`; $? } @dims ? @dims : '';
      is("@wrong", '', "$name: $device");
    }
  }
}
for my $op ('add f32', 'mul f64', 'max f16', 'add u8') {
  my ($kind, $type) = split / /, $op;
  put("$dir/owners.snt", "graph \@g(%x: $type\[17,65], %i: i64[33], %u: $type\[33,65]) {\n  %y = scatter.$kind %x, %i, %u, axis=0\n  return y=%y\n}\n");
  my ($code, $said) = says("$sinter compile $dir/owners.snt --profile h100 --target spirv -o $dir/owners; cat $dir/owners/plan.txt");
  my ($bound) = $said =~ /step .* groups=\d+ \((.*?)\) nodes/;
  is(join(' ', sort($bound =~ /\b(r|w|rw) b/g)), 'r r r w', "scatter.$kind of $type, an item an element: nothing is read that it writes") or diag($said);
}
done_testing();
