#!/usr/bin/perl
# Other systems, processors and compilers: the library is built for and by them (cmake/cross), and what it makes of graphs there (tests/cross/answers.c, under Wine and
# QEMU) is what it makes of them here: programs byte for byte, and of reproducible ones the bits of all results. With SNT_TEST_FULL 32 bits and big endian, too;
# where the highest byte is first, programs have another order of bytes, and results are compared number by number. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my @systems = ( # name, compiler, what runs its programs, the order of bytes, one of how many graphs; only with SNT_TEST_FULL
  ['windows', 'x86_64-w64-mingw32-gcc', 'wine', 'little', 1],
  ['clang', 'clang', '', 'little', 3],
  ['aarch64', 'aarch64-linux-gnu-gcc', 'qemu-aarch64-static -L /usr/aarch64-linux-gnu', 'little', 5],
  ['armhf', 'arm-linux-gnueabihf-gcc', 'qemu-arm-static -L /usr/arm-linux-gnueabihf', 'little', 5, 1],
  ['s390x', 's390x-linux-gnu-gcc', 'qemu-s390x-static -L /usr/s390x-linux-gnu', 'big', 5, 1],
);
my @graphs = sort glob 'tests/patterns/*.snt';
my $flags = '-std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -Iapi/include';
# Wine's own folder, no windows, no questions.
@ENV{'WINEPREFIX', 'WINEDEBUG', 'WINEDLLOVERRIDES', 'DISPLAY'} = ("$dir/wine", '-all', 'mscoree,mshtml,winemenubuilder=', '');

# Headers that only name what drivers have, without the rest of this system's.
my $headers = "$dir/headers";
mkdir $headers;
for my $name ('vulkan', 'vk_video', 'CL') {
  my ($there) = grep { -d } "/usr/include/$name", "/usr/local/include/$name";
  symlink $there, "$headers/$name" if $there;
}

my ($code, $said) = says("cc $flags tests/cross/answers.c -I$build/generated/include -L$build -lsinter -Wl,-rpath,\$(realpath $build) -o $dir/answers");
is($code, 0, 'here: the program') or BAIL_OUT($said);
my $saved = "$dir/saved.sntp";
is(system("$dir/answers --save dgpu tests/patterns/p16_winograd.snt $saved"), 0, 'here: a program is saved');
like(scalar `$dir/answers --load $saved`, qr/^dgpu: \d+ kernels$/, 'here: and loaded');

for my $system (@systems) {
  my ($name, $compiler, $runner, $order, $step, $full) = @$system;
  my $reads = $order eq 'little';
  my ($command) = $runner =~ /^(\S+)/;
  SKIP: {
    skip("$name: SNT_TEST_FULL is not set", 1) if $full && !$ENV{SNT_TEST_FULL};
    for my $tool (grep { defined } $compiler, $command) { skip("$name: $tool is not installed", 1) if system("command -v $tool >/dev/null") }
    my $empty = put('empty.c', "int main(void) { return 42; }\n");
    skip("$name: its programs do not run here", 1) if system("$compiler $empty -o $dir/empty.exe") || (says("$runner $dir/empty.exe"))[0] != 42;
    my $there = "$build/cross/$name";
    ($code, $said) = says("cmake -S . -B $there -G Ninja --toolchain cmake/cross/$name.cmake -DCMAKE_BUILD_TYPE=Release -DSINTER_BUILD_TOOLS=OFF "
      . "-DSINTER_VULKAN_INCLUDE=$headers -DSINTER_OPENCL_INCLUDE=$headers && cmake --build $there");
    is($code, 0, "$name: the libraries") or do { diag(substr $said, -4000); next };
    ($code, $said) = says("$compiler $flags -D__USE_MINGW_ANSI_STDIO=1 tests/cross/answers.c -I$there/generated/include -L$there -lsinter "
      . ($name eq 'windows' ? '-static-libgcc' : '-Wl,-rpath,$(realpath ' . $there . ')') . " -o $there/answers.exe");
    is($code, 0, "$name: the program") or do { diag($said); next };
    my @some = map { $graphs[$step * $_] } 0 .. $#graphs / $step;
    my $here = `$dir/answers @some`;
    (my $got = `$runner $there/answers.exe @some 2>$dir/err`) =~ s/\r//g;
    my @here = split /\n/, $here;
    my @got = split /\n/, $got;
    is(scalar @here, 7 * @some, "$name: answers of " . @some . ' graphs');
    cmp_ok(scalar(grep { / interp [0-9a-f]{16}$/ } @here), '>', 0.9 * @some, "$name: results of most");
    my @other = grep { ($got[$_] // 'nothing') ne $here[$_] } 0 .. $#here;
    @other = grep { $here[$_] =~ / interp / } @other if $order eq 'big';
    is(scalar @other, 0, "$name: the same as here") or diag(map({ "here $here[$_], there " . ($got[$_] // 'nothing') . "\n" } @other[0 .. ($#other < 9 ? $#other : 9)]), slurp("$dir/err"));
    (my $loaded = `$runner $there/answers.exe --load $saved 2>&1`) =~ s/\r//g;
    like($loaded, $reads ? qr/^dgpu: \d+ kernels$/m : qr/byte order/, "$name: loads what is saved here" . ($reads ? '' : ', no: it says why'));
    next if $name ne 'windows';
    my $needs = `objdump -p $there/libsinter.dll`;
    is(join(' ', sort map { lc } $needs =~ /DLL Name: (\S+)/g), 'kernel32.dll msvcrt.dll', "$name: the library needs nothing that Windows lacks");
    my @exported = `objdump -p $there/libsinter-runtime.dll` =~ /^\s+\[\s*\d+\](?: \+base\[\s*\d+\]\s+\S+)? (snt_\w+)$/mg;
    is(join(' ', sort @exported), join(' ', sort split /\n/, slurp('cmake/sinter-runtime.symbols')), "$name: the runtime library shows its own names");
  }
}
done_testing;
