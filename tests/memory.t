#!/usr/bin/perl
# Memory that runs out at the n-th call of a command, alone or with all calls behind it (tests/lost/memory.c): it fails as such, with one message, or does
# without and writes what it writes otherwise; never a crash, a block that is left, or a file that is half written. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
plan skip_all => "$sinter is not built" unless -x $sinter;
my $conform = "$sinter-conform";
my $short = "$dir/memory.so";
plan skip_all => 'what takes the place of malloc is not built' if system("cc -shared -fPIC -O1 tests/lost/memory.c -o $short 2>$dir/log") || !-s $short;

sub text { my ($path) = @_; open my $f, '<:raw', $path or return undef; local $/; my $text = <$f>; return $text }
my $graph = put('m.snt', "graph \@m(%x: f32[4,6], %w: f32[6,5]) {\n  %a = tanh %x\n  %h = matmul %a, %w\n  %s = softmax %h, axis=-1\n  return s=%s\n}\n");

# In the child, with n calls that succeed: its exit status, what it said, how many calls there were and how many blocks were left.
sub call {
  my ($command, $at, $once) = @_;
  unlink "$dir/report";
  my $said = `SNT_CACHE_DIR=$dir/cache LD_PRELOAD=$short SNT_FAIL_REPORT=$dir/report SNT_FAIL_AT=$at @{[$once ? 'SNT_FAIL_ONCE=1' : '']} $command 2>&1 >$dir/out`;
  my ($calls, $kept) = split ' ', text("$dir/report") // '-1 -1';
  return ($?, $said, $calls, $kept);
}

# $like: what a whole file is, where it is another each time; then few calls are tried, since each takes as long as it is given.
sub starve {
  my ($name, $command, $file, $like) = @_;
  my $fresh = sub { unlink $file if $file; system('rm', '-rf', "$dir/cache", "$dir/tuned") };
  $fresh->();
  my ($status, $said, $calls, $kept) = call($command, 0, 0);
  my $whole = $file ? text($file) : undef;
  ok($status == 0 && $calls > 0 && $kept == 0 && (!$file || length $whole), "$name: $calls calls, and nothing is left") or return diag("$status, $kept left: $said");
  my (@wrong, $tries);
  for (my $n = 1; $n <= $calls; $n += $like ? 2 * $n : $n < 60 ? 1 : int($n / 8)) {
    for my $once ($like ? 0 : (0, 1)) {
      $fresh->();
      my ($status, $said, undef, $kept) = call($command, $n, $once);
      my $is = $file ? text($file) : undef;
      $tries++;
      push @wrong, "call $n" . ($once ? ' alone' : '') . ": status $status, $kept left, " . (defined $is ? length $is : 'no') . " bytes: $said"
        if $status ? ($status & 127 || $said !~ /memory/ || $said =~ /\n./ || defined $is || $kept) : ($kept || ($file && ($like ? ($is // '') !~ $like : ($is // '') ne $whole)));
    }
  }
  is(scalar @wrong, 0, "$name: $tries failures") or diag(@wrong > 6 ? @wrong[0 .. 5] : @wrong);
}

# A field of a message in protobuf's wire format: of bytes, or a number below 128.
sub bytes { my ($field, @parts) = @_; my $all = join '', @parts; return chr($field << 3 | 2) . chr(length $all) . $all }
sub number { my ($field, $value) = @_; return chr($field << 3) . chr $value }
sub port { my ($field, $name) = @_; return bytes($field, bytes(1, $name), bytes(2, bytes(1, number(1, 1), bytes(2, bytes(1, number(1, 3)))))) }
sub tensor { return bytes(9, pack 'f<3', @_) . number(1, 3) . number(2, 1) }
mkdir $_ or die $! for "$dir/onnx", "$dir/onnx/test_data_set_0";
my $onnx = put('onnx/model.onnx', number(1, 8) . bytes(7, bytes(1, bytes(1, 'x'), bytes(1, 'w'), bytes(2, 'y'), bytes(4, 'Add')), bytes(2, 'g'), bytes(5, tensor(1, 2, 3), bytes(8, 'w')),
               port(11, 'x'), port(12, 'y')) . bytes(8, number(2, 17)));
put('onnx/test_data_set_0/input_0.pb', tensor(4, 5, 6) . bytes(8, 'x'));
put('onnx/test_data_set_0/output_0.pb', tensor(5, 7, 9) . bytes(8, 'y'));

starve('import', "$sinter import $onnx -o $dir/i.snt", "$dir/i.snt");
starve('run of ONNX', "$sinter run $onnx --device interp --input x=$dir/onnx/test_data_set_0/input_0.pb --output y=$dir/y.npy", "$dir/y.npy");
starve('onnx-test', "$sinter onnx-test --device interp --jobs 1 $dir/onnx");
starve('compile', "$sinter compile $graph --target spirv,opencl -o $dir/p.sntp", "$dir/p.sntp");
starve('compile of several profiles', "$sinter compile $graph --target opencl --profile dgpu,mobile -o $dir/v.sntp", "$dir/v.sntp");
starve('compile to a folder', "$sinter compile $graph --target cuda -o $dir/folder");
system("$sinter compile $graph --target spirv -o $dir/packed.sntp >/dev/null");
starve('pack', "$sinter pack $dir/packed.sntp --header $dir/p.h", "$dir/p.h");
starve('inspect', "$sinter inspect $dir/packed.sntp");
starve('explain', "$sinter explain $graph --json -o $dir/e.json", "$dir/e.json");
starve('explain --html', "$sinter explain $graph --html -o $dir/e.html", "$dir/e.html");
starve('inspect-kernel', "$sinter inspect-kernel $graph --json");
starve('opt', "$sinter opt $graph --run canonicalise,decompose");
starve('run', "$sinter run $graph --device interp --check --output s=$dir/s.npy", "$dir/s.npy");
starve('run --tune', "$sinter run $graph --device interp --quiet --tune $dir/tuned --output s=$dir/s.npy", "$dir/s.npy");
starve('build', "$sinter build $graph --device interp --jobs 2");
starve('bench', "$sinter bench $graph --device interp --runs 2 --json");
system("$conform --device interp --filter neg.f32.real.prime --count 4 --json $dir/run.jsonl >/dev/null 2>&1");
starve('conform pack', "$conform pack $dir/run.jsonl -o $dir/submission", "$dir/submission");
starve('conform report', "$conform report $dir/run.jsonl -o $dir/page.html", "$dir/page.html");
starve('calibrate', "$sinter calibrate --device interp --quick --timeout 1 --quiet -o $dir/profile", "$dir/profile", qr/^units = .*\n\z/ms);
done_testing;
