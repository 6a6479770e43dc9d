#!/usr/bin/perl
# ThreadSanitizer over what a game calls in its frames: libsinter-runtime's sources and tests/threads/threads.c are compiled with it here (the rest of
# the library is not needed, so that this takes seconds), and eight threads make pipelines, set and record. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
my $cc = $ENV{CC} // 'cc';

sub run { my ($command) = @_; my $said = `$command 2>&1`; return ($? == 0, $said) }

put("$dir/none.c", "int main(void) { return 0; }\n");
my ($has) = run("$cc -fsanitize=thread $dir/none.c -o $dir/none && $dir/none");
plan skip_all => 'ThreadSanitizer does not run here' unless $has;
plan skip_all => "$build/sinter is not built" unless -x "$build/sinter";

# The sanitizer sees races at all: a program with one.
put("$dir/race.c", "#include <pthread.h>\nstatic int n;\nstatic void *add(void *p) { for (int i = 0; i < 1000; i++) n++; return p; }\n"
    . "int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); pthread_join(t, 0); return n == 0; }\n");
run("$cc -g -fsanitize=thread $dir/race.c -o $dir/race -lpthread");
my (undef, $race) = run("TSAN_OPTIONS=exitcode=66 $dir/race");
like($race, qr/data race/, 'a race is seen where there is one');

my ($list) = do { local $/; open my $in, '<', 'cmake/SinterRuntime.cmake' or die $!; <$in> =~ /set\(SINTER_RUNTIME_SOURCES(.*?)\)/s };
my @sources = (split(' ', $list), 'tests/unit/vk_fake.c', 'tests/threads/threads.c');
my $flags = "-std=c11 -O1 -g -fPIE -ffunction-sections -fdata-sections -fsanitize=thread -D_POSIX_C_SOURCE=200809L -DEXPR_KNOWN=0 -I. -Iapi/include -I$build/generated/include";
open my $jobs, '|-', "xargs -P2 -n4 sh -c 'for f; do $cc $flags -c \$f -o $dir/\$(echo \$f | tr / _).o || exit 255; done' sh" or die $!;
print $jobs "$_\n" for @sources;
ok(close $jobs, scalar(@sources) . ' files are compiled with ThreadSanitizer');
my ($linked, $said) = run("$cc -fsanitize=thread -Wl,--gc-sections -o $dir/threads $dir/*.o -lm -lpthread");
ok($linked, 'and linked') or diag($said);

put("$dir/frame.snt", <<'END');
symbols { n: min=1 max=4096 multiple_of=1 hint=512 }
graph @frame(%x: f32[n,64], %k: f32[]) {
  %w: f32[64,64] = const normal seed=3 scale=0.125
  %p: f32[n,64] = matmul %x, %w
  %kk: f32[n,64] = broadcast %k, axes=[], shape=[n,64]
  %q = mul %p, %kk
  %y: f32[n,64] = softmax %q, axis=1
  %t: f32[64,n] = transpose %y, perm=[1,0]
  %u: f32[64,n] = softmax %t, axis=1
  return u=%u
}
END
my ($compiled, $why) = run("$build/sinter compile $dir/frame.snt --target spirv --profile dgpu --mask vulkan11-min -o $dir/frame.sntp --quiet");
ok($compiled, 'a program is saved') or diag($why);
for my $path ('sets', 'push') {
  my ($clean, $told) = run("TSAN_OPTIONS=exitcode=66:halt_on_error=0 $dir/threads $dir/frame.sntp $path");
  ok($clean, "$path: no race: " . ($told =~ /^(\d+ threads.*)$/m ? $1 : '')) or diag(substr $told, 0, 4000);
}
done_testing;
