#!/usr/bin/perl
# Proof that the conformance suite can fail: a build with every fault of tests/faults/faults.txt in it, one turned on at a time, must be caught on each
# device whose path has it. The case that docs/mutations.md says saw a fault is tried alone, then related cases, then others; the first failure ends a run.
# A fault that is in the path of some devices only is reported of no other: the case that sees it passes there. Faults with a `test` must make it fail, which
# passes without them.
# Those that survive are listed with their reason in tests/faults/survivors.txt. About half an hour, so only with SNT_TEST_FULL; SNT_FAULTS is a regular
# expression of names, SNT_FAULT_DEVICES a list, SNT_FAULT_TABLE a file for the table (docs/mutations.md). Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan(skip_all => 'about an hour: SNT_TEST_FULL is not set') unless $ENV{SNT_TEST_FULL} || $ENV{SNT_FAULTS};

$ENV{POCL_DEVICES} //= 'pthread'; # small as they are, cases run on several threads (api/exec_near.c)
my $tree = $ENV{SNT_FAULT_TREE} // 'build/faulty';
my $build = "$tree/build/faults";
my @programs = do { my %once; grep { !$once{$_}++ } `tests/faults/apply --list` =~ m{build/(tests/\w+)}g };    # those that are the test of a fault
if (!$ENV{SNT_FAULT_TREE}) {
  system("rm -rf $tree && tests/faults/apply . $tree >$dir/log 2>&1") == 0 or do { diag(`cat $dir/log`); BAIL_OUT('the faults do not apply') };
  my $flags = "-include $FindBin::Bin/../$tree/fault.h";
  system("cmake -S $tree -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DSINTER_WERROR=OFF '-DCMAKE_C_FLAGS=$flags' >$dir/log 2>&1"
      . " && ninja -C $build sinter-conform sinter @programs >>$dir/log 2>&1") == 0 or do { diag(`tail -20 $dir/log`); BAIL_OUT('the faulty build fails') };
}
my @ids = grep { /^\w/ } split /\n/, `$build/sinter-conform --list`;
my %reason;
if (open my $in, '<', 'tests/faults/survivors.txt') {
  while (<$in>) { $reason{"$1 $2"} = $3 if /^([\w-]+) (\S+) (.+)/ }
}
my (%is_case, %seen_by);
@is_case{@ids} = ();
if (open my $in, '<', 'docs/mutations.md') {
  while (<$in>) { $seen_by{"$1 $2"} = $3 if /^\| ([\w-]+) \| (\S+) \| (\S+), case/ && exists $is_case{$3} }
}

# Every n-th of those that match, then the beginning of the list, which covers the operators; in this order.
sub pick {
  my ($pattern) = @_;
  my @all = grep { /$pattern/ } @ids;
  my $step = @all > 96 ? @all / 96 : 1;
  my (@out, %seen);
  for (my $i = 0; $i < @all; $i += $step) { push @out, $all[int $i] unless $seen{$all[int $i]}++ }
  push @out, grep { !$seen{$_}++ } @ids[0 .. 119];
  return @out;
}

# The first case that fails with the fault and passes without it; and how many were tried.
my %broken;
sub first_failure {
  my ($name, $device, @cases) = @_;
  while (1) {
    open my $to, '>', "$dir/cases" or die $!;
    print $to map { "$_\n" } grep { !$broken{"$_ $device"} } @cases;
    close $to;
    my $said = `SNT_FAULT=$name $build/sinter-conform --device $device --cases $dir/cases --stop --time 90 --case-time 20 --jobs 2 2>&1`;
    my ($by) = $said =~ /^not ok \d+ - (\S+)/m;
    my $tried = () = $said =~ /^(?:not )?ok /mg;
    return ($by, $tried, $said) unless $by;
    open $to, '>', "$dir/cases" or die $!;
    print $to "$by\n";
    close $to;
    return ($by, $tried, $said) if system("$build/sinter-conform --device $device --cases $dir/cases >$dir/log 2>&1") == 0;
    diag("$by fails on $device without a fault");
    $broken{"$by $device"} = 1;
  }
}

