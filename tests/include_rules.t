#!/usr/bin/perl
# Who may include whom, headers that stand alone, and what the shared library shows and needs. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::Bin;
use Sinter;

# The table of ARCHITECTURE.md. A folder may always include itself; `file` rows name the only files that have the right.
my %may = (
  'ir'             => [],
  'cost_targets'   => ['ir'],
  'fusion'         => ['ir', 'cost_targets'],
  'codegen_common' => ['ir'],
  'codegen_opencl' => ['ir', 'codegen_common'],
  'codegen_spirv'  => ['ir', 'codegen_common'],
  'codegen_cuda'   => ['ir', 'codegen_common'],
  'runtime'        => ['ir', 'cost_targets'], # a device carries its profile
  'api'            => ['ir', 'cost_targets', 'fusion', 'codegen_common', 'codegen_opencl', 'codegen_spirv', 'codegen_cuda', 'runtime'],
  'door'           => ['ir', 'api', 'runtime'],
  'runtime_only'   => ['ir', 'api', 'cost_targets'], # what libsinter-runtime has in place of a compiler
  'onnx'           => ['ir', 'api'],
  'tools/host'     => ['api', 'ir'], # ir: checksums
  'tools/pictures' => ['api'],
  'tools/sinter'   => ['api', 'ir', 'fusion', 'cost_targets', 'codegen_common', 'tools/host', 'tools/pictures'],
  'conformance'    => ['api', 'ir', 'tools/host', 'tests'],
  'bench'          => ['api', 'tools/host', 'tests'],
  'examples'       => ['api', 'tools/host'],
);
my %file_may = (
  'runtime/targets.c' => ['codegen_common', 'codegen_opencl', 'codegen_spirv', 'codegen_cuda'], # the table of generators
  'runtime/targets.h' => ['codegen_common'],
);

sub folder_of {
  my ($path) = @_;
  return $1 if $path =~ m{^(tools/\w+)/};
  return $1 if $path =~ m{^(\w+)/};
  return '';
}

sub sources { return sort grep { -f } map { glob("$_/*.{c,h,def}"), glob("$_/*/*.{c,h}") } @_ }

