#!/usr/bin/perl
# What the tool tells drivers: PoCL keeps a thread on each processor where the process may use them all, and lists a device without threads; nothing that is set already,
# or where it may not, is changed. Output: TAP.
use strict;
use warnings;
use Test::More;
use IPC::Open2;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
delete @ENV{qw(POCL_AFFINITY POCL_DEVICES)};
$SIG{PIPE} = "IGNORE";

# Threads of a run on PoCL that have one processor each; undef: there is no PoCL.
sub bound_threads {
  my @before = @_;
  my $pid = open2(my $out, my $in, @before, "$build/sinter", 'bench', 'bench/models/softmax.snt', '--device', 'opencl:pocl', '--serve');
  my $ready = <$out>;
  print $in "1\n";
  $in->flush;
  my $timed = defined $ready ? <$out> : undef;
  my $bound = 0;
  for my $status (glob "/proc/$pid/task/*/status") {
    open my $f, '<', $status or next;
    my ($list) = join('', <$f>) =~ /^Cpus_allowed_list:\s*(\S+)/m;
    $bound++ if ($list // '') =~ /^\d+$/;
  }
  close $in;
  waitpid $pid, 0;
  return defined $timed ? $bound : undef;
}

# How often the thread that submits 300 runs of a few microseconds sleeps meanwhile.
sub sleeps {
  my $model = put('small.snt', "graph \@g(%x: f32[128]) {\n  %y = add %x, %x\n  return y=%y\n}\n");
  my $pid = open2(my $out, my $in, @_, $sinter, 'bench', $model, '--device', 'opencl:pocl', '--serve');
  my $ready = <$out>;
  my $count = sub { slurp("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s*(\d+)/m ? $1 : 0 };
  my $before = $count->();
  print $in "300\n";
  $in->flush;
  my $timed = <$out>;
  my $slept = $count->() - $before;
  close $in;
  waitpid $pid, 0;
  return $slept;
}

my $processors = () = `cat /proc/cpuinfo 2>/dev/null` =~ /^processor/mg;
my ($allowed) = `cat /proc/self/status 2>/dev/null` =~ /^Cpus_allowed_list:\s*(\S+)/m;
plan skip_all => 'needs a process that may use all of several processors' if $processors < 2 || ($allowed // '') ne '0-' . ($processors - 1);
my $bound = bound_threads();
plan skip_all => 'PoCL is not there' if !defined $bound;
is($bound, $processors, "a thread on each of $processors processors");
is(bound_threads('env', 'POCL_AFFINITY=0'), 0, 'not where it is said otherwise');
SKIP: {
  skip('needs three processors and taskset', 1) if $processors < 3 || system('taskset -V >/dev/null 2>&1');
  is(bound_threads('taskset', '-c', '1,2'), 0, 'nor where the process was told its processors');
}
cmp_ok(sleeps(), '<', 30, 'runs of microseconds wake nobody');
cmp_ok(sleeps('env', 'POCL_DEVICES=pthread'), '>', 100, 'unless it is said otherwise');
done_testing();
