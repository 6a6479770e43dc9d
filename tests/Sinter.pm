# What scripts of tests begin with: they stand in the project's root and speak TAP 13, `$sinter` is the command of the build under test, `$dir` a folder that goes
# when they end. `use FindBin; use lib $FindBin::Bin; use Sinter;`
package Sinter;
use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use FindBin;
our @EXPORT = qw($sinter $dir says put npy);
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";
our $sinter = ($ENV{SNT_BUILD} // 'build/release') . '/sinter';
our $dir = tempdir(CLEANUP => 1);

# A command's exit code, and what it said on both streams.
sub says { my $said = `@_ 2>&1`; return ($? >> 8, $said) }

# A file of the folder; its path.
sub put {
  my ($name, $bytes) = @_;
  open my $out, '>:raw', "$dir/$name" or die $!;
  print $out $bytes;
  close $out or die $!;
  return "$dir/$name";
}

# The same, of a tensor: numpy's word for its type ('<f4'), its extents, its bytes.
sub npy {
  my ($name, $type, $dims, $bytes) = @_;
  my $head = "{'descr': '$type', 'fortran_order': False, 'shape': (" . join('', map { "$_," } @$dims) . '), }';
  $head .= ' ' x (63 - (10 + length $head) % 64) . "\n";
  return put($name, "\x93NUMPY\x01\x00" . pack('v', length $head) . $head . $bytes);
}
1;
