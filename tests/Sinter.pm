# What scripts of tests begin with: they stand in the project's root and speak TAP 13, `$build` is the build under test, `$sinter` its command, `$dir` a folder
# that goes when they end. `use FindBin; use lib $FindBin::Bin; use Sinter;`
package Sinter;
use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;
our @EXPORT = qw($build $sinter $dir says lacks slurp put npy array numbers python_with);
chdir "$FindBin::Bin/.." or die $!;
print "TAP version 13\n";
our $build = $ENV{SNT_BUILD} // 'build/release';
our $sinter = "$build/sinter";
our $dir = tempdir(CLEANUP => 1);

# A command's exit code (128 and more: a signal's), and what it said on both streams.
sub says { my $said = `@_ 2>&1`; return ($? & 127 ? 128 + ($? & 127) : $? >> 8, $said) }

# Why a device cannot be asked, or ''. By what there is, never by what a run says: one that fails has failed.
my %here;
sub lacks {
  my ($device) = @_;
  return '' if $device =~ /^(?:host|interp)\b/;
  return (grep { !system("command -v $_ >/dev/null") } qw(c++ g++ clang++)) ? '' : 'cuda-text has no compiler here' if $device eq 'cuda-text';
  %here = map { /^(\S+)/ ? ($1 => 1) : () } split /\n/, `$sinter devices 2>/dev/null` if !%here;
  return $here{$device} ? '' : "$device is not here";
}

# A file's bytes. Of one that is not there, what no file holds: two of them may not pass for the same.
sub slurp { my ($path) = @_; open my $in, '<:raw', $path or return "cannot read $path"; local $/; return <$in> // '' }

# A file of the folder, or one by its whole path; its path.
sub put {
  my ($name, $bytes) = @_;
  my $path = $name =~ m{^/} ? $name : "$dir/$name";
  open my $out, '>:raw', $path or die $!;
  print $out $bytes;
  close $out or die $!;
  return $path;
}

# The same, of a tensor: numpy's word for its type ('<f4'), its extents, its bytes.
sub npy {
  my ($name, $type, $dims, $bytes) = @_;
  my $head = "{'descr': '$type', 'fortran_order': False, 'shape': (" . join('', map { "$_," } @$dims) . '), }';
  $head .= ' ' x (63 - (10 + length $head) % 64) . "\n";
  return put($name, "\x93NUMPY\x01\x00" . pack('v', length $head) . $head . $bytes);
}

# A tensor of f32 or f64 from its file: its extents ("2 3", or "none" when it is not there), its elements.
sub array {
  my ($path) = @_;
  my $bytes = slurp($path);
  return 'none' unless $bytes =~ /^\x93NUMPY/;
  my $length = unpack 'v', substr $bytes, 8, 2;
  my $head = substr $bytes, 10, $length;
  my ($shape) = $head =~ /'shape': \(([^)]*)\)/;
  return (join(' ', $shape =~ /(\d+)/g), unpack(($head =~ /'<f8'/ ? 'd' : 'f') . '<*', substr $bytes, 10 + $length));
}
sub numbers { my (undef, @elements) = array(@_); return @elements }

# The system's Python, whose packages these are; without them the script is skipped.
sub python_with {
  my ($modules, @packages) = @_;
  my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';
  plan skip_all => join(', ', map { "python3-$_" } @packages) . ' are not installed' if system("cd /; $python -c 'import $modules' 2>/dev/null");
  plan skip_all => 'sinter was built without ONNX' if `$sinter onnx-test 2>&1` =~ /unknown command/;
  return $python;
}
1;
