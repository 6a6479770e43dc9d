#!/usr/bin/perl
# The renderer of examples/frame in a window of a virtual X server, under the validation layers: what the screen shows is the frame that was drawn, and
# after another client has made the window larger, a swapchain of that size. Needs Xvfb and a build with GLFW. Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
use IO::Socket::UNIX;
use POSIX ':sys_wait_h';
use Time::HiRes qw(sleep time);
plan skip_all => 'Xvfb is not here' unless grep { -x "$_/Xvfb" } split /:/, $ENV{PATH};

sub wait_for {    # until it is true, a minute at most
  my ($true) = @_;
  for (my $end = time + 60; time < $end; sleep 0.02) { return 1 if $true->() }
  return 0;
}

# ---- a server of our own, and what its screen shows ----
$^F = 255;    # the server inherits its end of the pipe
pipe my $number, my $write or die $!;
my $server = fork // die $!;
if (!$server) {
  open STDERR, '>', '/dev/null';
  exec 'Xvfb', '-displayfd', fileno $write, '-screen', 0, '1024x640x24', '-nolisten', 'tcp', '-ac', '-fbdir', $dir or exit 1;
}
close $write;
chomp(my $display = <$number> // '');
END { kill 'TERM', $server if $server }
plan skip_all => 'Xvfb does not start' unless $display =~ /^\d+$/;
delete $ENV{WAYLAND_DISPLAY};
$ENV{DISPLAY} = ":$display";

my ($screen_width, $screen_height) = (1024, 640);
sub screen {    # rows of pixels, four bytes each, blue first: the end of the server's dump
  my $dump = slurp("$dir/Xvfb_screen0");
  return substr $dump, -4 * $screen_width * $screen_height;
}
sub brightness_at { my ($x, $y) = @_; my @bgr = unpack 'C3', substr screen(), 4 * ($y * $screen_width + $x), 3; return $bgr[0] + $bgr[1] + $bgr[2] }

# A screen's upper left, 640 x 360, as screen.npy; the mean difference of a frame to it.
sub write_screen {
  my ($screen) = @_;
  my @planes = ('', '', '');
  for my $y (0 .. 359) {
    my @bytes = unpack 'C*', substr $screen, 4 * $y * $screen_width, 4 * 640;
    for my $c (0 .. 2) { $planes[$c] .= pack 'f<*', map { $bytes[4 * $_ + 2 - $c] / 255 } 0 .. 639 }
  }
  npy('screen.npy', '<f4', [1, 3, 360, 640], join '', @planes);
}
sub difference {
  my ($frame) = @_;
  my $said = `$build/sinter run $dir/compare.snt --device host --input a=$frame:nchw --input b=$dir/screen.npy --output mean=$dir/mean.npy 2>&1`;
  return $? ? do { diag($said); 1 } : unpack 'f<', substr slurp("$dir/mean.npy"), -4;
}
open my $model, '>', "$dir/compare.snt" or die $!;
print $model "graph \@compare(%a: f32[1,3,360,640], %b: f32[1,3,360,640]) {\n  %d = sub %a, %b\n  %e = abs %d\n  %mean = mean %e, axes=[0,1,2,3]\n  return mean=%mean\n}\n";
close $model;

# ---- another client, which makes the one window larger (the X protocol, little endian: X11R7.7, section 8 and appendix B) ----
sub resize {
  my ($width, $height) = @_;
  my $x = IO::Socket::UNIX->new(Peer => "/tmp/.X11-unix/X$display") or return 0;
  my $get = sub { my ($n) = @_; my $all = ''; while (length $all < $n) { sysread $x, $all, $n - length $all, length $all or die "X: $!" } return $all };
  syswrite $x, pack 'a1 x v v v v x2', 'l', 11, 0, 0, 0;
  my ($accepted, $words) = unpack 'C x5 v', $get->(8);
  my $setup = $get->(4 * $words);
  return 0 unless $accepted == 1;
  my ($vendor, $formats) = unpack 'x16 v x3 C', $setup;
  my ($root) = unpack 'V', substr $setup, 32 + ($vendor + 3 & ~3) + 8 * $formats;
  syswrite $x, pack 'C x v V', 15, 2, $root;    # QueryTree
  my ($more, $count) = unpack 'x4 V x8 v', $get->(32);
  my @windows = unpack 'V*', $get->(4 * $more);
  for my $window (@windows) {
    syswrite $x, pack 'C x v V', 14, 2, $window;    # GetGeometry
    my ($w, $h) = unpack 'x16 v v', $get->(32);
    next unless $w == 640 && $h == 360;
    syswrite $x, pack 'C x v V v x2 V V', 12, 5, $window, 4 | 8, $width, $height;    # ConfigureWindow
    syswrite $x, pack 'C x v V', 14, 2, $window;
    ($w, $h) = unpack 'x16 v v', $get->(32);
    return $w == $width && $h == $height;
  }
  return 0;
}

for my $driver (['llvmpipe', 'lavapipe'], ['SwiftShader', 'SwiftShader']) {
  my ($part, $name) = @$driver;
  my $out = "$dir/$name";
  mkdir $out;
  my $frame = fork // die $!;
  if (!$frame) {
    open STDOUT, '>', "$out/said";
    open STDERR, '>&', \*STDOUT;
    exec "$build/examples/frame", '--device', $part, '--window', '--frames', 60, '--validate', '--out', $out or exit 1;
  }
  my $ended = 0;
  my $reaches = sub {
    my ($n) = @_;
    return wait_for(sub { $ended ||= waitpid($frame, WNOHANG) == $frame; $ended || -e sprintf '%s/frame%03d.png', $out, $n });
  };
  $reaches->(2);
  SKIP: {
    my $said = slurp("$out/said");
    skip("$name: $said", 4) if $ended && $said =~ /^frame: (?:no Vulkan device|libvulkan|VK_LAYER_KHRONOS|there is no display|a queue that presents|VK_KHR_swapchain)/;
    kill 'STOP', $frame;
    sleep 0.2;
    write_screen(screen());
    kill 'CONT', $frame;
    $reaches->(8);    # written when their slot is used again: by now those that the screen may have shown are
    kill 'STOP', $frame;
    my ($least) = sort { $a <=> $b } map { difference(sprintf '%s/frame%03d.png', $out, $_) } 0 .. 7;
    ok($least < 0.005, "$name: the screen shows a frame") or diag("the nearest differs by $least");
    ok(resize(960, 540), "$name: the window is made larger");
    kill 'CONT', $frame;
    my $wide = wait_for(sub { $ended ||= waitpid($frame, WNOHANG) == $frame; $ended || brightness_at(900, 30) > 60 });
    ok($wide && !$ended, "$name: and the frames with it");
    waitpid $frame, 0 unless $ended;
    $said = slurp("$out/said");
    like($said, qr/^[^\n]*: 60 frames in a window, [123] kernels a frame\n\z/, "$name: all frames are shown, and the layers say nothing");
  }
}
done_testing();