# [file, line, target] of each quoted include.
sub includes {
  my ($file) = @_;
  open my $in, '<', $file or die "$file: $!";
  my @found;
  while (<$in>) { push @found, [$file, $., $1] if /^\s*#\s*include\s+"([^"]+)"/ }
  return @found;
}

sub allowed {
  my ($file, $target) = @_;
  my $from = folder_of($file);
  my $to = folder_of($target);
  return 1 if $to eq $from;
  return scalar grep { $_ eq $to } @{$may{$from}}, @{$file_may{$file} // []};
}

for my $folder (sort keys %may) {
  my @wrong;
  for my $file (grep { folder_of($_) eq $folder } sources($folder)) {
    for my $include (includes($file)) {
      my (undef, $line, $target) = @$include;
      push @wrong, "$file:$line: includes $target" if !allowed($file, $target) || !-f $target;
    }
  }
  ok(!@wrong, "$folder includes only itself" . join('', map { ", $_" } @{$may{$folder}})) or diag(join "\n", @wrong);
}

# What stands at the top of a folder is for all of it; a header in a folder of a folder is for the files beside it.
{
  my @wrong;
  for my $file (sources(keys %may)) {
    for my $include (includes($file)) {
      my (undef, $line, $target) = @$include;
      my ($room) = $target =~ m{^((?:ir|fusion|onnx|runtime)/\w+)/} or next;
      push @wrong, "$file:$line: includes $target" if $file !~ m{^$room/};
    }
  }
  is(join("\n", @wrong), '', 'headers of inner folders are included from there');
}

# The folder graph has no cycle: a folder whose every neighbour is already placed can be placed.
{
  my (%placed, $progress);
  do {
    $progress = 0;
    for my $folder (grep { !$placed{$_} } sort keys %may) {
      next if grep { exists $may{$_} && !$placed{$_} } @{$may{$folder}};
      $placed{$folder} = $progress = 1;
    }
  } while ($progress);
  is_deeply([grep { !$placed{$_} } sort keys %may], [], 'the table of folders has no cycle');
}

# No header includes itself through others.
{
  my (%state, @cycle);
  my $visit;
  $visit = sub {
    my ($file, @path) = @_;
    return if ($state{$file} // '') eq 'done' || @cycle;
    if (($state{$file} // '') eq 'open') { @cycle = (@path, $file); return }
    $state{$file} = 'open';
    $visit->($_->[2], @path, $file) for grep { $_->[2] =~ /\.h$/ && -f $_->[2] } includes($file);
    $state{$file} = 'done';
  };
  $visit->($_) for grep { /\.h$/ } sources(keys %may);
  is("@cycle", '', 'no header includes itself through others');
}

# ---- every header compiles alone
my $scratch = tempdir(CLEANUP => 1);
my @flags = ('-I.', '-Iapi/include', "-I$build/generated/include", qw(-Wall -Wextra -Wpedantic -Werror -fsyntax-only));

sub have { my ($tool) = @_; return system("command -v $tool >/dev/null 2>&1") == 0 }

sub compiles {
  my ($compiler, $language, $standard, $text, @more) = @_;
  my $file = "$scratch/alone." . ($language eq 'c++' ? 'cc' : 'c');
  open my $out, '>', $file or die $!;
  print $out "$text\nextern int snt_alone;\n";
  close $out;
  my $said = `$compiler -x $language -std=$standard @flags @more $file 2>&1`;
  diag($said) if $? != 0;
  return $? == 0;
}

my @internal = grep { /\.h$/ && !m{^api/include/} } sources(keys %may);
my @public = glob('api/include/sinter/*.h');
for my $compiler ('gcc', 'clang-14') {
  SKIP: {
    skip("$compiler is not installed", 1) unless have($compiler);
    my @broken = grep { !compiles($compiler, 'c', 'c11', "#include \"$_\"", '-D_DEFAULT_SOURCE', '-DCL_TARGET_OPENCL_VERSION=120') } @internal;
    is("@broken", '', scalar(@internal) . " internal headers each compile alone with $compiler");
  }
  for my $dialect (['c', 'c99'], ['c', 'c11'], ['c++', 'c++11'], ['c++', 'c++17'], ['c++', 'c++20']) {
    my ($language, $standard) = @$dialect;
    my $needs = $language eq 'c++' && $compiler eq 'gcc' ? 'g++' : $compiler;
    SKIP: {
      skip("$needs is not installed", 1) unless have($needs);
      my @broken = grep {
        my $header = $_ =~ s{^api/include/}{}r;
        # Twice: an include guard is part of standing alone.
        !compiles($compiler, $language, $standard, "#include <$header>\n#include <$header>");
      } @public;
      is("@broken", '', scalar(@public) . " public headers each compile alone as $standard with $compiler");
    }
  }
}

# Engines have their own Vulkan headers: ours comes behind theirs, and twice more behind the plain ones.
for my $theirs (['volk.h', 'c', 'c99'], ['volk.h', 'c', 'c11'], ['volk.h', 'c++', 'c++11'], ['volk.h', 'c++', 'c++20'], ['vulkan/vulkan.hpp', 'c++', 'c++11'],
                ['vulkan/vulkan.hpp', 'c++', 'c++20'], ['vulkan/vulkan.h', 'c', 'c99'], ['vulkan/vulkan.h', 'c++', 'c++20']) {
  my ($header, $language, $standard) = @$theirs;
  for my $compiler ($language eq 'c++' ? 'g++' : 'gcc', 'clang-14') {
    SKIP: {
      skip("$compiler is not installed", 1) unless have($compiler);
      skip("no $header", 1) unless -f "/usr/include/$header";
      my $text = "#include <$header>\n#include <sinter/vulkan.h>\n#include <sinter/vulkan.h>\nsnt_vk_attach_info snt_made; VkDevice snt_theirs;";
      ok(compiles($compiler, $language, $standard, $text), "<sinter/vulkan.h> behind <$header> as $standard with $compiler");
    }
  }
}

# ---- what the library shows and needs
SKIP: {
  my $library = "$build/libsinter.so";
  skip("no $library", 3) unless -f $library;
  my @exported = map { (split)[-1] } grep { / [A-Z] / } split /\n/, `nm -D --defined-only $library`;
  my @foreign = grep { !/^snt_/ } @exported;
  is("@foreign", '', 'libsinter.so exports only snt_*');
  diag('it exports nothing') unless @exported;
  my @needed = `readelf -d $library` =~ /\(NEEDED\).*\[([^\]]+)\]/g;
  is(join(' ', grep { !/^lib(c|m|dl)\.so/ && !/^ld-linux/ } @needed), '', 'libsinter.so needs only libc, libm and libdl');
  my $archive = "$build/libsinter.a";
  my @loose = grep { !/^snt_/ } map { (split)[-1] } grep { /^\S+ [A-Z] / } split /\n/, `nm -g --defined-only $archive 2>/dev/null`;
  is("@loose", '', 'libsinter.a shows only snt_*');
}

SKIP: {
  my $library = "$build/libsinter-onnx.so";
  skip("no $library", 3) unless -f $library;
  my @exported = map { (split)[-1] } grep { / [A-Z] / } split /\n/, `nm -D --defined-only $library`;
  is(join(' ', grep { !/^snt_onnx_/ } @exported), '', 'libsinter-onnx.so exports only snt_onnx_*');
  my @needed = `readelf -d $library` =~ /\(NEEDED\).*\[([^\]]+)\]/g;
  is(join(' ', grep { !/^lib(c|m|dl|sinter)\.so/ && !/^ld-linux/ } @needed), '', 'libsinter-onnx.so needs only libsinter and libc');
  my @loose = grep { !/^snt_onnx_/ } map { (split)[-1] } grep { /^\S+ [A-Z] / } split /\n/, `nm -g --defined-only $build/libsinter-onnx.a 2>/dev/null`;
  is("@loose", '', 'libsinter-onnx.a shows only snt_onnx_*');
}

# The library keeps no changeable state of its own, and neither prints, ends the process nor reads the environment.
SKIP: {
  my $archive = "$build/libsinter_internal.a";
  skip("no $archive", 2) unless -f $archive;
  my $symbols = `nm -A $archive 2>/dev/null`;
  my @state = $symbols =~ /:([\w.]+\.o):\S+ [bBdDC] (?!__)(\S+)/g;
  my @named;
  while (my ($object, $name) = splice @state, 0, 2) { push @named, "$object:$name" unless $name =~ /^(completed|DW\.ref)/ }
  # Constant tables of pointers lie in .data.rel.ro, which nm shows as d: leave out what the section table says is read-only.
  my %relro = map { $_ => 1 } `objdump -t $archive 2>/dev/null` =~ /\.data\.rel\.ro\S*\s+\S+\s+(?:\.hidden )?(\S+)$/mg;
  is(join(' ', grep { my ($n) = /:(.+)$/; !$relro{$n} } @named), '', 'the library has no global variable that can change');
  my %banned = map { $_ => 1 } qw(printf puts putchar fprintf vprintf perror exit _exit abort getenv setenv longjmp stdout stderr);
  my %used;
  while ($symbols =~ /:([\w.]+\.o):\s+U (\w+)/g) { push @{$used{$2}}, $1 if $banned{$2} }
  is(join(' ', map { "$_ in @{$used{$_}}" } sort keys %used), '', 'the library does not print, end the process or read the environment');
}

# What structs say that they are: one number each, over all public headers.
my %by_number;
for my $header (glob 'api/include/sinter/*.h') {
  my $text = slurp($header);
  while ($text =~ /enum \{\s*(SNT_TYPE_\w+ = \d+[^}]*)\}/g) {
    my $next = 0;
    for (split /,/, $1) { push @{$by_number{$next = $2 // $next}}, $1 and $next++ if /(SNT_TYPE_\w+)(?: = (\d+))?/ }
  }
}
cmp_ok(scalar keys %by_number, '>=', 25, 'the public structs have type numbers');
is(join('; ', map { @{$by_number{$_}} > 1 ? "$_: @{$by_number{$_}}" : () } sort keys %by_number), '', 'no two of them the same');

done_testing();