# Whether a case passes on a device with the fault on.
sub passes {
  my ($name, $device, $case) = @_;
  open my $to, '>', "$dir/cases" or die $!;
  print $to "$case\n";
  close $to;
  return system("SNT_FAULT=$name $build/sinter-conform --device $device --cases $dir/cases >$dir/log 2>&1") == 0;
}

# Whether a test fails; without the fault it passes.
my %passes_well;
sub test_fails {
  my ($name, $test) = @_;
  (my $command = $test) =~ s{\bbuild/}{$build/};
  my $run = sub { system("$_[0] SNT_BUILD=$build $command >$dir/log 2>&1") == 0 };
  local $ENV{POCL_DEVICES};
  delete $ENV{POCL_DEVICES};
  $passes_well{$test} //= $run->('') ? 1 : 0;
  return $passes_well{$test} && !$run->("SNT_FAULT=$name");
}

my %wanted = map { $_ => 1 } split / /, $ENV{SNT_FAULT_DEVICES} // 'opencl:pocl vulkan:llvmpipe cuda-text interp';
my ($killed, $count, @table, %on_device) = (0, 0);
for (split /\n/, `tests/faults/apply --list`) {
  my ($name, $on, $pattern, $test) = split /\t/;
  next if $ENV{SNT_FAULTS} && $name !~ /$ENV{SNT_FAULTS}/;
  if ($test) {
    my $seen = test_fails($name, $test);
    my $excuse = $reason{"$name tests"};
    $count++, $on_device{tests}[$seen ? 0 : 1]++;
    $killed++ if $seen;
    push @table, "| $name | tests | " . ($seen ? $test : 'survives: ' . ($excuse // 'not explained')) . ' |';
    ok($seen || $excuse, "$name: " . ($seen ? "seen by $test" : "survives $test: " . ($excuse // ($passes_well{$test} ? 'unexplained' : 'which fails without it'))));
    next;
  }
  my @cases = pick($pattern);
  my $seen;    # some case that fails where the fault is
  for my $device (grep { $wanted{$_} } split / /, $on) {
    my $known = $seen_by{"$name $device"};
    my ($by, $tried, $said) = $known ? first_failure($name, $device, $known) : ();
    ($by, $tried, $said) = first_failure($name, $device, @cases) if !$by;
    SKIP: {
      skip("$name on $device: $said", 1) if !$tried;
      $count++;
      $killed++ if $by;
      $seen //= $by;
      $on_device{$device}[$by ? 0 : 1]++;
      my $excuse = $reason{"$name $device"};
      push @table, "| $name | $device | " . ($by ? "$by, case $tried" : 'survives: ' . ($excuse // 'not explained')) . ' |';
      ok($by || $excuse, "$name on $device: " . ($by ? "seen by $by, case $tried" : "survives $tried cases: " . ($excuse // 'unexplained')));
    }
  }
  next if !$seen || $on =~ /\binterp\b/; # a path that the interpreter always has, and drivers on some processors
  for my $other (grep { my $d = $_; $d ne 'interp' && !grep { $_ eq $d } split / /, $on } sort keys %wanted) {
    ok(passes($name, $other, $seen), "$name, which is of another path, is not told of $other");
  }
}
ok($count && $killed >= 0.95 * $count, "$killed of $count are seen");
if ($ENV{SNT_FAULT_TABLE} && open my $out, '>', $ENV{SNT_FAULT_TABLE}) {
  my $each = join ', ', map { my ($good, $bad) = map { $_ // 0 } @{$on_device{$_}}[0, 1]; $good . ' of ' . ($good + $bad) . " on $_" } sort keys %on_device;
  print $out "# Faults that the conformance suite sees\n\n$killed of $count ($each), as `tests/mutation.t` found them with SNT_FAULT_TABLE;",
    " `tests/faults/faults.txt` says what each does.\nA case counts as seeing a fault if it passes without it.\n\n";
  print $out "| fault | device | seen by |\n|---|---|---|\n", map { "$_\n" } @table;
}
done_testing();
