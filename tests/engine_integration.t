#!/usr/bin/perl
# docs/engine-integration.md as a new user takes it: its blocks of code, put together, compile as C99 and C11 without a warning, run on this
# machine's Vulkan under the validation layers, and draw what the page says. The examples beside it do too. Output: TAP.
use strict;
use warnings;
use Test::More;
use File::Spec;
use FindBin;
use lib $FindBin::Bin;
use Sinter;

open my $in, '<', 'docs/engine-integration.md' or die $!;
my $page = do { local $/; <$in> };
my @blocks = $page =~ /^```c\n(.*?)^```/msg;
cmp_ok(scalar @blocks, '>=', 7, 'the page has its blocks of code');
open my $out, '>', "$dir/main.c" or die $!;
print $out @blocks;
close $out;

# "Without a compiler": its commands, and its block in place of section 3's.
my ($commands) = $page =~ /^```sh\n(.*?)^```/ms;
my ($loads) = $page =~ /^```c in place of section 3\n(.*?)^```/ms;
my $made = grep { /static void make_program/ } @blocks;
is($made, 1, 'one block makes the program');
open $out, '>', "$dir/ahead.c" or die $!;
print $out map { /static void make_program/ ? $loads : $_ } @blocks;
close $out;
my ($graph) = map { /graph_text\[\] =\n(.*?);\n\n/s } grep { /static void make_program/ } @blocks;
open $out, '>', "$dir/post.snt" or die $!;
print $out map { "$_\n" } $graph =~ /"(.*)\\n"/g;
close $out;
{
  my @ours = grep { /^sinter / } split /\n/, $commands;
  my $path = File::Spec->rel2abs($build);
  my $said = join '', map { `cd $dir && PATH=$path:\$PATH $_ 2>&1` } @ours;
  ok(@ours == 2 && -s "$dir/post_sntp.h", 'its commands make a header') or diag($said);
  $said = `cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iapi/include -I$build/generated/include $dir/ahead.c $build/libsinter-runtime.a -lvulkan -lm -o $dir/main-ahead 2>&1`;
  is($?, 0, 'it compiles without a compiler in it') or diag($said);
}

for my $standard ('c99', 'c11') {
  my $said = `cc -std=$standard -Wall -Wextra -Wpedantic -Werror -Iapi/include -I$build/generated/include $dir/main.c $build/libsinter.a -lvulkan -lm -ldl -o $dir/main-$standard 2>&1`;
  is($?, 0, "it compiles as $standard") or diag($said);
}
SKIP: {
  my ($icd) = grep { -f } '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json', '/usr/share/vulkan/icd.d/lvp_icd.json';
  skip('no lavapipe', 6) unless $icd;
  local $ENV{VK_ICD_FILENAMES} = $icd;
  local $ENV{VK_INSTANCE_LAYERS} = 'VK_LAYER_KHRONOS_validation' if -f '/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json';
  my $x = 4 * (4 * (24 * 64 + 32)) / (64 * 48);
  my $expected = int(255 * sqrt($x / ($x + 1)) + 0.5);
  for my $program ('main-c11', 'main-ahead') {
    my $said = `$dir/$program 2>&1`;
    ok($? == 0 && $said !~ /Validation/, "$program runs, and the validation layers say nothing") or diag($said);
    my ($kernels, $red) = $said =~ /^(\d+) kernels; the pixel in the middle is (\d+) /m;
    is($kernels, 1, 'the whole pass is one kernel');
    ok(abs(($red // -9) - $expected) <= 1, "the pixel in the middle is $expected") or diag($said);
  }
}
SKIP: {
  skip('no examples', 2) unless -x "$build/examples/describe";
  my $said = `$build/examples/describe 2>&1`;
  is($?, 0, 'examples/describe: the graph and the library agree on the hazards') or diag($said);
  like($said, qr/^pass k\d+_image: .*\n(?:  .*\n)*  writes port 1$/m, 'examples/describe: the last pass writes the image');
}
done_testing();
