#!/usr/bin/perl
# Sizes of files and functions. Only the outer limits fail: 1000 lines a file, 100 a function, 7 parameters; what is listed with a
# reason in tests/style.allow is let through. The longest of each are printed for the reader. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Find;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

my %limit = (file => 1000, function => 100, parameters => 7);
my %look = (file => 600, function => 60, parameters => 5);
my @folders = qw(api ir cost_targets fusion codegen_common codegen_opencl codegen_spirv codegen_cuda runtime door onnx tools conformance bench examples tests);
my @files;
find({no_chdir => 1, wanted => sub { push @files, $_ if /\.[ch]$/ && -f && !m{^tests/golden/} }}, grep { -d } @folders);
@files = sort @files;
plan skip_all => 'no sources' unless @files;

# Lines `kind name  reason`: a file path, or path:function.
my (%allowed, %seen);
if (open my $in, '<', 'tests/style.allow') {
  while (<$in>) { $allowed{"$1 $2"} = $3 if /^(file|function|parameters)\s+(\S+)\s+(\S.*)$/ }
}

my %found = (file => [], function => [], parameters => []);
sub note_size {
  my ($kind, $size, $name) = @_;
  push @{$found{$kind}}, [$size, $name] if $size > $look{$kind};
}

# The lines of a file with comments and the insides of literals blanked, so that braces in them do not count.
sub code_lines {
  my ($file) = @_;
  open my $in, '<', $file or die "$file: $!";
  local $/;
  my $text = <$in>;
  $text =~ s{("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|/\*.*?\*/|//[^\n]*)}{
    my $piece = $1;
    $piece =~ m{^["']} ? '""' : $piece =~ tr/\n//cdr
  }gse;
  return map { "$_\n" } split /\n/, $text;
}

# A function starts on a line in column one that is no directive and no `}`, and whose text up to `{` ends in `)`.
my @median;
for my $file (@files) {
  my @lines = code_lines($file);
  note_size('file', scalar @lines, $file);
  my ($head, $start, $name) = ('', undef, '');
  for my $i (0 .. $#lines) {
    my $line = $lines[$i];
    if (defined $start) {
      next unless $line =~ /^\}/;
      my $length = $i - $start + 1;
      push @median, $length;
      note_size('function', $length, "$file:$name");
      ($start, $head) = (undef, '');
    } elsif ($line =~ /^[#\/ *}]/ && $head eq '') {
      next;
    } else {
      $head .= $line;
      if ($head =~ /\b(\w+)\s*\(((?:[^(){};]|\([^()]*\))*)\)\s*\{/) {
        ($name, my $parameters) = ($1, $2);
        note_size('parameters', 1 + ($parameters =~ tr/,//), "$file:$name");
        $start = $i unless $line =~ /\}\s*$/;
        push @median, 1 unless defined $start;
        $head = '';
      } elsif ($line =~ /[;}]\s*(?:\/[*\/].*)?$/ || $line =~ /^\s*$/) {
        $head = '' unless $head =~ /\{/ && $line !~ /^\}/;
      }
    }
  }
}

for my $kind (qw(file function parameters)) {
  my @sorted = sort { $b->[0] <=> $a->[0] } @{$found{$kind}};
  my @over = grep { $_->[0] > $limit{$kind} } @sorted;
  $seen{"$kind $_->[1]"} = 1 for @over;
  @over = grep { !$allowed{"$kind $_->[1]"} } @over;
  ok(!@over, "no $kind over $limit{$kind}") or diag(join "\n", map { "$_->[0]  $_->[1]" } @over);
  note("$kind: look again at those over $look{$kind}", map { "\n$_->[0]  $_->[1]" } @sorted > 12 ? @sorted[0 .. 11] : @sorted) if @sorted;
}
@median = sort { $a <=> $b } @median;
note(sprintf '%d functions in %d files: median %d lines, nine in ten at most %d', scalar @median, scalar @files, $median[@median / 2],
  $median[0.9 * @median]);
is(join(' ', grep { !$seen{$_} } sort keys %allowed), '', 'nothing in tests/style.allow that no longer needs it');

# Habits of the text itself.
my (@wide, @tabs, @machine);
for my $file (@files) {
  open my $in, '<', $file or die $!;
  while (<$in>) {
    push @wide, "$file:$." if length > 161 && !m{^tests/} && !/"/; # tables of text may be wider
    push @tabs, "$file:$." if /\t/;
    push @machine, "$file:$." if m{["'\s(=]/(?:work|root|home)/};
  }
}
is("@tabs", '', 'no tab in a source');
is("@machine", '', 'no path of one machine in a source');
is(join(' ', grep { !-x } glob('tests/*.t')), '', 'every test can be executed');
note("lines over 160 columns: @wide") if @wide;
# The layout is clang-format's (tables stand between `clang-format off` and `on`); other versions lay out differently, so only one is asked.
my ($format) = grep { `$_ --version 2>&1` =~ /version 14\./ } qw(clang-format-14 clang-format);
SKIP: {
  skip 'clang-format 14 was not found', 1 unless $format;
  my @unlike = grep { /warning|error/ } map { split /\n/ } `$format --dry-run @files 2>&1`;
  is(join("\n", map { s/:\d+: (warning|error).*//r } @unlike[0 .. (@unlike < 20 ? $#unlike : 19)]), '', 'the layout of .clang-format: run clang-format -i on these');
}
done_testing();
