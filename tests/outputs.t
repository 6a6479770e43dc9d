#!/usr/bin/perl
# Files that the commands write: whole or not at all, over what was there, and into pipes and devices without putting a file in their place. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Temp 'tempdir';
use FindBin;
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";

my $sinter = ($ENV{SNT_BUILD} // 'build/release') . '/sinter';
my $dir = tempdir(CLEANUP => 1);
my $model = 'tests/patterns/p08_softmax.snt';

sub slurp { my ($path) = @_; open my $in, '<', $path or return ''; local $/; return <$in> }
sub put { my ($path, $text) = @_; open my $out, '>', $path or die $!; print $out $text; close $out or die $! }

`$sinter compile $model --target spirv --profile dgpu -o $dir/saved.sntp 2>&1`;
is($?, 0, 'a program to pack');
my %writes = (
  'compile -o' => "compile $model --target spirv --profile dgpu -o OUT.sntp",
  'pack --header' => "pack $dir/saved.sntp --header OUT",
  'explain --html' => "explain $model --profile dgpu --html -o OUT",
  'run --trace' => "run $model --device interp --trace OUT",
  'run --output' => "run $model --device interp --output y=OUT.npy",
);
$SIG{XFSZ} = 'IGNORE';    # children get an error for a file that grows too large, no signal

for my $what (sort keys %writes) {
  (my $command = $writes{$what}) =~ s/OUT/$dir\/out/;
  my ($file) = $command =~ m{(\Q$dir\E/out(?:\.\w+)?)};
  my $said = `$sinter $command 2>&1`;
  ok($? == 0 && -s $file, "$what: writes") or diag($said);
  put($file, 'what was there');
  $said = `ulimit -f 0; $sinter $command 2>&1`;
  ok($? >> 8 && !($? & 127) && $said =~ /\Q$file\E.*too large/i, "$what: a disk that takes nothing is an error that names the file") or diag($?, $said);
  is(slurp($file), 'what was there', "$what: then what was there stays");
  is(join(' ', grep { /tmp/ } map { s{.*/}{}r } glob("$dir/*")), '', "$what: and nothing is left beside it");
  unlink $file;
}
SKIP: {
  skip('no /dev/full', 3) unless -c '/dev/full';
  for my $what ('pack --header', 'explain --html', 'run --trace') {
    (my $command = $writes{$what}) =~ s/OUT/\/dev\/full/;
    my $said = `$sinter $command 2>&1`;
    ok($? >> 8 && !($? & 127) && $said =~ m{/dev/full: No space}, "$what: a device that is full is an error") or diag($said);
  }
}
system('mkfifo', "$dir/pipe") == 0 or die;
my $read = fork // die $!;
if (!$read) { put("$dir/heard", slurp("$dir/pipe")); exit 0 }
(my $command = $writes{'pack --header'}) =~ s/OUT/$dir\/pipe/;
my $said = `$sinter $command 2>&1`;
is($?, 0, 'into a pipe') or diag($said);
waitpid $read, 0;
ok(-p "$dir/pipe", 'which stays one');
like(slurp("$dir/heard"), qr/^static const uint8_t saved\[\d+\] = \{\n[\d,\n]+\n\};\n\z/m, 'and has got it all');
done_testing;
